"""Asking models for verdicts within one absolute deadline: one HTTP call and its reply, what servers take,
the calls to each model with their retries, then the fallbacks.

Bodies are read here rather than by the client, which neither validates nor bounds what a server sends. Error
messages say where to look. They repeat no text of an error or of a server.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias

import openai

from guardrail.calls import Call, Caller, Failure, cut_off
from guardrail.calls.http import EventStream, Turns, read_body
from guardrail.errors import JudgeError, JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.events import Usage
from guardrail.judges.base import Meter
from guardrail.judges.llm.reply import Answer
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.openai_client import OwnClients, describe, httpx
from guardrail.judges.recorder import recorder
from guardrail.judges.spending import BudgetExhausted, PriceTable, reported_usage
from guardrail.judges.streams import beside

# ---------------------------------------------------------------------------------------------- one HTTP call

_MAX_BODY_BYTES: Final = 8_000_000
_MAX_STREAM_BYTES: Final = 128_000_000
_AT_ONCE: Final = 16_000  # bytes or characters that are read without a turn for others; some hundred verdicts
_DONE: Final = "[DONE]"
_TOKENS: Final = ("content", "reasoning_content", "reasoning")  # thoughts are tokens too

_ENDS: Final = frozenset({"stop", "eos", "eos_token", "stop_sequence", "end_turn"})

# What may still follow [DONE] is the end of the body, which allows reusing the connection.
_DRAIN_S: Final = 0.05


class Stalled(JudgeUnavailable):
    """The reply stalled, or never began."""


class NotAnApi(JudgeReplyError):
    """What answered is not a chat-completions API."""


class StallBounds(NamedTuple):
    """The longest silence of a stream in seconds: before its first token, which may take long where a small
    machine reads a long prompt, and between tokens.
    """

    first_s: float
    between_s: float


class Exchange:
    """One call. What it holds of the reply so far is also valid if the call ends in the middle."""

    def __init__(self, clients: OwnClients, on_text: Callable[[str], None], silence: StallBounds) -> None:
        """``on_text`` gets the pieces of the reply's text in order."""
        self._clients = clients
        self._on_text = on_text
        self._silence = silence
        self._turns = Turns()
        self._has_choice = False
        self._is_api = False
        self.usage: object = None
        self.first_token_at: float | None = None  # event loop's time
        self.finish_reason: object = None
        self.empty = True
        self.streamed = False

    @property
    def ended_by_itself(self) -> bool:
        """Whether the model had said all it wanted, by the words of the servers that exist."""
        return isinstance(self.finish_reason, str) and self.finish_reason in _ENDS

    async def run(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Read until the reply is complete. Raises openai.APIError, JudgeReplyError or, if the reply is cut
        off or stalls, JudgeUnavailable.
        """
        try:
            # In a task of its own, which is cancelled once however often this one is: where two deadlines
            # fall together, the second would interrupt httpx closing the connection, and leave it open.
            async with (
                asyncio.timeout(self._silence.first_s if body.get("stream") else None) as silence,
                beside(self._ask(body, headers, silence)) as asking,
            ):
                await asyncio.wait({asking})
                asking.result()
        except TimeoutError:
            if not silence.expired():
                raise
            begun = self.first_token_at is not None
            seconds = self._silence.between_s if begun else self._silence.first_s
            raise Stalled(f"the reply stalled for {seconds * 1000:.0f} ms") from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise JudgeUnavailable(cut_off(self._clients.server, error)) from None
        self._check_end()

    async def _ask(self, body: dict[str, Any], headers: Mapping[str, str], silence: asyncio.Timeout) -> None:
        async with self._clients.post("/chat/completions", body, headers) as response:
            kind = response.headers.get("content-type", "").lower()
            self.streamed = bool(body.get("stream")) and "json" not in kind
            if self.streamed:
                await self._stream(response, silence)
            else:
                silence.reschedule(None)
                await self._whole(await read_body(response.iter_bytes(), _MAX_BODY_BYTES))

    async def _stream(self, response: Any, silence: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        events = EventStream()
        size = 0
        pieces = response.iter_bytes()
        async for piece in pieces:
            size += len(piece)
            if size > _MAX_STREAM_BYTES:
                raise JudgeReplyError(f"the reply is longer than {_MAX_STREAM_BYTES:,} bytes")
            for start in range(0, len(piece), _AT_ONCE):  # a compressed one may hold megabytes
                part = piece[start : start + _AT_ONCE]
                for data in events.feed(part):
                    if data.strip() == _DONE:
                        self._done()
                        silence.reschedule(None)
                        await self._drain(pieces)
                        return
                    await self._event(data)
                    if self.first_token_at is not None:
                        silence.reschedule(loop.time() + self._silence.between_s)
                await self._turns.after(len(part))
        for data in events.finish():
            if data.strip() == _DONE:
                self._done()
                return
            with suppress(JudgeReplyError):  # half an event, which means nothing
                await self._event(data)
        if not self._is_api:
            raise NotAnApi("the server's answer is not a chat completion; check judge.llm.base_url")
        if self.finish_reason is None:
            raise JudgeUnavailable(cut_off(self._clients.server))

    async def _drain(self, pieces: AsyncIterator[bytes]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                async for piece in pieces:
                    await self._turns.after(len(piece))

    def _done(self) -> None:
        """The server says that this was all, even if it gave no reason for the end."""
        if self._has_choice and self.finish_reason is None:
            self.finish_reason = "stop"

    async def _event(self, data: str) -> None:
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            raise JudgeReplyError("an event of the stream is not JSON") from None
        if not isinstance(chunk, dict):
            raise JudgeReplyError("an event of the stream is not an object")
        if chunk.get("error"):
            raise JudgeUnavailable("the server reported an error within the reply")
        self._is_api = True
        self.usage = chunk.get("usage") or self.usage
        choice = first_object(chunk.get("choices"))
        if choice is not None:
            await self._take(choice, choice.get("delta"))

    async def _whole(self, body: bytes) -> None:
        try:
            completion = json.loads(body)
        except (ValueError, RecursionError):
            raise NotAnApi("the server's answer is not JSON; check judge.llm.base_url") from None
        if not isinstance(completion, dict):
            raise NotAnApi("the server's answer is not a chat completion; check judge.llm.base_url")
        if "choices" not in completion:
            raise NotAnApi("the reply has no choices; check judge.llm.base_url")
        self._is_api = True
        self.usage = completion.get("usage")
        choice = first_object(completion["choices"])
        if choice is None or not isinstance(choice.get("message"), dict):
            raise JudgeReplyError("the reply has no choices")
        # Some servers omit it; the reply is complete all the same.
        self.finish_reason = "stop"
        await self._take(choice, choice["message"])

    async def _take(self, choice: dict[str, Any], said: object) -> None:
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        if self.finish_reason == "content_filter":
            raise JudgeRefused("the provider's content filter withheld the reply")
        if not isinstance(said, dict):
            return
        self._has_choice = True
        if said.get("refusal"):
            raise JudgeRefused("the model refused to judge")
        if self.first_token_at is None and any(said.get(name) for name in _TOKENS):
            self.first_token_at = asyncio.get_running_loop().time()
        text = said.get("content")
        if not isinstance(text, str) or not text:
            return
        self.empty = self.empty and not text.strip()
        for start in range(0, len(text), _AT_ONCE):
            part = text[start : start + _AT_ONCE]
            self._on_text(part)
            await self._turns.after(len(part))

    def _check_end(self) -> None:
        reason = self.finish_reason
        if reason is None:
            raise JudgeReplyError("the reply has no choices")
        if self.empty:
            cause = "; raise judge.llm.max_output_tokens" if reason == "length" else ""
            raise JudgeReplyError(f"the reply is empty{cause}")


def first_object(values: object) -> dict[str, Any] | None:
    """The first of a list in a reply, if it is an object."""
    first = values[0] if isinstance(values, list) and values else None
    return first if isinstance(first, dict) else None


_SECTION: Final = "judge.llm"

Outcome: TypeAlias = list[Answer] | Failure
"""The result of a call: answers, even if the reply broke off, or the reason why there are none."""


# ---------------------------------------------------------------------------------------------- what is asked


class AnswerReader(Protocol):
    """Reads one reply as it arrives. ``feed`` and ``finish`` together return every answer once."""

    def feed(self, text: str) -> list[Answer]:
        """The answers that ``text`` completes. Raises JudgeReplyError if no more can come."""

    def finish(self, *, cut: bool = False) -> list[Answer]:
        """The remaining answers, once the reply has ended; ``cut``: in the middle, or maybe.

        Raises JudgeReplyError if the whole reply has no usable answer.
        """


@dataclass
class Question:
    """What to ask, who reads the reply, and what came of it.

    ``reader`` makes a reader for each call's reply. ``on_answers`` gets answers, on the event loop, before
    the reply ends; if that call fails after all, another may say otherwise. ``meter`` counts the calls, also
    those that fail or are abandoned, and is asked before each further one. Calls of different
    ``response_id`` take turns when they have to wait.
    """

    messages: Sequence[dict[str, str]]
    schema: dict[str, Any]
    """That of the reply."""
    reader: Callable[[], AnswerReader]
    on_answers: Callable[[Sequence[Answer]], None]
    meter: Meter
    response_id: str = ""
    claim_ids: tuple[str, ...] = ()
    """Those that it is about, for records."""

    failed: list[str] = field(default_factory=list)
    """The models that failed, in order, each as "llm:MODEL: why"."""


# -------------------------------------------------------------------------------------- what the server takes


class OutputMode(StrEnum):
    """How to make the server enforce the form of the reply, from strictest to loosest."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TEXT = "text"


_LADDER: Final = tuple(OutputMode)

# With 500 and 501, because llama-cpp-python answers an unknown response_format with a 500 that names it.
_REFUSALS: Final = frozenset({400, 404, 415, 422, 500, 501})
_FORMAT_WORDS: Final = ("response_format", "json_schema", "json_object", "structured output")
_UNKNOWN_WORDS: Final = ("support", "unknown", "unrecognized", "unexpected", "not permitted", "not allowed")
# Chat templates' own words (Gemma, Mistral), OpenAI's of older reasoning models, and Google's.
_NO_SYSTEM_ROLE: Final = re.compile(
    r"system (role|message|prompt)s? (is |are )?not|does not support 'system'|roles must alternate"
    r"|developer instruction is not enabled"
)
_MESSAGE_CHARS: Final = 500
_STREAM_FIELDS: Final = ("stream", "stream_options")


class Dialect:
    """The arguments of a call beyond model and messages that the server hasn't refused.

    Concurrent calls share it, and may all be refused for the same reason. ``adapt`` therefore compares with
    what the refused call had sent, so that they adapt only once.
    """

    def __init__(self, settings: LlmJudgeSettings) -> None:
        self.mode = _LADDER[0]
        self._options: dict[str, Any] = {}
        if "max_tokens" not in settings.extra_body:
            self._options["max_completion_tokens"] = settings.max_output_tokens
        if "temperature" not in settings.extra_body:
            self._options["temperature"] = settings.temperature
        self._options |= {"stream": True, "stream_options": {"include_usage": True}}
        self._patterns = True
        self.system_role = True
        """Without it all messages are sent as one of the user."""

    def messages(self, messages: Sequence[dict[str, str]], *, joined: bool) -> list[dict[str, str]]:
        """``messages``; as one of the user if ``joined``, or where the model knows no system role."""
        if self.system_role and not joined:
            return list(messages)
        return [{"role": "user", "content": "\n\n".join(each["content"] for each in messages)}]

    def arguments(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call. In text mode only the prompt describes the form of the reply."""
        if self.mode is OutputMode.TEXT:
            return dict(self._options)
        response_format: dict[str, Any] = {"type": self.mode.value}
        if self.mode is OutputMode.JSON_SCHEMA:
            shown = schema if self._patterns else _without_patterns(schema)
            response_format["json_schema"] = {"name": "verdicts", "strict": True, "schema": shown}
        return self._options | {"response_format": response_format}

    def take_whole_replies(self) -> None:
        """Request no streams from now on."""
        for name in _STREAM_FIELDS:
            self._options.pop(name, None)

    def adapt(self, error: openai.APIStatusError, sent: dict[str, Any]) -> bool:
        """Omit what the refusal names, from now on. True if there was something to omit: then ask again."""
        if error.status_code not in _REFUSALS:
            return False
        # The message may echo data, so it is searched for our own argument names only, and never reported.
        words = _words(error)
        sent_format = sent.get("response_format", {})
        if "pattern" in words and _without_patterns(sent_format) != sent_format:
            # Azure takes schemas, but no pattern in them. The reader is as strict without.
            self._patterns = False
            return True
        if "response_format" in sent and any(word in words for word in _FORMAT_WORDS):
            tried = OutputMode(sent_format["type"])
            if self.mode is tried:
                self.mode = _LADDER[_LADDER.index(tried) + 1]
            return True
        if not any(word in words for word in _UNKNOWN_WORDS):
            return False
        if error.status_code not in {400, 422}:
            # An internal error may name anything. Only streams are believed to be a cause of one.
            sent = {name: value for name, value in sent.items() if name in _STREAM_FIELDS}
        refused = [name for name in sent if name != "response_format" and _names(name, words)]
        for name in refused:
            if name == "stream":
                self.take_whole_replies()
            value = self._options.pop(name, None)
            if name == "max_completion_tokens" and value is not None:
                self._options["max_tokens"] = value  # the older name; where that is refused too, none is sent
        return bool(refused)


def refuses_system_role(error: openai.APIStatusError) -> bool:
    """Whether that may be the reason. The message may also echo a user's text that says so: believe it only
    if the same question, asked next without the role, is answered.
    """
    return error.status_code in _REFUSALS and _NO_SYSTEM_ROLE.search(_words(error)) is not None


def _words(error: openai.APIStatusError) -> str:
    return f"{error.param or ''} {error.code or ''} {error.message[:_MESSAGE_CHARS]}".lower()


def _without_patterns(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema`` without its patterns. None of our members is called pattern."""
    return {
        name: _without_patterns(value) if isinstance(value, dict) else value
        for name, value in schema.items()
        if name != "pattern"
    }


def _names(name: str, words: str) -> bool:
    """Whether the message names the argument. Servers mention streams in words rather than by the argument's
    name.
    """
    return re.search(r"\bstream(ing|ed)?\b" if name == "stream" else rf"\b{name}\b", words) is not None


# -------------------------------------------------------------------------------------------------- the calls


class ModelEndpoint:
    """One model on one server, and what its calls teach. Concurrent questions share all of it."""

    def __init__(self, settings: LlmJudgeSettings, place: str, prices: PriceTable | None) -> None:
        """``place`` has the settings. Raises ConfigError if a key is missing."""
        self.name = f"llm:{settings.model}"
        self.settings = settings
        self.prices = prices
        self.caller = Caller(self.name, settings.model, settings.max_concurrency)
        self.dialect = Dialect(settings)
        self.clients = OwnClients(settings.base_url, settings.resolve_api_key(place), settings._transport)
        self.headers = {name: value.get_secret_value() for name, value in settings.extra_headers.items()}

    async def ask(self, question: Question, until: float) -> Outcome:
        """One call, and others if it fails. ``until`` is in the event loop's time."""
        call = _QuestionCall(self, question)
        return await self.caller.run(call, until, question.response_id, retries=self.settings.max_retries)


def _failure(error: openai.APIError | JudgeError, server: str) -> Failure:
    if isinstance(error, openai.APIError):
        return describe(error, server, _SECTION)
    if isinstance(error, JudgeReplyError) and not isinstance(error, NotAnApi):
        return Failure(error, retry=not isinstance(error, JudgeRefused))
    return Failure(error, retry=True, fault=True, overload=isinstance(error, Stalled))


class _QuestionCall(Call[list[Answer]]):
    """A question to one model, and the reply to the call under way as far as it has arrived."""

    def __init__(self, endpoint: ModelEndpoint, question: Question) -> None:
        self._question = question
        self._endpoint = endpoint
        self._joined = False
        """Whether to send one message, because the server has just refused the system role."""
        self._recorder = recorder()

    def _begin(self) -> None:
        settings = self._endpoint.settings
        left_s = self.until - asyncio.get_running_loop().time()
        silence = StallBounds(max(settings.stall_s, left_s * settings.first_token_share), settings.stall_s)
        self._exchange = Exchange(self._endpoint.clients, self._read, silence)
        self._reader = self._question.reader()
        self._answers: list[Answer] = []
        self._raw: list[str] = []
        self._begun_at = time.monotonic()

    def admit(self) -> None:
        try:
            self._question.meter.admit()
        except BudgetExhausted as error:
            if self.failure is None:
                raise
            raise BudgetExhausted(f"{self.failure.error}; not tried again: {error}") from None

    async def run(self) -> Outcome:
        while True:
            self._begin()
            self._question.meter.add(Usage(judge_calls=1), self._endpoint.settings.model)
            outcome = await self._send()
            if outcome is not None:
                if self._exchange.streamed:
                    self.first_token_at = self._exchange.first_token_at
                return outcome
            try:
                self.admit()
            except JudgeUnavailable as error:
                return self.broke_off(Failure(error, retry=False))
            self.ended()

    async def _send(self) -> Outcome | None:
        """One HTTP call; None if the server refused an argument, which is omitted from now on, or the system
        role, which this call then does without.
        """
        settings, dialect = self._endpoint.settings, self._endpoint.dialect
        messages = dialect.messages(self._question.messages, joined=self._joined)
        options = dialect.arguments(self._question.schema)
        body = {**settings.extra_body, "model": settings.model, "messages": messages, **options}
        try:
            await self._exchange.run(body, self._endpoint.headers)
            answers = self._finish()
        except (openai.APIError, JudgeError) as error:
            if isinstance(error, openai.APIStatusError):
                # What this call sent counts: by now another may have found that there is no such role.
                self._joined = len(messages) > 1 and refuses_system_role(error)
                if self._joined or dialect.adapt(error, options):
                    return None
            self.stalled = isinstance(error, Stalled)
            return self.broke_off(_failure(error, self._endpoint.clients.server))
        if self._joined:
            dialect.system_role = False
        if options.get("stream") and not self._exchange.streamed:
            dialect.take_whole_replies()
        return answers

    def _read(self, text: str) -> None:
        if self._recorder is not None:
            self._raw.append(text)
        answers = self._reader.feed(text)
        if answers:
            self.first_answer_at = self.first_answer_at or asyncio.get_running_loop().time()
            self._answers += answers
            if self._exchange.streamed:  # else all of it is here, and what follows may say otherwise
                self._question.on_answers(answers)

    def _finish(self, *, cut: bool = False) -> list[Answer]:
        return [*self._answers, *self._reader.finish(cut=cut or not self._exchange.ended_by_itself)]

    def broke_off(self, failure: Failure) -> Outcome:
        """The answers that were complete when the call failed, or the failure if there are none."""
        self.failure = failure
        if self._exchange.empty:
            return failure
        try:
            return self._finish(cut=True)
        except JudgeReplyError:
            return failure

    def ended(self) -> None:
        """Count what it took, and record the messages and the text that came if anybody wants to see them."""
        settings = self._endpoint.settings
        used = reported_usage(settings.model, self._exchange.usage, self._endpoint.prices)
        if used is not None:
            self._question.meter.add(used, settings.model)
        if self._recorder is None:
            return
        self._recorder.add(
            "call",
            self._question.claim_ids,
            self._begun_at,
            judge=self._endpoint.name,
            prompt="\n\n".join(f"{each['role']}:\n{each['content']}" for each in self._question.messages),
            reply="".join(self._raw),
            error=None if self.failure is None else str(self.failure.error),
        )

    def out_of_time(self) -> str:
        made = self._question.meter.usage.judge_calls
        return f"no verdict within the deadline, {'1 call' if made == 1 else f'{made} calls'} made"


# ------------------------------------------------------------------------------------ one model after another


class Chat:
    """Asks the configured model and then its fallbacks, in order."""

    reserve: ClassVar[float] = 0.4
    """The share of the time left that is reserved for the fallbacks while an earlier model is asked."""

    def __init__(self, settings: LlmJudgeSettings, prices: PriceTable | None = None) -> None:
        """Raises ConfigError if a key is missing."""
        first, *others = settings.models()
        self.endpoints = [ModelEndpoint(first, _SECTION, prices)]
        for number, model in enumerate(others):
            self.endpoints.append(ModelEndpoint(model, f"{_SECTION}.fallbacks[{number}]", prices))

    async def aclose(self) -> None:
        """Close all connections. No question may follow."""
        for endpoint in self.endpoints:
            await endpoint.clients.aclose()

    async def ask(self, question: Question, deadline: float) -> list[Answer]:
        """All answers of the call that was used; if its reply broke off, those that were complete.

        ``deadline`` is in the event loop's time; this returns or raises by then. Raises JudgeUnavailable
        (BudgetExhausted if a budget ended it), JudgeReplyError or, if every model refuses permanently,
        JudgeError. ``question`` says what came of it in any case.
        """
        loop = asyncio.get_running_loop()
        errors: list[JudgeError] = []
        for number, endpoint in enumerate(self.endpoints):
            until = self._until(endpoint, self.endpoints[number + 1 :], deadline)
            outcome = await endpoint.ask(question, until)
            if not isinstance(outcome, Failure):
                return outcome
            question.failed.append(f"{endpoint.name}: {outcome.error}")
            errors.append(outcome.error)
            if loop.time() >= deadline or isinstance(outcome.error, BudgetExhausted):
                break
        raise _joined(errors, "; ".join(question.failed)) from None

    def _until(self, endpoint: ModelEndpoint, others: Sequence[ModelEndpoint], deadline: float) -> float:
        """Until when to try one model: a share of the time is reserved for models that could follow.

        If that would leave it too little, the model gets all the time: one fair try is better than two that
        can't succeed.
        """
        now = asyncio.get_running_loop().time()
        left = deadline - now
        if not any(other.caller.breaker.would_admit and other.caller.pause_s() < left for other in others):
            return deadline
        until = deadline - left * self.reserve
        typical = endpoint.caller.typical_s()
        return deadline if typical is not None and until - now < typical <= left else until


def _joined(errors: Sequence[JudgeError], text: str) -> JudgeError:
    """One error for all models, which may be retried if any of theirs may; ``text`` tells of several."""
    if len(errors) == 1:
        return errors[0]
    if isinstance(errors[-1], BudgetExhausted):
        return BudgetExhausted(text)
    if any(isinstance(error, JudgeUnavailable) for error in errors):
        return JudgeUnavailable(text)
    if all(isinstance(error, JudgeRefused) for error in errors):
        return JudgeRefused(text)
    if any(isinstance(error, JudgeReplyError) for error in errors):
        return JudgeReplyError(text)
    return JudgeError(text)
