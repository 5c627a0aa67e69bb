"""One call of a chat-completions API: sending it, and reading its reply, streamed or not.

The body is read here rather than by the client, which neither validates nor bounds what a server sends. Error
messages say where to look. They repeat no text of an error or of a server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from guardrail.calls import cut_off
from guardrail.calls.event_stream import EventStream
from guardrail.calls.http import Turns, read_body
from guardrail.errors import JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.judges.openai_client import OwnClients, httpx
from guardrail.judges.streams import beside

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
