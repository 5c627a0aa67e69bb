"""A token endpoint for tests, and the unsigned tokens that a test broker takes."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

CLIENT_ID = "guard client"
CLIENT_SECRET = "s3cret:with+signs"


def unsigned_token(*, scope: str = "kafka", life_s: float = 3600.0, **claims: Any) -> str:
    """A JWT without a signature (``alg`` none), issued two minutes ago or at the half of its life."""
    now = time.time()
    body = {"sub": "guard", "scope": scope, "iat": now - 120, "exp": now + life_s, **claims}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, body))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


@dataclass(frozen=True, slots=True)
class Answer:
    """What the endpoint says."""

    status: int
    body: Mapping[str, Any] | str = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def grant(form: Mapping[str, str]) -> Answer:
    """A token for whoever knows the secret, with the scope asked for."""
    scope = form.get("scope", "")
    if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
        return Answer(401, {"error": "invalid_client", "error_description": f"not {form['client_secret']}"})
    return Answer(200, {"access_token": unsigned_token(scope=scope), "expires_in": 3600})


class TokenServer:
    """HTTP on loopback, with TLS where a context is given. ``asked`` has the form of every request.

    The client's id and secret, which come in a header, are put into the form as ``answer`` gets it. With
    ``hold`` nothing is answered until it is set.
    """

    def __init__(
        self, answer: Callable[[Mapping[str, str]], Answer] = grant, tls: ssl.SSLContext | None = None
    ) -> None:
        self.answer = answer
        self.asked: list[Mapping[str, str]] = []
        self.hold: asyncio.Event | None = None
        self._tls = tls
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Address of the endpoint."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return f"http{'s' if self._tls else ''}://{host}:{port}/token"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            headers = {name.lower(): value.strip() for name, _, value in (h.partition(":") for h in head[1:])}
            body = await reader.readexactly(int(headers["content-length"]))
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            login = base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode()
            client, _, secret = login.partition(":")
            form |= {"client_id": unquote_plus(client), "client_secret": unquote_plus(secret)}
            self.asked.append(form)
            if self.hold is not None:
                await self.hold.wait()
            answer = self.answer(form)
            content = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            lines = [f"HTTP/1.1 {answer.status} X", f"Content-Length: {len(content)}", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in answer.headers.items()]
            writer.write("\r\n".join([*lines, "", content]).encode())
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went away
        finally:
            writer.close()
