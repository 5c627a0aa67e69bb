"""The gateway as an ASGI application: it admits, asks the upstream, guards, and answers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from typing import Any, Final, Self

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Match, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from consumers.gateway.answers import GatewayAnswer, as_json, error_of, headers_of
from consumers.gateway.check import answers_in, asyncapi, checked, openapi
from consumers.gateway.completions import GuardedCompletion, asked_by
from consumers.gateway.dialects import DIALECTS, DialectDesk, GatewayDialect
from consumers.gateway.duplex import NDJSON, GuardConnection, lines_of, messages_of
from consumers.gateway.keys import ApiCaller, ApiKeys, read_keys
from consumers.gateway.paths import CHECK, COMPLETIONS, GUARD, PASSED, RESPONSES, is_name, why_refused
from consumers.gateway.refusals import Refused, upstream_refused
from consumers.gateway.responses import GuardedResponse, response_asked_by
from consumers.gateway.settings import ServeSettings
from consumers.gateway.upstream import Upstream, for_client, pieces
from consumers.outputs import trace_context
from consumers.settings import is_loopback
from guardrail.chat import Grounding
from guardrail.errors import InputError
from guardrail.guard import Guard
from guardrail.telemetry import HTTP_REQUESTS
from guardrail.tracing import TRACE, Traces, trace_id

log = structlog.get_logger(__name__)

_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_STOPPING: Final = "the gateway is being stopped; ask again"
_Work = Callable[[Request, bytes, ApiCaller, AsyncExitStack], Coroutine[Any, Any, Response]]


_GUARDED: Final[Mapping[str, tuple[Callable[..., Any], Callable[..., GatewayAnswer[Any]]]]] = {
    COMPLETIONS: (asked_by, GuardedCompletion),
    RESPONSES: (response_asked_by, GuardedResponse),
}
"""How a request is read, and who guards its answers."""


class Gateway:
    """Answers requests with one guard. Open it with ``async with``."""

    def __init__(self, settings: ServeSettings, guard: Guard, traces: Traces | None = None) -> None:
        """``guard`` is open. Raises ConfigError."""
        self._traces = traces
        self._settings = settings
        self._guard = guard
        self._upstream = Upstream(settings)
        self._keys = ApiKeys(read_keys(settings.keys), bearer=self._upstream.has_key)
        self._open = settings.keys is None
        self._desk = DialectDesk(settings, guard)
        routes = [
            self._route(COMPLETIONS, "chat.completions", self._guarded, ("POST",)),
            self._route(RESPONSES, "responses", self._guarded, ("POST",)),
            self._route(CHECK, "check", self._check, ("POST",)),
            self._route(GUARD, "guard", self._guarded_lines, ("POST",), reads=False),
            WebSocketRoute("/{path:path}", self._guarded_messages),
            self._route("/openapi.json", "openapi", _told(openapi()), ("GET",)),
            self._route("/asyncapi.json", "asyncapi", _told(asyncapi()), ("GET",)),
            *(
                self._route(path, name, partial(self._asked_by, dialect), ("POST",), dialect=dialect)
                for name, dialect in DIALECTS.items()
                for path in dialect.paths
                if name in settings.dialects
            ),
            *(self._route(each.path, "passed", self._passed, each.methods) for each in PASSED),
            self._route("/{path:path}", "refused", self._refuse, _METHODS, reads=False),
        ]
        self.app = Starlette(routes=routes, exception_handlers={HTTPException: _wrong_method})
        self.app.router.redirect_slashes = False
        self.app.state.stop = self.stop
        self._connections: set[GuardConnection] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._upstream.aclose()

    def stop(self) -> None:
        """Let connections that would go on end with the answers that are under way."""
        for each in self._connections:
            each.stop()

    def _route(
        self,
        path: str,
        name: str,
        work: _Work,
        methods: tuple[str, ...],
        *,
        reads: bool = True,
        dialect: GatewayDialect | None = None,
    ) -> Route:
        async def endpoint(request: Request) -> Response:
            begun = time.monotonic()
            caller: ApiCaller | None = None
            refused: Refused | None = None
            response: Response
            ended = self._begin_trace(name, request.method, path, request)
            async with AsyncExitStack() as stack:
                try:
                    self._check_origin(request)
                    caller = self._keys.caller(request.headers, ours=dialect is not None)
                    if not reads:
                        response = await work(request, b"", caller, stack)
                    else:
                        stack.enter_context(caller.asking())
                        body = await self._body(request)
                        async with asyncio.timeout(self._settings.answer_timeout_ms / 1000):
                            response = await _while_there(request.receive, work(request, body, caller, stack))
                except TimeoutError:
                    refused = upstream_refused("it took longer than serve.answer_timeout_ms", 504)
                except Refused as error:
                    refused = error
                except InputError as error:
                    refused = Refused(400, str(error), error.reason)
                except ClientDisconnect:
                    response = Response(status_code=499)  # nobody reads it
                except asyncio.CancelledError:  # there is no more time to drain
                    refused = Refused(503, _STOPPING, "stopping", kind="server_error")
                except Exception as error:  # noqa: BLE001 - uvicorn would log its message, which may quote texts
                    log.error("serve.failed", endpoint=name, error=type(error).__name__)  # noqa: TRY400
                    refused = Refused(500, "the gateway failed", "failed", kind="server_error")
                if refused is not None:
                    response = refused.response if dialect is None else dialect.refused(refused)
                status = response.status_code if refused is None else refused.status
                stack.callback(ended, status)
                stack.callback(_note, name, status, begun, caller)
                if isinstance(response, _StreamedReply):
                    response.stack = stack.pop_all()
            return response

        return Route(path, endpoint, methods=list(methods))

    def _begin_trace(
        self, name: str, method: str, path: str, connection: HTTPConnection
    ) -> Callable[[int], None]:
        """What is begun from now on belongs to the caller's trace. Returns what ends the request's span."""
        headers = tuple((each.decode("latin-1"), value) for each, value in connection.headers.raw)
        trace = trace_context(headers)
        if self._traces is None:
            TRACE.set(trace)
            return lambda _: None
        trace, ended = self._traces.request(name, method, path, trace)
        TRACE.set(trace)
        return ended

    async def reload_keys(self) -> tuple[str, str]:
        """Read the keys again; says whether any changed (ok, unchanged), and which, in words.

        Raises ConfigError, and changes nothing.
        """
        keys = await asyncio.to_thread(read_keys, self._settings.keys)
        changed = self._keys.use(keys or ())
        if not changed:
            return "unchanged", "keys unchanged"
        for each in self._connections:
            if each.caller.name in changed:
                each.stop()
        log.info("serve.keys_reloaded", changed=changed, keys=len(keys or ()))
        return "ok", f"keys reloaded: {', '.join(changed)}"

    def _check_origin(self, request: HTTPConnection) -> None:
        """Without keys, no page in a browser of this machine may ask: its host or origin has another name."""
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            raise Refused(400, "the body has two lengths", "invalid_request", {"Connection": "close"})
        origin = request.headers.get("origin", "http://localhost")
        places = [request.headers.get("host", ""), origin.partition("://")[2]]
        hosts = [place.rpartition("@")[2] for place in places]
        names = [each[1:].partition("]")[0] if each[:1] == "[" else each.partition(":")[0] for each in hosts]
        if self._open and not all(map(is_loopback, names)):
            raise Refused(403, "without keys only this machine may ask, by its own name", "not_local")

    # ---------------------------------------------------------------------------------- endpoints

    async def _guarded(
        self, request: Request, body: bytes, caller: ApiCaller, stack: AsyncExitStack
    ) -> Response:
        path = request.scope["path"]
        reads, guarded = _GUARDED[path]
        asked = await asyncio.to_thread(
            lambda: reads(_json(request, body), self._settings, lambda found: self._held(caller, found))
        )
        deadline = asyncio.get_running_loop().time() + self._settings.answer_timeout_ms / 1000
        version = request.query_params.get("api-version", "")  # Azure's
        query = f"api-version={version}" if is_name(version) else ""
        response = await stack.enter_async_context(
            self._upstream.asked("POST", path, request.headers, asked.body, query)
        )
        headers = for_client(response.headers)
        kind = headers.pop("content-type").partition(";")[0].strip().lower()
        if response.status_code >= 400:
            said = error_of(await self._upstream.body(response), response.status_code)
            return Response(as_json(said), response.status_code, headers, _JSON)
        if kind != (_EVENTS if asked.streamed else _JSON):
            raise upstream_refused("the upstream answers in another form than was asked for")
        answer = guarded(asked, self._guard, self._settings, deadline)
        if asked.streamed:
            return _StreamedReply(answer, pieces(response), headers, deadline)
        reply, told = await answer.whole(await self._upstream.body(response))
        return Response(as_json(reply), headers={**headers, **headers_of(told)}, media_type=_JSON)

    def _held(self, caller: ApiCaller, found: Grounding) -> Grounding:
        """What the caller's key makes of it. Raises Refused, and InputError for what no check would take."""
        self._guard.check_question(found.question, found.contexts)
        return caller.grounding(found)

    async def _check(self, request: Request, body: bytes, caller: ApiCaller, _: AsyncExitStack) -> Response:
        events = await asyncio.to_thread(lambda: answers_in(_json(request, body), caller))
        return Response(await checked(self._guard, events, self._settings.missing), media_type=_JSON)

    async def _asked_by(
        self, dialect: GatewayDialect, request: Request, body: bytes, caller: ApiCaller, _: AsyncExitStack
    ) -> Response:
        found = await asyncio.to_thread(_json, request, body)
        path = request.scope["path"]
        reply, told = await self._desk.reply(dialect, path, request.headers, found, caller)
        return Response(as_json(reply), headers=headers_of(told), media_type=_JSON)

    async def _passed(self, request: Request, body: bytes, _: ApiCaller, stack: AsyncExitStack) -> Response:
        if not all(is_name(str(each)) for each in request.path_params.values()):
            return await self._refuse(request)
        # Not request.url, in which the Host header says where the path begins.
        path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
        response = await stack.enter_async_context(
            self._upstream.asked(request.method, path, request.headers, body or None, query)
        )
        read = b"" if request.method == "HEAD" else await self._upstream.body(response)
        headers = for_client(response.headers)
        return Response(read, response.status_code, headers, headers.pop("content-type") or None)

    def _connection(self, caller: ApiCaller) -> GuardConnection:
        with caller.asking():  # its answers count on their own
            connection = GuardConnection(self._guard, caller, self._settings)
        self._connections.add(connection)
        return connection

    async def _guarded_lines(
        self, request: Request, _: bytes, caller: ApiCaller, stack: AsyncExitStack
    ) -> Response:
        _check_kind(request, NDJSON)
        connection = self._connection(caller)
        stack.callback(self._connections.discard, connection)
        return _EventReply(connection.events(lines_of(request.receive, self._settings.max_body_bytes)))

    async def _guarded_messages(self, socket: WebSocket) -> None:
        begun = time.monotonic()
        ended = self._begin_trace("guard", "GET", GUARD, socket)
        caller: ApiCaller | None = None
        connection: GuardConnection | None = None
        status, close = 101, (1012, "stopping")
        try:
            self._check_origin(socket)
            caller = self._keys.caller(socket.headers)
            if socket.scope["path"] != GUARD:
                await self._refuse(socket)
            connection = self._connection(caller)
            await socket.accept()
            async with aclosing(connection.events(messages_of(socket))) as events:
                async for event in events:
                    await socket.send_text(event.decode())
            close = connection.ending or close
        except Refused as refused:
            status = refused.response.status_code
            await socket.send_denial_response(refused.response)
        except (ClientDisconnect, WebSocketDisconnect):
            status = 499
        except asyncio.CancelledError:  # there is no more time to drain
            pass
        except Exception as error:  # noqa: BLE001 - uvicorn would log its message, which may quote texts
            log.error("serve.failed", endpoint="guard", error=type(error).__name__)  # noqa: TRY400
            status, close = 500, (1011, "failed")
        finally:
            if connection is not None:
                self._connections.discard(connection)
            _note("refused" if connection is None else "guard", status, begun, caller)
            ended(status)
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.close(*close)

    async def _refuse(self, request: HTTPConnection, *_: object) -> Response:
        path = request.scope["path"]
        for route in self.app.routes[:-1]:
            match, _scope = route.matches(request.scope)
            if match is Match.PARTIAL and isinstance(route, Route) and route.methods:
                allowed = ", ".join(sorted(route.methods))
                raise Refused(405, f"this path takes {allowed}", "method_not_allowed", {"Allow": allowed})
        off = next((name for name, dialect in DIALECTS.items() if path in dialect.paths), None)
        if off is not None:
            raise Refused(404, f"the dialect {off} is off; name it in serve.dialects", "dialect_off")
        why = why_refused(path)
        if why is not None:
            raise Refused(403, f"this path is refused: {why}", "not_guarded")
        passed = sorted({each.path.partition("/{")[0] for each in PASSED})
        known = ", ".join((*_GUARDED, CHECK, GUARD, *passed))
        as_meant = path.startswith("/v1") and not path.startswith("/v1/v1")
        remedy = "" if as_meant else "; does the client's base URL end in one /v1?"
        told = f"nothing is known of this path, so that it is refused; known: {known}{remedy}"
        raise Refused(404, told, "not_found")

    async def _body(self, request: Request) -> bytes:
        """All of a body. Raises Refused."""
        body = bytearray()
        most = self._settings.max_body_bytes
        try:
            async with asyncio.timeout(self._settings.slow_s):
                async for piece in request.stream():
                    body += piece
                    if len(body) > most:
                        raise Refused(
                            413, f"the body is larger than serve.max_body_bytes ({most:,})", "too_large"
                        )
        except TimeoutError:
            raise Refused(408, "the body came too slowly", "timeout") from None
        return bytes(body)


class _StreamedReply(Response):
    """Sends frames as they come, and stops everything when the client goes."""

    stack: AsyncExitStack

    def __init__(
        self,
        stream: GatewayAnswer[Any],
        pieces: AsyncGenerator[bytes, None],
        headers: dict[str, str],
        deadline: float,
    ) -> None:
        more = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(None, 200, {**headers, **more}, _EVENTS)
        del self.headers["content-length"]
        self._stream = stream
        self._frames = stream.frames(pieces)
        self._deadline = deadline

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        async with self.stack:
            try:
                # The frames end in time by themselves, unless nobody takes them.
                with suppress(ClientDisconnect, TimeoutError):
                    async with asyncio.timeout_at(self._deadline + ServeSettings.slow_s):
                        await _while_there(receive, self._sent(send))
            except asyncio.CancelledError:  # there is no more time to drain
                frame = self._stream.failure(_STOPPING, "stopping")
                await send({"type": "http.response.body", "body": frame, "more_body": False})

    async def _sent(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._frames) as frames:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class _EventReply(_StreamedReply):
    """Events that read the request while it comes, and see themselves that the client goes."""

    def __init__(self, frames: AsyncGenerator[bytes, None]) -> None:
        Response.__init__(self, None, 200, {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}, NDJSON)
        del self.headers["content-length"]
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        async with self.stack:
            try:
                await self._sent(send)
            except ClientDisconnect:
                pass
            except asyncio.CancelledError:  # there is no more time to drain
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            except Exception as error:  # noqa: BLE001 - uvicorn would log its message, which may quote texts
                log.error("serve.failed", endpoint="guard", error=type(error).__name__)  # noqa: TRY400


async def _while_there(receive: Receive, work: Coroutine[Any, Any, Any]) -> Any:
    """What the work comes to. Raises ClientDisconnect, once the work is cancelled, if the client goes."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    task, left = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        await asyncio.wait([task, left], return_when=asyncio.FIRST_COMPLETED)
    finally:
        left.cancel()
        task.cancel()  # nothing where it is done
        await asyncio.wait([task, left])
    if task.cancelled():
        raise ClientDisconnect
    return task.result()


def _told(document: dict[str, Any]) -> _Work:
    body = json.dumps(document).encode()

    async def work(*_: object) -> Response:
        return Response(body, media_type=_JSON)

    return work


def _json(request: Request, body: bytes) -> Any:
    """What a body says. Raises Refused."""
    _check_kind(request, _JSON)
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON", "invalid_request") from None


def _check_kind(request: Request, kind: str) -> None:
    """A form or mere text could come from any page in a browser. Raises Refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise Refused(415, f"give the body as {kind}", "invalid_request")


def _no_number(_: str) -> Any:
    raise ValueError("NaN and Infinity are not JSON")


async def _wrong_method(_: Request, error: Exception) -> Response:
    """A method that HTTP doesn't know, or a target that is no path."""
    status = error.status_code if isinstance(error, HTTPException) else 405
    return Refused(status, "there is no such path, or it doesn't take the method", "not_found").response


def _note(endpoint: str, status: int, begun: float, caller: ApiCaller | None) -> None:
    """One line for each request; no texts."""
    HTTP_REQUESTS.labels(endpoint, str(status)).inc()
    total_ms = round((time.monotonic() - begun) * 1000, 1)
    name = None if caller is None else caller.name
    told = trace_id(TRACE.get())
    log.info("serve.request", endpoint=endpoint, status=status, caller=name, total_ms=total_ms, trace_id=told)
