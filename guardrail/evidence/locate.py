"""Finding a quote in its source: exactly, or after folding what copying changes.

Folded are white space, kinds of quotation marks, dashes and hyphens, case, and characters that show nothing
(soft hyphen, zero-width space, byte order mark). A quote that then stands nowhere is no quote.
"""

from __future__ import annotations

import re
from typing import Final

_INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_FOLD: Final[dict[int, int | None]] = {
    **dict.fromkeys(map(ord, "‘’‚‛′`´"), ord("'")),
    **dict.fromkeys(map(ord, "“”„‟″«»"), ord('"')),
    **dict.fromkeys(map(ord, "‐‑‒–—―−"), ord("-")),
    **dict.fromkeys(map(ord, _INVISIBLE), None),
    ord("İ"): ord("i"),  # the one character whose lower case is two
}
_VISIBLE_RUN: Final = re.compile(rf"[^\s{_INVISIBLE}]+")
_WRAPPING: Final = " \t\n\r\"'“”‘’«»…"


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """The span (code points of ``text``) where ``quote`` stands, or None. Linear in both lengths."""
    quote = quote.strip()
    if not quote:
        return None
    at = text.find(quote)
    if at >= 0:
        return at, at + len(quote)
    haystack = _fold(text)
    for candidate in (quote, _unwrapped(quote)):
        needle = _fold(candidate)
        at = haystack.find(needle) if needle else -1
        if at >= 0:
            first = at - haystack.count(" ", 0, at)
            length = len(needle) - needle.count(" ")
            return _visible_span(text, first, length)
    return None


def _unwrapped(quote: str) -> str:
    bare = quote.strip(_WRAPPING)
    while bare.endswith("...") or bare.startswith("..."):
        bare = bare.removesuffix("...").removeprefix("...").strip(_WRAPPING)
    return bare


def _fold(text: str) -> str:
    """One visible character of ``text`` to one of the result; runs of white space to one space."""
    return " ".join(text.translate(_FOLD).lower().split())


def _visible_span(text: str, first: int, length: int) -> tuple[int, int]:
    """The span of the visible characters number ``first`` to ``first + length`` (exclusive) of ``text``."""
    seen, start, last = 0, -1, first + length - 1
    for run in _VISIBLE_RUN.finditer(text):
        upto = seen + run.end() - run.start()
        if start < 0 and upto > first:
            start = run.start() + first - seen
        if upto > last:
            return start, run.start() + last - seen + 1
        seen = upto
    raise AssertionError("the folded text has as many visible characters as the text")
