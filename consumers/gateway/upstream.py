"""The API that writes the answers, behind the gateway."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx2

from consumers.gateway.refusals import upstream_refused
from consumers.gateway.settings import ServeSettings
from guardrail.calls import cut_off, server_of
from guardrail.calls.http import read_body
from guardrail.chat import UpstreamFailed
from guardrail.errors import JudgeReplyError
from guardrail.secrets import is_value
from guardrail.tracing import TRACE

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
