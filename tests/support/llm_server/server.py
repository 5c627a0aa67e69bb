"""The stand-in server itself: it listens, makes bytes of what behaviours answer, and records."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from tests.support.llm_server.behaviours import (
    Act,
    Behaviour,
    Cut,
    Drip,
    Hang,
    Outcome,
    Recorded,
    Reply,
    Status,
    StreamError,
    Wire,
    event,
    obliging,
    resolve,
)
from tests.support.tcp_server import TcpServer

PING: Final = ": ping\n\n"


@dataclass(frozen=True, slots=True)
class Wait:
    """For so long, until the event is set, or, with neither, until the caller leaves."""

    seconds: float | None = None
    until: asyncio.Event | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """The connection ends here. ``early``: with less than the whole reply sent."""

    early: bool = True
    reset: bool = False


Step: TypeAlias = bytes | Wait | Close


def steps(act: Act, call: Recorded) -> Iterator[Step]:
    """What to do, in order. Without a Close the connection stays open for the next call."""
    if isinstance(act, StreamError) and not call.streamed:
        act = Status(act.status, dict(act.error))
    match act:
        case Status():
            yield from _status(act)
        case Drip():
            yield from _drip(act, call)
        case Hang(after=None):
            yield Wait()
        case Hang():
            wire = replace(act.reply.wire, hold_after=act.after, until=None)
            yield from _reply(replace(act.reply, wire=wire), call)
        case Cut(chunks=None, after=0):
            yield Close(reset=act.reset)
        case Cut():
            yield from _reply(act.reply, call, act)
        case StreamError():
            inserted = {**act.reply.wire.insert, act.after: event({"error": dict(act.error)})}
            if act.done:
                inserted[act.after] += event("[DONE]")
            wire = replace(act.reply.wire, insert=inserted, end_after=act.after)
            yield from _reply(replace(act.reply, wire=wire), call)
        case Reply():
            yield from _reply(act, call)


def _status(act: Status) -> Iterator[Step]:
    body = (act.raw if act.raw is not None else json.dumps({"error": act.error})).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    yield _head(act.code, headers | act.headers)
    yield body


def _drip(act: Drip, call: Recorded) -> Iterator[Step]:
    if call.streamed:
        yield _head(200, _STREAM | _CHUNKED)
        drop = _http_chunk(PING.encode())
    else:
        yield _head(200, {"Content-Type": "application/json", "Content-Length": "1000000"})
        drop = b" "
    while True:
        yield drop
        yield Wait(act.every_s)


def _reply(act: Reply, call: Recorded, cut: Cut | None = None) -> Iterator[Step]:
    streamed = call.streamed and not act.wire.ignore_stream
    chunks = _events(act, call) if streamed else _slices(act, call)
    framed = streamed and not act.wire.close_framed
    if act.wire.first_pause_s:
        yield Wait(act.wire.first_pause_s)
    if framed:
        yield _head(200, _STREAM | _CHUNKED)
    elif streamed:
        yield _head(200, _STREAM | {"Connection": "close"})
    else:
        length = sum(map(len, chunks))
        yield _head(200, {"Content-Type": "application/json", "Content-Length": str(length)})
    for step in _paced(_stopping(chunks, act.wire, cut), act.wire, eager=not streamed):
        yield _http_chunk(step) if framed and isinstance(step, bytes) else step
    if cut is not None:
        yield Close(reset=cut.reset)
    elif framed:
        yield b"0\r\n\r\n"
    elif streamed:
        yield Close(early=False)


def _stopping(chunks: list[bytes], wire: Wire, cut: Cut | None) -> list[list[bytes] | Wait]:
    """The chunks that are sent, and a wait among them where they are held."""
    if cut is not None and cut.chunks is None:
        chunks = [b"".join(chunks)[: cut.after]]
    elif cut is not None and cut.chunks is not None:
        following = chunks[cut.chunks : cut.chunks + 1] if cut.inside else []
        chunks = chunks[: cut.chunks] + [chunk[: len(chunk) // 2] for chunk in following]
    if wire.hold_after is None:
        return [chunks]
    return [chunks[: wire.hold_after], Wait(until=wire.until), chunks[wire.hold_after :]]


def _paced(parts: list[list[bytes] | Wait], wire: Wire, *, eager: bool) -> Iterator[bytes | Wait]:
    """Chunks as they are written. ``eager``: at once, unless something asks for pieces."""
    first = True
    for part in parts:
        if isinstance(part, Wait):
            yield part
            continue
        if wire.split_bytes is not None:
            writes = _cut_up(b"".join(part), wire.split_bytes)
        elif wire.events_per_write is None or (eager and not wire.pause_s):
            writes = [b"".join(part)]
        else:
            size = wire.events_per_write
            writes = [b"".join(part[start : start + size]) for start in range(0, len(part), size)]
        for write in filter(None, writes):
            if wire.pause_s and not first:
                yield Wait(wire.pause_s)
            first = False
            yield write


def _slices(act: Reply, call: Recorded) -> list[bytes]:
    """The body of a reply that isn't streamed."""
    message = {"role": "assistant", "content": _content(act, call), "refusal": act.refusal}
    choice = {"index": 0, "finish_reason": act.finish_reason, "message": message}
    completion = _shared(call, "chat.completion") | {
        "choices": [choice] if act.choices is None else act.choices,
        "usage": act.usage,
    }
    return _cut_up(_utf8(completion), act.wire.chunk_chars)


def _events(act: Reply, call: Recorded) -> list[bytes]:
    """The body of a stream, one element an event, with what is inserted ahead of it."""
    wire = act.wire
    counted = act.usage if call.wants_usage else None
    payloads = [_chunk(call, choices) for choices in _choices(act, call)]
    if counted is not None and wire.usage_with_finish:
        payloads[-1]["usage"] = counted
    elif counted is not None:
        payloads.append(_chunk(call, []) | {"usage": counted})
    lines = [b"data: " + _utf8(payload) + b"\n\n" for payload in payloads]
    if wire.done:
        lines.append(event("[DONE]").encode())
    if wire.end_after is not None:
        lines = lines[: wire.end_after]
    # What is inserted at the end or behind it comes last.
    behind = [text.encode() for number, text in sorted(wire.insert.items()) if number >= len(lines)]
    for number, line in enumerate(lines):
        ping = PING if wire.ping_every and number % wire.ping_every == 0 else ""
        lines[number] = (ping + wire.insert.get(number, "")).encode() + line
    return [line.replace(b"\n", wire.newline.encode()) for line in lines + behind]


def _choices(act: Reply, call: Recorded) -> Iterator[list[Any]]:
    if act.choices is not None:
        for choice in act.choices or [None]:
            known = isinstance(choice, dict) and "message" in choice
            told = {**choice, "delta": choice["message"]} if known else choice
            yield [] if choice is None else [told]
        return
    content = _content(act, call)
    role = {"role": "assistant", "content": None if content is None else "", "refusal": None}
    deltas: list[dict[str, Any]] = [role]
    for name, text in (("content", content), ("refusal", act.refusal)):
        size = act.wire.chunk_chars
        deltas += [{name: (text or "")[start : start + size]} for start in range(0, len(text or ""), size)]
    for delta in deltas:
        yield [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]
    yield [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": act.finish_reason}]


def _chunk(call: Recorded, choices: list[Any]) -> dict[str, Any]:
    chunk = _shared(call, "chat.completion.chunk") | {"choices": choices}
    return chunk | {"usage": None} if call.wants_usage else chunk


def _shared(call: Recorded, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{call.number}", "object": kind, "created": 1, "model": call.body["model"]}


def _content(act: Reply, call: Recorded) -> str | None:
    return act.content(call) if callable(act.content) else act.content


def _cut_up(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _utf8(value: object) -> bytes:
    """JSON with its characters as they are; escaped where UTF-8 can't hold them."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


_STREAM: Final = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_CHUNKED: Final = {"Transfer-Encoding": "chunked"}


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def _http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


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
