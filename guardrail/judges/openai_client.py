"""OpenAI's API as judges call it, whoever serves it: a pool of clients that send only what is configured, and
what failures mean.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import httpx2

from guardrail import __version__
from guardrail.calls import Failure, cut_off, of_status, server_of
from guardrail.errors import ConfigError, JudgeError, JudgeRefused, JudgeUnavailable
from guardrail.judges.http import NO_KEY, split_base_url

_CONNECT_TIMEOUT_S: Final = 5.0
# Of each client: calls under way, and idle connections kept.
_CONNECTIONS: Final = 16
_ERROR_BYTES: Final = 65_536
_PACKED_ERROR_BYTES: Final = 8_192  # at most a thousand times as much when unpacked


class ApiError(Exception):
    """A status that is no success, and what the server says of it. That may repeat data: it is searched, and
    never reported.
    """

    def __init__(self, response: httpx2.Response, body: bytes) -> None:
        super().__init__(f"status {response.status_code}")
        self.status = response.status_code
        self.headers = response.headers
        self.raised: str = response.extensions.get("raised", "")
        """What happened in what stands in a server's place."""
        try:
            told = json.loads(body)
            self.message = str(told)
        except (ValueError, RecursionError):
            told, self.message = None, body.decode("utf-8", "replace")
        said = told.get("error", told) if isinstance(told, dict) else None
        named = said if isinstance(said, dict) else {}
        self.code, self.param, self.type = (
            each if isinstance(each := named.get(name), str) else "" for name in ("code", "param", "type")
        )


class OwnClients:
    """Clients without retries: for each event loop that asks, since connections belong to the loop in which
    they were made, as many as are needed for the calls under way.

    A client looks at all of its connections whenever a call begins or ends. So each has a few, and the first
    that has one to spare is taken: idle connections are used again, and a call costs the same however many
    are under way.

    They use the proxies and certificates that the environment names (``HTTP_PROXY``, ``HTTPS_PROXY``,
    ``ALL_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``, ``SSL_CERT_DIR``), and send nothing from the environment.
    """

    def __init__(self, base_url: str, key: str, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """``transport`` answers in place of the server. Raises ConfigError if the environment names a SOCKS
        proxy without the package that it takes.
        """
        self.server = server_of(base_url)
        """Its name, for messages."""
        self._given = base_url, key, transport
        self._by_loop: dict[asyncio.AbstractEventLoop, list[_Shared]] = {}
        self._lock = threading.Lock()
        try:
            # The first to be used. What is wrong is told at the start and not with the first claim.
            self._unused: httpx2.AsyncClient | None = _make_client(*self._given)
        except ImportError as error:
            if "SOCKS" not in str(error):
                raise
            raise ConfigError(
                "the environment names a SOCKS proxy (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY), which takes a "
                "package of its own: pip install 'httpx2[socks]', or start the guard without that variable"
            ) from None

    @contextmanager
    def client(self) -> Iterator[httpx2.AsyncClient]:
        """A client of the running loop, for one call."""
        loop = asyncio.get_running_loop()
        clients = self._by_loop.get(loop)
        if clients is None:
            with self._lock:  # loops of other threads
                for ended in [each for each in self._by_loop if each.is_closed()]:
                    del self._by_loop[ended]
                clients = self._by_loop[loop] = []
        shared = next((each for each in clients if each.calls < _CONNECTIONS), None)
        if shared is None:
            with self._lock:
                unused, self._unused = self._unused, None
            shared = _Shared(unused or _make_client(*self._given))
            clients.append(shared)
        shared.calls += 1
        try:
            yield shared.client
        finally:
            shared.calls -= 1

    @asynccontextmanager
    async def post(
        self, path: str, body: dict[str, Any], headers: Mapping[str, str]
    ) -> AsyncIterator[httpx2.Response]:
        """The response to one call, whose body is still to be read; closed at the end.

        Raises ApiError if it is no success, and httpx2's errors.
        """
        sent = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        with self.client() as client:
            async with client.stream("POST", path, content=sent, headers=dict(headers)) as response:
                if not response.is_success:
                    raise ApiError(response, await _beginning(response))
                yield response

    async def aclose(self) -> None:
        """Close the running loop's clients. Those of other loops end with their loops."""
        with self._lock:
            clients = [each.client for each in self._by_loop.pop(asyncio.get_running_loop(), ())]
            if self._unused is not None:
                clients.append(self._unused)
                self._unused = None
        for client in clients:
            await client.aclose()


@dataclass(slots=True)
class _Shared:
    """A client, and how many calls it has under way."""

    client: httpx2.AsyncClient
    calls: int = 0


def _make_client(base_url: str, key: str, transport: httpx2.AsyncBaseTransport | None) -> httpx2.AsyncClient:
    base_url, query = split_base_url(base_url)
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": f"guardrail/{__version__}",
    }
    if key != NO_KEY:  # a server that expects a key in another header may read this one
        headers["Authorization"] = f"Bearer {key}"
    return httpx2.AsyncClient(
        base_url=base_url,
        params=query,
        headers=headers,
        # A redirect leads where nobody has configured, and headers that hold keys would go there too.
        follow_redirects=False,
        # Every call ends by its deadline; a timeout of the client's would only end replies that still come.
        timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S),
        # The pool holds no call back: one that ended may keep its connection for a moment.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=_CONNECTIONS),
        verify=_tls(),
        transport=transport,
    )


@cache
def _tls() -> ssl.SSLContext:
    """One context for all clients, because reading the certificates takes tens of milliseconds."""
    return httpx2.create_ssl_context()


async def _beginning(response: httpx2.Response) -> bytes:
    """That of an error's body, which may have no end; empty if it breaks off: the status says enough."""
    packed = "content-encoding" in response.headers
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Beginning(response.stream, _PACKED_ERROR_BYTES if packed else _ERROR_BYTES)
    with suppress(httpx2.HTTPError):
        return await response.aread()
    return b""


class _Beginning(httpx2.AsyncByteStream):
    """The first ``size`` bytes of a stream."""

    def __init__(self, stream: httpx2.AsyncByteStream, size: int) -> None:
        self._stream = stream
        self._left = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            yield piece[: self._left]
            self._left -= len(piece)
            if self._left <= 0:
                return

    async def aclose(self) -> None:
        await self._stream.aclose()


# --------------------------------------------------------------------------------------------------- failures

_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_REMEDIES: Final = {
    **dict.fromkeys(
        (301, 302, 303, 307, 308),
        "it redirects, which is not followed: set {section}.base_url to where it leads",
    ),
    401: "check {section}.api_key",
    403: "check what the API key may do",
    404: "check {section}.base_url and {section}.model",
}
# How OpenAI, Azure, vLLM, llama.cpp, Ollama and gateways say that a prompt exceeds the model's window.
_TOO_LONG: Final = re.compile(
    r"context.{0,20}(length|size|window)|(length|size|window).{0,20}context|max_model_len"
    r"|\b(prompt|input|context)\b.{0,40}\btoo (long|large)|too many (input )?tokens",
    re.IGNORECASE,
)
_SHORTEN: Final = "the prompt is longer than the model takes: lower {section}.max_context_chars"
_NO_HINTS: Final[Mapping[re.Pattern[str], str]] = {}
_MESSAGE_CHARS: Final = 500
_FILTERED: Final = frozenset({"content_filter", "content_policy_violation"})


def describe(
    error: ApiError | httpx2.HTTPError | httpx2.StreamError,
    server: str,
    section: str,
    hints: Mapping[re.Pattern[str], str] = _NO_HINTS,
) -> Failure:
    """Classify an error of a call. The message contains nothing of the server's body except a plain code.

    ``server`` is the server's name, and ``section`` has its settings, in messages. ``hints`` are remedies by
    what the server says of a request that it can't answer.
    """
    if not isinstance(error, ApiError):
        late = isinstance(error, httpx2.TimeoutException)
        return Failure(JudgeUnavailable(cut_off(server, error)), retry=True, fault=True, overload=late)
    code = error.code if _CODE.fullmatch(error.code) else ""
    text = error.raised or f"the server answered {error.status}{f' ({code})' if code else ''}"
    remedy = "" if error.raised and error.status in _REMEDIES else _remedy(error, hints)
    for_good = JudgeError(f"{text}; {remedy.format(section=section)}" if remedy else text)
    if code in _FILTERED:
        for_good = JudgeRefused(text)
    exhausted = code == "insufficient_quota"
    return of_status(text, error.status, error.headers, for_good, exhausted=exhausted)


def _remedy(error: ApiError, hints: Mapping[re.Pattern[str], str]) -> str:
    """By the status, or by what the server says, which is only searched, never reported."""
    status = error.status
    if status == 413:
        return _SHORTEN
    if status in {400, 422}:
        said = f"{error.code} {error.type} {error.message[:_MESSAGE_CHARS]}"
        every = {_TOO_LONG: _SHORTEN, **hints}
        return next((remedy for pattern, remedy in every.items() if pattern.search(said)), "")
    return _REMEDIES.get(status, "")
