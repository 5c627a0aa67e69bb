"""The gateway on a socket: uvicorn, with bounds on what a client may keep waiting."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import h11
import structlog
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from consumers.gateway.settings import ServeSettings
from guardrail.errors import ConfigError

log = structlog.get_logger(__name__)

_LOOKS: Final = 3
"""How often a connection that is stuck is looked at before it is cut off."""


class BoundedProtocol(H11Protocol):
    """Cuts off who sends no whole head, and who takes nothing of what waits; uvicorn bounds neither."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._stuck = -1
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._looking.cancel()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._looking.cancel()
        super().handle_websocket_upgrade(event)

    def _look(self) -> None:
        waits_for_head = self.cycle is None or self.cycle.response_complete
        stuck = waits_for_head or self.flow.write_paused or self.transport.is_closing()
        self._stuck = self._stuck + 1 if stuck else 0
        if self._stuck > _LOOKS:
            self.transport.abort()
        self._looking = self.loop.call_later(ServeSettings.slow_s / _LOOKS, self._look)


class PatientSocket(WebSocketsSansIOProtocol):
    """Lets the application end a connection when it is stopped, takes a refusal for an answer, and cuts off
    who takes nothing.
    """

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(ServeSettings.slow_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stuck.cancel()

    async def send(self, message: Any) -> None:
        await super().send(message)
        self.handshake_complete |= message["type"] == "websocket.http.response.body"

    def shutdown(self) -> None:
        if not self.handshake_complete or self.close_sent:
            super().shutdown()


class _Server(uvicorn.Server):
    """Whoever runs it handles signals."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        getattr(self.config.app.state, "stop", lambda: None)()  # type: ignore[union-attr]
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(app: Starlette, settings: ServeSettings, drain_s: float) -> AsyncIterator[int]:
    """Serve within the block; yields the port. At its end no more is accepted, and what is under way has
    ``drain_s`` to end. Raises ConfigError if it can't listen.
    """
    more: dict[str, Any] = {}
    if settings.certificate is not None:
        more = {"ssl_certfile": settings.certificate, "ssl_keyfile": settings.private_key}
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=BoundedProtocol,
        ws=PatientSocket,
        ws_max_size=settings.max_body_bytes,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, int(drain_s)),
        **more,
    )
    server = _Server(config)
    serves = asyncio.create_task(_serve(server), name="serve")
    try:
        while not server.started:
            await asyncio.wait([serves], timeout=0.02)
            if serves.done():
                await serves  # which raises
        port = server.servers[0].sockets[0].getsockname()[1]
        log.info("serve.listening", host=settings.host, port=port)
        yield port
    finally:
        server.should_exit = True
        await serves


async def _serve(server: uvicorn.Server) -> None:
    """Raises ConfigError if it can't listen, of which uvicorn would end the process."""
    try:
        await server.serve()
    except (OSError, SystemExit) as error:
        cause = error if isinstance(error, OSError) else error.__context__
        why = str(getattr(cause, "strerror", None) or "the log says why").rpartition(": ")[2]
        where = f"{server.config.host}:{server.config.port}"
        raise ConfigError(
            f"serve: {where} can't be listened on ({why}); check host, port, certificate and private_key"
        ) from None
