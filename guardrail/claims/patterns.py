"""The patterns and keywords that operators write for severity.

Patterns run on RE2, so that no text makes them slow. RE2's own classes know ASCII only; here they are
Python's, which know the letters and digits of every language.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Self

import re2
from pydantic import Field, field_validator, model_validator

from guardrail.events import Severity
from guardrail.frozen import Frozen

_WORD: Final = r"\pL\pN_"
_OTHER_CONNECTORS: Final = "\u203f\u2040\u2054\ufe33\ufe34\ufe4d-\ufe4f\uff3f"  # all of \p{Pc} but "_"
_CLASSES: Final = {  # what stands in a set for a class
    r"\w": _WORD,
    r"\W": rf"\pM\pZ\pC\pS\p{{Ps}}\p{{Pe}}\p{{Pi}}\p{{Pf}}\p{{Pd}}\p{{Po}}{_OTHER_CONNECTORS}",
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\s": r"\t-\r\x1c-\x1f\x{85}\pZ",
    r"\S": r"\pL\pM\pN\pP\pS\p{Cf}\p{Co}\x00-\x08\x0e-\x1b\x7f-\x{84}\x{86}-\x{9f}",
}
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z]+\)")
# Flags of the whole pattern; a set; an escape; any other character.
_PART: Final = re.compile(
    rf"\A{_FLAGS.pattern}|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*+\]|{_ESCAPE.pattern}|.", re.DOTALL
)
_NO_LEAST: Final = re.compile(r"(?<!\\)\{,\d+\}")
_NO_WORD: Final = f"[^{_WORD}]"
_NOT_OF_A_WORD: Final = re.compile(r"\\[^a-zA-Z0-9_]|\\[bBWsAZz]|[^\w()\[.+*?{}]")
_REMEDY: Final = (
    "write it in RE2's syntax (https://github.com/google/re2/wiki/Syntax), which has no look-around, "
    "back-references, possessive quantifiers and comments, and repeats 1,000 times at most, or give keywords"
)


def linear_search(pattern: str) -> Callable[[str], bool]:
    """Says whether a text has a match of the pattern, ignoring case, in time linear in the text.

    Raises ValueError for what is not a regular expression, or more than RE2 can express.
    """
    if _NO_LEAST.search(pattern):
        raise ValueError("RE2 takes {,n} for text; write {0,n}")
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False  # they would appear on the console beside the message
    options.never_capture = True
    try:
        compiled = re2.compile(_for_re2(pattern), options)
    except re2.error as error:
        told = error.args[0].decode(errors="replace")
        raise ValueError(f"RE2 can't read it: {told}; {_REMEDY}") from None
    if compiled.search(b""):
        raise ValueError(
            "it matches the empty text, and thereby every claim; let it ask for one character at least"
        )
    return lambda text: compiled.search(text.encode(errors="replace")) is not None


def _for_re2(pattern: str) -> str:
    """The pattern with Python's classes and ends, and with its word boundaries as what stands there."""
    parts = [match[0] for match in _PART.finditer(pattern)]
    read, depth = "", 0
    for i, part in enumerate(parts):
        depth += (part == "(") - (part == ")")
        if part in {r"\b", r"\B"}:
            begins = i == 0 or parts[i - 1] == "|" or _FLAGS.fullmatch(parts[i - 1]) is not None
            ends = parts[i + 1 : i + 2] in ([], ["|"])
            if part == r"\B" or depth or not (begins or ends):
                raise ValueError(
                    rf"{part} may only stand at the beginning or end of a whole pattern, or of an "
                    r"alternative of it, as in '\bpn-?\d+\b'; inside write \W, or give keywords, which are "
                    "whole words"
                )
            beside = parts[i + 1 : i + 2] if begins else parts[i - 1 : i]
            if not beside or _NOT_OF_A_WORD.fullmatch(beside[0]):
                raise ValueError(
                    rf"\b needs a letter or digit beside it, or what stands for one: in {''.join(parts)!r} "
                    r"it has none; leave it out there, or write \W or \w"
                )
            read += rf"(?:\A|{_NO_WORD})" if begins else rf"(?:{_NO_WORD}|\z)"
        elif part[0] == "[":
            read += _ESCAPE.sub(lambda escape: _CLASSES.get(escape[0], escape[0]), part)
        elif part in _CLASSES:
            read += f"[{'^' if part[1].isupper() else ''}{_CLASSES[part.lower()]}]"
        else:
            read += r"\z" if part == r"\Z" else part
    return read


class SeverityPattern(Frozen):
    """A regular expression or a list of keywords that sets at least this severity."""

    reason: str = Field(min_length=1, description="Reported with the claim, e.g. 'recall_notice'.")
    severity: Severity = Field(description="The claim gets at least this severity.")
    pattern: str | None = Field(
        default=None,
        description="Regular expression in RE2's syntax, searched ignoring case in linear time: without "
        "look-around and back-references, and with \\b at its beginning and end only.",
    )
    keywords: tuple[str, ...] = Field(
        default=(), description="Whole words or phrases, compared ignoring case."
    )

    @model_validator(mode="after")
    def _finds_something(self) -> Self:
        if not self.pattern and not self.keywords:
            raise ValueError("it has neither pattern nor keywords and finds nothing; give one of them")
        return self

    @field_validator("keywords")
    @classmethod
    def _words(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for keyword in value:
            if not any(map(str.isalnum, keyword)):
                raise ValueError(f"{keyword!r} has no letter or digit and finds nothing; take it out")
        return value

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value:
            linear_search(value)
        return value


class SeverityRules(Frozen):
    """Rules in addition to the built-in severity rules."""

    patterns: tuple[SeverityPattern, ...] = Field(
        default=(), description="Every pattern that matches a claim raises its severity and is reported."
    )
    disabled_reasons: frozenset[str] = Field(
        default=frozenset(), description="Built-in reasons to switch off."
    )
