"""The patterns that operators write: for severity, and for citations.

Citation patterns are restricted so that no text makes them slow.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from guardrail.events import Severity


def compile_quietly(pattern: str) -> re.Pattern[str]:
    """The pattern, ignoring case. Raises ValueError for an invalid regular expression.

    Python's warnings ("Possible nested set") would appear on the console beside the message, without saying
    which setting they refer to.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern, re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


class SeverityPattern(BaseModel):
    """A regular expression or a list of keywords that sets at least this severity."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: str = Field(min_length=1, description="Reported with the claim, e.g. 'recall_notice'.")
    severity: Severity = Field(description="The claim gets at least this severity.")
    pattern: str | None = Field(
        default=None, description="Python regular expression, searched ignoring case."
    )
    keywords: tuple[str, ...] = Field(
        default=(), description="Whole words or phrases, compared ignoring case."
    )

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            compile_quietly(value)
        return value


class SeverityRules(BaseModel):
    """Rules in addition to the built-in severity rules."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    patterns: tuple[SeverityPattern, ...] = Field(
        default=(), description="Every pattern that matches a claim raises its severity and is reported."
    )
    disabled_reasons: frozenset[str] = Field(
        default=frozenset(), description="Built-in reasons to switch off."
    )


MAX_PATTERN_CHARS: Final = 200
MAX_MATCH_CHARS: Final = 256
"""A longer match may be missed: the text is searched in windows."""

MAX_WAYS: Final = 1024
"""Ways in which a pattern may be tried at one place of a text: "+" has 256, {2,9} has 8, "?" has 2."""

# An escape, a character class, the beginning of a group, a quantifier, any other character.
_TOKEN: Final = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<group>\((?:\?(?::|P<\w+>)?)?)"
    r"|(?P<quantifier>[?*+]|\{\d*,\d*\}|\{\d+\})|(?P<other>.)",
    re.DOTALL,
)


@lru_cache(maxsize=64)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern, whose group is the id, title, address or number of the source. Ignores case.

    Raises ValueError if it isn't a regular expression, doesn't have exactly one group, or could be slow on
    some text: it may not repeat a group, use look-around or back-references, and its quantifiers and
    alternatives may multiply to at most ``MAX_WAYS``. Alternatives that begin with different letters count as
    one.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(f"the pattern has more than {MAX_PATTERN_CHARS} characters")
    compiled = compile_quietly(pattern)
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
    before, factor, ways = "", 1, 1
    alternatives: list[list[str]] = [[""]]  # for each open group: how they begin, once that is known
    begins = True
    for token in _TOKEN.finditer(pattern):
        kind, text = token.lastgroup, token[0]
        if kind == "quantifier":
            if before == ")":
                raise ValueError(f"{pattern!r} repeats a group; some texts would take very long to search")
            if before == "quantifier":
                # After a quantifier, "?" makes it lazy; "+" makes it possessive, so that it is tried in only
                # one way.
                ways = ways // factor if text == "+" else ways
                factor = 1
            else:
                factor = _ways(text)
                ways *= factor
            before = "quantifier"
            continue
        if kind == "group" and text == "(?":
            raise ValueError(f"{pattern!r} has a group that begins with '(?'; only (?:...) is allowed")
        if kind == "escape" and text[1].isdigit():
            raise ValueError(f"{pattern!r} refers to a group; that is not allowed")
        if begins and text not in "|)":
            alternatives[-1][-1] = text.lower() if kind == "other" and text.isalnum() else ""
        begins = kind == "group" or text == "|"
        if kind == "group":
            alternatives.append([""])
        elif text == "|":
            alternatives[-1].append("")
        elif text == ")" and len(alternatives) > 1:
            ways *= _choices(alternatives.pop())
        before = text if kind == "other" else ""
    ways *= _choices(alternatives[0])
    if ways > MAX_WAYS:
        raise ValueError(
            f"{pattern!r} can be tried in {ways} ways at one place, more than {MAX_WAYS}; use fewer of "
            "* + {m,n} ?, smaller bounds, or possessive quantifiers such as *+"
        )


def _ways(quantifier: str) -> int:
    if quantifier in "*+":
        return MAX_MATCH_CHARS
    if quantifier == "?":
        return 2
    low, comma, high = quantifier.strip("{}").partition(",")
    if not comma:
        return 1
    return min(MAX_MATCH_CHARS, int(high) - int(low or 0) + 1) if high else MAX_MATCH_CHARS


def _choices(begins: list[str]) -> int:
    """In how many ways alternatives can be tried: one if their first letters tell them apart."""
    return 1 if "" not in begins and len(set(begins)) == len(begins) else len(begins)


def matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Matches of at most ``MAX_MATCH_CHARS`` characters, in order and without overlap."""
    at, end = 0, len(text)
    while at < end:
        found = pattern.search(text, at, min(at + 2 * MAX_MATCH_CHARS, end))
        if found is None or found.end() == found.start():
            at += MAX_MATCH_CHARS
            continue
        yield found
        at = found.end()
