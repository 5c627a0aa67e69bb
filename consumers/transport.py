"""The seam between the guard and whatever carries its records.

Two implementations, one contract suite (tests/contract/): ``consumers.memory`` in process and
``consumers.kafka.transport`` over aiokafka.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from guardrail.errors import PartitionLost, TransportError

Headers = tuple[tuple[str, bytes | None], ...]
"""Names may come more than once. A value may be null, which is not an empty one."""


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


class StateRecord(NamedTuple):
    """A change of a partition's stored state: a new value for a key, or None to delete it."""

    key: bytes
    value: bytes | None


class Restored(NamedTuple):
    """What the broker has of a partition: the committed position, and the stored state at that position.

    ``state`` holds the latest value of every key that was not deleted, in the order in which those values
    were written. It is empty where delivery is at least once.
    """

    commit: Commit | None
    state: Mapping[bytes, bytes]


class AssignmentListener(Protocol):
    """Told when partitions come and go. Both are awaited before the transport goes on with the rebalance.

    ``on_assigned`` runs before the first record of a new partition is returned by ``poll``, and after every
    earlier holder of the partition has been fenced. ``on_revoked`` must not call ``poll``; ``publish`` and
    ``transact`` still work for the revoked partitions while it runs.
    """

    async def on_assigned(self, restored: Mapping[Partition, Restored]) -> None: ...

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
        """At least once: write ``records``, in order within a key, and then commit positions.

        Returns when all are acknowledged by all in-sync replicas. When it raises, some records may have
        been written, and no position was committed unless the commit itself was in doubt: at least once.
        """
        ...

    async def transact(
        self,
        partition: Partition,
        records: Sequence[OutRecord],
        state: Sequence[StateRecord],
        commit: Commit,
    ) -> None:
        """Write ``records``, changes of the stored state and the position, all of them or none: exactly once.

        Steps of one partition come one after the other, those of several side by side. When it raises
        StepFailed nothing is known of the step, and the partition takes no other one before ``recover``;
        PartitionLost means that the partition is gone.
        """
        ...

    async def recover(self, partition: Partition) -> Restored:
        """After a failed step: fence it, and return to what the broker has.

        Waits for a broker that is away. No record read before is returned by ``poll`` once this has
        returned; the next one is that at the committed position. Raises PartitionLost when the partition has
        been given away meanwhile, TransportUnavailable when the broker stays away.
        """
        ...

    @property
    def joined(self) -> bool:
        """Is this a member of the group, with its partitions taken over, if it has any?"""
        ...

    def unread(self, partition: Partition) -> int | None:
        """Records of a partition that ``poll`` has not returned yet; None where that is not known."""
        ...

    async def stop(self, within_s: float | None = None) -> None:
        """Leave the group and close. Does not commit. What takes longer than ``within_s`` is given up."""
        ...


MAX_METADATA_BYTES: Final = 4096
"""Kafka's default ``offset.metadata.max.bytes``."""


def check_commits(commits: Mapping[Partition, Commit], held: Collection[Partition]) -> None:
    """Raise PartitionLost or TransportError for a position that could not be committed."""
    for partition, commit in commits.items():
        if partition not in held:
            raise PartitionLost(
                f"{partition.topic}[{partition.index}] is not held by this member (any more); "
                "nothing was written"
            )
        if (
            len(commit.metadata) * 4 > MAX_METADATA_BYTES
            and len(commit.metadata.encode()) > MAX_METADATA_BYTES
        ):
            raise TransportError(
                f"the metadata of {partition.topic}[{partition.index}] is over {MAX_METADATA_BYTES} bytes; "
                "nothing was written"
            )
