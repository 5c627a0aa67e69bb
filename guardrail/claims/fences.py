"""Prose inside code fences: an answer in a fence is read by the user like any other.

A fence for text, or for nothing in particular, holds a claim where a line of it is a sentence. In any other
fence sentences are comments and output, so there all lines have to read as prose, and an error be grave.
"""

from __future__ import annotations

import re
from typing import Final

from guardrail.claims.assertions import Assertion, line_asserts
from guardrail.claims.detector import fold
from guardrail.claims.phrases import words
from guardrail.events import Span

_PROSE_FENCES: Final = words("prose_fences")
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
_FENCE_LINE: Final = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\n]*)")
_CODE_SIGNS: Final = re.compile(
    r"[;{}\\]|\w\(|\)\s*$|[=!<>+]=|=>|->|::|</|/>|&&|\|\||\$[A-Za-z_]|\$\(|\s=\s|\w=\w|(?:^|\s)--?[a-z]|[,(="
    r"|&]\s*$|^\s*(?:[$%@] |[<>/@])"
    r"|^\s*[-+*]{2}|^\s*[\w.\"'-]+:(?:\s*$|\s*[\"'\[\d])|^\s*\[|^\s*\d{4}-\d\d|^\s*\d\d:\d\d"
    r"|^(?:\w+\.)*\w*(?:Error|Exception)\b"
    r"|^(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE)\b|^(?:import|from|def|class|return|SELECT|FROM|WHERE)\b"
)
_LINE: Final = re.compile(r"(?:\A|(?<=\n))[^\n]*")
_COMMENT: Final = re.compile(r"\s*(?:#|//|--|/\*|\*|\x22{3}|\x27{3})")
_SENTENCE: Final = re.compile(r"[.!。！]['\"”’)*_\]]{0,4}$")
_LEAST_WORDS: Final = 4


class FencedProse:
    """Finds prose in code segments, which may be pieces of one fence. Keeps the fence that is open."""

    def __init__(self) -> None:
        self._mark = ""
        self._info = ""

    def leave(self) -> None:
        """A segment that is no code ends any fence."""
        self._mark = ""

    def find(self, text: str) -> tuple[int, int, Assertion] | None:
        """First and last character of the prose in a code segment's body, and how surely it states something.

        Linear in the length of ``text``.
        """
        lines = [match.span() for match in _LINE.finditer(text)]
        opening = None if self._mark else _FENCE_LINE.match(text)
        if opening:
            self._mark, self._info = opening[1], opening[2].strip().lower()
            inner = opening[2].partition(opening[1])
            lines[0] = (opening.start(2), opening.start(2) + len(inner[0]))
            if inner[1]:  # ```one line```
                self._info = ""
                self._mark = ""
        last = text[slice(*lines[-1])].strip(" \t>\r") if len(lines) > 1 or not opening else ""
        if self._mark and last.startswith(self._mark) and not last.strip(self._mark[0]):
            self._mark = ""
            lines.pop()
        label = self._info.split(None, 1)[0].strip("{}.:,") if self._info else ""
        return _prose(
            text, lines, listed=not label or label in _PROSE_FENCES, markdown=label in ("markdown", "md")
        )


def _prose(
    text: str, lines: list[Span], *, listed: bool, markdown: bool
) -> tuple[int, int, Assertion] | None:
    """Span of the lines that read as prose. Surely so in a fence for text, perhaps in one all of prose."""
    sure: list[Span] = []
    perhaps: list[Span] = []
    code = False
    for number, (start, end) in enumerate(lines):
        bare = text[start:end].strip()
        if _CODE_SIGNS.search(text[start:end].rstrip()):
            code = code or number > 0
            continue
        if len(_LETTERS.findall(bare)) < _LEAST_WORDS and len(bare.split()) < _LEAST_WORDS:
            continue
        comment = _COMMENT.match(bare) and not markdown and not bare.startswith("* ")
        begins = end - len(text[start:end].lstrip())
        span = begins, begins + len(bare)
        if _SENTENCE.search(bare) and not comment:
            sure.append(span)
        elif _SENTENCE.search(bare) or line_asserts(fold(bare)):
            perhaps.append(span)
    if sure and listed:
        return sure[0][0], sure[-1][1], Assertion.STRONG
    spans = sorted(sure + perhaps)
    if spans and not code and (listed or sure):
        return spans[0][0], spans[-1][1], Assertion.WEAK
    return None
