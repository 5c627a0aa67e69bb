"""The sentences of a *context*: the units that claims are compared with.

Within a line, sentences end as in answers (``guardrail.claims.sentences``). Contexts are finished texts of
any kind (prose, tables, lists, transcripts), so this module decides what a line break means.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from typing import Final

from guardrail.claims.sentences import NESTING, TERMINATORS, Nesting, run_end, sentence_end, skip_citations

# A possible end: a run of full stops of some script, or a line break with the blank after it; or a bracket or
# quote, inside which nothing ends. The look-behind keeps a long run of stops linear.
_END: Final = re.compile(
    rf"(?<![{re.escape(TERMINATORS)}])[{re.escape(TERMINATORS)}]++|\n\s*|[{re.escape(NESTING)}]"
)
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
    for start, end in sentences_of(text):
        starts.append(start)
        ends.append(end)
    return starts, ends


def sentences_of(text: str) -> Iterator[tuple[int, int]]:
    """The same, one after the other as they are found."""
    begin = line = read = 0
    last = len(text)
    nesting = Nesting()
    for match in _END.finditer(text):
        at, stop = match.start(), match.end()
        if text[at] == "\n":
            line_start, line = line, stop
            ends_here = _line_ends(text, line_start, at, stop)
            end = at
        elif at < read:  # part of what was read before
            continue
        elif text[at] in NESTING:
            nesting.mark(text, at)
            continue
        else:
            end = stop = read = skip_citations(text, run_end(text, at, last), last, last=True)
            ends_here = not nesting.holds(text, at, end) and (
                sentence_end(text, begin, at, end, last, last=True) > 0
            )
            if not ends_here:
                nesting.skip(text, at, end)
        if ends_here:
            yield from _stripped(text, begin, end)
            begin = stop
            nesting.begin(begin)
    yield from _stripped(text, begin, last)


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        at = start + len(piece) - len(piece.lstrip())
        yield at, at + len(stripped)


def _line_ends(text: str, line_start: int, end: int, next_start: int) -> bool:
    """Whether a line break ends a sentence, rather than wrapping running text."""
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
