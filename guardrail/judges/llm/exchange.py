"""One call of a chat-completions API: sent, and its reply taken in, streamed or not.

The body is read here rather than by the client, which checks nothing of what a server sends, and bounds
nothing of it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import openai

from guardrail.errors import JudgeReplyError, JudgeUnavailable
from guardrail.judges.llm import failures
from guardrail.judges.llm.reply import EventStream

_MAX_BODY_BYTES: Final = 8_000_000
_MAX_STREAM_BYTES: Final = 128_000_000
_DONE: Final = "[DONE]"
_TOKENS: Final = ("content", "reasoning_content", "reasoning")  # thoughts are tokens as well

# What may still come behind [DONE] is the end of the body, which lets the connection be used again.
_DRAIN_S: Final = 0.05


# What the client has to see of a call. All else it would walk through each time, type by type, for fields to
# rename: 40 % of a call's CPU, and nothing of ours has any. What is in extra_body it sends as it is.
_SEEN: Final = frozenset({"model", "stream", "extra_headers", "extra_body"})


class ReplyRefused(JudgeReplyError):
    """The model or the provider's filter declined. Asking the same model again gives the same."""


class Stalled(JudgeUnavailable):
    """The reply fell silent, or never began."""


class NotAnApi(JudgeReplyError):
    """What answered is no chat-completions API."""


@dataclass(slots=True)
class ReplyProgress:
    """What a reply has told so far; it holds, too, when the call ends in the middle."""

    usage: object = None
    first_token_at: float | None = None  # event loop's time
    finish_reason: object = None
    empty: bool = True
    streamed: bool = False
    has_choice: bool = False
    is_api: bool = False


class Exchange:
    """One call. ``on_text`` gets the pieces of the reply's text in order."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        progress: ReplyProgress,
        on_text: Callable[[str], None],
        stall_timeout_ms: int | None,
    ) -> None:
        self._client = client
        self._server = failures.server_of(str(client.base_url))
        self._progress = progress
        self._on_text = on_text
        self._stall_ms = stall_timeout_ms

    async def run(self, arguments: dict[str, Any]) -> None:
        """Until the reply is complete. Raises openai.APIError, JudgeReplyError or, when the reply is cut or
        stalls, JudgeUnavailable.
        """
        create: Any = self._client.chat.completions.with_streaming_response.create
        streaming = bool(arguments.get("stream"))
        stall_s = self._stall_ms / 1000 if streaming and self._stall_ms else None
        try:
            async with asyncio.timeout(stall_s) as silence, create(**_lean(arguments)) as response:
                kind = response.headers.get("content-type", "").lower()
                self._progress.streamed = streaming and "json" not in kind
                if self._progress.streamed:
                    await self._stream(response, silence, stall_s)
                else:
                    silence.reschedule(None)
                    self._whole(await _body(response))
        except TimeoutError:
            if not silence.expired():
                raise
            raise Stalled(f"the reply stalled for {self._stall_ms} ms") from None
        except httpx2.TimeoutException:
            raise Stalled("the call timed out") from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise JudgeUnavailable(failures.failed(self._server, error)) from None
        self._check_end()

    async def _stream(self, response: Any, silence: asyncio.Timeout, stall_s: float | None) -> None:
        loop = asyncio.get_running_loop()
        events = EventStream()
        size = 0
        pieces = response.iter_bytes()
        async for piece in pieces:
            size += len(piece)
            if size > _MAX_STREAM_BYTES:
                raise JudgeReplyError(f"the reply has more than {_MAX_STREAM_BYTES} bytes")
            for data in events.feed(piece):
                if stall_s is not None:
                    silence.reschedule(loop.time() + stall_s)
                if data.strip() == _DONE:
                    self._done()
                    silence.reschedule(None)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_DRAIN_S):
                            async for _ in pieces:
                                pass
                    return
                self._event(data)
        for data in events.finish():
            if data.strip() == _DONE:
                self._done()
                return
            with suppress(JudgeReplyError):  # half an event, which says nothing
                self._event(data)
        if not self._progress.is_api:
            raise NotAnApi("the server's answer is no chat completion; check judge.llm.base_url")
        if self._progress.finish_reason is None:
            raise JudgeUnavailable(failures.failed(self._server))

    def _done(self) -> None:
        """The server says that this was all, even where it gave no reason for the end."""
        if self._progress.has_choice and self._progress.finish_reason is None:
            self._progress.finish_reason = "stop"

    def _event(self, data: str) -> None:
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            raise JudgeReplyError("an event of the stream is not JSON") from None
        if not isinstance(chunk, dict):
            raise JudgeReplyError("an event of the stream is no object")
        if chunk.get("error"):
            raise JudgeUnavailable("the server reported an error within the reply")
        self._progress.is_api = True
        self._progress.usage = chunk.get("usage") or self._progress.usage
        choice = _first(chunk.get("choices"))
        if choice is not None:
            self._take(choice, choice.get("delta"))

    def _whole(self, body: bytes) -> None:
        try:
            completion = json.loads(body)
        except (ValueError, RecursionError):
            raise NotAnApi("the server's answer is not JSON; check judge.llm.base_url") from None
        if not isinstance(completion, dict):
            raise NotAnApi("the server's answer is no chat completion; check judge.llm.base_url")
        if "choices" not in completion:
            raise NotAnApi("the reply has no choices; check judge.llm.base_url")
        self._progress.is_api = True
        self._progress.usage = completion.get("usage")
        choice = _first(completion["choices"])
        if choice is None or not isinstance(choice.get("message"), dict):
            raise JudgeReplyError("the reply has no choices")
        # What some servers leave out; the reply is whole all the same.
        self._progress.finish_reason = "stop"
        self._take(choice, choice["message"])

    def _take(self, choice: dict[str, Any], said: object) -> None:
        self._progress.finish_reason = choice.get("finish_reason") or self._progress.finish_reason
        if self._progress.finish_reason == "content_filter":
            raise ReplyRefused("the provider's content filter withheld the reply")
        if not isinstance(said, dict):
            return
        self._progress.has_choice = True
        if said.get("refusal"):
            raise ReplyRefused("the model refused to judge")
        if self._progress.first_token_at is None and any(said.get(name) for name in _TOKENS):
            self._progress.first_token_at = asyncio.get_running_loop().time()
        text = said.get("content")
        if not isinstance(text, str) or not text:
            return
        self._progress.empty = self._progress.empty and not text.strip()
        self._on_text(text)

    def _check_end(self) -> None:
        reason = self._progress.finish_reason
        if reason is None:
            raise JudgeReplyError("the reply has no choices")
        if self._progress.empty:
            cause = "; raise judge.llm.max_output_tokens" if reason == "length" else ""
            raise JudgeReplyError(f"the reply is empty{cause}")


def _lean(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that make the same request as ``arguments``, most of it where the client leaves it alone."""
    seen = {name: value for name, value in arguments.items() if name in _SEEN}
    rest = {name: value for name, value in arguments.items() if name not in _SEEN}
    return seen | {"messages": [], "extra_body": {**(seen.get("extra_body") or {}), **rest}}


async def _body(response: Any) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.iter_bytes():
        size += len(piece)
        if size > _MAX_BODY_BYTES:
            raise JudgeReplyError(f"the reply has more than {_MAX_BODY_BYTES} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _first(choices: object) -> dict[str, Any] | None:
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None
