"""Why a call failed, in words of our own, and how long to wait before the next one.

Messages say where to look. They repeat no text of an error or of a server.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from guardrail.errors import JudgeError, JudgeUnavailable

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_MOST_CAUSES: Final = 10

_MAY_PASS: Final = frozenset({408, 409, 429})
_FAULTS: Final = frozenset({401, 403, 404, 408, 424})  # no question would succeed
_OVERLOADS: Final = frozenset({408, 429, 503, 504, 529})

# Classes by name, since a client may be built on httpx or on httpx2.
_CONNECTING: Final = frozenset({"ConnectError", "ConnectTimeout", "ProxyError"})


@dataclass(frozen=True, slots=True)
class Failure:
    """``error`` is raised if the call isn't repeated. ``retry_after`` is in seconds from now.

    ``fault``: the server failed, rather than this particular question. ``overload``: it got too many calls at
    once.
    """

    error: JudgeError
    retry: bool
    retry_after: float | None = None
    fault: bool = False
    overload: bool = False


def of_status(
    text: str, status: int, headers: Mapping[str, str], for_good: JudgeError, *, exhausted: bool = False
) -> Failure:
    """What an HTTP status says: ``text``, or the error ``for_good`` if asking again would bring the same.

    ``exhausted``: an account that is used up, which answers 429 for days.
    """
    advice = headers.get("x-should-retry")
    retry = advice == "true" or (advice != "false" and (status in _MAY_PASS or status >= 500))
    passes = retry or status == 429 or status >= 500
    retry = retry and not exhausted
    return Failure(
        JudgeUnavailable(text) if passes else for_good,
        retry=retry,
        retry_after=retry_after(headers) if retry else None,
        fault=exhausted or status in _FAULTS or status >= 500,
        overload=status in _OVERLOADS and not exhausted,
    )


def server_of(url: str) -> str:
    """Host and port of a URL, without its login and query."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        host = port = None
    if not host:
        return "the server"
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host


def cut_off(server: str, error: BaseException | None = None, setting: str = "base_url") -> str:
    """The message about a connection to ``server`` that could not be made, or was cut; ``setting`` has the
    server's address.
    """
    causes = [{kind.__name__ for kind in type(each).__mro__} for each in _causes(error)]
    if not any(names & _CONNECTING for names in causes):
        # The causes of a cut say what the connection was doing, such as waiting for more TLS data.
        return f"the connection to {server} was cut"
    check = f"check {setting}"
    # The first of which the error or one of its causes is an instance.
    words = {
        "ProxyError": "the proxy that the environment names refused it; check HTTPS_PROXY and NO_PROXY",
        "gaierror": f"the name of the host is not known; {check}",
        "ConnectionRefusedError": f"it was refused: nothing listens there; {check}",
        "SSLCertVerificationError": "its certificate is not trusted; name the authority's in SSL_CERT_FILE",
        "SSLError": f"the TLS handshake failed (does the server speak http instead of https?); {check}",
        "ConnectTimeout": f"connecting timed out; {check}",
        "ConnectError": f"the network failed; {check}",
    }
    why = next(words[kind] for kind in words if any(kind in names for names in causes))
    return f"no connection to {server}: {why}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes, the latest first."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds the server asks to wait: ``retry-after-ms``, else ``Retry-After`` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        return None if math.isnan(seconds) else max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - now())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


_LONG_GROWN: Final = 64
"""By this retry every wait is the longest. Some callers count on for days, and large powers overflow."""


@dataclass(slots=True)
class BackOff:
    """Waits before retries, in seconds: the first, how it grows with each, and the longest."""

    first_s: float
    longest_s: float
    growth: float = 2.0

    def bound(self, retry: int) -> float:
        """The wait before retry number ``retry``, from 0."""
        return min(self.longest_s, self.first_s * self.growth ** min(retry, _LONG_GROWN))

    def wait(self, retry: int, asked: float | None, random_: Callable[[], float] = random.random) -> float:
        """A random wait; ``asked`` is the server's Retry-After.

        Between 0 and the bound ("full jitter"), so that callers that failed together don't come back
        together; never shorter than what the server asks for.
        """
        if asked is not None:
            return asked + random_() * self.first_s
        return random_() * self.bound(retry)


RETRIES: Final = BackOff(first_s=0.25, longest_s=4.0)
"""Before a call to a model is repeated."""
