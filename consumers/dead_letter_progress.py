"""How far a replay of dead letters has come in a partition, as it is committed and found again.

Progress is a position and the ranges done beyond it. A replay with filters skips records, so one offset can't
describe the progress. The offset is committed with a note of the ranges that are done after it, in plain
text: a thousand or so fit, and a replay that would leave more is refused before it writes anything.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from consumers.transport import MAX_METADATA_BYTES, Commit
from guardrail.errors import TransportError

_FORM: Final = "1:"
_NOTE: Final = re.compile(r"1:\d{1,18}\+\d{1,18}(?:,\d{1,18}\+\d{1,18})*")

Ranges = Sequence[tuple[int, int]]
"""Offsets from (included) and to (excluded), ascending, apart from each other."""


class ReplayProgress:
    """Progress of one partition while it is read once, in order, from ``begin`` on.

    Every record read is reported as ``done`` or ``left``; offsets without a record are treated like their
    neighbours. Ranges done beyond the current position stay done.
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
        """Whether it was replayed before. Call in ascending order, like ``done`` and ``left``."""
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
        """The record at this offset is left for another replay."""
        self._gap = True
        self._reached = offset + 1

    def commit(self) -> Commit:
        """What to commit with the records written so far. Raises TransportError if it is too scattered."""
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
    """The same offsets, with adjacent ranges merged."""
    joined = [ranges[0]]
    for start, end in ranges[1:]:
        if start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def resume(commit: Commit | None, oldest: int, *, forget: bool = False) -> ReplayProgress:
    """The committed progress of a partition; its ``oldest`` remaining record may be newer than that.

    With ``forget`` it begins at the oldest record, as if nothing were committed. Raises TransportError for an
    unreadable note.
    """
    if commit is None or forget:
        return ReplayProgress(oldest)
    try:
        ranges = _decode(commit.offset, commit.metadata)
        return ReplayProgress(max(commit.offset, oldest), ranges)
    except ValueError as error:
        raise TransportError(
            f"the note beside position {commit.offset} can't be read ({error}); was it written by a newer "
            "version? Replay with --from-beginning to start over"
        ) from error


def rewound(commit: Commit | None, oldest: int) -> ReplayProgress:
    """Like ``resume``, but reads from the oldest record again; what was done stays done."""
    if commit is None or commit.offset <= oldest:
        return resume(commit, oldest)
    known = resume(commit, oldest)
    return ReplayProgress(oldest, [(oldest, known.begin), *known._before])


def _encode(position: int, ranges: Ranges) -> str:
    """Gaps and lengths, alternating."""
    parts: list[str] = []
    for start, end in ranges:
        parts.append(f"{start - position}+{end - start}")
        position = end
    return _FORM + ",".join(parts) if parts else ""


def _decode(position: int, note: str) -> Ranges:
    """Raises ValueError."""
    if not note:
        return []
    if not _NOTE.fullmatch(note):
        raise ValueError(f"{note[:8]!r}… is not a list of ranges")
    ranges: list[tuple[int, int]] = []
    for part in note.removeprefix(_FORM).split(","):
        gap, length = map(int, part.split("+"))
        ranges.append((position + gap, position + gap + length))
        position += gap + length
    return ranges
