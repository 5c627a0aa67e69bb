"""``/v1/guard``: answers that are written elsewhere, guarded token by token. Events go both ways at once.

They are those of Kafka's topics, of as many answers as a client likes at a time. Over a WebSocket an event is
a message; in a request that is answered while it comes it is a line.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import ExitStack, suppress
from typing import Any, Final, Literal, TypeVar

from pydantic import Field, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Receive
from starlette.websockets import WebSocket

from consumers.gateway.keys import ApiCaller
from consumers.gateway.refusals import Refused
from consumers.gateway.settings import ServeSettings
from guardrail.errors import DecodeError, InputError
from guardrail.events import (
    AnyOutputEvent,
    Event,
    InputEvent,
    OutputEvent,
    Response,
    ResponseAborted,
    ResponseId,
    ResponseStarted,
    WireModel,
    parse_input,
)
from guardrail.guard import Guard
from guardrail.limits import Limits
from guardrail.telemetry import HTTP_REQUESTS

_Told = TypeVar("_Told", bound=OutputEvent)

NDJSON: Final = "application/x-ndjson"
_AHEAD: Final = 64 * 1024
"""Bytes that wait for the client before no more is taken; and of an event that takes milliseconds to read."""
_TURN: Final = 32
"""Events before other connections have their turn."""


class EventError(Event):
    """An event that could not be used, or why the connection ends."""

    type: Literal["error"] = "error"
    number: int = Field(
        description="Which event of the connection it was, from 1; for stopping and idle the last that came."
    )
    response_id: ResponseId | None = Field(description="Its response, if that can be read.")
    reason: str = Field(description="A stable code for why it was refused, such as invalid_json.")
    message: str = Field(description="What was wrong, without the event's text.")


class _WithId(WireModel):
    response_id: ResponseId


class GuardConnection:
    """One client's answers, from the first event to the last."""

    def __init__(self, guard: Guard, caller: ApiCaller, settings: ServeSettings) -> None:
        self.ending: tuple[int, str] | None = None
        """The code that closes a WebSocket, and why, once no more answers are taken."""
        self.caller = caller
        self._settings = settings
        self._lane = guard.lane(self._told, self._closed, settings.missing)
        self._begun: dict[str, tuple[str, ExitStack]] = {}
        self._number = 0
        self._active_at = asyncio.get_running_loop().time()
        self._out: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._waiting = 0
        self._moved = asyncio.Event()

    async def events(self, lines: AsyncIterator[bytes | None]) -> AsyncGenerator[bytes, None]:
        """What is told of ``lines``, until all of them are answered; None says that no more come. Raises what
        ``lines`` raise, such as ClientDisconnect, once what is under way has been dropped.
        """
        takes, watches = asyncio.ensure_future(self._take(lines)), asyncio.ensure_future(self._watch())
        takes.add_done_callback(lambda _: self._out.put_nowait(None))
        try:
            while (told := await self._out.get()) is not None:
                yield told
                self._waiting -= len(told)
                self._moved.set()
            if takes.done():
                takes.result()
        finally:
            takes.cancel()
            watches.cancel()
            await asyncio.wait([takes, watches])
            self._lane.close()
            for name in list(self._begun):
                self._closed(name)

    def stop(self, code: int = 1012, reason: str = "stopping") -> None:
        """Take no more answers, and end once those under way have."""
        if self.ending is None:
            self.ending = (code, reason)
            self._refuse(reason, "no more answers are taken on this connection; open another", None)
            self._look()

    async def _take(self, lines: AsyncIterator[bytes | None]) -> None:
        async for line in lines:
            if line is None:
                for name in list(self._begun):
                    with suppress(InputError):  # the rest of it will never come
                        await self._lane.take(ResponseAborted(response_id=name))
                self.ending = self.ending or (1000, "")
                self._look()
                continue
            self._number += 1
            await self._until(lambda: self._waiting <= _AHEAD)
            await self._event(line)
            self._active_at = asyncio.get_running_loop().time()
            if self._number % _TURN == 0:
                await asyncio.sleep(0)

    async def _watch(self) -> None:
        """End it if nothing comes, and nothing is under way."""
        loop = asyncio.get_running_loop()
        while self._begun or loop.time() < self._active_at + self._settings.idle_s:  # noqa: ASYNC110 - time passes
            await asyncio.sleep(self._settings.idle_s / 10)
        self.stop(1001, "idle")

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._moved.clear()
            await self._moved.wait()

    async def _event(self, line: bytes) -> None:
        try:
            event = await _read(line, self._settings.max_body_bytes)
        except DecodeError as error:
            named = _id_in(line)
            self._refuse(error.reason, str(error), named)
            if named is not None:
                self._reject(named, error.reason)
            return
        try:
            await self._handle(event)
        except (InputError, Refused) as error:
            self._refuse(error.reason, str(error), event.response_id)

    def _reject(self, response_id: str, reason: str) -> None:
        """Nobody must wait for an answer of which an event can't be read."""
        with suppress(InputError):
            name = self.caller.named(response_id)
            self._begun.setdefault(name, (response_id, ExitStack()))
            self._lane.reject(name, reason)
            self._forget_unknown(name)

    async def _handle(self, event: InputEvent) -> None:
        """Raises Refused and InputError."""
        name = self.caller.named(event.response_id)
        if isinstance(event, ResponseStarted | Response):
            if self.caller.key is not None:
                event = self.caller.key.held(event)
            if name not in self._begun:
                await self._begin(name, event.response_id)
        try:
            await self._lane.take(event.model_copy(update={"response_id": name}))
        finally:
            self._forget_unknown(name)

    async def _begin(self, name: str, response_id: str) -> None:
        if self.ending is not None:
            raise InputError("stopping", "no more answers are taken on this connection; open another")
        most = self._settings.most_answers
        try:
            async with asyncio.timeout(Limits.overload_grace_ms / 1000):
                await self._until(lambda: len(self._begun) < most)
        except TimeoutError:
            raise InputError("too_many_answers", f"{most:,} answers are under way; end some first") from None
        stack = ExitStack()
        stack.enter_context(self.caller.asking())
        self._begun[name] = (response_id, stack)

    def _refuse(self, reason: str, message: str, response_id: str | None) -> None:
        HTTP_REQUESTS.labels("guard.event", "400").inc()
        self._put(EventError(number=self._number, response_id=response_id, reason=reason, message=message))

    def _told(self, event: AnyOutputEvent) -> None:
        self._put(renamed(event, self._begun[event.response_id][0]))
        asyncio.get_running_loop().call_soon(self._look)  # when all that comes with it has been told

    def _put(self, event: Event) -> None:
        told = event.to_json() + b"\n"
        self._waiting += len(told)
        self._out.put_nowait(told)

    def _forget_unknown(self, name: str) -> None:
        if not self._lane.knows(name):
            self._closed(name)

    def _closed(self, name: str) -> None:
        if name in self._begun:
            self._begun.pop(name)[1].close()
            self._active_at = asyncio.get_running_loop().time()
            self._moved.set()
            self._look()

    def _look(self) -> None:
        """Let it end, once nothing more is to come."""
        if self.ending is not None and all(self._lane.decided(each) for each in self._begun):
            self._out.put_nowait(None)


def renamed(event: _Told, response_id: str | None) -> _Told:
    """It, by the id that the client gave to its answer, if it gave one."""
    if response_id in {None, event.response_id}:
        return event
    changes: dict[str, Any] = {"response_id": response_id}
    if claims := getattr(event, "claims", ()):
        changes["claims"] = tuple(each.model_copy(update=changes) for each in claims)
    return event.model_copy(update=changes)


async def _read(line: bytes, most: int) -> InputEvent:
    """Raises DecodeError."""
    if len(line) > most:
        raise DecodeError("too_large", f"it is larger than {most:,} bytes")
    return parse_input(line) if len(line) < _AHEAD else await asyncio.to_thread(parse_input, line)


def _id_in(line: bytes) -> str | None:
    with suppress(ValidationError):
        return _WithId.model_validate_json(line).response_id
    return None


async def messages_of(socket: WebSocket) -> AsyncIterator[bytes]:
    """An event is a message, of text or of bytes. Raises ClientDisconnect."""
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        text = message.get("text")
        yield message["bytes"] if text is None else text.encode()
    raise ClientDisconnect


async def lines_of(receive: Receive, most: int) -> AsyncIterator[bytes | None]:
    """An event is a line, and None comes after the last; of one that is longer than ``most`` bytes only the
    beginning comes, too long as well. Raises ClientDisconnect.
    """
    rest = bytearray()
    while (message := await receive())["type"] != "http.disconnect":
        more = message.get("more_body", False)
        *whole, part = (message.get("body", b"") + (b"" if more else b"\n")).split(b"\n")
        for line in whole:
            rest += line
            if rest.strip():
                yield bytes(rest)
            rest.clear()
        rest += part
        del rest[most + 1 :]
        if not more:
            yield None
    raise ClientDisconnect
