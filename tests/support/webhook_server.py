"""A receiver of webhooks: a real HTTP server that keeps what it got and answers as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tests.support.tcp_server import TcpServer


class Post(NamedTuple):
    headers: Mapping[str, str]
    body: bytes


class WebhookServer(TcpServer):
    """Answers with each of ``statuses`` in turn, then with 200; 0 hangs up without an answer."""

    def __init__(self, statuses: Iterable[int] = ()) -> None:
        super().__init__()
        self._statuses = list(statuses)
        self.posts: list[Post] = []
        self._came = asyncio.Event()

    async def got(self, number: int) -> None:
        """Wait for so many posts."""
        while len(self.posts) < number:
            self._came.clear()
            await self._came.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                lines = [line.split(": ", 1) for line in head.split("\r\n")[1:] if line]
                headers = {name.lower(): value for name, value in lines}
                body = await reader.readexactly(int(headers["content-length"]))
                status = self._statuses.pop(0) if self._statuses else 200
                self.posts.append(Post(headers, body))
                self._came.set()
                if status == 0:
                    return
                writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
