"""The interface between the guard and whatever carries its records.

It has two implementations and one contract suite (tests/contract/): ``consumers.memory`` in process, and
``consumers.kafka.transport`` over aiokafka.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from guardrail.errors import PartitionLost, TransportError

NOT_ASSIGNED: Final = "partitions: the group has not assigned any yet, or is rebalancing"
"""What a transport waits for after joining."""
LOG_APPEND_TIME: Final = 1
"""Kafka's number for a time that the broker stamped on a record."""

Headers = tuple[tuple[str, bytes | None], ...]
"""Names may come more than once. A value may be null, which is not an empty one."""


class Partition(NamedTuple):
    """One partition of a topic."""

    topic: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody misses

    def __str__(self) -> str:
        """As messages name it."""
        return f"{self.topic}[{self.index}]"


class Record(NamedTuple):
    """One record as read: bytes, undecoded. A tuple, because hundreds of thousands are made per second."""

    partition: Partition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int = 0
    timestamp_type: int | None = None
    """Whose time it is: the producer's, or LOG_APPEND_TIME; None where the reader doesn't say."""


class OutRecord(NamedTuple):
    """One record to write. The key determines the partition."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed position: the next offset to read, and a note of at most 4096 bytes stored with it."""

    offset: int
    metadata: str = ""


class StateRecord(NamedTuple):
    """A change of a partition's stored state: a new value for a key, or None to delete it."""

    key: bytes
    value: bytes | None


class Restored(NamedTuple):
    """The broker's state of a partition: the committed position, and the stored state at that position.

    ``state`` contains the latest value of every key that was not deleted, in the order in which those values
    were written. It is empty if delivery is at least once.
    """

    commit: Commit | None
    state: Mapping[bytes, bytes]


class AssignmentListener(Protocol):
    """Called when partitions come and go. The transport awaits both calls before it goes on with the
    rebalance.

    ``on_assigned`` runs before ``poll`` returns the first record of a new partition, and after every earlier
    holder of the partition has been fenced; it runs again for partitions that took longer to take over.
    ``on_revoked`` must not call ``poll``; ``publish`` and ``transact`` still work for the revoked partitions
    while it runs.
    """

    async def on_assigned(self, restored: Mapping[Partition, Restored]) -> None: ...

    async def on_revoked(self, partitions: Collection[Partition]) -> None: ...


class Transport(Protocol):
    """Reads input partitions as a member of a group and writes records.

    Call ``start`` once, then ``poll`` any number of times (never two at a time, and never cancelled: it
    returns by itself after ``timeout_ms``) with ``publish``, ``pause`` and ``resume`` beside it, then
    ``stop`` once, which is safe after a failed ``start`` too. Errors are TransportError; TransportUnavailable
    means that the broker, a topic or a permission is missing, and its message has the remedy.
    """

    async def start(self, listener: AssignmentListener) -> None:
        """Connect and join the group. Raises TransportUnavailable."""

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        """Records in partition order; empty if none came within ``timeout_ms``."""

    def pause(self, partitions: Collection[Partition]) -> None:
        """Stop returning records of these from ``poll`` until resumed. No record is lost."""

    def resume(self, partitions: Collection[Partition]) -> None: ...

    async def publish(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        """At least once: write ``records``, in order within a key, and then commit positions.

        Returns when all in-sync replicas have acknowledged everything. When it raises, some records may have
        been written, and no position was committed unless the outcome of the commit itself is unknown.
        """

    async def transact(
        self, partition: Partition, records: Sequence[OutRecord], state: Sequence[StateRecord], commit: Commit
    ) -> None:
        """Exactly once: write ``records``, changes of the stored state and the position, all or none of them.

        Steps of one partition run one after the other, those of different partitions in parallel. StepFailed
        means that the outcome is unknown, and the partition takes no other step before ``recover``;
        PartitionLost means that the partition is gone.
        """

    async def recover(self, partition: Partition) -> Restored:
        """After a failed step: fence it, and return the broker's state.

        Waits for a broker that is down. Once this has returned, ``poll`` returns no record read before; the
        next one is that at the committed position. Raises PartitionLost if the partition has been given away
        in the meantime, TransportUnavailable if the broker stays down.
        """

    @property
    def group(self) -> str:
        """The group that this is a member of, or asks to be."""

    def waits_for(self) -> str:
        """What keeps it from reading all its partitions, in words; empty for a member of the group that has
        taken over its partitions, if it has any, and reaches the broker.
        """

    def unread(self, partition: Partition) -> int | None:
        """Records of a partition that ``poll`` has not returned yet; None if unknown."""

    async def stop(self, within_s: float | None = None) -> None:
        """Leave the group and close. Does not commit. Gives up on whatever takes longer than ``within_s``."""


MAX_METADATA_BYTES: Final = 4096
"""Kafka's default ``offset.metadata.max.bytes``."""


def check_commits(commits: Mapping[Partition, Commit], held: Collection[Partition]) -> None:
    """Raise PartitionLost or TransportError for a position that could not be committed."""
    for partition, commit in commits.items():
        check_held(partition, held)
        size = len(commit.metadata)  # in characters, of at most 4 bytes
        if size * 4 > MAX_METADATA_BYTES and len(commit.metadata.encode()) > MAX_METADATA_BYTES:
            raise TransportError(
                f"the metadata of {partition} is over {MAX_METADATA_BYTES} bytes; nothing was written"
            )


def check_held(partition: Partition, held: Collection[Partition]) -> None:
    """Raise PartitionLost for one that is not held."""
    if partition not in held:
        raise PartitionLost(f"{partition} is not held by this member (any more); nothing was written")
