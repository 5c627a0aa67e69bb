"""Models that a server runs, in the places of those that run here: how servers are reached, what they are
asked, what their answers mean, and classifiers and the verifier made of that.

- Open Inference Protocol, version 2 (Triton, KServe, MLServer, OpenVINO Model Server):
  https://github.com/kserve/open-inference-protocol, and KServe's docs/predict-api/v2/required_api.md.
- text-embeddings-inference: its docs/openapi.json, version 1.7.
- vLLM: its docs/models/pooling_models and vllm/entrypoints/pooling, version 0.32.

All are given windows that were cut with the model's own tokenizer, and never truncate: a pair that is too
long is an error. Errors repeat nothing that a server says, since it may repeat texts.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Final, TypeAlias, TypeVar
from urllib.parse import quote

from guardrail.calls import Call, Caller, Failure, server_of
from guardrail.calls.http import HttpServer
from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.judges.http import request_headers
from guardrail.judges.model.classifier import BATCH_SIZE, Part, Scores, ServedModel
from guardrail.judges.model.settings import SECTION, ClassifierSettings, ServerSettings
from guardrail.judges.model.tokens import IDS, MASK, TYPES, Pair, Tokens, padded

_T = TypeVar("_T")

# -------------------------------------------------------------------------------------------------- the calls

MOST_RETRIES: Final = 2
_CLOSED: Final = "the judge is closed"
_LATE: Final = "the model server gave no answer within the deadline"
_MOST_REPLY_BYTES: Final = 8_000_000
_MOST_SEARCHED: Final = 2_000  # characters of an error
_TOKENS: Final = re.compile(
    r"tokens|context length|input length|max_model_len|sequence length", re.IGNORECASE
)
_REMEDIES: Final = {
    401: "check headers",
    403: "check headers",
    404: "check kind, url and model",
    424: "its model failed, or is not a classifier: see the server's log",
}


class ServerRefused(JudgeError):
    """The server can't or won't answer such a request, with this HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ServerCalls:
    """Calls to one model on one server, on an event loop of their own: judges of any loop, and threads, share
    them.
    """

    def __init__(self, settings: ServerSettings, section: str, name: str) -> None:
        """``section`` is where the settings stand, for errors; ``name`` the judge's, for the log.

        Asks nothing yet: a server that is restarted doesn't keep guards from starting. Raises ConfigError
        for a file that can't be used.
        """
        self.section = section
        self._timeout_s = settings.timeout_ms / 1000
        self._caller = Caller(name, settings.model or name, settings.max_concurrency)
        headers = request_headers(settings.headers, section)
        self._server = HttpServer(
            settings.url, headers, settings.max_concurrency, server_of(settings.url), section, self._refused
        )
        self._takes: ServerTakes | None = None
        self._learning = asyncio.Lock()  # of this loop
        self._closed = False
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self._thread.start()

    def start(self, work: Callable[[], Coroutine[Any, Any, _T]], deadline: float) -> Future[_T]:
        """Runs ``work`` on the calls' own loop, until ``deadline`` (``time.monotonic()``). Cancelling the
        future cancels it, and its calls. Raises JudgeUnavailable once closed.
        """
        if self._closed:
            raise JudgeUnavailable(_CLOSED)
        return asyncio.run_coroutine_threadsafe(self._bounded(work, deadline), self.loop)

    async def _bounded(self, work: Callable[[], Coroutine[Any, Any, _T]], deadline: float) -> _T:
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())) as scope:
                return await work()
        except TimeoutError:
            if not scope.expired():
                raise
            raise JudgeUnavailable(_LATE) from None
        except asyncio.CancelledError:
            if self._closed:  # who waits must not take itself for cancelled
                raise JudgeUnavailable(_CLOSED) from None
            raise

    async def ask(self, path: str, body: bytes | None, deadline: float, response_id: str = "") -> Any:
        """The JSON that the server answers to a POST of ``body``, or to a GET if it is None; None for an
        empty answer. On that loop only.

        ``deadline`` is a reading of ``time.monotonic()``. Calls of different ``response_id`` take turns when
        they have to wait. Raises JudgeError.
        """
        until = self.loop.time() + deadline - time.monotonic()
        call = _JsonCall(self._server, self.section, self._timeout_s, path, body)
        outcome = await self._caller.run(call, until, response_id, retries=MOST_RETRIES)
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome

    async def learned(
        self, learn: Callable[[ServerCalls, float], Awaitable[ServerTakes]], deadline: float
    ) -> ServerTakes:
        """What ``learn`` finds, which asks the server once. On that loop only. Raises JudgeError."""
        async with self._learning:
            if self._takes is None:
                self._takes = await learn(self, deadline)
            return self._takes

    async def aclose(self) -> None:
        """Cancel what runs, close the connections and end the thread."""
        if self._closed:
            return
        self._closed = True
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._end(), self.loop))
        self.loop.call_soon_threadsafe(self.loop.stop)
        await asyncio.to_thread(self._thread.join)

    def close(self) -> None:
        """``aclose`` for callers without a loop. Blocks."""
        asyncio.run(self.aclose())

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._server.aclose()
        await self.loop.shutdown_default_executor()

    def _refused(self, answered: str, status: int, said: str) -> ServerRefused:
        remedy = _REMEDIES.get(status, "see what it expects in its log")
        if status in {400, 413, 422} and _TOKENS.search(said[:_MOST_SEARCHED]):
            remedy = (
                "the pair has more tokens than it takes: give the tokenizer of the model that it serves, and "
                "write how many it reads as max_position_embeddings into config.json"
            )
        return ServerRefused(f"{answered}; {self.section}: {remedy}", status)


@dataclass(eq=False)
class _JsonCall(Call[Any]):
    """The JSON of one answer; None is an empty one."""

    timed: ClassVar[bool] = False  # the time of a call depends on its pairs
    server: HttpServer
    section: str
    timeout_s: float
    path: str
    body: bytes | None

    async def run(self) -> Any:
        try:
            async with asyncio.timeout(self.timeout_s) as scope:
                found = await self.server.send(self.path, self.body, _MOST_REPLY_BYTES)
        except TimeoutError:
            if not scope.expired():
                raise
            slow = JudgeUnavailable(f"{self.server.name} gave no answer within {self.timeout_s:g} s")
            found = Failure(slow, retry=True, fault=True, overload=True)
        if isinstance(found, Failure):
            return self.broke_off(found)
        try:
            return json.loads(found) if found.strip() else None
        except (ValueError, RecursionError):
            told = f"what {self.server.name} answers is not JSON; {self.section}: check kind and url"
            return self.broke_off(Failure(JudgeReplyError(told), retry=False, fault=True))

    def out_of_time(self) -> str:
        return _LATE


# -------------------------------------------------------------------------------------------------- protocols

_NOT_READY: Final = frozenset({400, 404})  # Triton's, for a model that isn't loaded; MLServer's
_INTEGERS: Final = frozenset({"INT64", "INT32"})
_OTHER_MODEL: Final = "serve the model that judge.classifier.model names"
_LEAST_SHARE: Final = 1e-12  # a probability of 0 has no logit


@dataclass(frozen=True, slots=True)
class ServerTakes:
    """What the server takes, as far as it says."""

    max_tokens: int | None = None
    batch_size: int = BATCH_SIZE


def _count(value: object) -> int | None:
    """A number of something that a server tells; None if it is none."""
    return value if type(value) is int and value > 0 else None


def _listed(told: Any, name: str) -> list[dict[str, Any]]:
    """The objects in a list that a server tells by this name; none if there is no such list."""
    listed = told.get(name) if isinstance(told, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def _unusable(what: str, remedy: str) -> JudgeReplyError:
    return JudgeReplyError(f"the model server's reply {what}; {SECTION}.server: {remedy}")


# ------------------------------------------------------------------------- Open Inference Protocol, version 2


@dataclass(slots=True)
class OipModel:
    """A model that takes rows of tokens, and the tensors that it says it takes.

    Servers that say nothing of a model's tensors are given what BERT takes.
    """

    name: str
    section: str
    outputs: tuple[str, ...] = ()
    """Names of those that must be there; empty: any one will do."""
    inputs: dict[str, str] = field(default_factory=lambda: dict.fromkeys((IDS, MASK, TYPES), "INT64"))

    async def learn(self, calls: ServerCalls, deadline: float) -> ServerTakes:
        """Ask whether it is ready, and what it takes and gives. Raises JudgeError."""
        path = f"/v2/models/{quote(self.name, safe='')}"
        not_ready = (
            f"the model {self.name} is not ready: load it on the server, or check {self.section}.model"
        )
        try:
            ready = await calls.ask(f"{path}/ready", None, deadline)
        except ServerRefused as error:
            if error.status in _NOT_READY:
                raise JudgeUnavailable(not_ready) from None
            raise
        if isinstance(ready, dict) and ready.get("ready") is False:  # KServe says so with a 200
            raise JudgeUnavailable(not_ready)
        told = await calls.ask(path, None, deadline)
        taken = {name: kind for name, kind, _ in _tensors(told, "inputs")}
        if taken:
            if IDS not in taken or taken.keys() - {IDS, MASK, TYPES} or set(taken.values()) - _INTEGERS:
                raise JudgeReplyError(
                    f"the model {self.name} takes {_shown(taken)}; a classifier of pairs takes {IDS} and "
                    f"at most {MASK} and {TYPES}, as INT64: check {self.section}.model"
                )
            self.inputs = taken
        given = tuple(name for name, _, _ in _tensors(told, "outputs"))
        if given and not set(self.outputs) <= set(given):
            raise JudgeReplyError(
                f"the model {self.name} gives {_shown(given)}, not {', '.join(self.outputs)}: check "
                f"{self.section}.model"
            )
        return ServerTakes()

    def asked(self, batch: Sequence[Tokens], pad_id: int = 0) -> tuple[str, bytes]:
        """Path and body that ask about a batch; rows are padded with ``pad_id``."""
        rows = padded(batch, pad_id)
        shape = [len(batch), len(rows[IDS][0])]
        body: dict[str, Any] = {
            "inputs": [
                {"name": name, "shape": shape, "datatype": kind, "data": [*chain(*rows[name])]}
                for name, kind in self.inputs.items()
            ]
        }
        if self.outputs:
            body["outputs"] = [{"name": name} for name in self.outputs]
        path = f"/v2/models/{quote(self.name, safe='')}/infer"
        return path, json.dumps(body, separators=(",", ":")).encode()

    def output(self, reply: Any, name: str | None = None) -> tuple[list[int], list[float]]:
        """Shape and values of an output; without a name of ``logits``, or of the only one."""
        found = {each: _values(tensor) for each, _, tensor in _tensors(reply, "outputs")}
        chosen = name or ("logits" if "logits" in found or len(found) != 1 else next(iter(found)))
        if chosen not in found:
            raise JudgeReplyError(
                f"the reply has no output {chosen}; {self.section}: check kind, url and model"
            )
        return found[chosen]


def _shown(names: Iterable[str]) -> str:
    return ", ".join(ascii(name[:40]) for name in sorted(names)[:10])


def _tensors(told: Any, which: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for each in _listed(told, which):
        if isinstance(each.get("name"), str):
            yield each["name"], str(each.get("datatype")), each


def _values(tensor: dict[str, Any]) -> tuple[list[int], list[float]]:
    """Shape and values."""
    shape = tensor.get("shape")
    data = list(_flat(tensor.get("data")))
    if (
        not isinstance(shape, list)
        or not all(type(size) is int for size in shape)
        or math.prod(shape) != len(data)
    ):
        raise JudgeReplyError("an output of the reply has another number of values than its shape")
    return shape, data


def _flat(data: Any) -> Iterator[float]:
    """The values of a tensor, which may come flat or nested."""
    if isinstance(data, list):
        for each in data:
            yield from _flat(each)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield float(data)
    else:
        raise JudgeReplyError("an output of the reply holds something other than numbers")


class OipClassifier:
    """``/v2/models/M/infer`` with the tokens of pairs."""

    def __init__(self, server: ServerSettings, served: ServedModel) -> None:
        self._model = OipModel(server.model or "", f"{SECTION}.server")
        self._served = served

    async def learn(self, calls: ServerCalls, deadline: float) -> ServerTakes:
        return await self._model.learn(calls, deadline)

    def asked(self, parts: Sequence[Part]) -> tuple[str, bytes]:
        return self._model.asked([tokens for _, tokens in parts], self._served.pad_id)

    def rows(self, reply: Any, parts: Sequence[Part]) -> list[list[float]]:
        shape, values = self._model.output(reply)
        labels = len(self._served.label_names)
        if len(shape) not in {2, 3} or shape[0] != len(parts) or shape[-1] != labels:
            raise _unusable(
                f"has an output of shape {shape} for {len(parts)} pairs and {labels} labels",
                "name the classifier that judge.classifier.model describes",
            )
        step = math.prod(shape[1:])  # with an output per token, the first token's count
        return [values[at : at + labels] for at in range(0, len(values), step)]


# ---------------------------------------------------------------------------------- text-embeddings-inference


class TeiClassifier:
    """``/predict`` with pairs of texts; labels come by name."""

    def __init__(self, served: ServedModel) -> None:
        self._form = served.reader.form
        self._places = {name: place for place, name in enumerate(served.label_names)}

    async def learn(self, calls: ServerCalls, deadline: float) -> ServerTakes:
        told = await calls.ask("/info", None, deadline)
        kinds = told.get("model_type") if isinstance(told, dict) else None
        if not isinstance(kinds, dict) or not kinds.keys() & {"classifier", "reranker"}:
            raise _unusable("says that it serves no classifier", "give the url of one that does")
        batch = _count(told.get("max_client_batch_size")) or BATCH_SIZE
        return ServerTakes(_count(told.get("max_input_length")), min(BATCH_SIZE, batch))

    def asked(self, parts: Sequence[Part]) -> tuple[str, bytes]:
        texts = [self._form.texts(pair) for pair, _ in parts]
        inputs = [[text] if isinstance(text, str) else list(text) for text in texts]
        return "/predict", json.dumps({"inputs": inputs, "truncate": False, "raw_scores": True}).encode()

    def rows(self, reply: Any, parts: Sequence[Part]) -> list[list[float]]:
        if not isinstance(reply, list) or len(reply) != len(parts):
            raise _unusable(f"has no list of {len(parts)} predictions", "check kind and url")
        return [self._row(predictions) for predictions in reply]

    def _row(self, predictions: Any) -> list[float]:
        row = [math.nan] * len(self._places)
        for each in predictions if isinstance(predictions, list) else []:
            label, score = (each.get("label"), each.get("score")) if isinstance(each, dict) else (None, None)
            place = self._places.get(label) if isinstance(label, str) else None
            if place is None or not isinstance(score, int | float):
                raise _unusable("has a label that the model's config.json lacks", _OTHER_MODEL)
            row[place] = float(score)
        if any(map(math.isnan, row)):
            raise _unusable("lacks a label of the model's config.json", _OTHER_MODEL)
        return row


# ------------------------------------------------------------------------------------------------------- vLLM


def _by_index(reply: Any, parts: Sequence[Part]) -> list[dict[str, Any]]:
    found = {each["index"]: each for each in _listed(reply, "data") if type(each.get("index")) is int}
    if set(found) != set(range(len(parts))):
        raise _unusable(f"has no data for each of {len(parts)} pairs", "check kind and url")
    return [found[number] for number in range(len(parts))]


def _share(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 <= value <= 1.0:
        raise _unusable("has a probability that is not between 0 and 1", "check what it serves")
    return min(1.0 - _LEAST_SHARE, max(_LEAST_SHARE, float(value)))


class VllmClassifier:
    """``/score`` with pairs of texts for models with one label. For others ``/classify`` with the tokens of
    pairs: it takes no pairs of texts.
    """

    def __init__(self, settings: ClassifierSettings, server: ServerSettings, served: ServedModel) -> None:
        """Raises ConfigError for a template that vLLM would have to apply, and for a model that reads which
        text a token is of.
        """
        self._model = server.model or ""
        self._labels = len(served.label_names)
        if self._labels == 1 and settings.template is not None:
            raise ConfigError(
                f"{SECTION}.template is set, but vLLM's /score makes the pair; take it out, and give vLLM "
                "the template as --chat-template"
            )
        if self._labels > 1 and served.takes_types:
            raise ConfigError(
                f"{SECTION}.server: the model reads {TYPES} (type_vocab_size in its config.json), which "
                "vLLM's /classify can't be given; serve it with kind oip or tei"
            )

    async def learn(self, calls: ServerCalls, deadline: float) -> ServerTakes:
        told = await calls.ask("/v1/models", None, deadline)
        for each in _listed(told, "data"):
            if each.get("id") == self._model:
                return ServerTakes(_count(each.get("max_model_len")))
        raise _unusable(f"lists no model {self._model}", "check model")

    def asked(self, parts: Sequence[Part]) -> tuple[str, bytes]:
        body: dict[str, Any] = {"model": self._model, "use_activation": True}
        if self._labels == 1:
            body["queries"] = [pair.premise for pair, _ in parts]
            body["documents"] = [pair.hypothesis for pair, _ in parts]
        else:
            body["input"] = [list(tokens.ids) for _, tokens in parts]
        path = "/score" if self._labels == 1 else "/classify"
        return path, json.dumps(body, separators=(",", ":")).encode()

    def rows(self, reply: Any, parts: Sequence[Part]) -> list[list[float]]:
        found = _by_index(reply, parts)
        if self._labels == 1:
            shares = [_share(each.get("score")) for each in found]
            return [[math.log(share / (1.0 - share))] for share in shares]
        return [self._row(each.get("probs")) for each in found]

    def _row(self, shares: Any) -> list[float]:
        if not isinstance(shares, list) or len(shares) != self._labels:
            raise _unusable(f"has other labels than the {self._labels} of config.json", _OTHER_MODEL)
        # The softmax of logarithms is the shares themselves, whatever vLLM calls its activation.
        return [math.log(_share(share)) for share in shares]


ModelServer: TypeAlias = OipClassifier | TeiClassifier | VllmClassifier
"""How one model on a server of one kind is asked. ``learn`` asks what the model is like, and raises
JudgeError if it isn't ready or no classifier. ``asked`` gives path and body that ask about parts of pairs,
and ``rows`` a row of logits for each, by the model's labels, or raises JudgeReplyError.
"""


def model_server(settings: ClassifierSettings, server: ServerSettings, served: ServedModel) -> ModelServer:
    """How ``server`` is asked. Raises ConfigError."""
    if server.kind == "oip":
        return OipClassifier(server, served)
    if server.kind == "tei":
        return TeiClassifier(served)
    return VllmClassifier(settings, server, served)


# --------------------------------------------------------------------------------------- what is made of them

VERIFIER_SECTION: Final = "judge.local.verifier.server"


class RemoteScores:
    """Scores of pairs by a model on a server. Servers batch what arrives together themselves, so that the
    pairs of a claim are sent at once, some in a call, and those of other claims beside them.
    """

    def __init__(self, calls: ServerCalls, server: ModelServer, served: ServedModel) -> None:
        self._calls = calls
        self._server = server
        self._served = served

    async def max_tokens(self, deadline: float) -> int:
        """The longest pair that the model reads; asks the server once. Raises JudgeError."""
        return self._most(
            await asyncio.wrap_future(self._calls.start(lambda: self._known(deadline), deadline))
        )

    def submit(
        self, pairs: Sequence[Pair], deadline: float, response_id: str = ""
    ) -> asyncio.Future[list[Scores]]:
        """A future of the scores of ``pairs``; cancelling it withdraws their calls.

        ``deadline`` is a reading of ``time.monotonic()``. Fails with JudgeError.
        """
        return asyncio.wrap_future(
            self._calls.start(lambda: self._scored(pairs, deadline, response_id), deadline)
        )

    async def aclose(self) -> None:
        await self._calls.aclose()

    async def _known(self, deadline: float) -> ServerTakes:
        return await self._calls.learned(self._server.learn, deadline)

    def _most(self, takes: ServerTakes) -> int:
        return min(self._served.max_tokens, takes.max_tokens or self._served.max_tokens)

    async def _scored(self, pairs: Sequence[Pair], deadline: float, response_id: str) -> list[Scores]:
        takes = await self._known(deadline)
        read = await asyncio.to_thread(self._served.reader.parts, pairs, self._most(takes))
        flat = [part for parts in read if not isinstance(parts, JudgeError) for part in parts]
        batches = [flat[at : at + takes.batch_size] for at in range(0, len(flat), takes.batch_size)]
        try:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(self._asked(batch, deadline, response_id)) for batch in batches]
        except ExceptionGroup as error:  # the others are cancelled; the first says what was wrong
            raise error.exceptions[0] from None
        found = self._served.reader.joined(read, [row for task in asked for row in task.result()])
        wrong = next((score for score in found if isinstance(score, JudgeError)), None)
        if wrong is not None:
            raise wrong
        return [score for score in found if isinstance(score, Scores)]

    async def _asked(self, batch: Sequence[Part], deadline: float, response_id: str) -> list[list[float]]:
        path, body = self._server.asked(batch)
        reply = await self._calls.ask(path, body, deadline, response_id)
        return self._server.rows(reply, batch)


class RemoteGraph:
    """The verifier's graph on a server of the Open Inference Protocol. Thread-safe; threads wait for it."""

    def __init__(self, settings: ServerSettings, outputs: tuple[str, ...]) -> None:
        """Asks nothing yet; the graph has to have these ``outputs``. Raises ConfigError for a file that can't
        be used.
        """
        import numpy as np

        self._np: Any = np
        self._calls = ServerCalls(settings, VERIFIER_SECTION, "local:verifier")
        self._timeout_s = settings.timeout_ms / 1000
        self._model = OipModel(settings.model or "", VERIFIER_SECTION, outputs)

    def run(self, outputs: Sequence[str], batch: Sequence[Tokens]) -> list[Any]:
        """These outputs for a batch, as arrays. Blocks. Raises JudgeError."""
        deadline = time.monotonic() + self._timeout_s
        reply = self._calls.start(lambda: self._asked(batch, deadline), deadline).result()
        found = []
        for name in outputs:
            shape, values = self._model.output(reply, name)
            found.append(self._np.array(values, dtype=self._np.float32).reshape(shape))
        return found

    def close(self) -> None:
        """End the calls and the thread. Blocks."""
        self._calls.close()

    async def _asked(self, batch: Sequence[Tokens], deadline: float) -> Any:
        await self._calls.learned(self._model.learn, deadline)
        path, body = self._model.asked(batch)
        reply = await self._calls.ask(path, body, deadline)
        if reply is None:
            raise JudgeReplyError(
                f"the model server's reply is empty; {VERIFIER_SECTION}: check url and model"
            )
        return reply
