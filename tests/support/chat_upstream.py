"""A scripted OpenAI-compatible API, of which every byte is the test's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tests.support.tcp_server import TcpServer

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "any-model"}


def event(
    delta: dict[str, Any] | None = None, finish: str | None = None, index: int = 0, **more: Any
) -> bytes:
    """A chunk of a completion, as an event; without delta and finish, one without choices."""
    choices = [] if delta is None and finish is None else [choice(delta or {}, finish, index)]
    return b"data: " + json.dumps({**HEAD, "choices": choices, **more}).encode() + b"\n\n"


def choice(delta: dict[str, Any], finish: str | None = None, index: int = 0) -> dict[str, Any]:
    return {"index": index, "delta": delta, "finish_reason": finish}


DONE = b"data: [DONE]\n\n"


def events(*texts: str, finish: str = "stop") -> list[bytes]:
    """A whole stream of one choice."""
    return [
        event({"role": "assistant", "content": ""}),
        *(event({"content": text}) for text in texts),
        event({}, finish),
        DONE,
    ]


def completion(*messages: Any, **more: Any) -> dict[str, Any]:
    """A whole answer; a message may be a mere text."""
    told = [{"role": "assistant", "content": each} if isinstance(each, str) else each for each in messages]
    choices = [{"index": n, "message": each, "finish_reason": "stop"} for n, each in enumerate(told)]
    return {**HEAD, "object": "chat.completion", "choices": choices, **more}


async def _end_of(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        await reader.read(1)


class ChatUpstream(TcpServer):
    """Answers each request with ``status``, ``headers`` and ``body``, piece by piece; then it hangs up.

    Before the piece number ``holds_before`` it sets ``held`` and waits for ``going_on``. ``left`` is set when
    the gateway hangs up before the end; ``sent`` counts pieces.
    """

    def __init__(self) -> None:
        super().__init__()
        self.status = "200 OK"
        self.headers = {"Content-Type": "text/event-stream"}
        self.body: list[bytes] = []
        self.holds_before: int | None = None
        self.held = asyncio.Event()
        self.going_on = asyncio.Event()
        self.left = asyncio.Event()
        self.sent = 0
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []

    def answers(self, told: Any, status: str = "200 OK") -> None:
        """Answer with JSON from now on."""
        self.status, self.headers = status, {"Content-Type": "application/json"}
        self.body = [json.dumps(told).encode()]

    def streams(self, pieces: Iterable[bytes]) -> None:
        """Answer with a stream from now on."""
        self.status, self.headers = "200 OK", {"Content-Type": "text/event-stream"}
        self.body = list(pieces)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            method, path, _ = first.split(" ")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            raw = await reader.readexactly(int(headers.get("content-length", 0)))
            self.asked.append((method, path, headers, json.loads(raw) if raw[:1] in (b"{", b"[") else raw))
            told = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
            writer.write(f"HTTP/1.1 {self.status}\r\n{told}Connection: close\r\n\r\n".encode())
            gone = asyncio.ensure_future(_end_of(reader))
            for number, piece in enumerate(self.body):
                if number == self.holds_before:
                    self.held.set()
                    going_on = asyncio.ensure_future(self.going_on.wait())
                    await asyncio.wait({gone, going_on}, return_when=asyncio.FIRST_COMPLETED)
                    going_on.cancel()
                if gone.done():
                    break
                writer.write(piece)
                await writer.drain()
                self.sent += 1
            if gone.done():
                self.left.set()
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
