"""Stand-in servers that answer JSON with JSON."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from tests.support.tcp_server import TcpServer

Answer = tuple[int, Any]
"""A status and the JSON of the body; None: no body; bytes: as they are."""


class JsonServer(TcpServer):
    """Records what it is asked. ``before`` may answer in its place, or hang up by returning 0."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[str, str, Any], Answer | None] = lambda method, path, body: None
        self.hold: asyncio.Event | None = None
        """While it is there and not set, answers nothing."""
        self.asked: list[tuple[str, Any]] = []
        self.heads: list[dict[str, str]] = []
        self.at_once = self.most_at_once = self.hung_up = 0
        self.arrived = asyncio.Event()
        self.left = asyncio.Event()

    @property
    def root(self) -> str:
        return self.url.removesuffix("/v1")

    @abstractmethod
    def answer(self, method: str, path: str, body: Any) -> Answer:
        """What the server answers."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.strip().split("\r\n")
                method, path, _ = first.split(" ")
                headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                body = json.loads(raw) if raw else None
                self.asked.append((path, body))
                self.heads.append(headers)
                if not await self._reply(method, path, body, reader, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _reply(
        self, method: str, path: str, body: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.arrived.set()
        try:
            if self.hold is not None and method == "POST":
                leaving = asyncio.ensure_future(reader.read(1))
                going_on = asyncio.ensure_future(self.hold.wait())
                await asyncio.wait({leaving, going_on}, return_when=asyncio.FIRST_COMPLETED)
                going_on.cancel()
                if leaving.done():
                    self.hung_up += 1
                    self.left.set()
                    return False
                leaving.cancel()
                await asyncio.gather(leaving, return_exceptions=True)
            status, told = self.before(method, path, body) or self.answer(method, path, body)
        finally:
            self.at_once -= 1
        if not status:
            return False
        sent = b"" if told is None else told if isinstance(told, bytes) else json.dumps(told).encode()
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(sent)}\r\n\r\n".encode() + sent)
        await writer.drain()
        return True
