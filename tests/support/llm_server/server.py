"""The stand-in server itself: it listens, lets behaviours answer, and records."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from contextlib import suppress
from typing import Final

from tests.support.llm_server.behaviours import Act, Behaviour, Reply, resolve
from tests.support.llm_server.calls import Outcome, Recorded
from tests.support.llm_server.content import obliging
from tests.support.llm_server.wire import Close, Wait, steps
from tests.support.tcp_server import TcpServer

_END_OF_HEAD: Final = b"\r\n\r\n"
_NO_LINGER: Final = struct.pack("ii", 1, 0)


class LlmServer(TcpServer):
    """Listens on 127.0.0.1. Behaviours are taken in turn, the last for ever.

    ``calls`` are those that arrived, in that order; ``log`` has ("arrived" or an Outcome, number of the call)
    in the order of time; ``most_in_flight`` is the largest number of calls that were under way at once.
    ``arrived`` is set with the first call, ``given_up`` when a caller left before its reply was complete.
    """

    def __init__(self, *behaviours: Behaviour) -> None:
        super().__init__()
        self._behaviours = list(behaviours) or [Reply(obliging)]
        self.calls: list[Recorded] = []
        self.log: list[tuple[str, int]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.connections = 0
        self.arrived = asyncio.Event()
        self.given_up = asyncio.Event()
        self._changed = asyncio.Condition()

    async def until_calls(self, number: int) -> None:
        """Until so many calls have arrived."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.calls) >= number)

    async def until_in_flight(self, number: int) -> None:
        """Until exactly so many calls are under way; 0: until all have ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.in_flight == number)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = _Connection(reader, writer)
        try:
            while (call := await connection.read_call()) is not None:
                await self._begin(call)
                try:
                    behaviour = self._behaviours[min(call.number, len(self._behaviours) - 1)]
                    stays = await connection.answer(resolve(behaviour, call), call)
                finally:
                    await self._end(call)
                if not stays:
                    return
        finally:
            connection.close()

    async def _begin(self, call: Recorded) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        call.number, call.in_flight = len(self.calls), self.in_flight
        call.arrived_at = asyncio.get_running_loop().time()
        self.calls.append(call)
        self.log.append(("arrived", call.number))
        self.arrived.set()
        async with self._changed:
            self._changed.notify_all()

    async def _end(self, call: Recorded) -> None:
        self.in_flight -= 1
        if self._stopping and call.outcome in {None, Outcome.LEFT}:
            call.outcome = Outcome.STOPPED
        call.outcome = call.outcome or Outcome.CUT
        call.ended_at = asyncio.get_running_loop().time()
        self.log.append((call.outcome, call.number))
        call.ended.set()
        if call.left:
            self.given_up.set()
        async with self._changed:
            self._changed.notify_all()


class _Connection:
    """One connection. A read is always under way, so that a caller who leaves is seen at once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._next = asyncio.create_task(self._first_byte())

    async def _first_byte(self) -> bytes:
        """Of the next call; none when the caller has closed."""
        with suppress(ConnectionError):
            return await self._reader.read(1)
        return b""

    async def read_call(self) -> Recorded | None:
        first = await self._next
        if not first:
            return None
        try:
            head = first + await self._reader.readuntil(_END_OF_HEAD)
            request, *lines = head.decode("latin-1").strip().split("\r\n")
            target, _, query = request.partition(" ")[2].partition(" ")[0].partition("?")
            assert request.startswith("POST "), request
            assert target == "/v1/chat/completions", request
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            body = await self._reader.readexactly(int(headers["content-length"]))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        self._next = asyncio.create_task(self._first_byte())
        return Recorded(headers, json.loads(body), query)

    async def answer(self, act: Act, call: Recorded) -> bool:
        """Does the connection stay open?"""
        try:
            for step in steps(act, call):
                if isinstance(step, Close):
                    self._reset(step)
                    call.outcome = Outcome.CUT if step.early else Outcome.ANSWERED
                    return False
                if isinstance(step, Wait):
                    await self._wait(step)
                if (
                    self._caller_left()
                ):  # asked ahead of what is sent: one who leaves with all of it was answered
                    call.outcome = Outcome.LEFT
                    return False
                if isinstance(step, bytes):
                    await self._send(step, call)
        except ConnectionError:
            call.outcome = Outcome.LEFT
            return False
        call.outcome = Outcome.ANSWERED
        return True

    def _caller_left(self) -> bool:
        return self._next.done() and not self._next.result()

    async def _send(self, data: bytes, call: Recorded) -> None:
        self._writer.write(data)
        await self._writer.drain()
        await asyncio.sleep(0)  # lets others run, above all the read that sees a caller leave

    async def _wait(self, step: Wait) -> None:
        waiting: set[asyncio.Task[object]] = {self._next}
        if step.until is not None:
            waiting.add(asyncio.create_task(step.until.wait()))
        try:
            await asyncio.wait(waiting, timeout=step.seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting - {self._next}:
                task.cancel()

    def _reset(self, step: Close) -> None:
        if step.reset:
            sock = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self._writer.transport.abort()

    def close(self) -> None:
        self._next.cancel()
        self._writer.close()
