"""Chat completions under guard: what of a request is refused, and what of an answer leaves.

``REFUSED`` and ``KEPT`` are the whole table of what passes beside text that has its verdict. What stands in
neither goes to the model, and doesn't come back from it: reasoning, audio, annotations, log probabilities,
citations and whatever providers add may be prose that nobody has checked. A refusal of the model is checked
like the answer, and given as its content.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from consumers.gateway.refusals import Refused, error_body, upstream_refused
from consumers.gateway.settings import ServeSettings
from consumers.ops import ResponseLog
from guardrail.calls.event_stream import EventStream
from guardrail.chat import (
    EXTENSION,
    TEXTS,
    Grounding,
    StreamedChoice,
    StreamedCompletion,
    UpstreamFailed,
    WholeAnswer,
    decide,
    for_model,
    grounding_of,
    parts_of,
)
from guardrail.errors import InputError, JudgeReplyError
from guardrail.events import (
    AnyOutputEvent,
    ClaimVerdict,
    Decision,
    DeliveryBlocked,
    DeliverySegment,
    ResponseVerdict,
    Verdict,
)
from guardrail.guard import Guard
from guardrail.log_events import EventLog
from guardrail.policy import NO_CONTEXTS
from guardrail.telemetry import count_output

# ------------------------------------------------------------------------------------------- the table

REFUSED: Final[Mapping[str, str]] = {
    "store": "a stored answer could be fetched without the guard",
    "logprobs": "log probabilities spell out what may be withheld",
    "top_logprobs": "log probabilities spell out what may be withheld",
    "audio": "speech can't be guarded",
}
"""Fields of a request that are refused where they ask for something, and why."""

_DROP: Final = object()
_NAME: Final = re.compile(r"[\x21-\x7e]{1,200}")
_FINISHES: Final = frozenset({"stop", "length", "tool_calls", "function_call", "content_filter"})


def _name(value: Any) -> Any:
    """One word, which says nothing."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else _DROP


def _number(value: Any) -> Any:
    ok = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if ok else _DROP


def _numbers(value: Any) -> Any:
    """Counts, in groups of groups."""
    if not isinstance(value, Mapping):
        return _number(value)
    return {
        name: each
        for name, found in value.items()
        if (each := _numbers(found)) is not _DROP and _name(name) is not _DROP
    }


def _text(value: Any) -> Any:
    """Text for a program, which no reader sees: the arguments of a tool."""
    return value if isinstance(value, str) else _DROP


_CALL: Final[Mapping[str, Any]] = {"name": _name, "arguments": _text, "input": _text}
KEPT: Final[Mapping[str, Any]] = {
    "completion": {
        "id": _name,
        "created": _number,
        "model": _name,
        "system_fingerprint": _name,
        "service_tier": _name,
    },
    "usage": _numbers,
    "message": {
        "role": _name,
        "tool_calls": [{"index": _number, "id": _name, "type": _name, "function": _CALL, "custom": _CALL}],
        "function_call": _CALL,
    },
}
"""What of an answer passes as it is, and in which form. ``choices`` and their texts are read apart."""


def kept(value: Any, rule: Any) -> Any:
    """What of it passes by a rule of ``KEPT``: a mapping of fields, a list of one rule, or a function."""
    if isinstance(rule, Mapping):
        found = value if isinstance(value, Mapping) else {}
        each = ((name, kept(found[name], inner)) for name, inner in rule.items() if name in found)
        return {name: one for name, one in each if one is not _DROP} or _DROP
    if isinstance(rule, list):
        items = value if isinstance(value, list) else []
        return [one for item in items if (one := kept(item, rule[0])) is not _DROP] or _DROP
    return rule(value)


def _kept(value: Any, part: str) -> dict[str, Any]:
    found = kept(value, KEPT[part])
    return found if isinstance(found, dict) else {}


def _texts_of(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The answer in a message, or in a part of one, by its fields. Some servers give it in parts."""
    for name in TEXTS:
        text = message.get(name)
        if isinstance(text, list):
            parts = (
                each.get("text") for each in text if isinstance(each, Mapping) and each.get("type") == "text"
            )
            text = "".join(part for part in parts if isinstance(part, str))
        if isinstance(text, str) and text:
            yield name, text


# ------------------------------------------------------------------------------------------- what is asked


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request for a completion that can be guarded."""

    grounding: Grounding
    model: str
    choices: int
    streamed: bool
    usage: bool
    body: bytes
    """As the model gets it."""


def asked_by(
    request: Any, settings: ServeSettings, scoped: Callable[[Grounding], Grounding]
) -> CompletionRequest:
    """What a request asks; ``scoped`` says for whom. Raises Refused."""
    if not isinstance(request, Mapping) or not isinstance(request.get("messages"), list):
        raise _wrong("messages: give a list of messages in a JSON object")
    for name, why in REFUSED.items():
        if request.get(name):
            raise Refused(400, f"{name}: {why}; leave it out", "not_guarded")
    if request.get("modalities") not in (None, ["text"]):
        raise Refused(400, "modalities: only text can be guarded; leave it out", "not_guarded")
    model, streamed, number = request.get("model"), request.get("stream"), request.get("n")
    if not isinstance(model, str) or not 0 < len(model) <= 256:
        raise _wrong("model: give the name of a model")
    if streamed is not None and not isinstance(streamed, bool):
        raise _wrong("stream: give true or false")
    most = settings.most_choices
    if number is not None and (type(number) is not int or not 1 <= number <= most):
        raise _wrong(f"n: give a number from 1 to {most}")
    options = request.get("stream_options")
    try:
        grounding = scoped(grounding_of(request, settings.contexts_from, settings.tools))
    except InputError as error:
        raise Refused(400, str(error), error.reason) from None
    return CompletionRequest(
        grounding,
        model,
        number or 1,
        bool(streamed),
        isinstance(options, Mapping) and options.get("include_usage") is True,
        json.dumps(for_model(request)).encode("ascii"),
    )


def _wrong(message: str) -> Refused:
    return Refused(400, message, "invalid_request")


# ------------------------------------------------------------------------------------------- what is told


_log = EventLog(__name__)
_answers: Final = ResponseLog()


def noted(event: AnyOutputEvent) -> None:
    """Count it in the metrics, and log how an answer was decided."""
    count_output(event)
    if isinstance(event, ResponseVerdict):
        _answers.on_verdict(event)


class Flagged:
    """What the events of one answer say of the claims that were not simply released."""

    def __init__(self) -> None:
        self._claims: dict[str, ClaimVerdict] = {}
        self._decided: dict[str, Decision] = {}
        self._blocked = False
        self.observed = False
        """The text left before its verdicts, as the policy says."""

    def seen(self, event: AnyOutputEvent) -> None:
        """An event of the answer."""
        noted(event)
        match event:
            case ClaimVerdict():
                self._claims[event.claim_id] = event
            case DeliverySegment():
                self._decided.update(dict.fromkeys(event.claim_ids, event.decision))
                self.observed = event.segment is None
            case DeliveryBlocked():
                self._blocked = True

    def told(self) -> list[dict[str, Any]]:
        """The claims, with the texts of those only that were shown."""
        found = []
        for name, claim in sorted(self._claims.items(), key=lambda each: each[1].index):
            decision = self._decided.get(name)
            withheld = decision is None and self._blocked and claim.verdict is not Verdict.SUPPORTED
            if decision in {None, Decision.RELEASE} and not withheld:
                continue
            told = {
                "claim_id": name,
                "decision": (decision or Decision.BLOCK).value,
                "verdict": claim.verdict.value,
                "severity": claim.severity.value,
                "support": claim.support,
            }
            found.append({**told, "text": claim.text} if decision is Decision.FLAG else told)
        return found


def extension_of(told: Mapping[str, Any], flagged: Flagged) -> dict[str, Any]:
    """What the reply says of one choice."""
    shown_anyway = told.get("rule") == NO_CONTEXTS and told.get("decision") == Decision.FLAG
    if shown_anyway or flagged.observed:
        return {**told, "decision": "not-checked", "flagged": []}
    return {**told, "flagged": flagged.told()}


_RANKS: Final = ("release", "flag", "not-checked", "redact", "block")


def headers_of(told: list[dict[str, Any]]) -> dict[str, str]:
    """The strictest decision and the lowest score, for whole answers."""
    if not told:
        return {}
    headers = {"x-guardrail-decision": max((each["decision"] for each in told), key=_RANKS.index)}
    scores = [each["score"] for each in told if each.get("score") is not None]
    return {**headers, "x-guardrail-score": f"{min(scores):.4f}"} if scores else headers


# ------------------------------------------------------------------------------------------- the answer


class _Completion:
    """What whole and streamed completions share: the guard, and what stands in the head of each chunk."""

    def __init__(self, asked: CompletionRequest, guard: Guard, settings: ServeSettings) -> None:
        self._asked = asked
        self._guard = guard
        self._settings = settings
        self._head: dict[str, Any] = {}

    async def _opened(self) -> Guard:
        return self._guard

    def _begin(self, found: Mapping[str, Any]) -> None:
        """The first chunk says id, model and time of all."""
        if not self._head:
            own = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": self._asked.model}
            self._head = own | _kept(found, "completion")

    async def _decide(self, deltas: Any, answer: Any, flagged: Flagged) -> None:
        await decide(
            self._opened(),
            self._asked.grounding,
            deltas,
            answer,
            missing=self._settings.missing,
            generator_model=self._asked.model,
            seen=flagged.seen,
        )


class WholeCompletion(_Completion):
    """A completion that comes whole."""

    async def guarded(self, body: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """What may go of it, and what is told of each choice. Raises Refused if it is none."""
        try:
            found = json.loads(body)
            choices = [each for each in found["choices"] if isinstance(each["message"], dict)]
        except (ValueError, RecursionError, KeyError, TypeError):
            choices = []
        if not 0 < len(choices) <= self._asked.choices:
            raise upstream_refused("the upstream's answer is not the chat completion that was asked for")
        self._begin(found)
        done = await asyncio.gather(*(self._choice(n, each) for n, each in enumerate(choices)))
        told = [each for _, each in done if each is not None]
        reply = {**self._head, "object": "chat.completion", "choices": [each for each, _ in done]}
        if usage := _kept(found.get("usage"), "usage"):
            reply["usage"] = usage
        if told:
            reply[EXTENSION] = told[0] if len(told) == 1 else told
        return reply, told

    async def _choice(self, index: int, found: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        texts = [_characters(text) for _, text in _texts_of(found["message"])]
        answer, flagged = WholeAnswer(), Flagged()
        told = None
        if texts:
            await self._decide(parts_of(texts), answer, flagged)
            told = extension_of({"choice": index, **answer.told}, flagged)
        passed = {"role": "assistant", **_kept(found["message"], "message")}
        message = {**passed, "content": answer.text if texts else None, "refusal": None}
        finish = answer.finish or _finish(found.get("finish_reason")) or "stop"
        return {"index": index, "message": message, "finish_reason": finish}, told


class GuardedStream(_Completion, StreamedCompletion[dict[str, Any]]):
    """A completion that comes as server-sent events, cut anywhere, and leaves as such."""

    def __init__(
        self, asked: CompletionRequest, guard: Guard, settings: ServeSettings, deadline: float
    ) -> None:
        """``deadline``: when the answer must be complete, by the clock of the event loop."""
        _Completion.__init__(self, asked, guard, settings)
        StreamedCompletion.__init__(self)
        self._deadline = deadline
        self._flagged: dict[int, Flagged] = {}
        self._halves: dict[tuple[int, str], str] = {}
        self._usage: dict[str, Any] = {}

    async def frames(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """What may go, as events, with comments while nothing may.

        An upstream that breaks off ends it with an error instead of ``[DONE]``.
        """
        try:
            chunks = self.guarded(self._chunks(pieces), self._settings.silence_s)
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield b": held\n\n" if chunk is None else _event(chunk)
        except UpstreamFailed:
            yield error_event(
                "the model's answer broke off; what came before was verified", "upstream_failed"
            )
        except Exception as error:  # noqa: BLE001 - a stream has no other way to end
            _log.error("serve.stream_failed", error=type(error).__name__)
            yield error_event("the gateway failed", "failed")
        else:
            yield b"data: [DONE]\n\n"

    async def _chunks(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[Mapping[str, Any], None]:
        events = EventStream()
        try:
            while True:
                async with asyncio.timeout_at(self._deadline):
                    piece = await anext(pieces, None)
                if piece is None:
                    break  # half an event means nothing
                for data in events.feed(piece):
                    if data.strip() == "[DONE]":
                        return
                    chunk = json.loads(data)
                    if not isinstance(chunk, Mapping) or chunk.get("error"):
                        raise UpstreamFailed
                    yield chunk
        except (ValueError, RecursionError, JudgeReplyError, TimeoutError):
            raise UpstreamFailed from None
        if not self.choices or not all(choice.ended for choice in self.choices.values()):
            raise UpstreamFailed

    def take(self, chunk: Any, group: asyncio.TaskGroup) -> None:
        self._begin(chunk)
        self._usage = _kept(chunk.get("usage"), "usage") or self._usage
        parts = chunk.get("choices")
        for part in parts if isinstance(parts, list) else ():
            index = part.get("index", 0) if isinstance(part, Mapping) else None
            if type(index) is not int or not 0 <= index < self._asked.choices:
                raise UpstreamFailed
            choice = self.choice(index)
            if choice.closed or choice.ended:
                continue
            delta = part.get("delta")
            delta = delta if isinstance(delta, Mapping) else {}
            if passed := _kept(delta, "message"):
                self.put(index, passed)
            finish = _finish(part.get("finish_reason"))
            texts = [(name, self._joined((index, name), text)) for name, text in _texts_of(delta)]
            choice.take([each for each in texts if each[1]], finish, group)

    async def decide(self, choice: StreamedChoice) -> None:
        flagged = self._flagged[choice.index] = Flagged()
        await self._decide(choice.deltas(), choice, flagged)

    def chunk(self, index: int, delta: dict[str, Any], finish: str | None, told: Any) -> dict[str, Any]:
        part = {"index": index, "delta": delta, "finish_reason": finish}
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": [part]}
        if told is not None:
            chunk[EXTENSION] = extension_of(told, self._flagged[index])
        return chunk

    def last(self) -> dict[str, Any] | None:
        if not self._asked.usage or not self._usage:
            return None
        return {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": self._usage}

    def enough(self) -> bool:
        closed = sum(choice.closed for choice in self.choices.values())
        return closed == self._asked.choices and not self._asked.usage

    def _joined(self, place: tuple[int, str], text: str) -> str:
        """A character may come in halves, as JSON escapes them."""
        text = self._halves.pop(place, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[place] = text[-1]
            text = text[:-1]
        return _characters(text)


def _characters(text: str) -> str:
    """Halves of characters joined, and those left alone replaced: UTF-8 can't hold them."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _finish(reason: Any) -> str | None:
    if not isinstance(reason, str) or not reason:
        return None
    return reason if reason in _FINISHES else "stop"


def error_event(message: str, code: str) -> bytes:
    """What ends a stream that can't be ended in order."""
    return _event(error_body(message, code, "server_error"))


def _event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + as_json(chunk) + b"\n\n"


def as_json(found: Mapping[str, Any]) -> bytes:
    """In UTF-8. Arguments of tools may hold halves of characters, which only escapes can write."""
    try:
        return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(found, separators=(",", ":")).encode()
