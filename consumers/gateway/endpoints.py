"""The gateway's own endpoints: ``/v1/guard`` for answers that are written elsewhere, guarded token by token,
``/v1/check`` for answers that are there; and the OpenAPI document of all. Events of ``/v1/guard`` go both
ways at once.

They are those of Kafka's topics, of as many answers as a client likes at a time. Over a WebSocket an event is
a message; in a request that is answered while it comes it is a line.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import ExitStack, suppress
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import uuid4

from pydantic import Field, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.requests import ClientDisconnect
from starlette.types import Receive
from starlette.websockets import WebSocket

from consumers.gateway.admission import (
    CHECK,
    COMPLETIONS,
    GUARD,
    HEADER,
    PASSED,
    RESPONSES,
    ApiCaller,
    Refused,
)
from consumers.gateway.dialects import DIALECTS
from consumers.gateway.settings import ServeSettings
from guardrail import __version__
from guardrail.chat import GroundingExtension
from guardrail.errors import DecodeError, InputError
from guardrail.events import (
    AnyOutputEvent,
    Event,
    InputEvent,
    Name,
    OutputEvent,
    Response,
    ResponseAborted,
    ResponseId,
    ResponseStarted,
    ResponseVerdict,
    WireModel,
    decode_error,
    parse_input,
)
from guardrail.frozen import Frozen
from guardrail.guard import Guard
from guardrail.inputs import event_of
from guardrail.limits import Limits
from guardrail.policy import MissingContexts
from guardrail.schema import component_schemas, connection_document, connection_modes
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


# -------------------------------------------------------- answers that are there, and the OpenAPI document

_MOST: Final = 100


class CheckItem(GroundingExtension):
    """An answer, and what it was written from."""

    answer: Annotated[str, Field(description="The whole text.")]
    response_id: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="Made where none is given. In logs and on topics the key's name stands before it, "
            "and more letters follow.",
        ),
    ] = None
    language: Name | None = None


class CheckBatch(Frozen):
    """Several answers, judged at the same time."""

    checks: Annotated[tuple[CheckItem, ...], Field(min_length=1, max_length=_MOST)]


class CheckResults(Frozen):
    """The verdicts, in the order of the answers."""

    results: tuple[ResponseVerdict, ...]


Named = list[tuple[Response, str | None]]
"""Answers that are to be judged, each with what the caller calls it."""


def answers_in(request: Any, caller: ApiCaller) -> Named:
    """The answers of a request. Raises Refused and InputError."""
    if not isinstance(request, dict):
        raise Refused(400, "give one object, or {checks: [...]}", "invalid_request")
    try:
        many = "checks" in request
        items = CheckBatch.model_validate(request).checks if many else (CheckItem.model_validate(request),)
    except ValidationError as error:
        raise Refused(400, str(decode_error(error)), "invalid_request") from None
    found: Named = []
    for item in items:
        route, tenant = caller.scoped(item.route, item.tenant)
        fields = {**dict(item), "question": item.question or "", "route": route, "tenant": tenant}
        # Who asks again, or somebody else, may give the same id, which the guard takes once.
        name = fields.pop("response_id")
        known = caller.named(f"{name}-{uuid4().hex}") if name else None
        found.append((event_of(Response, known, fields), name))
    return found


async def checked(guard: Guard, answers: Named, missing: MissingContexts | None) -> list[ResponseVerdict]:
    """The verdicts, in the order of the answers. Raises InputError in a group."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(guard.check_event(event, missing)) for event, _ in answers]
    return [renamed(task.result(), name) for task, (_, name) in zip(tasks, answers, strict=True)]


def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 document: the gateway's own endpoints from their models, the others by name."""
    _, of_check = models_json_schema(
        [
            *((model, "validation") for model in (CheckItem, CheckBatch)),
            *((model, "serialization") for model in (ResponseVerdict, CheckResults)),
        ],
        ref_template="#/components/schemas/{model}",
    )

    def one_of(*models: str, kind: str = "application/json") -> dict[str, Any]:
        refs = [{"$ref": f"#/components/schemas/{model}"} for model in models]
        return {"content": {kind: {"schema": {"oneOf": refs}}}}

    events = connection_modes(EventError)
    taken, told = (
        one_of(*(model.__name__ for model, mode in events if mode == way), kind=NDJSON)
        for way in ("validation", "serialization")
    )
    guard = {
        "operationId": "guard",
        "summary": "Guard answers while they are written: the response comes while the request is sent.",
        "description": "Each line of both bodies is one event; the schemas are those of a line. "
        "GET /asyncapi.json describes the same over a WebSocket.",
        "requestBody": {"required": True, **taken},
        "responses": {"200": {"description": "What may be shown, and why.", **told}},
    }
    check = {
        "operationId": "check",
        "summary": "Judge answers that are there already.",
        "requestBody": {"required": True, **one_of("CheckItem", "CheckBatch")},
        "responses": {
            "200": {"description": "The verdicts.", **one_of("ResponseVerdict", "CheckResults")},
            "400": {"description": "The request is wrong; the message names the field."},
        },
    }
    others = {
        COMPLETIONS: {"post": _passing("A chat completion of the upstream, guarded.")},
        RESPONSES: {"post": _passing("A response of the upstream, guarded.")},
        **{
            path: {"post": _passing(f"What {name} asks, if serve.dialects names it.", f"{name} says")}
            for name, dialect in DIALECTS.items()
            for path in dialect.paths
        },
        **{
            path.replace(":path", ""): {
                **{method.lower(): _passing("Passed on to the upstream.") for method in methods},
                "parameters": [
                    {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                    for name in re.findall(r"\{(\w+)", path)
                ],
            }
            for path, methods in PASSED.items()
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "guardrail serve", "version": __version__},
        "paths": {CHECK: {"post": check}, GUARD: {"post": guard}, **others},
        "components": {
            "schemas": {**of_check["$defs"], **component_schemas(events)},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": HEADER}},
        },
        "security": [{"key": []}, {}],
    }


def asyncapi() -> dict[str, Any]:
    """The AsyncAPI 3 document of ``/v1/guard`` as a WebSocket."""
    told = f"Answers are guarded while they are written; each message is one event. A key comes as {HEADER}."
    return connection_document(GUARD, told, EventError)


def _passing(summary: str, told: str = "the upstream's API says") -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": f"As {told}."}}}
