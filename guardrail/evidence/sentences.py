"""The sentences of a *context*, the units that claims are compared with, and in conversations who says them.

Within a line, sentences end as in answers (``guardrail.claims.sentences``). Contexts are finished texts of
any kind (prose, tables, lists, transcripts), so this module decides what a line break means.

"Yes, I'd love to" says nothing without the turn before it, and the second sentence of a turn doesn't even say
who is speaking. A transcript, a chat or a ticket needs both.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from heapq import merge
from typing import TYPE_CHECKING, Final, NamedTuple

from guardrail.claims.phrases import words
from guardrail.claims.sentences import NESTING, TERMINATORS, Nesting, run_end, sentence_end, skip_citations

if TYPE_CHECKING:
    from guardrail.evidence.index import Windows

# A possible end: a run of full stops of some script, or a line break with the blank after it; or a bracket or
# quote, inside which nothing ends. The look-behind keeps a long run of stops linear.
_END: Final = re.compile(
    rf"(?<![{re.escape(TERMINATORS)}])[{re.escape(TERMINATORS)}]++|\n\s*|[{re.escape(NESTING)}]"
)
_BULLET: Final = re.compile(r"[-*•·–|#>]|\(?\d{1,3}[.)]\s")
_WORD_BEFORE: Final = re.compile(r"[\w.]{1,12}\Z")
_WRAPPED_LINE_CHARS: Final = 50
_RUNS_ON: Final = frozenset("$€£¥(")
_NEVER_LAST: Final = words("never_last")


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


# ------------------------------------------------------------------------------------- turns of conversations

# A line that begins with the speaker: "Nadia:", "Dr. Osei (cardiology):", "[10:32] Agent 2:", "**User**: ".
_SPEAKER: Final = re.compile(
    r"^[ \t]*+((?:\[[^\]\n]{1,20}\][ \t]*+)?"
    r"(\**+[^\W\d_][\w .'’&/-]{0,39}(?:\([^)\n]{1,30}\))?\**[ \t]{0,4}:))(?=\s|\*)",
    re.MULTILINE,
)
# Within a conversation, "Jane Doe, CEO:" or "Caller #2:" is a speaker too if it recurs. Otherwise her words
# would count as the previous speaker's. Excludes list items ("- Price: 5") and times of day.
_ANY_LABEL: Final = re.compile(
    r"^[^\S\n]*+((?:\[[^\]\n]{1,20}\][ \t]*+)?"
    r"(\*{0,3}+[^\s\d*•·–—|#>+:：-][^:：\n]{0,59}+(?::(?=[\s*])|：)))",
    re.MULTILINE,
)
_LINE: Final = re.compile(r"\S[^\n]*+")  # with anything but white space
_LEAST_TURNS: Final = 4


class SpeakerTurns(NamedTuple):
    """Where each turn of a text begins, and where its speaker's name ends: code points, ascending."""

    starts: array[int]
    name_ends: array[int]


TurnsOf = Callable[[int], SpeakerTurns]
"""The turns of a context, by its number."""


def find_turns(text: str) -> SpeakerTurns:
    """The turns of a conversation; empty for any other text.

    Speakers recur in a conversation, whereas field names ("Dose: ...") mostly don't. Linear in the length of
    the text; takes eight bytes per turn.
    """
    turns = SpeakerTurns(array("I"), array("I"))
    if text.count("\n") < _LEAST_TURNS - 1 or text.count(":") < _LEAST_TURNS:
        return turns
    speakers: Counter[str] = Counter()
    for match in _SPEAKER.finditer(text):
        turns.starts.append(match.start(1))
        turns.name_ends.append(match.end())
        speakers[match[2].strip("* :")] += 1
    found = len(turns.starts)
    again = sum(count for count in speakers.values() if count > 1)
    if found < _LEAST_TURNS or 2 * again < found or 2 * found < sum(1 for _ in _LINE.finditer(text)):
        return SpeakerTurns(array("I"), array("I"))
    return _with_other_speakers(text, turns)


def _with_other_speakers(text: str, turns: SpeakerTurns) -> SpeakerTurns:
    """The turns, plus those whose speaker only the wider pattern finds, at least twice."""
    labels = Counter(label for label, _, _ in _other_labels(text, turns))
    if not any(count > 1 for count in labels.values()):
        return turns
    others = ((start, end) for label, start, end in _other_labels(text, turns) if labels[label] > 1)
    merged = SpeakerTurns(array("I"), array("I"))
    for start, end in merge(zip(*turns, strict=True), others):
        merged.starts.append(start)
        merged.name_ends.append(end)
    return merged


def _other_labels(text: str, turns: SpeakerTurns) -> Iterator[tuple[str, int, int]]:
    """``(label, start, end)`` of lines that begin with a label and don't begin a turn. Read twice rather than
    stored: in a hostile context each line has its own label.
    """
    for match in _ANY_LABEL.finditer(text):
        start, end = match.span(1)
        at = bisect_left(turns.starts, start)
        if at == len(turns.starts) or turns.starts[at] != start:
            yield match[2], start, end


def speaker_of(sentences: Windows, turns_of: TurnsOf, number: int) -> tuple[int, int] | None:
    """The place of the name of a sentence's speaker, if it isn't in the sentence; None also if nobody
    speaks.
    """
    turns = turns_of(sentences.context[number])
    turn = bisect_right(turns.starts, sentences.start[number]) - 1
    if turn < 0 or turns.name_ends[turn] > sentences.start[number]:
        return None
    return turns.starts[turn], turns.name_ends[turn]
