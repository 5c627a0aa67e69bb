"""Which input positions may be committed, and what to do when records are read a second time.

A position is safe once nothing before it is needed again. Without stored sessions a response in flight needs
all its events again after a restart, so the committed position is the start of the oldest response in flight.
After that position other responses have begun, and many have ended. The note committed with the position says
how far had been read, and which of the responses begun there were still in flight: only those start over. The
others had ended, or had been refused; judged a second time they might end differently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final

from consumers.transport import Commit

MAX_NOTE_CHARS: Final = 4_000
"""Kafka keeps 4,096 bytes with a position. A longer list is left out: everything then begins again."""
_DECIDED: Final = "!"
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class StartStatus(Enum):
    """What a record that begins a response means at its offset."""

    FIRST = auto()
    """Not read before."""
    AGAIN = auto()
    """In flight at the restart: begin it again."""
    DECIDED = auto()
    """Its final events were out, its input had not ended: read on, say nothing."""
    OVER = auto()
    """It had ended, or had been refused."""


class SecondReading:
    """What the note of an earlier at-least-once run says about the records after a committed position."""

    __slots__ = ("_again", "_start", "until")

    def __init__(self, commit: Commit | None) -> None:
        self._start = commit.offset if commit else 0
        position, self._again = read_note(commit)
        self.until = max(position, self._start)
        """The offset from which on every reading is the first."""

    def reading(self, offset: int) -> StartStatus:
        """Whether the record at ``offset`` is read for the first time, and if not, what became of it."""
        if offset < self._start:
            # Before the committed position: the note was about another topic of that name.
            self._start = self.until = 0
        if offset >= self.until:
            return StartStatus.FIRST
        if self._again is None:
            return StartStatus.AGAIN
        decided = self._again.get(offset)
        if decided is None:
            return StartStatus.OVER
        return StartStatus.DECIDED if decided else StartStatus.AGAIN

    def note(self, offset: int) -> str:
        """The rest of the note at ``offset``, if everything before it is known by other means."""
        if offset >= self.until:
            return ""
        if self._again is None:
            return _note_text(self.until, None)
        left = {start: decided for start, decided in self._again.items() if start >= offset}
        return write_note(offset, self.until, left)


class Progress:
    """How far a partition has been read without stored sessions, and the responses in flight on it."""

    def __init__(self, commit: Commit | None) -> None:
        self._next = commit.offset if commit else None
        self._second = SecondReading(commit)
        self.committed = commit
        self.open: dict[str, int] = {}
        """The responses in flight, and where they began."""

    def reading(self, offset: int) -> StartStatus:
        """Whether the record at ``offset`` is read for the first time, and if not, what became of it."""
        return self._second.reading(offset)

    def read(self, offset: int) -> None:
        """The record at ``offset`` has been taken."""
        self._next = offset + 1

    def commit(self, is_decided: Callable[[str], bool]) -> Commit | None:
        """What may be committed once everything passed on so far is written; None if that is no news."""
        if self._next is None or self._next < self._second.until:
            return None  # during a second reading the first one's note knows more
        # Offsets grow, so the first that is open is the oldest.
        offset = next(iter(self.open.values()), self._next)
        flags = {start: is_decided(response_id) for response_id, start in self.open.items()}
        commit = Commit(offset, write_note(offset, self._next, flags))
        return None if commit == self.committed else commit


def write_note(offset: int, position: int, starts: Mapping[int, bool]) -> str:
    """The note: ``position``, and the starts in flight as distances from ``offset`` in base 36.

    A "!" marks the distance of a response that is decided and only waits for the end of its input.
    """
    marks = [_base36(start - offset) + (_DECIDED if decided else "") for start, decided in starts.items()]
    text = _note_text(position, ",".join(marks))
    return text if len(text) <= MAX_NOTE_CHARS else _note_text(position, None)


def _note_text(position: int, marks: str | None) -> str:
    note: dict[str, object] = {"v": 1, "position": position}
    if marks is not None:
        note["open"] = marks
    return json.dumps(note, separators=(",", ":"))


def read_note(commit: Commit | None) -> tuple[int, dict[int, bool] | None]:
    """How far had been read, and the starts in flight, true if decided.

    0 and None if the note is missing or not ours; None if there were too many starts to note.
    """
    if commit is None or not commit.metadata:
        return 0, None
    try:
        note = json.loads(commit.metadata)
        position, marks = note["position"], note.get("open")
        if note["v"] != 1 or not isinstance(position, int):
            return 0, None
        if marks is None:
            return position, None
        starts = {}
        for mark in marks.split(",") if marks else ():
            starts[commit.offset + int(mark.removesuffix(_DECIDED), 36)] = mark.endswith(_DECIDED)
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0, None
    return position, starts


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
