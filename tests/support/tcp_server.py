"""What stand-in servers share: they listen on a free port, and end with everything they serve."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class TcpServer(ABC):
    """Listens on 127.0.0.1 as an async context manager. Subclasses say what a connection gets."""

    def __init__(self) -> None:
        self._stopping = False
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._stopping = True
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()  # ends its reader, and with it the task
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()

    def hang_up(self) -> None:
        """Close the connections that are open."""
        for writer in self._writers:
            writer.close()

    @property
    def url(self) -> str:
        """Root of the API."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}/v1"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        try:
            await self._serve(reader, writer)
        finally:
            self._writers.discard(writer)
            writer.close()

    @abstractmethod
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first byte to its end."""
