"""What a failed call means: why it failed, whether it may be repeated, and when.

Messages say where to look. They repeat no text of an error or of a server.
"""

from __future__ import annotations

import math
import random
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

import httpx2
import openai

from guardrail.errors import JudgeError, JudgeUnavailable

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

_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_REDIRECTED: Final = "it redirects, which is not followed: set judge.llm.base_url to where it leads"
_REMEDIES: Final = {
    **dict.fromkeys((301, 302, 303, 307, 308), _REDIRECTED),
    401: "check the API key",
    403: "check what the API key may do",
    404: "check judge.llm.base_url and judge.llm.model",
}
# As OpenAI, Azure, vLLM, llama.cpp, Ollama and gateways say that a prompt is longer than the model's window.
_TOO_LONG: Final = re.compile(
    r"context.{0,20}(length|size|window)|(length|size|window).{0,20}context|max_model_len"
    r"|\b(prompt|input|context)\b.{0,40}\btoo (long|large)|too many (input )?tokens",
    re.IGNORECASE,
)
_SHORTEN: Final = "the prompt is longer than the model takes: lower judge.llm.max_context_chars"
_MESSAGE_CHARS: Final = 500
_FAULTS: Final = frozenset({401, 403, 404, 408})  # no question would fare better
_OVERLOADS: Final = frozenset({408, 429, 503, 504, 529})


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
    """What to say of a connection to ``server`` that could not be made, or was cut."""
    causes = list(_causes(error))
    if not any(isinstance(each, _CONNECTING) for each in causes):
        # The causes of a cut tell what the connection was doing, such as waiting for more by TLS.
        return f"the connection to {server} was cut"
    for kind, words in _WORDS:
        if any(isinstance(each, kind) for each in causes):
            return f"no connection to {server}: {words}"
    return f"no connection to {server}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes, the latest first."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


@dataclass(frozen=True, slots=True)
class Failure:
    """``error`` is raised if the call isn't repeated. ``retry_after`` is in seconds from now.

    ``fault``: the server failed, and not this one question. ``overload``: it got too many calls at once.
    """

    error: JudgeError
    retry: bool
    retry_after: float | None = None
    fault: bool = False
    overload: bool = False


def describe(error: openai.APIError, server: str = "the server") -> Failure:
    """Classify an error of the client. The message has nothing of the server's body except a plain code.

    ``server`` is what messages about connections call it.
    """
    if isinstance(error, openai.APITimeoutError):
        connecting = isinstance(error.__cause__, httpx2.ConnectTimeout)
        text = failed(server, error) if connecting else "the call timed out"
        return Failure(JudgeUnavailable(text), retry=True, fault=True, overload=True)
    if isinstance(error, openai.APIConnectionError):
        return Failure(JudgeUnavailable(failed(server, error)), retry=True, fault=True)
    if not isinstance(error, openai.APIStatusError):
        return Failure(JudgeUnavailable(f"the call failed ({type(error).__name__})"), retry=True, fault=True)
    status = error.status_code
    code = error.code if isinstance(error.code, str) and _CODE.fullmatch(error.code) else ""
    text = f"the server answered {status}{f' ({code})' if code else ''}"
    headers = error.response.headers
    advice = headers.get("x-should-retry")
    retry = advice == "true" or (advice != "false" and (status in {408, 409, 429} or status >= 500))
    # An exhausted account answers 429 for days.
    exhausted = code == "insufficient_quota"
    failure = Failure(
        JudgeUnavailable(text),
        retry=retry and not exhausted,
        retry_after=retry_after(headers) if retry and not exhausted else None,
        fault=exhausted or status in _FAULTS or status >= 500,
        overload=status in _OVERLOADS and not exhausted,
    )
    if retry or status == 429 or status >= 500:
        return failure
    remedy = _SHORTEN if _too_long(error) else _REMEDIES.get(status)
    return replace(failure, error=JudgeError(f"{text}; {remedy}" if remedy else text))


def _too_long(error: openai.APIStatusError) -> bool:
    """Whether the server says that the prompt is too long. Its message is only searched, never reported."""
    if error.status_code == 413:
        return True
    words = f"{error.code or ''} {error.type or ''} {error.message[:_MESSAGE_CHARS]}"
    return error.status_code in {400, 422} and _TOO_LONG.search(words) is not None


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


# Bounds of the random wait before a retry, in seconds: of the first one, which doubles with each, and of all.
FIRST_WAIT_S: Final = 0.25
LONGEST_WAIT_S: Final = 4.0


def wait_s(retry: int, asked: float | None, random_: Callable[[], float] = random.random) -> float:
    """Seconds to wait before retry number ``retry``, from 0; ``asked`` is the server's Retry-After.

    Random in ``[0, min(longest, first * 2**retry)]`` ("full jitter"), so that callers that failed together
    don't come back together; never shorter than what the server asks for.
    """
    if asked is not None:
        return asked + random_() * FIRST_WAIT_S
    return random_() * min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**retry)
