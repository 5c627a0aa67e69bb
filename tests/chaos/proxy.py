"""A TCP proxy that makes connections slow, narrow, silent or broken, on purpose.

One stands between each guard and the broker. What it does is set for all its connections, present and future,
and may change at any time; ``heal`` undoes all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

CHUNK: Final = 64 * 1024
IN_FLIGHT: Final = 64
"""Chunks of a direction that are on their way; the sender waits when there are more."""
_ABORTED: Final = struct.pack("ii", 1, 0)
"""SO_LINGER on, for no time: closing sends a reset."""


@dataclass(slots=True)
class Weather:
    """What a chunk meets on its way."""

    latency_s: float = 0.0
    """Added to every chunk, in each direction, order kept."""
    bytes_per_s: float = 0.0
    """Of each direction of each connection; 0: as fast as it goes."""


class FaultProxy:
    """Forwards connections to ``target`` (host, port). An async context manager; ``port`` is then its own."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.port = 0
        self.weather = Weather()
        self._open = asyncio.Event()
        self._open.set()
        self._accepting = True
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def address(self) -> str:
        """Where clients connect."""
        return f"127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._connections)

    # ------------------------------------------------------------------------------- the faults

    def slow(self, latency_s: float) -> None:
        """Every chunk takes this much longer."""
        self.weather.latency_s = latency_s

    def narrow(self, bytes_per_s: float) -> None:
        """Not more than this in each direction of a connection."""
        self.weather.bytes_per_s = bytes_per_s

    def silence(self) -> None:
        """A black hole: connections stay, new ones are accepted, and nothing comes through.

        What is sent meanwhile arrives after ``heal``, as it does after a network partition: late, and
        perhaps after somebody else has taken over.
        """
        self._open.clear()

    def refuse(self) -> None:
        """Connections are reset, new ones at once."""
        self._accepting = False
        self.reset()

    def reset(self, each: Callable[[int], bool] = lambda _: True) -> int:
        """Break those connections whose number, in order of age, ``each`` wants; says how many."""
        chosen = [connection for number, connection in enumerate(list(self._connections)) if each(number)]
        for connection in chosen:
            connection.abort()
        return len(chosen)

    def heal(self) -> None:
        """Be a good network again, to present and new connections."""
        self.weather = Weather()
        self._accepting = True
        self._open.set()

    # ----------------------------------------------------------------------------------- inside

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        connection = _Connection(writer)
        try:
            if not self._accepting:
                return
            there, back = await asyncio.open_connection(*self.target)
            connection.to_broker = back
            self._connections.add(connection)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, back, connection))
                group.create_task(self._pump(there, writer, connection))
        except OSError:
            pass  # the broker is away: so is the connection
        except ExceptionGroup as errors:
            if errors.split((OSError, asyncio.IncompleteReadError))[1] is not None:
                raise
        finally:
            self._connections.discard(connection)
            connection.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, connection: _Connection
    ) -> None:
        """One direction, to its end; then the whole connection ends."""
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(IN_FLIGHT)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._forward(chunks.get, sink))
            now = asyncio.get_running_loop().time
            while data := await source.read(CHUNK):
                await chunks.put((now() + self.weather.latency_s, data))
            await chunks.put((now(), b""))
        connection.abort()

    async def _forward(
        self, next_chunk: Callable[[], Awaitable[tuple[float, bytes]]], sink: asyncio.StreamWriter
    ) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due, data = await next_chunk()
            if not data:
                return
            await self._open.wait()
            delay = due - clock()
            if self.weather.bytes_per_s:
                delay = max(delay, 0.0) + len(data) / self.weather.bytes_per_s
            if delay > 0:
                await asyncio.sleep(delay)
            if sink.is_closing():  # uvloop knows no write to it
                raise ConnectionResetError
            sink.write(data)
            await sink.drain()


class _Connection:
    """Both ends of what the proxy has found."""

    def __init__(self, to_client: asyncio.StreamWriter) -> None:
        self.to_client = to_client
        self.to_broker: asyncio.StreamWriter | None = None

    def abort(self) -> None:
        """End it with a reset in both directions."""
        for writer in (self.to_client, self.to_broker):
            if writer is None or writer.transport.is_closing():
                continue
            raw = writer.get_extra_info("socket")
            if raw is not None:
                with contextlib.suppress(OSError):
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTED)
            writer.transport.abort()
