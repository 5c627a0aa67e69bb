"""Which input positions may be committed, and what to do when records are read a second time.

A position is safe once nothing before it is needed again. Without stored sessions a response in flight needs
all its events again after a restart, so the committed position is the start of the oldest response in flight.
After that position other responses have begun, and many have ended. The note committed with the position says
how far had been read, and which of the responses begun there were still in flight: only those start over. The
others had ended, or had been refused; judged a second time they might end differently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from enum import Enum, auto
from typing import Final

from consumers.transport import Commit, Partition

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


class _PartitionProgress:
    __slots__ = ("committed", "next", "open", "second")

    def __init__(self, commit: Commit | None) -> None:
        self.next = commit.offset if commit else None
        self.committed = commit
        self.second = SecondReading(commit)
        self.open: dict[str, int] = {}


class OffsetTracker:
    """Progress of the assigned partitions. Ignores partitions that are not assigned."""

    def __init__(self) -> None:
        self._partitions: dict[Partition, _PartitionProgress] = {}
        self._partition_of: dict[str, Partition] = {}

    @property
    def partitions(self) -> Collection[Partition]:
        return self._partitions.keys()

    def assign(self, committed: Mapping[Partition, Commit | None]) -> None:
        """These partitions are read from their committed positions on."""
        for partition, commit in committed.items():
            self.revoke([partition])
            self._partitions[partition] = _PartitionProgress(commit)

    def revoke(self, partitions: Collection[Partition]) -> list[str]:
        """Forget these partitions. Returns the ids of their responses in flight."""
        response_ids: list[str] = []
        for partition in partitions:
            progress = self._partitions.pop(partition, None)
            if progress is not None:
                response_ids += progress.open
        for response_id in response_ids:
            del self._partition_of[response_id]
        return response_ids

    def reading(self, partition: Partition, offset: int) -> StartStatus:
        """Whether the record at ``offset`` is read for the first time, and if not, what became of it."""
        return self._partitions[partition].second.reading(offset)

    def read(self, partition: Partition, offset: int) -> None:
        """The record at ``offset`` has been taken."""
        self._partitions[partition].next = offset + 1

    def open(self, partition: Partition, response_id: str, offset: int) -> None:
        """A response in flight began at ``offset``."""
        if response_id not in self._partition_of:
            self._partition_of[response_id] = partition
            self._partitions[partition].open[response_id] = offset

    def close(self, response_id: str) -> None:
        """A response has ended: all its outputs have been passed on for writing."""
        partition = self._partition_of.pop(response_id, None)
        if partition is not None:
            del self._partitions[partition].open[response_id]

    def commits(
        self, is_decided: Callable[[str], bool], partitions: Collection[Partition] | None = None
    ) -> dict[Partition, Commit]:
        """What may be committed once everything passed on so far is written, without unchanged positions."""
        changed: dict[Partition, Commit] = {}
        for partition in self._partitions if partitions is None else partitions:
            progress = self._partitions.get(partition)
            if progress is None or progress.next is None or progress.next < progress.second.until:
                continue  # during a second reading the first one's note knows more
            # Offsets grow, so the first that is open is the oldest.
            offset = next(iter(progress.open.values()), progress.next)
            flags = {start: is_decided(response_id) for response_id, start in progress.open.items()}
            commit = Commit(offset, write_note(offset, progress.next, flags))
            if commit != progress.committed:
                changed[partition] = commit
        return changed

    def committed(self, commits: Mapping[Partition, Commit]) -> None:
        """These have been committed."""
        for partition, commit in commits.items():
            if partition in self._partitions:
                self._partitions[partition].committed = commit


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
