"""Why there was no connection, in words that say where to look. No text of an error is repeated."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import httpx2

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MOST_CAUSES: Final = 10
_CHECK: Final = "check base_url"

_CONNECTING: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)

# The first that an error or one of its causes is an instance of.
_WORDS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (httpx2.ProxyError, "the proxy that the environment names refused it; check HTTPS_PROXY and NO_PROXY"),
    (socket.gaierror, f"the name of the host is not known; {_CHECK}"),
    (ConnectionRefusedError, f"it was refused, so nothing listens there; {_CHECK}"),
    (
        ssl.SSLCertVerificationError,
        "its certificate is not trusted; name the authority's in SSL_CERT_FILE",
    ),
    (ssl.SSLError, f"no TLS came about, as where a server speaks http and not https; {_CHECK}"),
    (httpx2.ConnectTimeout, f"there was none in time; {_CHECK}"),
    (httpx2.ConnectError, f"the network failed; {_CHECK}"),
)


def server_of(base_url: str) -> str:
    """Host and port of a URL, without the login and the query that may stand in it."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        host = port = None
    if not host:
        return "the server"
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host


def failed(server: str, error: BaseException | None = None) -> str:
    """What is told of a connection to ``server`` that could not be made, or did not last."""
    causes = list(_causes(error))
    if not any(isinstance(each, _CONNECTING) for each in causes):
        # Of a connection that stood the causes tell what it was doing, such as waiting for more by TLS.
        return f"the connection to {server} was cut"
    for kind, words in _WORDS:
        if any(isinstance(each, kind) for each in causes):
            return f"no connection to {server}: {words}"
    return f"no connection to {server}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, the latest first."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
