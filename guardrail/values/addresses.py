"""E-mail addresses and URLs, found by searching outward from "@", "://", "www." and well-known endings.

Each search is bounded (64 characters to the left, 2,000 to the right), so a text of a million at signs costs
a million bounded steps.
"""

from __future__ import annotations

import re
from typing import Final

from guardrail.values.model import Value, ValueKind

_MAX_LOCAL: Final = 64
_MAX_URL: Final = 2000
_DOMAIN: Final = re.compile(r"[A-Za-z0-9\u00c0-\uffdc](?:[\w-]{0,62})(?:\.[\w-]{1,63}){1,8}")
_LOCAL_CHARS: Final = re.compile(r"[\w.+\-%]{1,64}\Z")
_STARTS: Final = re.compile(
    r"@|https?://|ftp://|\bwww\.|\.(?:com|org|net|gov|edu|io|eu|de|fr|es|uk|info|int|dev|app|ai|co|ch|at|nl)(?![\w-])",
    re.IGNORECASE,
)
_URL_TAIL: Final = re.compile(r"[^\s<>\"'“”‘’\[\]{}|\\^`]{1,2000}")
_HOST_LEFT: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,120}\Z")
_TRAILING: Final = ".,;:!?)*_…。，"


def find_addresses(text: str) -> list[Value]:
    """The e-mail addresses and URLs of ``text``, in order, non-overlapping."""
    found: list[Value] = []
    last = 0
    for match in _STARTS.finditer(text):
        at = match.start()
        if at < last:
            continue
        value = _email(text, at, last) if match.group() == "@" else _url(text, match, last)
        if value is not None:
            found.append(value)
            last = value.end
    return found


def _email(text: str, at: int, last: int) -> Value | None:
    local = _LOCAL_CHARS.search(text[max(last, at - _MAX_LOCAL) : at])
    domain = _DOMAIN.match(text, at + 1, at + 256)
    if local is None or domain is None:
        return None
    start, end = at - len(local.group().lstrip(".-")), domain.end()
    if start == at:
        return None
    return Value(ValueKind.EMAIL, text[start:end], start, end, key=text[start:end].casefold())


def _url(text: str, match: re.Match[str], last: int) -> Value | None:
    start = match.start()
    if text[start] == ".":  # a bare domain: example.com/path
        host = _HOST_LEFT.search(text[max(last, start - 121) : start])
        if host is None:
            return None
        start -= len(host.group())
        end = match.end()
        if text[end : end + 1] == "/":
            tail = _URL_TAIL.match(text, end)
            end = tail.end() if tail else end
    else:
        tail = _URL_TAIL.match(text, match.end())
        if tail is None:
            return None
        end = tail.end()
    while end > match.end() and text[end - 1] in _TRAILING:
        if text[end - 1] == ")" and "(" in text[start:end]:
            break
        end -= 1
    url = text[start:end]
    key = fold_url(url)
    # A scheme with nothing behind it names no place.
    return Value(ValueKind.URL, url, start, end, key=key) if key else None


def fold_url(url: str) -> str:
    """Scheme, "www.", case, fragment and trailing slash folded away."""
    folded = url.casefold()
    for prefix in ("https://", "http://", "ftp://"):
        folded = folded.removeprefix(prefix)
    return folded.removeprefix("www.").partition("#")[0].rstrip("/")
