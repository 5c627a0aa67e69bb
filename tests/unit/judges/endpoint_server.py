"""An HTTP judge over a real socket that answers what the test tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tests.support.tcp_server import TcpServer

Answer = Callable[[dict[str, Any]], bytes | None]
"""From the request to the raw bytes of the response; None hangs until the client leaves."""


def http(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def replying(*verdicts: dict[str, Any]) -> Answer:
    """A well-formed reply with these verdicts."""
    body = json.dumps({"verdicts": verdicts}).encode()
    return lambda _: http(body)


class EndpointServer(TcpServer):
    """What was asked, and how."""

    def __init__(self, answer: Answer, *, cut: bool = False) -> None:
        """``cut`` ends the connection after each answer, whole or not."""
        super().__init__()
        self.answer = answer
        self.cut = cut
        self.requests: list[dict[str, Any]] = []
        self.heads: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self.arrived = asyncio.Event()

    @property
    def url(self) -> str:
        return super().url.replace("/v1", "/judge")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    int(line.split(":")[1])
                    for line in head.splitlines()
                    if line.lower().startswith("content-length")
                )
                request = json.loads(await reader.readexactly(length))
                self.heads.append(head)
                self.requests.append(request)
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
                self.arrived.set()
                raw = self.answer(request)
                if raw is None:
                    await reader.read()
                    return
                await asyncio.sleep(0)
                self.at_once -= 1
                writer.write(raw)
                await writer.drain()
                if self.cut:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
