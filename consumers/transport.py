"""The seam between the guard and whatever carries its records.

Two implementations, one contract suite (tests/contract/): ``consumers.memory`` in process and
``consumers.kafka`` over aiokafka.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Headers = tuple[tuple[str, bytes], ...]


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody misses


class Record(NamedTuple):
    """One record as read: bytes, undecoded. A tuple, because hundreds of thousands are made a second."""

    partition: Partition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int = 0


class OutRecord(NamedTuple):
    """One record to write. The partition follows from the key."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed position: the next offset to read, and a note of at most 4096 bytes to find with it."""

    offset: int
    metadata: str = ""


class AssignmentListener(Protocol):
    """Told when partitions come and go. Both are awaited before the transport goes on with the rebalance.

    ``on_assigned`` runs before the first record of a new partition is returned by ``poll``; committed
    positions and their metadata come with it. ``on_revoked`` must not call ``poll``; ``publish`` still
    works for the revoked partitions while it runs.
    """

    async def on_assigned(self, committed: Mapping[Partition, Commit | None]) -> None: ...

    async def on_revoked(self, partitions: Collection[Partition]) -> None: ...


class Transport(Protocol):
    """Reads input partitions as a member of a group and writes records.

    Life: ``start`` once, then any number of ``poll`` (never two at a time, never cancelled: it returns by
    itself after ``timeout_ms``) with ``publish``, ``pause`` and ``resume`` beside it, then ``stop`` once,
    which is safe to call after a failed ``start`` too. Errors are TransportError; TransportUnavailable
    means that the broker, a topic or a permission is missing, and its message has the remedy.
    """

    async def start(self, listener: AssignmentListener) -> None:
        """Connect and join the group. Raises TransportUnavailable."""
        ...

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        """Records in partition order; empty when none came within ``timeout_ms``."""
        ...

    def pause(self, partitions: Collection[Partition]) -> None:
        """Return no more records of these from ``poll`` until resumed. No record is lost by it."""
        ...

    def resume(self, partitions: Collection[Partition]) -> None: ...

    async def publish(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        """Write ``records``, in order within a key, and then commit positions.

        Returns when all are acknowledged by all in-sync replicas. When it raises, some records may have
        been written, and no position was committed unless the commit itself was in doubt: at least once.
        """
        ...

    async def stop(self) -> None:
        """Leave the group and close. Does not commit."""
        ...
