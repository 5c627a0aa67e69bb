"""Chat completions under guard: what of a request is refused, and what of an answer leaves.

``REFUSED`` and ``KEPT`` are the whole table of what passes beside text that has its verdict. A refusal of the
model is checked like the answer, and given as its content.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from consumers.gateway.answers import (
    UNCHECKED,
    AskedAnswer,
    Flagged,
    GuardedEvents,
    as_json,
    as_number,
    as_numbers,
    as_text,
    as_word,
    asks_for_call,
    characters,
    extension,
    grounded,
    kept,
    model_and_stream,
    wrong,
)
from consumers.gateway.refusals import Refused, error_body, upstream_refused
from consumers.gateway.settings import ServeSettings
from guardrail.chat import (
    APART,
    BLOCK,
    EXTENSION,
    TEXTS,
    Grounding,
    StreamedChoice,
    UpstreamFailed,
    WholeAnswer,
    for_model,
    parts_of,
)
from guardrail.events import Decision
from guardrail.guard import Guard

# ------------------------------------------------------------------------------------------- the table

REFUSED: Final[Mapping[str, str]] = {
    "store": "a stored answer could be fetched without the guard",
    "logprobs": "log probabilities spell out what may be withheld",
    "top_logprobs": "log probabilities spell out what may be withheld",
    "audio": "speech can't be guarded",
}
"""Fields of a request that are refused where they ask for something, and why."""

_OTHERS: Final = {"": None, "null": None, "model_length": "length", "max_tokens": "length"}
_FINISHES: Final = ("stop", "length", "tool_calls", "function_call", "content_filter")
_BROKEN: Final = frozenset({"error", "insufficient_system_resource"})

_CALL: Final[Mapping[str, Any]] = {"name": as_word, "arguments": as_text, "input": as_text}
KEPT: Final[Mapping[str, Any]] = {
    "completion": {
        "id": as_word,
        "created": as_number,
        "model": as_word,
        "system_fingerprint": as_word,
        "service_tier": as_word,
    },
    "usage": as_numbers,
    "message": {
        "role": as_word,
        "tool_calls": [
            {"index": as_number, "id": as_word, "type": as_word, "function": _CALL, "custom": _CALL}
        ],
        "function_call": _CALL,
    },
}
"""What of an answer passes as it is, and in which form. ``choices`` and their texts are read apart."""


def _kept(value: Any, part: str) -> dict[str, Any]:
    return kept(value, KEPT[part])


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
    structured: bool
    """A program reads the answer: what stands in its place is given as the model's refusal."""
    calls: bool
    body: bytes
    """As the model gets it."""


def asked_by(
    request: Any, settings: ServeSettings, scoped: Callable[[Grounding], Grounding]
) -> CompletionRequest:
    """What a request asks; ``scoped`` says for whom. Raises Refused."""
    if not isinstance(request, Mapping) or not isinstance(request.get("messages"), list):
        raise wrong("messages: give a list of messages in a JSON object")
    model, streamed = model_and_stream(request, REFUSED)
    if request.get("modalities") not in (None, ["text"]):
        raise Refused(400, "modalities: only text can be guarded; leave it out", "not_guarded")
    number = request.get("n")
    most = settings.most_choices
    if number is not None and (type(number) is not int or not 1 <= number <= most):
        raise wrong(f"n: give a number from 1 to {most}")
    options, form = request.get("stream_options"), request.get("response_format")
    return CompletionRequest(
        grounded(request, settings, scoped),
        model,
        number or 1,
        streamed,
        isinstance(options, Mapping) and options.get("include_usage") is True,
        form is not None and form != {"type": "text"},
        asks_for_call(request),
        json.dumps(for_model(request)).encode("ascii"),
    )


# ------------------------------------------------------------------------------------------- the answer


class _Completion(AskedAnswer):
    """What whole and streamed completions share."""

    _asked: CompletionRequest

    def _broken(self, told: Mapping[str, Any] | None) -> bool:
        """Whether a program was to read what is not whole."""
        changed = told is not None and told.get("decision") in {Decision.REDACT, Decision.BLOCK}
        return changed and self._asked.structured

    def _begin(self, found: Mapping[str, Any]) -> None:
        """The first chunk says id, model and time of all."""
        if not self._head:
            own = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": self._asked.model}
            self._head = own | _kept(found, "completion")


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
        try:
            done = await asyncio.gather(*(self._choice(n, each) for n, each in enumerate(choices)))
        except UpstreamFailed:
            raise upstream_refused("the model's answer broke off") from None
        told = [each for _, each in done if each is not None]
        reply = {**self._head, "object": "chat.completion", "choices": [each for each, _ in done]}
        if usage := _kept(found.get("usage"), "usage"):
            reply["usage"] = usage
        if told:
            reply[EXTENSION] = told[0] if len(told) == 1 else told
        return reply, told

    async def _choice(self, index: int, found: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        finish = _finish(found.get("finish_reason")) or "stop"
        texts = [characters(said) for _, said in _texts_of(found["message"])]
        answer, flagged = WholeAnswer(), Flagged()
        told = None
        if texts:
            await self._decide(parts_of(texts), answer, flagged)
            told = extension({"choice": index, **answer.told}, flagged)
        passed = {"role": "assistant", **_kept(found["message"], "message")}
        if told is None and self._asked.calls:
            told = {"choice": index, **UNCHECKED}
        empty = None if found["message"].get("content") is None else ""
        message = {**passed, "content": answer.text if texts else empty, "refusal": None}
        finish = answer.finish or finish
        if self._broken(told):
            message, finish = {**passed, "content": None, "refusal": answer.text}, BLOCK
        return {"index": index, "message": message, "finish_reason": finish}, told


class GuardedStream(_Completion, GuardedEvents[dict[str, Any]]):
    """A completion that is streamed."""

    ending = b"data: [DONE]\n\n"

    def __init__(
        self, asked: CompletionRequest, guard: Guard, settings: ServeSettings, deadline: float
    ) -> None:
        GuardedEvents.__init__(self, asked, guard, settings, deadline)
        self._flagged: dict[int, Flagged] = {}
        self._usage: dict[str, Any] = {}

    def frame(self, chunk: Mapping[str, Any]) -> bytes:
        return b"data: " + as_json(chunk) + b"\n\n"

    def failure(self, message: str, code: str) -> bytes:
        return self.frame(error_body(message, code, "server_error"))

    def complete(self, *, done: bool) -> bool:
        return bool(self.choices) and (done or all(choice.ended for choice in self.choices.values()))

    def take(self, chunk: Any, group: asyncio.TaskGroup) -> None:
        if usage := chunk.get("usage"):
            self._usage = _kept(usage, "usage") or self._usage
        parts = chunk.get("choices")
        for part in parts if isinstance(parts, list) else ():
            self._begin(chunk)  # Azure's first has no choices, and an empty head
            index = part.get("index", 0) if isinstance(part, Mapping) else None
            if type(index) is not int or not 0 <= index < self._asked.choices:
                raise UpstreamFailed
            choice = self.choice(index)
            if choice.closed:
                continue
            delta = part.get("delta")
            delta = delta if isinstance(delta, Mapping) else {}
            if passed := _kept(delta, "message"):
                self.put(index, passed)
            finish = _finish(part.get("finish_reason"))
            texts = [(field, self._joined((index, field), said)) for field, said in _texts_of(delta)]
            choice.take([each for each in texts if each[1]], finish, group)

    async def decide(self, choice: StreamedChoice) -> None:
        flagged = self._flagged[choice.index] = Flagged()
        await self._decide(choice.deltas(), choice, flagged)

    def chunk(self, index: int, delta: dict[str, Any], finish: str | None, told: Any) -> dict[str, Any]:
        if self._asked.structured and "content" in delta and self._flagged[index].replaced:
            delta = {"refusal": delta["content"].removeprefix(APART)}
        part = {"index": index, "delta": delta, "finish_reason": BLOCK if self._broken(told) else finish}
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": [part]}
        if told is not None:
            chunk[EXTENSION] = extension(told, self._flagged[index])
        elif finish is not None and self._asked.calls:
            chunk[EXTENSION] = {"choice": index, **UNCHECKED}
        return chunk

    def last(self) -> dict[str, Any] | None:
        if not self._asked.usage or not self._usage:
            return None
        return {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": self._usage}

    def enough(self) -> bool:
        closed = sum(choice.closed for choice in self.choices.values())
        return closed == self._asked.choices and not self._asked.usage


def _finish(reason: Any) -> str | None:
    """In the words of the API. Raises UpstreamFailed where it says that the answer broke off."""
    reason = reason.lower() if isinstance(reason, str) else ""
    if reason in _BROKEN:
        raise UpstreamFailed
    return reason if reason in _FINISHES else _OTHERS.get(reason, "stop")
