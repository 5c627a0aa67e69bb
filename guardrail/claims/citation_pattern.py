"""The operator's own pattern for citations: what it may hold, so that no text makes it slow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

MAX_PATTERN_CHARS: Final = 200
MAX_MATCH_CHARS: Final = 256
"""A longer match may be missed: the text is searched in windows."""

_MAX_WIDE: Final = 2
_MAX_OPTIONAL: Final = 4
# An escape, a character class, the beginning of a group, a quantifier, any other character.
_TOKEN: Final = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<group>\((?:\?(?::|P<\w+>)?)?)"
    r"|(?P<optional>\?)|(?P<wide>[*+]|\{\d*,\d*\})|(?P<times>\{\d+\})|(?P<other>.)",
    re.DOTALL,
)


@lru_cache(maxsize=64)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern, its group being the id, title, address or number of what is cited. Ignores case.

    Raises ValueError for one that is no regular expression, has not exactly one group, or could take long
    on some text: it may repeat no group, look neither ahead nor behind, refer to no group, and have two of
    the quantifiers * + {m,n} and four ? at most.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(f"the pattern has more than {MAX_PATTERN_CHARS} characters")
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
    if compiled.groups != 1:
        raise ValueError(
            f"{pattern!r} has {compiled.groups} groups; it needs one, around what names the source, as in "
            r"'\{\{cite:([^{}]+)\}\}'; write others as (?:...)"
        )
    if compiled.match(""):
        raise ValueError(f"{pattern!r} matches the empty text")
    _check_time(pattern)
    return compiled


def _check_time(pattern: str) -> None:
    wide = optional = 0
    before = ""
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        quantifier = kind in {"optional", "wide", "times"}
        if quantifier and before == ")":
            raise ValueError(f"{pattern!r} repeats a group; some texts would take very long to search")
        if kind == "group" and text == "(?":
            raise ValueError(f"{pattern!r} has a group that begins with '(?'; only (?:...) is allowed")
        if kind == "escape" and text[1].isdigit():
            raise ValueError(f"{pattern!r} refers to a group; that is not allowed")
        wide += kind == "wide"
        # Behind a quantifier "?" makes it lazy, and "+" possessive, which costs nothing.
        optional += kind == "optional" and before not in {"*", "+", "}"}
        before = text[-1] if kind in {"other", "wide", "optional", "times"} else ""
    if wide > _MAX_WIDE or optional > _MAX_OPTIONAL:
        raise ValueError(
            f"{pattern!r} has more than {_MAX_WIDE} of * + {{m,n}}, or more than {_MAX_OPTIONAL} of ?; "
            "some texts would take very long to search"
        )


def matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Matches of at most ``MAX_MATCH_CHARS`` characters, apart and in their order."""
    at, end = 0, len(text)
    while at < end:
        found = pattern.search(text, at, min(at + 2 * MAX_MATCH_CHARS, end))
        if found is None or found.end() == found.start():
            at += MAX_MATCH_CHARS
            continue
        yield found
        at = found.end()
