"""What model servers are asked, and what their answers mean.

- Open Inference Protocol, version 2 (Triton, KServe, MLServer, OpenVINO Model Server):
  https://github.com/kserve/open-inference-protocol, and KServe's docs/predict-api/v2/required_api.md.
- text-embeddings-inference: its docs/openapi.json, version 1.7.
- vLLM: its docs/models/pooling_models and vllm/entrypoints/pooling, version 0.32.

All are given windows that were cut with the model's own tokenizer, and never truncate: a pair that is too
long is an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Protocol
from urllib.parse import quote

from guardrail.errors import ConfigError, JudgeReplyError, JudgeUnavailable
from guardrail.judges.model.calls import ServerCalls, ServerRefused
from guardrail.judges.model.classifier import BATCH_SIZE, Part, ServedModel
from guardrail.judges.model.settings import SECTION, ClassifierSettings, ServerSettings
from guardrail.judges.model.tokens import IDS, MASK, TYPES, Tokens, padded

_NOT_READY: Final = frozenset({400, 404})  # Triton's, for a model that isn't loaded; MLServer's
_INTEGERS: Final = frozenset({"INT64", "INT32"})
_LEAST_SHARE: Final = 1e-12  # a probability of 0 has no logit


@dataclass(frozen=True, slots=True)
class ServerTakes:
    """What the server takes, as far as it says."""

    max_tokens: int | None = None
    batch_size: int = BATCH_SIZE


class ModelServer(Protocol):
    """One model on a server of one kind."""

    async def learn(self, calls: ServerCalls, deadline: float) -> ServerTakes:
        """Ask what the model is like. Raises JudgeError if it isn't ready or no classifier."""
        ...

    def asked(self, parts: Sequence[Part]) -> tuple[str, bytes]:
        """Path and body that ask about ``parts``."""
        ...

    def rows(self, reply: Any, parts: Sequence[Part]) -> list[list[float]]:
        """A row of logits for each part, by the model's labels. Raises JudgeReplyError."""
        ...


def model_server(settings: ClassifierSettings, server: ServerSettings, served: ServedModel) -> ModelServer:
    """How ``server`` is asked. Raises ConfigError."""
    if server.kind == "oip":
        return OipClassifier(server, served)
    if server.kind == "tei":
        return TeiClassifier(served)
    return VllmClassifier(settings, server, served)


def _unusable(what: str, remedy: str) -> JudgeReplyError:
    return JudgeReplyError(f"the model server's reply {what}; {SECTION}.server: {remedy}")


# ---------------------------------------------------------------------- Open Inference Protocol, version 2


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

    async def learn(self, calls: ServerCalls, deadline: float) -> None:
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
        found = {each: (shape, data) for each, _, (shape, data) in _with_data(reply)}
        chosen = name or ("logits" if "logits" in found or len(found) != 1 else next(iter(found)))
        if chosen not in found:
            raise JudgeReplyError(
                f"the reply has no output {chosen}; {self.section}: check kind, url and model"
            )
        return found[chosen]


def _shown(names: Iterable[str]) -> str:
    return ", ".join(ascii(name[:40]) for name in sorted(names)[:10])


def _tensors(told: Any, which: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    listed = told.get(which) if isinstance(told, dict) else None
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            yield each["name"], str(each.get("datatype")), each


def _with_data(reply: Any) -> Iterator[tuple[str, str, tuple[list[int], list[float]]]]:
    for name, kind, tensor in _tensors(reply, "outputs"):
        shape = tensor.get("shape")
        sizes = shape if isinstance(shape, list) and all(type(size) is int for size in shape) else None
        data = list(_flat(tensor.get("data")))
        if sizes is None or math.prod(sizes) != len(data):
            raise JudgeReplyError("an output of the reply has another number of values than its shape")
        yield name, kind, (sizes, data)


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
        await self._model.learn(calls, deadline)
        return ServerTakes()

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


# ------------------------------------------------------------------------------- text-embeddings-inference


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
        most, batch = told.get("max_input_length"), told.get("max_client_batch_size")
        return ServerTakes(
            most if type(most) is int and most > 0 else None,
            min(BATCH_SIZE, batch) if type(batch) is int and batch > 0 else BATCH_SIZE,
        )

    def asked(self, parts: Sequence[Part]) -> tuple[str, bytes]:
        inputs = [[text] if isinstance(text, str) else list(text) for text in self._texts(parts)]
        return "/predict", json.dumps({"inputs": inputs, "truncate": False, "raw_scores": True}).encode()

    def _texts(self, parts: Sequence[Part]) -> list[str | tuple[str, str]]:
        return [self._form.texts(pair) for pair, _ in parts]

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
                raise _unusable(
                    "has a label that the model's config.json lacks",
                    "serve the model that judge.classifier.model names",
                )
            row[place] = float(score)
        if any(map(math.isnan, row)):
            raise _unusable(
                "lacks a label of the model's config.json",
                "serve the model that judge.classifier.model names",
            )
        return row


# ---------------------------------------------------------------------------------------------------- vLLM


def _by_index(reply: Any, parts: Sequence[Part]) -> list[dict[str, Any]]:
    listed = reply.get("data") if isinstance(reply, dict) else None
    found = {
        each.get("index"): each
        for each in (listed if isinstance(listed, list) else [])
        if isinstance(each, dict)
    }
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
        listed = told.get("data") if isinstance(told, dict) else None
        for each in listed if isinstance(listed, list) else []:
            if isinstance(each, dict) and each.get("id") == self._model:
                most = each.get("max_model_len")
                return ServerTakes(most if type(most) is int and most > 0 else None)
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
            raise _unusable(
                f"has other labels than the {self._labels} of config.json",
                "serve the model that judge.classifier.model names",
            )
        # The softmax of logarithms is the shares themselves, whatever vLLM calls its activation.
        return [math.log(_share(share)) for share in shares]
