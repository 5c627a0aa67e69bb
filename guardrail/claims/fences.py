"""Finds what states something in code: prose in fences, and data.

Fences for text contain a claim if a line is a sentence; in other fences sentences are comments and output, so
all lines must read as prose, and an error must be grave.
"""

from __future__ import annotations

import re
from typing import Final

from guardrail.claims.detector import AMOUNTS, Assertion, decides, fold, has_figure, line_asserts
from guardrail.claims.phrases import words
from guardrail.claims.severity import words_of
from guardrail.events import Span

_PROSE_FENCES: Final = words("prose_fences")
_FENCE_LINE: Final = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\n]*)")
_CODE_SIGNS: Final = re.compile(
    r"[;{}\\]|\w\(|\)\s*$|[=!<>+]=|=>|->|::|</|/>|&&|\|\||\$[A-Za-z_]|\$\(|\s=\s|\w=\w|(?:^|\s)--?[a-z]|[,(="
    r"|&]\s*$|^\s*(?:[$%@] |[<>/@])"
    r"|^\s*[-+*]{2}|^\s*[\w.\"'-]+:(?:\s*$|\s*[\"'\[\d])|^\s*\[|^\s*\d{4}-\d\d|^\s*\d\d:\d\d"
    r"|^(?:\w+\.)*\w*(?:Error|Exception)\b"
    r"|^(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE)\b|^(?:import|from|def|class|return|SELECT|FROM|WHERE)\b"
)
_LINE: Final = re.compile(r"(?:\A|(?<=\n))[^\n]*")
_LETTERS: Final = re.compile(r"[^\W\d_]{2,}")
_DIGIT: Final = re.compile(r"\d")
_COMMENT: Final = re.compile(r"\s*(?:#|//|--|/\*|\*|\x22{3}|\x27{3})")
_SENTENCE: Final = re.compile(r"[.!。！]['\"”’)*_\]]{0,4}$")
_LEAST_WORDS: Final = 4
_DATA_FENCES: Final = words("data_fences")
_LITERAL: Final = re.compile(r"\"([^\"\n]{8,})\"|'([^'\n]{8,})'|(?:#|//|--|/\*)\s(.{8,})")
_PAIR: Final = re.compile(r"[ \t>]*[\"']?[^\W\d][\w .\"'-]{0,60}(?::(?=[\s\"'\[{])|=|=>)\s*\S")


class FencedProse:
    """Finds prose in code segments, which may be pieces of one fence. Remembers the open fence."""

    def __init__(self) -> None:
        self._mark = ""
        self._info = ""

    def leave(self) -> None:
        """A segment that is not code ends any fence."""
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
        listed = not label or label in _PROSE_FENCES
        if label == "diff":  # what is taken out is not stated
            lines = [(start, end) for start, end in lines if not text.startswith("-", start)]
        found = _prose(text, lines, listed=listed, markdown=label in ("markdown", "md"))
        values = label in _DATA_FENCES
        if opening and len(lines) > 1:
            del lines[0]  # what the fence is labelled with
        return found or _data(text, lines, listed=listed or values, values=values)


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


def _data(text: str, lines: list[Span], *, listed: bool, values: bool) -> tuple[int, int, Assertion] | None:
    """Span of the lines that hold data: in code those with an amount or a telephone number. Where data is
    ``listed`` all do, if a literal or comment is a sentence, or a value decides or counts: that of a key, or
    any where all are ``values``. Figures alone are mentioned."""
    spans = []
    states = counts = False
    for start, end in lines:
        line = text[start:end]
        if listed:
            pair = _PAIR.match(line)
            sentence = any(len(words_of("".join(each))) >= _LEAST_WORDS for each in _LITERAL.findall(line))
            states = states or sentence or (pair is not None and decides(line[pair.end() - 1 :]))
            counts = counts or bool((pair or values) and _DIGIT.search(line) and _LETTERS.search(line))
        amount = has_figure(line, AMOUNTS)
        counts = counts or amount
        if amount or (listed and line.strip()):
            begins = end - len(line.lstrip())
            spans.append((begins, begins + len(line.strip())))
    if not spans or not (states or counts):
        return None
    return spans[0][0], spans[-1][1], Assertion.STRONG if states else Assertion.MENTION
