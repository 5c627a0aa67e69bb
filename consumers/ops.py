"""What operators see of a guard: health and metrics over HTTP, a log line a response, a summary a minute.

The subscriber to flagged cases serves the same paths.

The server is for probes, Prometheus and the host's own administrator; it has neither keys nor encryption. It
runs on the guard's event loop on purpose: a loop that is blocked does not answer ``/livez``.

=============  ====  ================================================================
path           does  says
=============  ====  ================================================================
/livez         GET   200 while the event loop answers
/readyz        GET   200 once in the group, with every partition's sessions restored; 503 and why otherwise
/startupz      GET   200 once the judge is loaded and the guard has started
/metrics       GET   all of ``guardrail.telemetry``, as text for Prometheus
/reload        POST  reads the policies anew: 200, 422 and what is wrong, 503 if it takes long; this host only
/loglevel      PUT   sets the least level that is logged, the body; from this host only
=============  ====  ================================================================
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, cast, get_args

import h11
import structlog
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from consumers.settings import is_loopback
from guardrail.config.settings import LogLevel
from guardrail.errors import ConfigError
from guardrail.events import ResponseVerdict, Verdict, claim_that_decided
from guardrail.logs import set_level
from guardrail.telemetry import REGISTRY
from guardrail.tracing import Headers, trace_id

log = structlog.get_logger(__name__)

SUMMARY_S: Final = 60.0
_REQUEST_S: Final = 10.0
_RELOAD_S: Final = 8.0
_MOST_BODY: Final = 1_024
_READ_BYTES: Final = 16 * 1024
_TEXT: Final = "text/plain; charset=utf-8"


@dataclass(slots=True)
class Health:
    """What the probes report. ``waits_for`` is empty once the guard is ready; ``note`` is of one that is."""

    started: bool = False
    waits_for: Callable[[], str] = lambda: "the guard starts"
    note: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    body: bytes
    content_type: str = _TEXT

    @classmethod
    def text(cls, status: int, text: str) -> _Reply:
        return cls(status, f"{text}\n".encode())


class OpsServer:
    """Serves the paths above. ``reload`` reloads the policies; raises ConfigError."""

    def __init__(
        self,
        health: Health,
        reload: Callable[[], Awaitable[str]] | None = None,
        *,
        reload_s: float = _RELOAD_S,
    ) -> None:
        """``/reload`` answers within ``reload_s``, whether the reload is done or not."""
        self._health = health
        self._reload = reload
        self._reload_s = reload_s
        self._open: set[asyncio.StreamWriter] = set()
        self._routes: Mapping[tuple[str, str], Callable[[bytes], Awaitable[_Reply]]] = {
            ("GET", "/livez"): self._livez,
            ("GET", "/readyz"): self._readyz,
            ("GET", "/startupz"): self._startupz,
            ("GET", "/metrics"): self._metrics,
            ("POST", "/reload"): self._reloaded,
            ("PUT", "/loglevel"): self._level,
        }

    @asynccontextmanager
    async def listening(self, host: str, port: int | None) -> AsyncIterator[int | None]:
        """Serve within the block; yields the port. None: there is none, or it is taken, which is logged."""
        if port is None:
            yield None
            return
        try:
            server = await asyncio.start_server(self._serve, host, port)
        except OSError as error:
            log.error(  # noqa: TRY400 - the place says nothing
                "ops.not_listening",
                host=host,
                port=port,
                error=error.strerror or str(error),
                remedy="give ops.port another value, or null for none",
            )
            yield None
            return
        bound = server.sockets[0].getsockname()[1]
        log.info("ops.listening", host=host, port=bound)
        async with server:
            try:
                yield bound
            finally:
                for writer in self._open:
                    writer.close()  # a slow client must not keep the guard from ending

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_READ_BYTES)
        try:
            async with asyncio.timeout(_REQUEST_S):
                reply = await self._answer(connection, reader, writer)
                head = h11.Response(
                    status_code=reply.status,
                    headers=[
                        ("Content-Type", reply.content_type),
                        ("Content-Length", str(len(reply.body))),
                        ("Connection", "close"),
                        ("Cache-Control", "no-store"),
                    ],
                )
                data = connection.send(head) or b""
                data += connection.send(h11.Data(reply.body)) or b""
                writer.write(data + (connection.send(h11.EndOfMessage()) or b""))
                await writer.drain()
        except (h11.ProtocolError, OSError, TimeoutError, asyncio.IncompleteReadError):
            return  # the client is gone, or sent an invalid request
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> _Reply:
        request: h11.Request | None = None
        body = b""
        try:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(await reader.read(_READ_BYTES))
                elif isinstance(event, h11.Request):
                    request = event
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                    if len(body) > _MOST_BODY:
                        return _Reply.text(413, "the body is too large")
                elif isinstance(event, h11.EndOfMessage):
                    break
                else:
                    raise OSError("closed")
        except h11.RemoteProtocolError as error:
            return _Reply.text(error.error_status_hint, "no HTTP/1.1 request")
        if request is None:
            return _Reply.text(400, "no HTTP/1.1 request")
        method, path = request.method.decode("ascii"), request.target.decode("ascii").split("?")[0]
        if method == "HEAD":
            return _Reply(405, b"")  # which must not have a body
        route = self._routes.get((method, path))
        if route is None:
            known = ", ".join(f"{method} {path}" for method, path in self._routes)
            return _Reply.text(404, f"there is: {known}")
        peer = writer.get_extra_info("peername") or ("",)  # nothing is known of one that is gone
        if method != "GET" and not is_loopback(str(peer[0])):
            return _Reply.text(403, "only from this host")
        return await route(body)

    async def _livez(self, _body: bytes) -> _Reply:
        return _Reply.text(200, "ok")

    async def _readyz(self, _body: bytes) -> _Reply:
        waits_for = self._health.waits_for()
        if waits_for:
            return _Reply.text(503, f"waits: {waits_for}")
        note = self._health.note()
        return _Reply.text(200, f"ok, but {note}" if note else "ok")

    async def _startupz(self, _body: bytes) -> _Reply:
        return _Reply.text(200, "ok") if self._health.started else _Reply.text(503, "starting")

    async def _metrics(self, _body: bytes) -> _Reply:
        return _Reply(200, generate_latest(REGISTRY), CONTENT_TYPE_LATEST)

    async def _reloaded(self, _body: bytes) -> _Reply:
        if self._reload is None:
            return _Reply.text(
                409,
                "there is nothing to read anew: no policies here, or settings from no file, or from a pipe",
            )
        try:
            async with asyncio.timeout(self._reload_s):
                return _Reply.text(200, await self._reload())
        except ConfigError as error:
            return _Reply.text(422, str(error))
        except TimeoutError:  # it goes on
            return _Reply.text(
                503, "the reload goes on; the log will say config.reloaded or config.reload_failed"
            )

    async def _level(self, body: bytes) -> _Reply:
        name = body.decode("ascii", "replace").strip().lower()
        if name not in get_args(LogLevel):
            return _Reply.text(422, "give debug, info, warning or error as the body")
        set_level(cast("LogLevel", name))
        log.warning("ops.log_level", level=name)
        return _Reply.text(200, name)


class ResponseLog:
    """One line for each response, and a summary each minute. Numbers and names, never a response's text."""

    def __init__(self) -> None:
        self._decisions: Counter[str] = Counter()
        self._claims: Counter[str] = Counter()

    def on_verdict(self, event: ResponseVerdict, headers: Headers = ()) -> None:
        """A response has its verdict; ``headers`` came with its start."""
        deciding = claim_that_decided(event)
        self._decisions[event.decision.value] += 1
        self._claims.update(claim.verdict.value for claim in event.claims)
        log.info(
            "guard.response",
            response_id=event.response_id,
            decision=event.decision.value,
            rule=event.rule,
            deciding_claim=None if deciding is None else deciding.index + 1,
            policy=event.policy.name,
            mode=event.mode,
            score=event.score,
            claims=len(event.claims),
            unverified=event.counts.unverified,
            complete=event.complete,
            delay_ms=event.timings.after_completion_ms,
            total_ms=event.timings.total_ms,
            trace_id=trace_id(headers),
        )

    async def summarise(self, every_s: float = SUMMARY_S) -> None:
        """Log a summary whenever there was anything, until cancelled."""
        while True:
            await asyncio.sleep(every_s)
            self.summary()

    def summary(self) -> None:
        """Log the totals since the last summary, if there are any."""
        decisions, self._decisions = self._decisions, Counter()
        claims, self._claims = self._claims, Counter()
        if decisions:
            log.info(
                "guard.summary",
                responses=decisions.total(),
                claims=claims.total(),
                **{f"{name}_responses": decisions[name] for name in sorted(decisions)},
                **{verdict.value.lower(): claims[verdict.value] for verdict in Verdict},
            )
