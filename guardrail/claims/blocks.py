"""What a line of a response is: prose, list item, table row, heading, fence, rule or blank.

A model writes Markdown, and a line's first characters tell its kind. They may not all have arrived yet, so
every question here is asked of ``text[at:stop]`` and may be answered with ``MORE``: what is there so far fits
several kinds. An answer other than ``MORE`` stays true whatever follows; that is what makes the segmenter's
output independent of how the stream was cut. All patterns are linear: no nested or overlapping repeats.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final


class Line(StrEnum):
    """Kinds of lines."""

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
# Lines that begin otherwise are prose, known at their first character.
_PICTURE: Final = r"[\u2190-\u21ff\u2600-\u27bf\U0001f300-\U0001faff][\ufe0f\u200d\U0001f3fb-\U0001f3ff]{0,3}"
_DECISIVE: Final = frozenset(
    "#`~|-:*+_=•‣◦▪●○∙·–—([0123456789" + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_ITEM: Final = re.compile(
    r"(?:[-*+·–—]|(?P<number>[0-9]{1,3})[.)]|[A-Za-z]\)|\((?:[0-9]{1,3}|[ivx]{1,4}|[A-Za-z])\)|\[\^?[0-9]{1,3}\]:?)"
    r"(?=[ \t\r\n])"
)
_ITEM_BEGUN: Final = re.compile(
    r"(?:[-*+·–—]|[0-9]{1,3}[.)]?|[A-Za-z]\)?|\((?:[0-9]{0,3}|[ivx]{1,4}|[A-Za-z])\)?|\[\^?[0-9]{0,3}\]?:?)\Z"
)
_AFTER_MARKER: Final = re.compile(r"[ \t]*(?:\[[ xX]\][ \t]+)?")
# "✅ free", "3️⃣ third": a picture makes a line an item, but says something and stays in it.
_PICTURE_ITEM: Final = re.compile(rf"(?:{_PICTURE}|[0-9]\ufe0f?\u20e3)(?=[ \t])")
_PICTURE_ITEM_BEGUN: Final = re.compile(rf"(?:{_PICTURE}|[0-9]\ufe0f?\u20e3?)\Z")
_HEADING: Final = re.compile(r"#{1,6}(?=[ \t\r\n])")
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


def classify_line(text: str, at: int, stop: int, *, last: bool, number: int = ANY_NUMBER) -> tuple[Line, int]:
    """Kind of the line that begins at ``at``, and where its content begins, behind its marker.

    ``last``: no text follows ``stop``, so that nothing is worth waiting for. ``number``: where a paragraph is
    going on, the number of the latest ordered item; an ordered marker must then be 1 or the next one, lest a
    sentence that wraps before "50. Then" loses its number to a list. ``ANY_NUMBER`` lifts that.
    """
    n = prefix_end(text, at, stop)
    if n == stop:
        return (Line.BLANK if last else Line.MORE), n
    first = text[n]
    if first == "\n":
        return Line.BLANK, n
    if first not in _DECISIVE:
        return (_picture(text, n, stop, last=last) if first >= "\u2190" else Line.TEXT), n
    if first == "|":
        return Line.ROW, n
    if first in "`~":
        return _fence(text, n, stop, last=last)
    if first == "#":
        heading = _HEADING.match(text, n, stop)
        if heading:
            return Line.HEADING, heading.end()
        return (
            Line.MORE if not last and stop - n <= 6 and text[n:stop] == "#" * (stop - n) else Line.TEXT
        ), n
    if first in "•‣◦▪●○∙":
        return Line.ITEM, n + 1
    return _item_or_rule(text, n, stop, last=last, number=number)


def _picture(text: str, n: int, stop: int, *, last: bool) -> Line:
    if _PICTURE_ITEM.match(text, n, stop):
        return Line.ITEM
    return Line.MORE if not last and _PICTURE_ITEM_BEGUN.match(text, n, stop) else Line.TEXT


def _fence(text: str, n: int, stop: int, *, last: bool) -> tuple[Line, int]:
    run = _FENCE_RUN.match(text, n, min(stop, n + 3))
    length = run.end() - n if run else 0
    if length == 3:
        return Line.FENCE, n
    return (Line.MORE if n + length == stop and not last else Line.TEXT), n


def _item_or_rule(text: str, n: int, stop: int, *, last: bool, number: int) -> tuple[Line, int]:
    item = _ITEM.match(text, n, stop)
    if item:
        digits = item["number"]
        if digits and number != ANY_NUMBER and int(digits) not in (1, number + 1):
            return Line.TEXT, n
        return Line.ITEM, item.end()
    if text[n].isdigit() and (keycap := _picture(text, n, stop, last=last)) is not Line.TEXT:
        return keycap, n
    if text[n] in "-:*_=":
        rule = _RULE.match(text, n, stop)
        if rule and (last or rule.end() < stop):
            return Line.RULE, n
        if _SEPARATOR_ROW.match(text, n, stop):
            return Line.ROW, n
        if not last and (_RULE_BEGUN.match(text, n, stop) or _SEPARATOR_ROW_BEGUN.match(text, n, stop)):
            return Line.MORE, n
    if not last and _ITEM_BEGUN.match(text, n, stop):
        return Line.MORE, n
    return Line.TEXT, n


def item_content(text: str, marker_end: int) -> int:
    """Where an item's text begins: behind the marker, white space and a task's check box."""
    match = _AFTER_MARKER.match(text, marker_end)
    return match.end() if match else marker_end


def list_number(text: str, at: int, stop: int) -> int | None:
    """The number of the ordered list item on the line that begins at ``at``; None for another marker."""
    item = _ITEM.match(text, prefix_end(text, at, stop), stop)
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
