"""Which input positions may be committed.

A position is safe once nothing before it is needed again. Without stored sessions a response in flight
needs all its events again after a restart, so the committed position is the start of the oldest response in
flight. The note beside it says how far had been read: events between the two of responses that are not
started again there belong to responses that had finished, and are skipped in silence on the second reading.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from consumers.transport import Commit, Partition


class _Progress:
    __slots__ = ("committed", "next", "open", "replay_until")

    def __init__(self, commit: Commit | None) -> None:
        self.next = commit.offset if commit else None
        self.committed = commit
        self.replay_until = max(read_position(commit), self.next or 0)
        self.open: dict[str, int] = {}


class OffsetTracker:
    """Progress of the assigned partitions. What is asked of others is answered with nothing."""

    def __init__(self) -> None:
        self._partitions: dict[Partition, _Progress] = {}
        self._partition_of: dict[str, Partition] = {}

    @property
    def partitions(self) -> Collection[Partition]:
        return self._partitions.keys()

    def assign(self, committed: Mapping[Partition, Commit | None]) -> None:
        """These partitions are read from their committed positions on."""
        for partition, commit in committed.items():
            self.revoke([partition])
            self._partitions[partition] = _Progress(commit)

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

    def read(self, partition: Partition, offset: int) -> None:
        """The record at ``offset`` has been taken."""
        self._partitions[partition].next = offset + 1

    def replayed(self, partition: Partition, offset: int) -> bool:
        """Had this record been read, and what came of it written, before the last restart?"""
        return offset < self._partitions[partition].replay_until

    def open(self, partition: Partition, response_id: str, offset: int) -> None:
        """A response in flight began at ``offset``."""
        if response_id not in self._partition_of:
            self._partition_of[response_id] = partition
            self._partitions[partition].open[response_id] = offset

    def close(self, response_id: str) -> None:
        """A response has finished: all its outputs have been handed over for writing."""
        partition = self._partition_of.pop(response_id, None)
        if partition is not None:
            del self._partitions[partition].open[response_id]

    def commits(self, partitions: Collection[Partition] | None = None) -> dict[Partition, Commit]:
        """What may be committed once everything handed over so far is written; unchanged ones left out."""
        changed: dict[Partition, Commit] = {}
        for partition in self._partitions if partitions is None else partitions:
            progress = self._partitions.get(partition)
            if progress is None or progress.next is None:
                continue
            # Offsets grow, so the first that is open is the oldest.
            offset = next(iter(progress.open.values()), progress.next)
            commit = Commit(offset, _note(max(progress.next, progress.replay_until)))
            if commit != progress.committed:
                changed[partition] = commit
        return changed

    def committed(self, commits: Mapping[Partition, Commit]) -> None:
        """These have been committed."""
        for partition, commit in commits.items():
            if partition in self._partitions:
                self._partitions[partition].committed = commit


def _note(position: int) -> str:
    return json.dumps({"v": 1, "position": position}, separators=(",", ":"))


def read_position(commit: Commit | None) -> int:
    """How far had been read when this was committed; 0 when its note is missing or not ours."""
    if commit is None or not commit.metadata:
        return 0
    try:
        note = json.loads(commit.metadata)
    except ValueError:
        return 0
    position = note.get("position") if isinstance(note, dict) and note.get("v") == 1 else None
    return position if isinstance(position, int) else 0
