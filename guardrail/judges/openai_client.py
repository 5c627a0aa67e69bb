"""OpenAI's client as judges use it: a pool of clients that send only what is configured, and what their
failures mean.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import openai

from guardrail.calls import Failure, cut_off, of_status, server_of
from guardrail.errors import ConfigError, JudgeError, JudgeRefused, JudgeUnavailable
from guardrail.judges.http import NO_KEY, split_base_url

# What the client is built on, whose objects it takes and whose errors it lets through: httpx2 from openai 3
# on, httpx before. They have the same names.
if TYPE_CHECKING:
    import httpx2

    httpx = httpx2
else:
    httpx = import_module(openai.DefaultAsyncHttpxClient.__base__.__module__.partition(".")[0])

_CONNECT_TIMEOUT_S: Final = 5.0
# Of each client: calls under way, and idle connections kept.
_CONNECTIONS: Final = 16

_AS_STREAM: Final = {"X-Stainless-Raw-Response": "stream"}
"""Has the client return before the body is read. The header goes out, and says nothing to a server."""
_ERROR_BYTES: Final = 65_536
_PACKED_ERROR_BYTES: Final = 8_192  # at most a thousand times as much when unpacked


class OwnClients:
    """Clients without retries: for each event loop that asks, since connections belong to the loop in which
    they were made, as many as are needed for the calls under way.

    A client looks at all of its connections whenever a call begins or ends. So each has a few, and the first
    that has one to spare is taken: idle connections are used again, and a call costs the same however many
    are under way.

    They use the proxies and certificates that the environment names (``HTTP_PROXY``, ``HTTPS_PROXY``,
    ``ALL_PROXY``, ``NO_PROXY``, ``SSL_CERT_FILE``, ``SSL_CERT_DIR``), and send nothing from the environment.
    """

    def __init__(self, base_url: str, key: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
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
            self._unused: openai.AsyncOpenAI | None = _make_client(*self._given)
        except ImportError as error:
            if "SOCKS" not in str(error):
                raise
            raise ConfigError(
                "the environment names a SOCKS proxy (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY), which takes a "
                "package of its own: pip install 'httpx2[socks]', or start the guard without that variable"
            ) from None

    @contextmanager
    def client(self) -> Iterator[openai.AsyncOpenAI]:
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
    async def post(self, path: str, body: dict[str, Any], headers: Mapping[str, str]) -> AsyncIterator[Any]:
        """The response to one call, whose body is still to be read; closed at the end.

        Past the client's own types: of ``body`` it would walk through every message for fields to rename,
        which takes 40 % of a call's CPU, and of what a server sends it would check nothing. Raises
        openai.APIError.
        """
        with self.client() as client:
            options: Any = {"headers": {**headers, **_AS_STREAM}}
            response: Any = await client.post(path, body=body, cast_to=object, options=options)
            try:
                yield response
            finally:
                await response.close()

    async def aclose(self) -> None:
        """Close the running loop's clients. Those of other loops end with their loops."""
        with self._lock:
            clients = [each.client for each in self._by_loop.pop(asyncio.get_running_loop(), ())]
            if self._unused is not None:
                clients.append(self._unused)
                self._unused = None
        for client in clients:
            await client.close()


@dataclass(slots=True)
class _Shared:
    """A client, and how many calls it has under way."""

    client: openai.AsyncOpenAI
    calls: int = 0


def _make_client(base_url: str, key: str, transport: httpx.AsyncBaseTransport | None) -> openai.AsyncOpenAI:
    # Every call ends by its deadline; the client's own timeout would only end replies that are still coming.
    timeout = openai.Timeout(None, connect=_CONNECT_TIMEOUT_S)
    base_url, query = split_base_url(base_url)
    return _Client(
        api_key=key,
        base_url=base_url,
        max_retries=0,
        timeout=timeout,
        http_client=openai.DefaultAsyncHttpxClient(
            base_url=base_url,
            params=query,  # the client's own default_query loses parameters without a value before openai 3
            # A redirect leads where nobody has configured, and headers that hold keys would go there too.
            follow_redirects=False,
            timeout=timeout,
            event_hooks={"request": [_without_placeholder], "response": [_bound_error]},
            # The pool holds no call back: one that ended may keep its connection for a moment.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=_CONNECTIONS),
            verify=_tls(),
            transport=transport,
        ),
    )


class _Client(openai.AsyncOpenAI):
    """Sends only the configured headers.

    By itself the client would send any server the contents of OPENAI_CUSTOM_HEADERS, OPENAI_ORG_ID and
    OPENAI_PROJECT_ID, and would prefer an Authorization among them to the given key.
    """

    @property
    def default_headers(self) -> dict[str, str | openai.Omit]:
        return {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": f"guardrail openai/{openai.__version__}",
            "Authorization": f"Bearer {self.api_key}",  # elsewhere only newer releases of openai look
        }


async def _without_placeholder(request: httpx.Request) -> None:
    """Send no key if none is configured: a server that expects it in another header may read this one."""
    if request.headers.get("authorization") == f"Bearer {NO_KEY}":
        del request.headers["authorization"]


@cache
def _tls() -> ssl.SSLContext:
    """One context for all clients, because reading the certificates takes tens of milliseconds."""
    return httpx.create_ssl_context()


async def _bound_error(response: httpx.Response) -> None:
    """Let the client read only the beginning of an error's body, which it keeps whole in memory."""
    if response.is_error and isinstance(response.stream, httpx.AsyncByteStream):
        packed = "content-encoding" in response.headers
        response.stream = _Beginning(response.stream, _PACKED_ERROR_BYTES if packed else _ERROR_BYTES)


class _Beginning(httpx.AsyncByteStream):
    """The first ``size`` bytes of a stream."""

    def __init__(self, stream: httpx.AsyncByteStream, size: int) -> None:
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
    error: openai.APIError | httpx.HTTPError,
    server: str,
    section: str,
    hints: Mapping[re.Pattern[str], str] = _NO_HINTS,
) -> Failure:
    """Classify an error of the client, which lets those through that it meets while a body is read. The
    message contains nothing of the server's body except a plain code.

    ``server`` is the server's name, and ``section`` has its settings, in messages. ``hints`` are remedies by
    what the server says of a request that it can't answer.
    """
    if isinstance(error, openai.APITimeoutError):
        connecting = isinstance(error.__cause__, httpx.ConnectTimeout)
        text = cut_off(server, error) if connecting else "the call timed out"
        return Failure(JudgeUnavailable(text), retry=True, fault=True, overload=True)
    if isinstance(error, openai.APIConnectionError | httpx.HTTPError):
        return Failure(JudgeUnavailable(cut_off(server, error)), retry=True, fault=True)
    if not isinstance(error, openai.APIStatusError):
        return Failure(JudgeUnavailable(f"the call failed ({type(error).__name__})"), retry=True, fault=True)
    status = error.status_code
    code = error.code if isinstance(error.code, str) and _CODE.fullmatch(error.code) else ""
    raised = error.response.extensions.get("raised")  # by what stands in a server's place
    text = raised or f"the server answered {status}{f' ({code})' if code else ''}"
    remedy = "" if raised and status in _REMEDIES else _remedy(error, hints)
    for_good = JudgeError(f"{text}; {remedy.format(section=section)}" if remedy else text)
    if code in _FILTERED:
        for_good = JudgeRefused(text)
    exhausted = code == "insufficient_quota"
    return of_status(text, status, error.response.headers, for_good, exhausted=exhausted)


def _remedy(error: openai.APIStatusError, hints: Mapping[re.Pattern[str], str]) -> str:
    """By the status, or by what the server says, which is only searched, never reported."""
    status = error.status_code
    if status == 413:
        return _SHORTEN
    if status in {400, 422}:
        said = f"{error.code or ''} {error.type or ''} {error.message[:_MESSAGE_CHARS]}"
        every = {_TOO_LONG: _SHORTEN, **hints}
        return next((remedy for pattern, remedy in every.items() if pattern.search(said)), "")
    return _REMEDIES.get(status, "")
