"""Where the sentences of a *context* are: the units that claims are compared with.

Contexts are finished texts of any kind (prose, tables, lists, transcripts), and a wrong cut costs little
here: these rules are coarser and faster than those of ``guardrail.claims``, which decide what is released.
"""

from __future__ import annotations

import re
from array import array
from typing import Final

_ABBREVIATIONS: Final = frozenset(
    """
    mr mrs ms dr prof st jr sr vs etc e.g i.e eg ie cf no nos vol fig figs approx dept est inc ltd co corp al
    jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k a.m p.m gen sen rep gov capt art sec par pp ca
    """.split()  # noqa: SIM905 (a list of words reads best as words)
)
# A possible end: a full stop of some script with what closes after it, or a line break with the blank
# after it. The look-behind keeps a long run of stops linear.
_END: Final = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]{0,4}+(?=\s)|[。！？।॥｡]+[」』”’）]{0,4}|\n\s*")
_BULLET: Final = re.compile(r"[-*•·–|#>]|\(?\d{1,3}[.)]\s")
_WORD_BEFORE: Final = re.compile(r"[\w.]{1,12}\Z")
_WRAPPED_LINE_CHARS: Final = 50
_RUNS_ON: Final = frozenset("$€£¥(")
_NEVER_LAST: Final = frozenset(
    "a an the of at by in on to for from with and or nor but than per your our their its".split()  # noqa: SIM905
)


def sentence_spans(text: str) -> tuple[array[int], array[int]]:
    """Starts and ends (code points) of the sentences of ``text``, without surrounding white space."""
    starts, ends = array("I"), array("I")
    begin = line = 0
    for match in _END.finditer(text):
        stop = match.end()
        if text[match.start()] == "\n":
            line_start, line = line, stop
            if not _line_ends(text, line_start, match.start(), stop):
                continue
            stop = match.start()
        elif text[match.start()] == "." and not _full_stop(text, begin, match.start(), stop):
            continue
        _add(text, begin, stop, starts, ends)
        begin = match.end()
    _add(text, begin, len(text), starts, ends)
    return starts, ends


def _add(text: str, start: int, end: int, starts: array[int], ends: array[int]) -> None:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        at = start + len(piece) - len(piece.lstrip())
        starts.append(at)
        ends.append(at + len(stripped))


def _line_ends(text: str, line_start: int, end: int, next_start: int) -> bool:
    """Whether a line break ends a sentence: not where running text was merely wrapped."""
    if next_start >= len(text) or text.count("\n", end, next_start) > 1:
        return True
    if end - line_start < _WRAPPED_LINE_CHARS or _BULLET.match(text, next_start):
        return True
    if "|" in text[line_start:end]:
        return True
    following = text[next_start]
    if following.islower() or following.isdigit() or following in _RUNS_ON or text[end - 1] in ",;":
        return False
    before = _WORD_BEFORE.search(text, max(line_start, end - 12), end)
    return before is None or before.group() not in _NEVER_LAST


def _full_stop(text: str, begin: int, dot: int, stop: int) -> bool:
    """Whether the full stop at ``dot`` ends a sentence rather than an abbreviation or an initial."""
    following = text[stop : stop + 3].lstrip()[:1]
    if following.islower():
        return False
    before = _WORD_BEFORE.search(text, max(begin, dot - 12), dot)
    if before is None:
        return True
    word = before.group()
    if len(word) == 1 and word.isupper():
        return False
    return word.casefold() not in _ABBREVIATIONS
