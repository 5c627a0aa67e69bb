"""Numbers, times and texts of unknown origin in words for people, the same everywhere; without markup."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

from guardrail.printable import escape_controls


def counted(number: int, what: str) -> str:
    """``1 claim``, ``1,200 claims``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def percent(part: float, whole: float, digits: int = 1) -> str:
    """``12.3 %``; a dash of nothing."""
    return f"{100 * part / whole:.{digits}f} %" if whole else "–"


def duration(ms: float | None) -> str:
    """A time of milliseconds to read: ``0.25 ms``, ``12 ms``, ``1.5 s``, ``2 min``; ``-`` for none."""
    if ms is None:
        return "-"
    if ms < 10:
        return f"{ms:.2g} ms"
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.3g} s"
    return f"{ms / 60_000:.3g} min"


def when(at_ms: int) -> str:
    """Milliseconds since 1970 as a time in UTC; a time that no calendar has as its number."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def score(value: float | None) -> str:
    """Two decimals, never rounded up to 1.00; ``-`` when nothing was checked."""
    if value is None:
        return "-"
    return "1.00" if value >= 1.0 else f"{min(value, 0.99):.2f}"


def visible(text: str) -> str:
    """Text of unknown origin, made harmless for a terminal.

    Control characters (escape sequences begin with one), direction overrides, zero-width and unassigned
    characters, line separators and lone surrogates become U+FFFD, one for one, so that spans stay true. New
    lines stay and tabs become spaces.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if char == "\n":
        return char
    if char == "\t":
        return " "
    category = unicodedata.category(char)
    if char == "\u200d" or not (category.startswith("C") or category in {"Zl", "Zp"}):
        return char
    return "\ufffd"


def one_line(text: str, limit: int, ellipsis: str = "…") -> str:
    """Text of unknown origin on one line of at most ``limit`` characters, white space folded."""
    # The slice keeps the cost bounded for a text of megabytes of which one line is shown.
    line = escape_controls(" ".join(text[: 8 * limit + 64].split()))
    return line if len(line) <= limit else line[: max(0, limit - len(ellipsis))].rstrip() + ellipsis
