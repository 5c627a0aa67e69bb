"""One call of a chat-completions API: sending it, and reading its reply, streamed or not.

The body is read here rather than by the client, which neither validates nor bounds what a server sends. Error
messages say where to look. They repeat no text of an error or of a server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import openai

from guardrail.calls import cut_off, server_of
from guardrail.calls.event_stream import EventStream
from guardrail.calls.http import Turns, read_body
from guardrail.errors import JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.judges.openai_client import httpx
from guardrail.judges.streams import beside

_MAX_BODY_BYTES: Final = 8_000_000
_MAX_STREAM_BYTES: Final = 128_000_000
_AT_ONCE: Final = 16_000  # bytes or characters that are read without a turn for others; some hundred verdicts
_DONE: Final = "[DONE]"
_TOKENS: Final = ("content", "reasoning_content", "reasoning")  # thoughts are tokens too

_ENDS: Final = frozenset({"stop", "eos", "eos_token", "stop_sequence", "end_turn"})

# What may still follow [DONE] is the end of the body, which allows reusing the connection.
_DRAIN_S: Final = 0.05


# What the client has to process. It would otherwise walk through every message, type by type, for fields to
# rename, which takes 40 % of a call's CPU; ours have none. It sends what is in extra_body unchanged.
_SEEN: Final = frozenset({"model", "stream", "extra_headers", "extra_body"})


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


@dataclass(slots=True)
class ReplyProgress:
    """The state of a reply so far; also valid if the call ends in the middle."""

    usage: object = None
    first_token_at: float | None = None  # event loop's time
    finish_reason: object = None
    empty: bool = True
    streamed: bool = False
    has_choice: bool = False
    is_api: bool = False

    @property
    def ended_by_itself(self) -> bool:
        """Whether the model had said all it wanted, by the words of the servers that exist."""
        return isinstance(self.finish_reason, str) and self.finish_reason in _ENDS


class Exchange:
    """One call. ``on_text`` gets the pieces of the reply's text in order."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        progress: ReplyProgress,
        on_text: Callable[[str], None],
        silence: StallBounds,
    ) -> None:
        self._client = client
        self._server = server_of(str(client.base_url))
        self._progress = progress
        self._on_text = on_text
        self._silence = silence
        self._turns = Turns()

    async def run(self, arguments: dict[str, Any]) -> None:
        """Read until the reply is complete. Raises openai.APIError, JudgeReplyError or, if the reply is cut
        off or stalls, JudgeUnavailable.
        """
        try:
            # In a task of its own, which is cancelled once however often this one is: where two deadlines
            # fall together, the second would interrupt httpx closing the connection, and leave it open.
            async with (
                asyncio.timeout(self._silence.first_s if arguments.get("stream") else None) as silence,
                beside(self._ask(arguments, silence)) as asking,
            ):
                await asyncio.wait({asking})
                asking.result()
        except TimeoutError:
            if not silence.expired():
                raise
            begun = self._progress.first_token_at is not None
            seconds = self._silence.between_s if begun else self._silence.first_s
            raise Stalled(f"the reply stalled for {seconds * 1000:.0f} ms") from None
        except httpx.TimeoutException:
            raise Stalled("the call timed out") from None
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise JudgeUnavailable(cut_off(self._server, error)) from None
        self._check_end()

    async def _ask(self, arguments: dict[str, Any], silence: asyncio.Timeout) -> None:
        create: Any = self._client.chat.completions.with_streaming_response.create
        async with create(**_lean(arguments)) as response:
            kind = response.headers.get("content-type", "").lower()
            self._progress.streamed = bool(arguments.get("stream")) and "json" not in kind
            if self._progress.streamed:
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
                    if self._progress.first_token_at is not None:
                        silence.reschedule(loop.time() + self._silence.between_s)
                await self._turns.after(len(part))
        for data in events.finish():
            if data.strip() == _DONE:
                self._done()
                return
            with suppress(JudgeReplyError):  # half an event, which means nothing
                await self._event(data)
        if not self._progress.is_api:
            raise NotAnApi("the server's answer is not a chat completion; check judge.llm.base_url")
        if self._progress.finish_reason is None:
            raise JudgeUnavailable(cut_off(self._server))

    async def _drain(self, pieces: AsyncIterator[bytes]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                async for piece in pieces:
                    await self._turns.after(len(piece))

    def _done(self) -> None:
        """The server says that this was all, even if it gave no reason for the end."""
        if self._progress.has_choice and self._progress.finish_reason is None:
            self._progress.finish_reason = "stop"

    async def _event(self, data: str) -> None:
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            raise JudgeReplyError("an event of the stream is not JSON") from None
        if not isinstance(chunk, dict):
            raise JudgeReplyError("an event of the stream is not an object")
        if chunk.get("error"):
            raise JudgeUnavailable("the server reported an error within the reply")
        self._progress.is_api = True
        self._progress.usage = chunk.get("usage") or self._progress.usage
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
        self._progress.is_api = True
        self._progress.usage = completion.get("usage")
        choice = first_object(completion["choices"])
        if choice is None or not isinstance(choice.get("message"), dict):
            raise JudgeReplyError("the reply has no choices")
        # Some servers omit it; the reply is complete all the same.
        self._progress.finish_reason = "stop"
        await self._take(choice, choice["message"])

    async def _take(self, choice: dict[str, Any], said: object) -> None:
        self._progress.finish_reason = choice.get("finish_reason") or self._progress.finish_reason
        if self._progress.finish_reason == "content_filter":
            raise JudgeRefused("the provider's content filter withheld the reply")
        if not isinstance(said, dict):
            return
        self._progress.has_choice = True
        if said.get("refusal"):
            raise JudgeRefused("the model refused to judge")
        if self._progress.first_token_at is None and any(said.get(name) for name in _TOKENS):
            self._progress.first_token_at = asyncio.get_running_loop().time()
        text = said.get("content")
        if not isinstance(text, str) or not text:
            return
        self._progress.empty = self._progress.empty and not text.strip()
        for start in range(0, len(text), _AT_ONCE):
            part = text[start : start + _AT_ONCE]
            self._on_text(part)
            await self._turns.after(len(part))

    def _check_end(self) -> None:
        reason = self._progress.finish_reason
        if reason is None:
            raise JudgeReplyError("the reply has no choices")
        if self._progress.empty:
            cause = "; raise judge.llm.max_output_tokens" if reason == "length" else ""
            raise JudgeReplyError(f"the reply is empty{cause}")


def _lean(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that make the same request as ``arguments``, most of it where the client doesn't process
    it.
    """
    seen = {name: value for name, value in arguments.items() if name in _SEEN}
    rest = {name: value for name, value in arguments.items() if name not in _SEEN}
    return seen | {"messages": [], "extra_body": {**(seen.get("extra_body") or {}), **rest}}


def first_object(values: object) -> dict[str, Any] | None:
    """The first of a list in a reply, if it is an object."""
    first = values[0] if isinstance(values, list) and values else None
    return first if isinstance(first, dict) else None
