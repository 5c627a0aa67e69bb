"""The gateway as an ASGI application: it admits, asks the upstream, guards, and answers; and the upstream,
the API that writes the answers.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, NoReturn, Self

import httpx2
import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from consumers.gateway.admission import (
    CHECK,
    COMPLETIONS,
    GUARD,
    PASSED,
    RESPONSES,
    ApiCaller,
    ApiKeys,
    Refused,
    is_name,
    read_keys,
    upstream_refused,
    why_refused,
)
from consumers.gateway.answers import GatewayAnswer, as_json, error_of, headers_of
from consumers.gateway.completions import GuardedCompletion, asked_by
from consumers.gateway.dialects import DIALECTS, DialectDesk, GatewayDialect
from consumers.gateway.endpoints import (
    NDJSON,
    CheckResults,
    GuardConnection,
    answers_in,
    asyncapi,
    checked,
    lines_of,
    messages_of,
    openapi,
)
from consumers.gateway.responses import GuardedResponse, response_asked_by
from consumers.gateway.settings import ServeSettings
from consumers.outputs import trace_context
from consumers.settings import is_loopback
from guardrail.calls import cut_off, server_of
from guardrail.calls.http import read_body
from guardrail.chat import Grounding, UpstreamFailed
from guardrail.errors import InputError, JudgeReplyError, NotAllowed
from guardrail.guard import Guard
from guardrail.secrets import is_value
from guardrail.telemetry import HTTP_REQUESTS
from guardrail.tracing import TRACE, Traces, trace_id

log = structlog.get_logger(__name__)

_EVENTS: Final = "text/event-stream"
_JSON: Final = "application/json"
_STOPPING: Final = "the gateway is being stopped; ask again"
_ANYWHERE: Final = "/{path:path}"
_NOT_LOCAL: Final = "without keys only this machine may ask, by its own name, and no page from elsewhere"
_GUARDED: Final[Mapping[str, tuple[Callable[..., Any], Callable[..., GatewayAnswer[Any]]]]] = {
    COMPLETIONS: (asked_by, GuardedCompletion),
    RESPONSES: (response_asked_by, GuardedResponse),
}
"""How a request is read, and who guards its answers."""


@dataclass(slots=True)
class _Exchange:
    """A request, or a connection, under way."""

    endpoint: str
    caller: ApiCaller = field(default_factory=ApiCaller)
    status: int = 101
    refused: Refused | None = None
    body: bytes = b""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Closed once it has ended."""


_Work = Callable[[Request, _Exchange], Coroutine[Any, Any, Response]]


class Gateway:
    """Answers requests with one guard. Open it with ``async with``."""

    def __init__(self, settings: ServeSettings, guard: Guard, traces: Traces | None = None) -> None:
        """``guard`` is open. Raises ConfigError."""
        self._traces = traces
        self._settings = settings
        self._guard = guard
        self._upstream = Upstream(settings)
        self._keys = ApiKeys(read_keys(settings.keys), bearer=settings.upstream_key is not None)
        self._open = settings.keys is None
        self._desk = DialectDesk(settings, guard)
        routes = [
            self._route(COMPLETIONS, "chat.completions", self._guarded),
            self._route(RESPONSES, "responses", self._guarded),
            self._route(CHECK, "check", self._check),
            self._route(GUARD, "guard", self._guarded_lines, reads=False),
            WebSocketRoute(_ANYWHERE, self._guarded_messages),
            self._route("/openapi.json", "openapi", _told(openapi()), ("GET",)),
            self._route("/asyncapi.json", "asyncapi", _told(asyncapi()), ("GET",)),
            *(
                self._route(path, name, partial(self._asked_by, DIALECTS[name]), dialect=DIALECTS[name])
                for name in settings.dialects
                for path in DIALECTS[name].paths
            ),
            *(self._route(path, "passed", self._passed, methods) for path, methods in PASSED.items()),
        ]
        self.app = Starlette(routes=routes, exception_handlers={HTTPException: self._unknown})
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
        self, path: str, name: str, work: _Work, methods: Sequence[str] = ("POST",), **how: Any
    ) -> Route:
        return Route(path, self._endpoint(path, name, work, **how), methods=list(methods))

    def _endpoint(
        self, path: str, name: str, work: _Work, *, reads: bool = True, dialect: GatewayDialect | None = None
    ) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Whatever happens is answered: in the dialect's words, if it is one's endpoint."""

        async def endpoint(request: Request) -> Response:
            async with AsyncExitStack() as stack:
                exchange = stack.enter_context(self._noted(name, request.method, path, request))
                exchange.stack = stack
                try:
                    exchange.caller = self._admitted(request, ours=dialect is not None)
                    if not reads:
                        response = await work(request, exchange)
                    else:
                        stack.enter_context(exchange.caller.asking())
                        exchange.body = await self._body(request)
                        async with asyncio.timeout(self._settings.answer_timeout_ms / 1000):
                            response = await _while_there(request.receive, work(request, exchange))
                        exchange.body = b""  # a stream may go on for minutes
                except ClientDisconnect:
                    response = Response(status_code=499)  # nobody reads it
                except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - see _refusal
                    exchange.refused = found = _refusal(name, error)
                    response = found.response if dialect is None else dialect.refused(found)
                refused = exchange.refused  # a dialect may say so with another status
                exchange.status = response.status_code if refused is None else refused.status
                if isinstance(response, _StreamedReply):
                    response.stack = stack.pop_all()
            return response

        return endpoint

    @contextmanager
    def _noted(
        self, endpoint: str, method: str, path: str, connection: HTTPConnection
    ) -> Iterator[_Exchange]:
        """What is done here belongs to the caller's trace, and has a line in the log; no texts."""
        begun, exchange = time.monotonic(), _Exchange(endpoint)
        headers = tuple((name.decode("latin-1"), value) for name, value in connection.headers.raw)
        trace, ended = trace_context(headers), None
        if self._traces is not None:
            trace, ended = self._traces.request(endpoint, method, path, trace)
        TRACE.set(trace)
        try:
            yield exchange
        finally:
            HTTP_REQUESTS.labels(exchange.endpoint, str(exchange.status)).inc()
            why, failed = {}, exchange.status >= 500
            if exchange.refused is not None:
                why = {"reason": exchange.refused.reason}
                if failed:  # of a request's faults the message may quote it
                    why["error"] = str(exchange.refused)
            (log.warning if failed else log.info)(
                "serve.request",
                endpoint=exchange.endpoint,
                status=exchange.status,
                **why,
                caller=exchange.caller.name,
                total_ms=round((time.monotonic() - begun) * 1000, 1),
                trace_id=trace_id(trace),
            )
            if ended is not None:
                ended(exchange.status)

    async def reload_keys(self) -> tuple[str, str]:
        """Read the keys anew; whether any changed (ok, unchanged), and which. Raises ConfigError."""
        keys = await asyncio.to_thread(read_keys, self._settings.keys)
        changed = self._keys.use(keys or ())
        if not changed:
            return "unchanged", "keys unchanged"
        for each in self._connections:
            if each.caller.name in changed:
                each.stop()
        log.info("serve.keys_reloaded", changed=changed, keys=len(keys or ()))
        return "ok", f"keys reloaded: {', '.join(changed)}"

    def _admitted(self, request: HTTPConnection, *, ours: bool = False) -> ApiCaller:
        """Who asks. Without keys, no page in a browser of this machine may: its host or origin has another
        name. Raises Refused.
        """
        if "content-length" in request.headers and "transfer-encoding" in request.headers:
            raise Refused(400, "the body has two lengths", "invalid_request", {"Connection": "close"})
        origin = request.headers.get("origin", "http://localhost")
        places = [request.headers.get("host", ""), origin.partition("://")[2]]
        hosts = [place.rpartition("@")[2] for place in places]
        names = [each[1:].partition("]")[0] if each[:1] == "[" else each.partition(":")[0] for each in hosts]
        if self._open and not all(map(is_loopback, names)):
            raise Refused(403, _NOT_LOCAL, "not_local")
        return self._keys.caller(request.headers, ours=ours)

    # ---------------------------------------------------------------------------------- endpoints

    async def _guarded(self, request: Request, exchange: _Exchange) -> Response:
        path = request.scope["path"]
        reads, guarded = _GUARDED[path]

        def held(found: Grounding) -> Grounding:
            self._guard.check_question(found.question, found.contexts)  # before a model is asked
            return exchange.caller.grounding(found)

        asked = await asyncio.to_thread(lambda: reads(_json(request, exchange), self._settings, held))
        deadline = asyncio.get_running_loop().time() + self._settings.answer_timeout_ms / 1000
        version = request.query_params.get("api-version", "")  # Azure's
        query = f"api-version={version}" if is_name(version) else ""
        response = await exchange.stack.enter_async_context(
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
            stopping = partial(answer.failure, _STOPPING, "stopping")
            return _StreamedReply(answer.frames(pieces(response)), _EVENTS, stopping, headers, deadline)
        reply, told = await answer.whole(await self._upstream.body(response))
        return Response(as_json(reply), headers={**headers, **headers_of(told)}, media_type=_JSON)

    async def _check(self, request: Request, exchange: _Exchange) -> Response:
        asked = await asyncio.to_thread(_json, request, exchange)
        answers = await asyncio.to_thread(answers_in, asked, exchange.caller)
        results = await checked(self._guard, answers, self._settings.missing)
        told = CheckResults(results=tuple(results)) if "checks" in asked else results[0]
        return Response(told.model_dump_json(by_alias=True), media_type=_JSON)

    async def _asked_by(self, dialect: GatewayDialect, request: Request, exchange: _Exchange) -> Response:
        found = await asyncio.to_thread(_json, request, exchange)
        path = request.scope["path"]
        reply, told = await self._desk.reply(dialect, path, request.headers, found, exchange.caller)
        return Response(as_json(reply), headers=headers_of(told), media_type=_JSON)

    async def _passed(self, request: Request, exchange: _Exchange) -> Response:
        if not all(is_name(str(each)) for each in request.path_params.values()):
            self._refuse(request)
        # Not request.url, in which the Host header says where the path begins.
        path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
        response = await exchange.stack.enter_async_context(
            self._upstream.asked(request.method, path, request.headers, exchange.body or None, query)
        )
        read = b"" if request.method == "HEAD" else await self._upstream.body(response)
        headers = for_client(response.headers)
        return Response(read, response.status_code, headers, headers.pop("content-type") or None)

    @contextmanager
    def _connection(self, caller: ApiCaller) -> Iterator[GuardConnection]:
        with caller.asking():  # its answers count on their own
            connection = GuardConnection(self._guard, caller, self._settings)
        self._connections.add(connection)
        try:
            yield connection
        finally:
            self._connections.discard(connection)

    async def _guarded_lines(self, request: Request, exchange: _Exchange) -> Response:
        _check_kind(request, NDJSON)
        connection = exchange.stack.enter_context(self._connection(exchange.caller))
        lines = lines_of(request.receive, self._settings.max_body_bytes)
        return _StreamedReply(connection.events(lines), NDJSON)

    async def _guarded_messages(self, socket: WebSocket) -> None:
        close = (1012, "stopping")
        with self._noted("guard", "GET", GUARD, socket) as exchange:
            exchange.endpoint = "refused"
            try:
                exchange.caller = self._admitted(socket)
                if socket.scope["path"] != GUARD:
                    self._refuse(socket)
                with self._connection(exchange.caller) as connection:
                    exchange.endpoint = "guard"
                    await socket.accept()
                    async with aclosing(connection.events(messages_of(socket))) as events:
                        async for event in events:
                            await socket.send_text(event.decode())
                close = connection.ending or close
            except (ClientDisconnect, WebSocketDisconnect):
                exchange.status = 499
            except asyncio.CancelledError:  # there is no more time to drain
                pass
            except Exception as error:  # noqa: BLE001 - see _refusal
                exchange.refused, close = _refusal("guard", error), (1011, "failed")
                exchange.status = exchange.refused.status
                if exchange.endpoint == "refused":
                    await socket.send_denial_response(exchange.refused.response)
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.close(*close)

    async def _unknown(self, request: Request, error: Exception) -> Response:
        """A path that no route has, or a method that its route doesn't take."""
        takes = getattr(error, "headers", None) or {}
        allowed = ", ".join(sorted(takes.get("Allow", "").split(", ")))

        async def refuse(*_: object) -> Response:
            self._refuse(request, allowed)

        return await self._endpoint(_ANYWHERE, "refused", refuse, reads=False)(request)

    def _refuse(self, request: HTTPConnection, allowed: str = "") -> NoReturn:
        path = request.scope["path"]
        if allowed:
            raise Refused(405, f"this path takes {allowed}", "method_not_allowed", {"Allow": allowed})
        off = next((name for name, dialect in DIALECTS.items() if path in dialect.paths), None)
        if off is not None:
            raise Refused(404, f"the dialect {off} is off; name it in serve.dialects", "dialect_off")
        why = why_refused(path)
        if why is not None:
            raise Refused(403, f"this path is refused: {why}", "not_guarded")
        passed = sorted({each.partition("/{")[0] for each in PASSED})
        known = ", ".join((*_GUARDED, CHECK, GUARD, *passed))
        as_meant = path.startswith("/v1") and not path.startswith("/v1/v1")
        remedy = "" if as_meant else "; does the client's base URL end in one /v1?"
        told = f"nothing is known of this path, so that it is refused; known: {known}{remedy}"
        raise Refused(404, told, "not_found")

    async def _body(self, request: Request) -> bytes:
        """All of a body. Raises Refused."""
        most = self._settings.max_body_bytes
        try:
            async with asyncio.timeout(self._settings.slow_s):
                return await read_body(request.stream(), most)
        except JudgeReplyError:
            told = f"the body is larger than serve.max_body_bytes ({most:,})"
            raise Refused(413, told, "too_large") from None
        except TimeoutError:
            raise Refused(408, "the body came too slowly", "timeout") from None


class _StreamedReply(Response):
    """Sends frames as they come, and stops everything when the client goes."""

    stack: AsyncExitStack

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        kind: str,
        stopping: Callable[[], bytes] = bytes,
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> None:
        """``stopping`` gives what is said when there is no more time to drain. Frames without a ``deadline``
        end by themselves, also when the client goes, since they read the request.
        """
        more = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(None, 200, {**(headers or {}), **more}, kind)
        del self.headers["content-length"]
        self._frames = frames
        self._stopping = stopping
        self._until = None if deadline is None else deadline + ServeSettings.slow_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        sent = self._sent(send)
        async with self.stack:
            try:
                # The frames end in time by themselves, unless nobody takes them.
                async with asyncio.timeout_at(self._until):
                    await (sent if self._until is None else _while_there(receive, sent))
            except (ClientDisconnect, TimeoutError):
                pass
            except asyncio.CancelledError:  # there is no more time to drain
                await send({"type": "http.response.body", "body": self._stopping(), "more_body": False})
            except Exception as error:  # noqa: BLE001 - see _refusal
                _refusal("stream", error)

    async def _sent(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._frames) as frames:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _refusal(endpoint: str, error: BaseException) -> Refused:
    """What is told of an error. uvicorn would log its message, which may quote texts."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    match error:
        case Refused():
            return error
        case InputError():
            return Refused(403 if isinstance(error, NotAllowed) else 400, str(error), error.reason)
        case TimeoutError():
            return upstream_refused("it took longer than serve.answer_timeout_ms", 504)
        case asyncio.CancelledError():  # there is no more time to drain
            return Refused(503, _STOPPING, "stopping", kind="server_error")
    log.error("serve.failed", endpoint=endpoint, error=type(error).__name__)
    return Refused(500, "the gateway failed", "failed", kind="server_error")


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


def _json(request: Request, exchange: _Exchange) -> Any:
    """What a body says. Raises Refused."""
    _check_kind(request, _JSON)
    try:
        return json.loads(exchange.body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refused(400, "the body is not JSON", "invalid_request") from None


def _check_kind(request: Request, kind: str) -> None:
    """A form or mere text could come from any page in a browser. Raises Refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise Refused(415, f"give the body as {kind}", "invalid_request")


def _no_number(_: str) -> Any:
    raise ValueError("NaN and Infinity are not JSON")


# -------------------------------------------------------------------------------------------- the upstream

_CONNECT_S: Final = 5.0
_TO_UPSTREAM: Final = frozenset({"accept", "content-type", "idempotency-key", "openai-beta", "user-agent"})
_LOGIN: Final = frozenset({"api-key", "authorization", "openai-organization", "openai-project"})
"""Passed on too, where the gateway has no key of its own for the upstream."""
_TO_CLIENT: Final = frozenset({"openai-processing-ms", "retry-after", "x-request-id"})
_LIMITS: Final = "x-ratelimit-"


class Upstream:
    """Sends what was asked, and reads what comes. Redirects are not followed."""

    def __init__(self, settings: ServeSettings) -> None:
        """Raises ConfigError for a key that can't be read."""
        self._base = settings.upstream
        self._most = settings.max_body_bytes
        self._key = settings.read_upstream_key()
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=_CONNECT_S),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            # What it sets for one caller must not be sent for another.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    @asynccontextmanager
    async def asked(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None, query: str = ""
    ) -> AsyncIterator[httpx2.Response]:
        """What it answers to ``path``, which stands below ``/v1``; its body is yet to be read.

        Raises Refused if it can't be reached, or sends what the gateway doesn't read.
        """
        url = httpx2.URL(self._base + path.removeprefix("/v1")).copy_with(
            query=query.encode("latin-1") or None
        )
        request = self._client.build_request(method, url, content=body, headers=self._sent(headers))
        try:
            response = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            raise upstream_refused(cut_off(server_of(self._base), error, "serve.upstream")) from None
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise upstream_refused("the upstream compressed its answer, which it was not asked to")
            if not 200 <= response.status_code < 300 and not 400 <= response.status_code < 600:
                told = f"the upstream answered {response.status_code}, which is not followed"
                raise upstream_refused(f"{told}; check serve.upstream")
            yield response
        finally:
            await response.aclose()

    async def body(self, response: httpx2.Response) -> bytes:
        """All of a body. Raises Refused if it breaks off, or is too large."""
        try:
            return await read_body(pieces(response), self._most)
        except JudgeReplyError:
            raise upstream_refused(f"the upstream's answer is larger than {self._most:,} bytes") from None
        except UpstreamFailed:
            raise upstream_refused(cut_off(server_of(self._base))) from None

    def _sent(self, headers: Mapping[str, str]) -> dict[str, str]:
        passed = _TO_UPSTREAM if self._key is not None else _TO_UPSTREAM | _LOGIN
        sent = {name: value for name, value in headers.items() if name in passed and is_value(value)}
        if self._key is not None:
            sent["authorization"] = f"Bearer {self._key}"
        traced = {name: value.decode("latin-1") for name, value in TRACE.get()}
        sent |= {name: value for name, value in traced.items() if value and is_value(value)}
        return {**sent, "accept-encoding": "identity"}


async def pieces(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """The body as it comes. Raises UpstreamFailed where it breaks off."""
    try:
        async for piece in response.aiter_raw():
            yield piece
    except (httpx2.HTTPError, httpx2.StreamError, OSError):
        raise UpstreamFailed from None


def for_client(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of the upstream's that the client gets: those of one word, as no answer is."""
    passed = {name: text for name, text in headers.items() if name in _TO_CLIENT or name.startswith(_LIMITS)}
    one_word = {name: text for name, text in passed.items() if is_value(text) and " " not in text}
    kind = headers.get("content-type", "")
    return {"content-type": kind if is_value(kind) else "", **one_word}
