"""What of a dead-letter partition was replayed: a position, and what was replayed beyond it.

A replay with filters leaves records behind, so one offset can't tell what is done. It is committed with a
note of the ranges that are done after it, which is short as long as what is left behind is not scattered.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from consumers.checks import MAX_METADATA_BYTES
from consumers.transport import Commit
from guardrail.errors import TransportError

_PLAIN: Final = "1:"
_PACKED: Final = "1z:"
_MAX_UNPACKED: Final = 4_000_000
"""More than what was packed into ``MAX_METADATA_BYTES`` can hold."""
_NOTE: Final = re.compile(r"(?:\d{1,18}\+\d{1,18}(?:,|\Z))*")

Ranges = Sequence[tuple[int, int]]
"""Offsets from (included) and to (excluded), ascending, apart from each other."""


class Progress:
    """Progress of one partition while it is read once, in order, from ``begin`` on.

    Every record read is said to be ``done`` or ``left``; offsets without a record belong to what is beside
    them. What was done beyond the place reached stays done.
    """

    def __init__(self, begin: int, done: Ranges = ()) -> None:
        """Raises ValueError for ranges that are not ascending."""
        self.begin = begin
        self._before = deque((start, end) for start, end in done if end > begin)
        if any(start >= end for start, end in done) or any(
            earlier[1] > later[0] for earlier, later in pairwise(done)
        ):
            raise ValueError(f"ranges {list(done)} are not ascending")
        self._reached = begin
        # The first range is what the position covers, and may be empty.
        self._done: list[tuple[int, int]] = [(begin, begin)]
        self._gap = False

    def was_done(self, offset: int) -> bool:
        """Was it replayed before? To be asked in ascending order, like ``done`` and ``left``."""
        while self._before and self._before[0][1] <= offset:
            self._before.popleft()
        return bool(self._before) and self._before[0][0] <= offset

    def done(self, offset: int) -> None:
        """The record at this offset is replayed, now or before."""
        if self._gap:
            self._done.append((offset, offset + 1))
            self._gap = False
        else:
            self._done[-1] = (self._done[-1][0], offset + 1)
        self._reached = offset + 1

    def left(self, offset: int) -> None:
        """The record at this offset is left for another time."""
        self._gap = True
        self._reached = offset + 1

    def commit(self) -> Commit:
        """To be committed with what was written so far. Raises TransportError when it is too scattered."""
        ahead = [(max(start, self._reached), end) for start, end in self._before if end > self._reached]
        (_, position), *ranges = _joined([*self._done, *ahead])
        note = _encode(position, ranges)
        if len(note) > MAX_METADATA_BYTES:
            raise TransportError(
                f"what was replayed lies in {len(ranges)} separate ranges after offset {position}, which is "
                "more than fits beside the position; nothing more was written. Replay the rest without a "
                "filter, or with one that leaves fewer records in between"
            )
        return Commit(position, note)


def _joined(ranges: Ranges) -> list[tuple[int, int]]:
    """The same offsets, with ranges that touch as one."""
    joined = [ranges[0]]
    for start, end in ranges[1:]:
        if start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def resume(commit: Commit | None, oldest: int, *, forget: bool = False) -> Progress:
    """Progress as committed; of a partition whose ``oldest`` record kept may be younger than that.

    With ``forget`` it begins at the oldest, as with nothing committed. Raises TransportError for a note that
    can't be read.
    """
    if commit is None or forget:
        return Progress(oldest)
    try:
        ranges = _decode(commit.offset, commit.metadata)
        return Progress(max(commit.offset, oldest), ranges)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise TransportError(
            f"the note beside position {commit.offset} can't be read ({error}); was it written by a newer "
            "version? Replay with --from-beginning to start over"
        ) from error


def rewound(commit: Commit | None, oldest: int) -> Progress:
    """As ``resume``, but to be read from the oldest record on once more: what was done stays done."""
    if commit is None or commit.offset <= oldest:
        return resume(commit, oldest)
    known = resume(commit, oldest)
    return Progress(oldest, [(oldest, known.begin), *known._before])


def _encode(position: int, ranges: Ranges) -> str:
    """Gaps and lengths, one after the other; packed where that is needed."""
    parts: list[str] = []
    last = position
    for start, end in ranges:
        parts.append(f"{start - last}+{end - start}")
        last = end
    if not parts:
        return ""
    text = ",".join(parts)
    if len(_PLAIN) + len(text) <= MAX_METADATA_BYTES:
        return _PLAIN + text
    return _PACKED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _decode(position: int, note: str) -> list[tuple[int, int]]:
    """Raises ValueError, binascii.Error, zlib.error."""
    if not note:
        return []
    if note.startswith(_PACKED):
        packed = base64.b64decode(note.removeprefix(_PACKED), validate=True)
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(packed, _MAX_UNPACKED).decode("ascii")
        if not unpacking.eof:
            raise ValueError("it is longer than any that is written here")
    elif note.startswith(_PLAIN):
        text = note.removeprefix(_PLAIN)
    else:
        raise ValueError(f"unknown form {note[:8]!r}")
    if not _NOTE.fullmatch(text):
        raise ValueError("no list of ranges")
    ranges: list[tuple[int, int]] = []
    last = position
    for part in text.split(","):
        gap, length = (int(number) for number in part.split("+"))
        ranges.append((last + gap, last + gap + length))
        last += gap + length
    return ranges
