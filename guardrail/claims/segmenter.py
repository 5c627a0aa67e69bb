"""Cuts text into segments as it streams; what it has cut never changes.

Whatever the text and however it is cut into feeds:

- joined, the segments give the text back;
- the segments are a function of the text alone;
- no segment is longer than ``max_segment_chars``;
- the work is linear in the text: a feed without a character that could end anything is one regex search and
  an append; otherwise scanning continues where it stopped. A decision that needs more text is reconsidered
  with each feed, and the bound on segments bounds how often.

The second invariant needs care. Every decision about a segment considers only the *window*: its first
``max_segment_chars + 1`` characters. A decision that the window leaves open cuts at the bound, even if later
text is at hand, since another chunking would not have had it.

Models write Markdown, and the first characters of a line determine its kind: prose, list item, table row,
heading, fence, rule or blank. They may not all have arrived, so every question about a line concerns
``text[at:stop]`` and may be answered with ``MORE``: the text so far fits several kinds. Any other answer
stays true whatever follows. All patterns are linear: no nested or overlapping repeats.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Final

from guardrail.claims.model import Segment
from guardrail.claims.sentences import (
    GOES_ON,
    MORE,
    NESTING,
    TERMINATORS,
    Nesting,
    run_end,
    sentence_end,
    skip_citations,
    skip_space,
)
from guardrail.events import SegmentKind


class LineKind(StrEnum):
    """Kinds of lines. A segment is read by that of its first line; ``MORE`` between blocks: it is open."""

    MORE = "more"
    BLANK = "blank"
    TEXT = "text"
    HEADING = "heading"
    ITEM = "item"
    ROW = "row"
    FENCE = "fence"
    RULE = "rule"


#: Accept any number as the marker of an ordered list.
ANY_NUMBER: Final = -1

_PREFIX: Final = re.compile(r"[ \t\r>]*")
# Lines that begin otherwise are prose, which is known at their first character.
_PICTURE: Final = r"[\u2190-\u21ff\u2600-\u27bf\U0001f300-\U0001faff][\ufe0f\u200d\U0001f3fb-\U0001f3ff]{0,3}"
_DECISIVE: Final = frozenset(
    "#`~|-:*+_=•‣◦▪●○∙·–—([0123456789" + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_MARKER: Final = re.compile(
    r"(?:[-*+·–—]|(?P<number>[0-9]{1,3})[.)]|[A-Za-z]\)|\((?:[0-9]{1,3}|[ivx]{1,4}|[A-Za-z])\)|\[\^?[0-9]{1,3}\]:?)"
    r"(?=[ \t\r\n])"
)
_ITEM_BEGUN: Final = re.compile(
    r"(?:[-*+·–—]|[0-9]{1,3}[.)]?|[A-Za-z]\)?|\((?:[0-9]{0,3}|[ivx]{1,4}|[A-Za-z])\)?|\[\^?[0-9]{0,3}\]?:?)\Z"
)
_AFTER_MARKER: Final = re.compile(r"[ \t]*(?:\[[ xX]\][ \t]+)?")
# "✅ free", "3️⃣ third": a picture makes a line an item, but carries meaning and stays in it.
_PICTURE_ITEM: Final = re.compile(rf"(?:{_PICTURE}|[0-9]\ufe0f?\u20e3)(?=[ \t])")
_PICTURE_ITEM_BEGUN: Final = re.compile(rf"(?:{_PICTURE}|[0-9]\ufe0f?\u20e3?)\Z")
_HASHES: Final = re.compile(r"#{1,6}(?=[ \t\r\n])")
_RULE: Final = re.compile(r"(?:-{3,}|\*{3,}|_{3,}|={3,})[ \t\r]*(?=\n|\Z)")
_RULE_BEGUN: Final = re.compile(r"(?:-+|\*+|_+|=+)[ \t\r]*\Z")
_SEPARATOR_ROW: Final = re.compile(r":?-+:?[ \t]*\|")
_SEPARATOR_ROW_BEGUN: Final = re.compile(r":?-*:?[ \t]*\Z")
_TABLE_SEPARATOR: Final = re.compile(r"[ \t>]*\|[ \t]*:?-")
_TABLE_SEPARATOR_BEGUN: Final = re.compile(r"[ \t>]*(?:\|[ \t]*:?)?\Z")
_FENCE_CLOSE: Final = re.compile(r"[ \t>]*(?P<fence>`{3,}|~{3,})[ \t\r]*\n?\Z")
_FENCE_RUN: Final = re.compile(r"`+|~+")


def prefix_end(text: str, at: int, stop: int) -> int:
    """End of the indentation and block quote marks of the line that begins at ``at``."""
    match = _PREFIX.match(text, at, stop)
    return match.end() if match else at


def classify_line(
    text: str, at: int, stop: int, *, last: bool, number: int = ANY_NUMBER
) -> tuple[LineKind, int]:
    """Kind of the line that begins at ``at``, and where its content begins, after its marker.

    ``last``: no text follows ``stop``, so there is nothing to wait for. ``number``: if a paragraph is open,
    the number of the latest ordered item. An ordered marker must then be 1 or the next number, or a sentence
    that wraps before "50. Then" would lose its number to a list. ``ANY_NUMBER`` lifts that.
    """
    n = prefix_end(text, at, stop)
    if n == stop:
        return (LineKind.BLANK if last else LineKind.MORE), n
    first = text[n]
    if first == "\n":
        return LineKind.BLANK, n
    if first not in _DECISIVE:
        return (_picture(text, n, stop, last=last) if first >= "\u2190" else LineKind.TEXT), n
    if first == "|":
        return LineKind.ROW, n
    if first in "`~":
        return _fence(text, n, stop, last=last)
    if first == "#":
        heading = _HASHES.match(text, n, stop)
        if heading:
            return LineKind.HEADING, heading.end()
        return (
            LineKind.MORE
            if not last and stop - n <= 6 and text[n:stop] == "#" * (stop - n)
            else LineKind.TEXT
        ), n
    if first in "•‣◦▪●○∙":
        return LineKind.ITEM, n + 1
    return _item_or_rule(text, n, stop, last=last, number=number)


def _picture(text: str, n: int, stop: int, *, last: bool) -> LineKind:
    if _PICTURE_ITEM.match(text, n, stop):
        return LineKind.ITEM
    return LineKind.MORE if not last and _PICTURE_ITEM_BEGUN.match(text, n, stop) else LineKind.TEXT


def _fence(text: str, n: int, stop: int, *, last: bool) -> tuple[LineKind, int]:
    run = _FENCE_RUN.match(text, n, min(stop, n + 3))
    length = run.end() - n if run else 0
    if length == 3:
        return LineKind.FENCE, n
    return (LineKind.MORE if n + length == stop and not last else LineKind.TEXT), n


def _item_or_rule(text: str, n: int, stop: int, *, last: bool, number: int) -> tuple[LineKind, int]:
    item = _MARKER.match(text, n, stop)
    if item:
        digits = item["number"]
        if digits and number != ANY_NUMBER and int(digits) not in (1, number + 1):
            return LineKind.TEXT, n
        return LineKind.ITEM, item.end()
    if text[n].isdigit() and (keycap := _picture(text, n, stop, last=last)) is not LineKind.TEXT:
        return keycap, n
    if text[n] in "-:*_=":
        rule = _RULE.match(text, n, stop)
        if rule and (last or rule.end() < stop):
            return LineKind.RULE, n
        if _SEPARATOR_ROW.match(text, n, stop):
            return LineKind.ROW, n
        if not last and (_RULE_BEGUN.match(text, n, stop) or _SEPARATOR_ROW_BEGUN.match(text, n, stop)):
            return LineKind.MORE, n
    if not last and _ITEM_BEGUN.match(text, n, stop):
        return LineKind.MORE, n
    return LineKind.TEXT, n


def item_content(text: str, marker_end: int) -> int:
    """Where an item's text begins: after the marker, white space and a task's check box."""
    match = _AFTER_MARKER.match(text, marker_end)
    return match.end() if match else marker_end


def list_number(text: str, at: int, stop: int) -> int | None:
    """The number of the ordered list item on the line that begins at ``at``; None for another marker."""
    item = _MARKER.match(text, prefix_end(text, at, stop), stop)
    return int(item["number"]) if item and item["number"] else None


def table_separator_follows(text: str, at: int, stop: int, *, last: bool) -> bool | None:
    """Whether the line at ``at`` is the ``|---|`` under a table's header; None: not known yet."""
    if _TABLE_SEPARATOR.match(text, at, stop):
        return True
    if not last and _TABLE_SEPARATOR_BEGUN.match(text, at, stop):
        return None
    return False


def fence_mark(text: str, at: int, stop: int) -> str:
    """The run of back quotes or tildes that opens a fence at ``at``."""
    run = _FENCE_RUN.match(text, at, stop)
    return run[0] if run else ""


def closes_fence(text: str, at: int, stop: int, mark: str) -> bool:
    """Whether the line ``text[at:stop]`` closes the fence that ``mark`` opened."""
    match = _FENCE_CLOSE.match(text, at, stop)
    return match is not None and match["fence"].startswith(mark)


DEFAULT_MAX_SEGMENT_CHARS: Final = 600
_SHORTEST_BOUND: Final = 16

# Headings go unchecked, so anything too long for one is read as prose, whatever its prefix.
_LONGEST_HEADING: Final = 160

_decisive: Final = re.compile(f"[\n{re.escape(TERMINATORS)}]").search
_SPECIAL: Final = re.compile(f"[\n{re.escape(TERMINATORS + NESTING)}]")
_TERMINATORS: Final = frozenset(TERMINATORS)
_word: Final = re.compile(r"\w").search
_SOFT_STOPS: Final = "，、；：,;:·"
_BOLD_LINE: Final = re.compile(r"\s*(?:\*\*[^*\n]+\*\*|__[^_\n]+__):?[ \t\r]*")
_ROW_EDGES: Final = "|" + "".join(c for c in map(chr, range(0x3001)) if c.isspace())


# Looking up a module-level name is faster than a member of an enumeration, and these are looked up
# constantly.
_OPEN, _PROSE, _ITEM = LineKind.MORE, LineKind.TEXT, LineKind.ITEM
_ROW, _HEADING, _FENCE = LineKind.ROW, LineKind.HEADING, LineKind.FENCE

_KIND_OF: Final = {
    _OPEN: SegmentKind.BLANK,
    _PROSE: SegmentKind.SENTENCE,
    _ITEM: SegmentKind.LIST_ITEM,
    _ROW: SegmentKind.TABLE_ROW,
    _HEADING: SegmentKind.HEADING,
    _FENCE: SegmentKind.CODE,
}
#: What is read as lines of another kind are.
_READ_AS: Final = {LineKind.BLANK: _PROSE, LineKind.RULE: _HEADING}


class Segmenter:
    """Cuts one response into segments. Call ``feed`` any number of times, then ``finish`` once."""

    def __init__(self, *, max_segment_chars: int = DEFAULT_MAX_SEGMENT_CHARS) -> None:
        if max_segment_chars < _SHORTEST_BOUND:
            raise ValueError(
                f"max_segment_chars is {max_segment_chars}; it must be at least {_SHORTEST_BOUND}"
            )
        self._bound = max_segment_chars
        # Text that was fed and not yet scanned, and how much is pending in total.
        self._fed: list[str] = []
        self._take = self._fed.append
        self._length = 0
        # True: the last scan ended in an open decision, so that any next character may settle it.
        self._open = True
        # Pending text, and its first character's position in the response. A segment begins at 0.
        self._text = ""
        self._offset = 0
        self._index = 0
        self._mode = _OPEN
        self._previous: SegmentKind | None = None
        # Number of the latest ordered list item, the fence that is open, whether a block quote is.
        self._number = 0
        self._fence = ""
        self._opening = False
        self._quoted = False
        # Inside a table whose rows don't begin with a pipe.
        self._bare_table = False
        # What follows the cut that was found: the mode, and whether the next segment begins a line.
        self._next = (_OPEN, True)
        self._nesting = Nesting()
        self._begin(0, line_start=True)

    def _begin(self, at: int, *, line_start: bool) -> None:
        """Start a segment at ``at`` of the pending text."""
        self._scan = at
        self._content = at
        self._line_start = line_start
        self._nesting.begin(at)
        self._word_seen = False
        self._weak = at
        self._new_block = False
        self._header = False
        self._whole_line: SegmentKind | None = None

    @property
    def position(self) -> tuple[int, int]:
        """How many characters and segments are final."""
        return self._offset, self._index

    def feed(self, text: str) -> list[Segment]:
        """Take a piece of text; returns the segments that are now final."""
        self._take(text)
        self._length = length = self._length + len(text)
        if length <= self._bound and not self._open and not _decisive(text):
            return []
        return self._advance(last=False)

    def finish(self) -> list[Segment]:
        """The segments of the rest, once the text is complete."""
        return self._advance(last=True)

    def _advance(self, *, last: bool) -> list[Segment]:
        fed = self._fed
        text = self._text = self._text + (fed[0] if len(fed) == 1 else "".join(fed))
        fed.clear()
        self._open = False
        segments: list[Segment] = []
        start = 0
        length = len(text)
        while start < length:
            window_end = start + self._bound + 1
            full = window_end <= length
            stop = window_end if full else length
            ends = last and not full
            cut = self._cut(text, start, stop, last=ends)
            if cut < 0 or cut > start + self._bound:
                if full:
                    cut = self._cut_at_bound(text, start)
                elif ends:
                    cut = length
                else:
                    break
            segments.append(self._segment(text, start, cut))
            self._mode, line_start = self._next
            self._begin(cut, line_start=line_start)
            self._open = False
            start = cut
        if start:
            self._forget(start)
        self._length = len(self._text)
        if self._mode is _OPEN:
            self._open = True
        return segments

    def _forget(self, count: int) -> None:
        """Drop ``count`` characters that segments took from the pending text."""
        self._text = self._text[count:]
        self._offset += count
        self._scan -= count
        self._content -= count
        self._weak -= count
        self._nesting.forget(count)

    def _segment(self, text: str, start: int, cut: int) -> Segment:
        piece = text[start:cut]
        kind = SegmentKind.BLANK if piece.isspace() else self._whole_line or _KIND_OF[self._mode]
        low = max(self._content, start)
        if self._mode is _ITEM and self._line_start:
            low = item_content(text, low)
        low = min(low - start, len(piece))
        surround = _ROW_EDGES if kind is SegmentKind.TABLE_ROW else None
        rest = piece[low:].rstrip(surround)
        if kind is SegmentKind.HEADING:
            rest = rest.rstrip("#").rstrip()
            if len(rest) > _LONGEST_HEADING:
                kind = SegmentKind.SENTENCE
        high = low + len(rest)
        low = high - len(rest.lstrip(surround))
        segment = Segment(self._index, kind, piece, self._offset + start, (low, high), self._header)
        self._index += 1
        self._previous = kind
        return segment

    # ------------------------------------------------------------------------------------ where to cut

    def _cut(self, text: str, start: int, stop: int, *, last: bool) -> int:
        """End of the segment that begins at ``start``, or ``MORE``. Prepares for the next one."""
        if self._mode is _OPEN and not self._read_line(text, start, stop, last=last):
            return MORE
        if self._mode is _FENCE:
            return self._cut_fence(text, start, stop)
        if self._mode is _ROW or self._mode is _HEADING:
            return self._cut_line(text, stop, last=last)
        return self._cut_prose(text, start, stop, last=last)

    def _read_line(self, text: str, start: int, stop: int, *, last: bool) -> bool:
        """Determine the kind of the line that begins after the white space at ``start``."""
        content = skip_space(text, start, stop)
        if content == stop:
            self._open = True
            return False
        line_at = text.rfind("\n", start, content) + 1 or start
        self._new_block = line_at > start
        line, content = classify_line(text, line_at, stop, last=last)
        if line is LineKind.MORE:
            self._open = True
            return False
        # Such a table goes on to a blank line or another block, as GitHub's Markdown has it.
        self._bare_table = self._bare_table and not self._new_block and line in (LineKind.TEXT, LineKind.ROW)
        if self._bare_table:
            line = LineKind.ROW
        elif line is LineKind.ROW and text[content] != "|":
            self._bare_table = True
        self._quoted = ">" in text[line_at:content]
        self._content = self._scan = content
        self._mode = _READ_AS.get(line, line)
        if line is LineKind.ITEM:
            self._number = list_number(text, line_at, stop) or 0
        elif line is LineKind.FENCE:
            self._opening = True
        elif line is LineKind.RULE:
            self._whole_line = SegmentKind.BLANK
        self._line_start = True
        return True

    def _cut_line(self, text: str, stop: int, *, last: bool) -> int:
        """A row or heading ends with its line; a table's first row once it is known whether it is a
        header.
        """
        newline = text.find("\n", self._scan, stop)
        if newline < 0:
            self._scan = stop
            return MORE
        self._scan = newline
        if (
            self._mode is _ROW
            and self._line_start
            and (self._new_block or self._previous is not SegmentKind.TABLE_ROW)
        ):
            header = table_separator_follows(text, newline + 1, stop, last=last)
            if header is None:
                self._open = True
                return MORE
            self._header = header
        return self._next_line(newline + 1)

    def _cut_fence(self, text: str, start: int, stop: int) -> int:
        while True:
            newline = text.find("\n", self._scan, stop)
            if newline < 0:
                return MORE
            line_at, self._scan = self._scan, newline + 1
            if self._opening:
                self._opening = False
                self._fence = fence_mark(text, line_at, newline)
                # ```code``` on one line opens nothing.
                if self._fence in text[line_at + len(self._fence) : newline]:
                    return self._next_line(newline + 1)
            elif (line_at > start or self._line_start) and closes_fence(text, line_at, newline, self._fence):
                return self._next_line(newline + 1)
            if newline < start + self._bound:
                self._weak = newline + 1

    def _cut_prose(self, text: str, start: int, stop: int, *, last: bool) -> int:
        at = self._scan
        while True:
            special = _SPECIAL.search(text, at, stop)
            if special is None:
                self._scan = stop
                return MORE
            at = special.start()
            char = text[at]
            if char == "\n":
                cut = self._newline(text, start, at, stop, last=last)
            elif char in _TERMINATORS:
                cut, after = self._terminator(text, start, at, stop, last=last)
                if cut == GOES_ON:
                    at = after
                    continue
            else:
                self._nesting.mark(text, at)
                cut = GOES_ON
            if cut == GOES_ON:
                at += 1
                continue
            if cut == MORE:
                self._scan = at
                self._open = True
            return cut

    def _newline(self, text: str, start: int, at: int, stop: int, *, last: bool) -> int:
        """A line of prose ends at ``at``: soft, unless it was an item or the next line is a block."""
        if self._mode is _ITEM:
            return self._next_line(at + 1)
        if (
            self._line_start
            and at > start
            and text[at - 1] in "*_: \r"
            and _BOLD_LINE.fullmatch(text, start, at)
        ):
            if not any(c.isdigit() or c in _TERMINATORS for c in text[start:at]):
                self._whole_line = SegmentKind.HEADING
            return self._next_line(at + 1)
        line, content = classify_line(text, at + 1, stop, last=last, number=self._number)
        if line is LineKind.MORE:
            return MORE
        if line is LineKind.TEXT:
            quoted = ">" in text[at + 1 : content]
            return GOES_ON if self._quoted or not quoted else self._next_line(at + 1)
        if line is LineKind.BLANK:
            return GOES_ON if content == stop else self._next_line(content + 1)
        if line is LineKind.ROW and text[content] != "|" and self._line_start:
            above = text[self._content : at]
            if "|" in above and "\n" not in above:
                self._whole_line, self._header = SegmentKind.TABLE_ROW, True
        return self._next_line(at + 1)

    def _terminator(self, text: str, start: int, at: int, stop: int, *, last: bool) -> tuple[int, int]:
        """A cut, ``GOES_ON`` or ``MORE``, and where scanning continues."""
        after = at + 1
        if after < stop and text[at] == "." and text[after].isascii() and text[after].isalnum():
            return GOES_ON, after  # "3.50", "example.com": by far the most frequent case
        run = run_end(text, at, stop)
        if not last and text[run:stop] in ("", "\u00a0", "\u202f"):  # « a closing quote » may follow
            return MORE, at
        after = skip_citations(text, run, stop, last=last)
        if after == MORE:
            return MORE, at
        cut = GOES_ON
        if not self._nesting.holds(text, at, after) and self._has_word(text, at):
            cut = self._end_of_sentence(text, start, at, after, stop, last=last)
        if cut == GOES_ON:
            self._nesting.skip(text, at, after)
            if after < stop and text[after].isspace():
                self._weak = after
        return cut, after

    def _end_of_sentence(self, text: str, start: int, at: int, after: int, stop: int, *, last: bool) -> int:
        space = skip_space(text, after, stop)
        newline = text.find("\n", after, space)
        if newline >= 0:
            if self._mode is _ITEM:
                return GOES_ON  # the newline decides
            line, content = classify_line(text, newline + 1, stop, last=last, number=self._number)
            if line is LineKind.MORE:
                return MORE
            if line is not LineKind.TEXT:
                return GOES_ON  # as above
            if ">" in text[newline + 1 : content]:
                return self._next_line(newline + 1)
        cut = sentence_end(text, start, at, after, stop, last=last)
        if cut > 0:
            self._next = (self._mode, newline >= 0)
        return cut

    def _has_word(self, text: str, at: int) -> bool:
        if not self._word_seen:
            self._word_seen = _word(text, self._content, at) is not None
        return self._word_seen

    def _next_line(self, cut: int) -> int:
        """The segment ends with its line; the kind of the next line is open."""
        self._next = (_OPEN, True)
        return cut

    # -------------------------------------------------------------------------------- cuts at the bound

    def _cut_at_bound(self, text: str, start: int) -> int:
        """A cut within the bound if none was found, and what follows it."""
        limit = start + self._bound
        cut = self._best_cut(text, start, limit)
        line_start = text[cut - 1] == "\n"
        if self._mode is _HEADING:
            self._mode = _PROSE
        if self._opening:  # an endless info string: taken for the fence's first line
            self._opening = False
            self._fence = fence_mark(text, self._content, limit)
        self._next = (_OPEN if line_start and self._mode is not _FENCE else self._mode, line_start)
        return cut

    def _best_cut(self, text: str, start: int, limit: int) -> int:
        # Progress by a third of the bound at least keeps the work proportional to the text.
        earliest = start + self._bound // 3
        if self._weak > earliest:
            return min(skip_space(text, self._weak, limit), limit) if self._mode is not _FENCE else self._weak
        if self._mode is _FENCE or self._mode is _OPEN:
            return _between_characters(text, limit, earliest)
        space = max(text.rfind(c, earliest, limit) for c in " \n\t\u3000")
        if space >= 0:
            return space + 1
        stop = max(text.rfind(c, earliest, limit) for c in _SOFT_STOPS)
        return _between_characters(text, stop + 1 if stop >= 0 else limit, earliest)


def _between_characters(text: str, cut: int, earliest: int) -> int:
    """The last position in ``[earliest, cut]`` that splits no line break, combining sequence or joined
    emoji.
    """
    for at in range(cut, earliest, -1):
        before, behind = text[at - 1], text[at]
        if before == "\r" and behind == "\n":
            continue
        if before == "\u200d" or behind == "\u200d" or unicodedata.category(behind)[0] == "M":
            continue
        if "\U0001f3fb" <= behind <= "\U0001f3ff":  # skin tones
            continue
        return at
    return cut
