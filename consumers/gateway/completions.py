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

from consumers.gateway import answers
from consumers.gateway.admission import Refused, error_body
from consumers.gateway.answers import (
    UNCHECKED,
    GatewayAnswer,
    GatewayRequest,
    as_json,
    as_number,
    as_numbers,
    as_text,
    as_word,
    extension,
    kept,
    wrong,
)
from consumers.gateway.settings import ServeSettings
from guardrail.chat import (
    APART,
    BLOCK,
    TEXTS,
    Grounding,
    UpstreamFailed,
    WholeAnswer,
    for_model,
    objects,
    parts_of,
)
from guardrail.events import Decision

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
HEAD: Final = {
    "id": as_word,
    "created": as_number,
    "model": as_word,
    "system_fingerprint": as_word,
    "service_tier": as_word,
}
MESSAGE: Final = {
    "role": as_word,
    "tool_calls": [{"index": as_number, "id": as_word, "type": as_word, "function": _CALL, "custom": _CALL}],
    "function_call": _CALL,
}
"""What of an answer, and of its messages, passes as it is, and in which form; of the usage numbers do. Texts
are read apart.
"""


def _texts_of(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The answer in a message, or in a part of one, by its fields. Some servers give it in parts."""
    for name in TEXTS:
        text = message.get(name)
        if isinstance(text, list):
            parts = (each.get("text") for each in objects(message, name) if each.get("type") == "text")
            text = "".join(part for part in parts if isinstance(part, str))
        if isinstance(text, str) and text:
            yield name, text


# ------------------------------------------------------------------------------------------- what is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest(GatewayRequest):
    """A request for a completion."""

    choices: int
    usage: bool


def asked_by(
    request: Any, settings: ServeSettings, scoped: Callable[[Grounding], Grounding]
) -> CompletionRequest:
    """What a request asks; ``scoped`` says for whom. Raises Refused and InputError."""
    if not isinstance(request, Mapping) or not isinstance(request.get("messages"), list):
        raise wrong("messages: give a list of messages in a JSON object")
    asked = answers.asked(request, settings, scoped, REFUSED, request.get("response_format"))
    if request.get("modalities") not in (None, ["text"]):
        raise Refused(400, "modalities: only text can be guarded; leave it out", "not_guarded")
    number = 1 if request.get("n") is None else request["n"]
    if type(number) is not int or not 1 <= number <= settings.most_choices:
        raise wrong(f"n: give a number from 1 to {settings.most_choices}")
    options = request.get("stream_options")
    usage = isinstance(options, Mapping) and options.get("include_usage") is True
    body = json.dumps(for_model(request)).encode("ascii")
    return CompletionRequest(**asked, body=body, choices=number, usage=usage)


# ------------------------------------------------------------------------------------------- the answer


class GuardedCompletion(GatewayAnswer[dict[str, Any]]):
    """A completion, whole or streamed."""

    ending = b"data: [DONE]\n\n"
    _asked: CompletionRequest
    _usage: Mapping[str, Any] = {}

    def frame(self, chunk: Mapping[str, Any]) -> bytes:
        return b"data: " + as_json(chunk) + b"\n\n"

    def failure(self, message: str, code: str) -> bytes:
        return self.frame(error_body(message, code, "server_error"))

    def complete(self) -> bool:
        return bool(self.choices) and (self._done or all(choice.ended for choice in self.choices.values()))

    def _begin(self, found: Any) -> None:
        """The first chunk says id, model and time of all."""
        if not self._head:
            own = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": self._asked.model}
            self._head = own | kept(found, HEAD)

    def _refuses(self, told: Mapping[str, Any] | None) -> bool:
        """Whether a program was to read what is not whole."""
        changed = told is not None and told.get("decision") in {Decision.REDACT, Decision.BLOCK}
        return changed and self._asked.structured

    def _told(self, index: int, told: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """What is told of a choice that has ended, in which there may have been no text."""
        if told is not None:
            return extension(told, self._flagged[index])
        return {"choice": index, **UNCHECKED} if self._asked.calls else None

    # ------------------------------------------------------------------------------- streamed

    def take(self, chunk: Any, group: asyncio.TaskGroup) -> None:
        if usage := chunk.get("usage"):
            self._usage = kept(usage, as_numbers) or self._usage
        for part in _choices_of(chunk):
            self._begin(chunk)  # Azure's first has no choices, and an empty head
            index = answers.index_in(part, "index", self._asked.choices)
            choice, delta = self.choice(index), part.get("delta")
            if choice.closed:
                continue
            delta = delta if isinstance(delta, Mapping) else {}
            if passed := kept(delta, MESSAGE):
                self.put(index, passed)
            texts = [(field, self._joined((index, field), said)) for field, said in _texts_of(delta)]
            choice.take([each for each in texts if each[1]], _finish(part.get("finish_reason")), group)

    def chunk(self, index: int, delta: dict[str, Any], finish: str | None, told: Any) -> dict[str, Any]:
        if self._asked.structured and "content" in delta and self._flagged[index].replaced:
            delta = {"refusal": delta["content"].removeprefix(APART)}
        said = None if finish is None else self._told(index, told)
        part = {"index": index, "delta": delta, "finish_reason": BLOCK if self._refuses(told) else finish}
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": [part]}
        return {**chunk, **answers.in_reply([] if said is None else [said])}

    def last(self) -> dict[str, Any] | None:
        if not self._asked.usage or not self._usage:
            return None
        return {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": self._usage}

    def enough(self) -> bool:
        closed = sum(choice.closed for choice in self.choices.values())
        return closed == self._asked.choices and not self._asked.usage

    # ------------------------------------------------------------------------------- whole

    async def answered(self, found: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        choices = _choices_of(found)
        whole = all(isinstance(each.get("message"), Mapping) for each in choices)
        if not whole or not 0 < len(choices) <= self._asked.choices:
            raise UpstreamFailed
        self._begin(found)
        done = await asyncio.gather(*(self._choice(n, each) for n, each in enumerate(choices)))
        told = [each for _, each in done if each is not None]
        usage = kept(found.get("usage"), as_numbers)
        reply = {**self._head, "object": "chat.completion", "choices": [each for each, _ in done]}
        return {**reply, **({"usage": usage} if usage else {}), **answers.in_reply(told)}, told

    async def _choice(self, index: int, found: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        message, answer = found["message"], WholeAnswer()
        finish = _finish(found.get("finish_reason")) or "stop"
        texts = [answers.characters(said) for _, said in _texts_of(message)]
        if texts:
            await self._decide(parts_of(texts), answer, index, self._asked.grounding)
        told = self._told(index, {"choice": index, **answer.told} if texts else None)
        passed = {"role": "assistant", **kept(message, MESSAGE)}
        if self._refuses(told):
            said, finish = {"content": None, "refusal": answer.text}, BLOCK
        else:
            empty = None if message.get("content") is None else ""
            said = {"content": answer.text if texts else empty, "refusal": None}
            finish = answer.finish or finish
        return {"index": index, "message": {**passed, **said}, "finish_reason": finish}, told


def _choices_of(found: Any) -> list[Mapping[str, Any]]:
    """Raises UpstreamFailed where one can't be read: its text would be missing."""
    choices = found.get("choices") if isinstance(found, Mapping) else None
    choices = choices if isinstance(choices, list) else []
    if not all(isinstance(each, Mapping) for each in choices):
        raise UpstreamFailed
    return choices


def _finish(reason: Any) -> str | None:
    """In the words of the API. Raises UpstreamFailed where it says that the answer broke off."""
    reason = reason.lower() if isinstance(reason, str) else ""
    if reason in _BROKEN:
        raise UpstreamFailed
    return reason if reason in _FINISHES else _OTHERS.get(reason, "stop")
