"""An in-process transport: topics, partitions, groups and offsets without a broker.

The guard runs on it unchanged, so it keeps Kafka's promises as far as callers can see them. Kafka's own hash
maps keys to partitions, order holds within a partition, and positions start at the committed offset. Members
of a group share the partitions, every change of membership first revokes all of them (the eager protocol),
and a member that has lost a partition cannot commit it. With a sessions topic, steps are exactly once: every
assignment and every recovery of a partition fences its previous holders.

It works on one event loop only and is not thread-safe. Nothing is durable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Final, Literal

from consumers.sessions_topic import key_prefix
from consumers.transport import (
    NOT_ASSIGNED,
    AssignmentListener,
    Commit,
    Headers,
    OutRecord,
    Partition,
    Record,
    Restored,
    StateRecord,
    check_commits,
    check_held,
)
from guardrail.errors import StepFailed, TransportError, TransportUnavailable
from guardrail.partitioning import cached_partition_of


class PartitionLog:
    """The records of one partition. ``end`` is the offset that the next one gets."""

    __slots__ = ("_records", "end", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.end = 0
        self._records: list[Record] = []

    def append(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> Record:
        """Write one record at the end."""
        record = Record(self.partition, self.end, key, value, headers, timestamp_ms)
        self._records.append(record)
        self.end += 1
        return record

    def read(self, offset: int, max_records: int | None) -> list[Record]:
        """Records from ``offset`` on; fewer than asked only if there are no more."""
        return self._records[offset : None if max_records is None else offset + max_records]


class CompactedLog(PartitionLog):
    """A log that keeps the latest record of every key, in the order of writing.

    Kafka compacts from time to time; this log compacts at every write, and drops a deleted key at once with
    its tombstone, so memory follows the number of live keys rather than of writes. Offsets have gaps, as in
    Kafka.
    """

    __slots__ = ("_latest",)

    def __init__(self, partition: Partition) -> None:
        super().__init__(partition)
        self._latest: dict[bytes, Record] = {}

    def append(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> Record:
        """Write a record at the end; a value of None deletes the key. Raises TransportError without one."""
        if key is None:
            raise TransportError(f"topic {self.partition.topic} is compacted: every record needs a key")
        record = Record(self.partition, self.end, key, value, headers, timestamp_ms)
        self.end += 1
        # Taken out first: a dict would leave the new value at the old one's place in the order.
        self._latest.pop(key, None)
        if value is not None:
            self._latest[key] = record
        return record

    def read(self, offset: int, max_records: int | None) -> list[Record]:
        """Remaining records from ``offset`` on."""
        return [record for record in self._latest.values() if record.offset >= offset][:max_records]

    def latest(self) -> dict[bytes, bytes]:
        """The value of every live key, in the order in which these values were written."""
        return {key: record.value for key, record in self._latest.items() if record.value is not None}


class TopicLog:
    """The partitions of a topic, and who is waiting for a record in one of them."""

    __slots__ = ("_turn", "compacted", "name", "partitions", "waiting")

    def __init__(self, name: str, partitions: int, *, compacted: bool) -> None:
        self.name = name
        self.compacted = compacted
        kind = CompactedLog if compacted else PartitionLog
        self.partitions = [kind(Partition(name, index)) for index in range(partitions)]
        self.waiting: set[asyncio.Event] = set()
        self._turn = 0

    def next_without_key(self) -> PartitionLog:
        """Records without a key go round the partitions."""
        self._turn += 1
        return self.partitions[self._turn % len(self.partitions)]

    def wake(self) -> None:
        """Wake everyone who waits for a new record."""
        for event in self.waiting:
            event.set()

    async def appended(self, event: asyncio.Event) -> None:
        """Return at the next record written to any partition, or when ``event`` is set otherwise."""
        self.waiting.add(event)
        try:
            await event.wait()
        finally:
            self.waiting.discard(event)


Change = Callable[[Collection[Partition]], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Member:
    """One member: its subscribed partitions, its assignment, and how to notify it."""

    name: str
    subscribed: tuple[Partition, ...]
    assigned: Change
    revoked: Change
    failed: Callable[[BaseException], None]
    """Takes what ``assigned`` or ``revoked`` raised; the rebalance goes on without this member's consent."""
    held: tuple[Partition, ...] = ()
    telling: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the member is being told, so that leaving waits for its listener to come back."""


class Group:
    """Members share partitions by range: partition i of all topics goes to the same member.

    Every change of membership starts one rebalance in a background task: all members give up all their
    partitions, in parallel, and then get new ones. Changes during a rebalance lead to another one.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.committed: dict[Partition, Commit] = {}
        self.epochs: dict[Partition, int] = {}
        """Of each partition, the epoch of its latest holder: whoever holds an older one is fenced."""
        self._members: list[Member] = []
        self._changed = False
        self._task: asyncio.Task[None] | None = None

    def join(self, member: Member) -> None:
        """Add a member; the rebalance that follows assigns its partitions."""
        self._members.append(member)
        self._start_rebalance()

    async def leave(self, member: Member) -> None:
        """Remove a member without notifying it. Returns once its listener is no longer running."""
        if member in self._members:
            self._members.remove(member)
        async with member.telling:
            member.held = ()
        self._start_rebalance()
        if not self._members and self._task is not None:
            await self._task

    def fence(self, partition: Partition) -> int:
        """Raise the epoch of a partition, which fences every holder so far; returns the new epoch."""
        epoch = self.epochs[partition] = self.epochs.get(partition, 0) + 1
        return epoch

    def _start_rebalance(self) -> None:
        self._changed = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._rebalance(), name=f"rebalance {self.group_id}")

    async def _rebalance(self) -> None:
        while self._changed:
            self._changed = False
            await asyncio.gather(*(self._revoke(member) for member in tuple(self._members)))
            if not self._changed:
                shares = assign_ranges(self._members)
                await asyncio.gather(*(self._assign(member, share) for member, share in shares))

    async def _revoke(self, member: Member) -> None:
        async with member.telling:
            if member not in self._members or not member.held:
                return
            held, member.held = member.held, ()
            await _tell(member, member.revoked, held)

    async def _assign(self, member: Member, share: tuple[Partition, ...]) -> None:
        async with member.telling:
            if member not in self._members or not share:
                return
            member.held = share
            await _tell(member, member.assigned, share)


async def _tell(member: Member, change: Change, partitions: Collection[Partition]) -> None:
    try:
        await change(partitions)
    except Exception as error:  # noqa: BLE001 - the member's own code: its next poll raises it
        member.failed(error)


def assign_ranges(members: Sequence[Member]) -> list[tuple[Member, tuple[Partition, ...]]]:
    """Split each topic into contiguous ranges, one per subscribed member in order of name.

    If the number of partitions is not divisible, the first members get one more (Kafka's RangeAssignor).
    """
    shares: dict[Member, list[Partition]] = {member: [] for member in members}
    everything = sorted({partition for member in members for partition in member.subscribed})
    for _, of_topic in groupby(everything, key=lambda partition: partition.topic):
        partitions = list(of_topic)
        takers = sorted((m for m in members if partitions[0] in m.subscribed), key=lambda m: m.name)
        share, extra = divmod(len(partitions), len(takers))
        first = 0
        for position, member in enumerate(takers):
            size = share + (position < extra)
            shares[member].extend(partitions[first : first + size])
            first += size
    return [(member, tuple(share)) for member, share in shares.items()]


class MemoryBroker:
    """Topics and groups of one process."""

    def __init__(self, topics: Mapping[str, int] | None = None, *, compacted: Collection[str] = ()) -> None:
        """``topics`` maps names to numbers of partitions. Those named in ``compacted`` keep the latest value
        of every key, the others everything.
        """
        self._topics: dict[str, TopicLog] = {}
        self._groups: dict[str, Group] = {}
        for name, partitions in (topics or {}).items():
            self.create_topic(name, partitions, compacted=name in compacted)

    def create_topic(self, name: str, partitions: int = 1, *, compacted: bool = False) -> None:
        """Add a topic; repeating the same call changes nothing."""
        if partitions < 1:
            raise ValueError(f"topic {name}: {partitions} partitions; give at least 1")
        known = self._topics.get(name)
        if known is None:
            self._topics[name] = TopicLog(name, partitions, compacted=compacted)
        elif len(known.partitions) != partitions:
            raise ValueError(f"topic {name} exists with {len(known.partitions)} partitions, not {partitions}")
        elif known.compacted != compacted:
            raise ValueError(f"topic {name} exists and is {'' if known.compacted else 'not '}compacted")

    def append(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers = (), timestamp_ms: int = 0
    ) -> Record:
        """Write one record and wake its readers. A timestamp of 0 is replaced by the current time.

        Raises TransportUnavailable for an unknown topic, TransportError for a record without a key in a
        compacted topic.
        """
        log = self.topic(topic)
        partitions = log.partitions
        if len(partitions) == 1:
            partition = partitions[0]
        elif key is None:
            partition = log.next_without_key()
        else:
            partition = partitions[cached_partition_of(key, len(partitions))]
        record = partition.append(key, value, headers, timestamp_ms or time.time_ns() // 1_000_000)
        log.wake()
        return record

    def check_writable(self, topic: str, key: bytes | None) -> None:
        """Raise TransportUnavailable or TransportError for a record that ``append`` would refuse."""
        if self.topic(topic).compacted and key is None:
            raise TransportError(f"topic {topic} is compacted: every record needs a key")

    def write_state(self, partition: Partition, key: bytes, value: bytes | None, timestamp_ms: int) -> None:
        """Write to the partition with this number; a value of None deletes the key."""
        log = self.topic(partition.topic)
        log.partitions[partition.index].append(key, value, (), timestamp_ms)
        log.wake()

    def topic(self, name: str) -> TopicLog:
        """The log of a topic. Raises TransportUnavailable if there is none."""
        log = self._topics.get(name)
        if log is None:
            known = ", ".join(sorted(self._topics)) or "none"
            raise TransportUnavailable(f"topic {name} does not exist (there are: {known}); create it first")
        return log

    def read(
        self, topic: str, index: int = 0, offset: int = 0, max_records: int | None = None
    ) -> list[Record]:
        """Records of one partition from ``offset`` on."""
        return self.topic(topic).partitions[index].read(offset, max_records)

    def records(self, topic: str) -> list[Record]:
        """All remaining records, partition after partition."""
        return [record for log in self.topic(topic).partitions for record in log.read(0, None)]

    async def subscribe(self, topic: str) -> AsyncIterator[Record]:
        """Follow all partitions of a topic from their beginning on; never ends by itself.

        Order holds within a partition. The reader belongs to no group: it is for reading outputs.
        """
        log = self.topic(topic)
        positions = [0] * len(log.partitions)
        while True:
            found = False
            for index, partition in enumerate(log.partitions):
                for record in partition.read(positions[index], None):
                    positions[index] = record.offset + 1
                    found = True
                    yield record
            if not found:
                await log.appended(asyncio.Event())

    def committed(self, group_id: str, partition: Partition) -> Commit | None:
        """A group's last committed position of a partition."""
        return self.group(group_id).committed.get(partition)

    def lag(self, group_id: str, topic: str) -> int:
        """Records of a topic that a group has not committed."""
        committed = self.group(group_id).committed
        return sum(
            log.end - (commit.offset if (commit := committed.get(log.partition)) else 0)
            for log in self.topic(topic).partitions
        )

    def group(self, group_id: str) -> Group:
        """The group of that name, created when first used."""
        return self._groups.setdefault(group_id, Group(group_id))


class MemoryTransport:
    """``consumers.transport.Transport`` on a MemoryBroker."""

    _serial: Final = count(1)

    def __init__(
        self,
        broker: MemoryBroker,
        group_id: str,
        input_topic: str,
        *,
        auto_offset_reset: Literal["earliest", "latest"] = "earliest",
        sessions_topic: str | None = None,
    ) -> None:
        """``sessions_topic`` is compacted, has as many partitions as the input topic, and makes steps
        exactly once; without it ``transact`` and ``recover`` are refused.
        """
        self._broker = broker
        self._group = broker.group(group_id)
        self._input_topic = input_topic
        self._sessions_topic = sessions_topic
        self._key_prefix = key_prefix(group_id)
        self._from_earliest = auto_offset_reset == "earliest"
        self._name = f"{group_id}-{next(self._serial):06d}"
        self._member: Member | None = None
        self._listener: AssignmentListener | None = None
        self._positions: dict[Partition, int] = {}
        self._logs: dict[Partition, PartitionLog] = {}
        self._epochs: dict[Partition, int] = {}
        self._paused: set[Partition] = set()
        self._woken = asyncio.Event()
        self._failure: BaseException | None = None
        self._turn = 0

    async def start(self, listener: AssignmentListener) -> None:
        """Join the group; partitions are assigned in the background, as in Kafka."""
        if self._member is not None:
            raise TransportError("start was called twice; make a new transport to join again")
        partitions = [log.partition for log in self._broker.topic(self._input_topic).partitions]
        self._check_sessions_topic()
        self._listener = listener
        self._member = Member(
            self._name, tuple(partitions), self._assigned, self._revoked, self._listener_failed
        )
        self._group.join(self._member)

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        """See ``Transport.poll``. Raises what the listener raised, and TransportError if not started."""
        if self._member is None:
            raise TransportError("poll was called before start or after stop")
        # Otherwise a backlog would keep every other task of the loop from running. Yield before fetching, not
        # after: a partition may be recovered meanwhile, and records fetched before that must not be returned.
        await asyncio.sleep(0)
        self._raise_failure()
        records = self._fetch(max_records)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while not records and (left := deadline - loop.time()) > 0:
            await self._wait(left)
            self._raise_failure()
            records = self._fetch(max_records)
        return records

    def pause(self, partitions: Collection[Partition]) -> None:
        """See ``Transport.pause``. A pause ends with the assignment."""
        self._paused.update(partition for partition in partitions if partition in self._logs)

    def resume(self, partitions: Collection[Partition]) -> None:
        self._paused.difference_update(partitions)
        self._woken.set()

    @property
    def group(self) -> str:
        return self._group.group_id

    def waits_for(self) -> str:
        taken_over = self._member is not None and self._positions.keys() == self._logs.keys()
        return "" if taken_over else NOT_ASSIGNED

    def unread(self, partition: Partition) -> int | None:
        log, position = self._logs.get(partition), self._positions.get(partition)
        return None if log is None or position is None else max(0, log.end - position)

    async def publish(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        """See ``Transport.publish``. Raises PartitionLost, TransportUnavailable, TransportError."""
        if self._member is None:
            raise TransportError("publish was called before start or after stop")
        check_commits(commits, self._logs)
        self._write(records)
        self._group.committed.update(commits)

    async def transact(
        self, partition: Partition, records: Sequence[OutRecord], state: Sequence[StateRecord], commit: Commit
    ) -> None:
        """See ``Transport.transact``: nothing else runs between the first check and the last write.

        Raises StepFailed if the partition was fenced, PartitionLost, TransportUnavailable or TransportError;
        nothing was written then.
        """
        epoch = self._epochs.get(partition)
        # While a real broker responds other tasks run, so let them run here too. If cancelled now, nothing is
        # written.
        await asyncio.sleep(0)
        sessions = self._sessions_of(partition, "transact")
        if epoch != self._group.epochs[partition]:
            raise StepFailed(f"{partition} was fenced by a later holder; nothing was written")
        check_commits({partition: commit}, self._logs)
        for record in records:
            self._broker.check_writable(record.topic, record.key)
        now_ms = self._write(records)
        for change in state:
            key = self._key_prefix + change.key
            self._broker.write_state(sessions.partition, key, change.value, now_ms)
        self._group.committed[partition] = commit

    async def recover(self, partition: Partition) -> Restored:
        """See ``Transport.recover``. Raises PartitionLost, TransportError."""
        self._sessions_of(partition, "recover")
        restored = await self._taken_over(partition)
        if partition in self._positions:  # else it is being assigned or revoked right now
            self._positions[partition] = self._start_of(partition)
        self._woken.set()
        return restored

    async def stop(self, within_s: float | None = None) -> None:  # noqa: ARG002 - takes no time
        """Leave the group. The listener is not called; drain first. Don't call it from the listener."""
        member, self._member = self._member, None
        if member is None:
            return
        await self._group.leave(member)
        self._forget()
        self._woken.set()

    def _write(self, records: Sequence[OutRecord]) -> int:
        """Append them all, and return the time that they bear."""
        append = self._broker.append
        now_ms = time.time_ns() // 1_000_000
        for topic, key, value, headers in records:
            append(topic, key, value, headers, now_ms)
        return now_ms

    def _fetch(self, max_records: int) -> list[Record]:
        """Up to ``max_records``; the partitions take turns at being first."""
        partitions = list(self._positions)
        if not partitions:
            return []
        first = self._turn % len(partitions)
        self._turn += 1
        found: list[Record] = []
        for partition in partitions[first:] + partitions[:first]:
            if partition in self._paused:
                continue
            log = self._logs[partition]
            position = self._positions[partition]
            if position >= log.end:
                continue
            room = max_records - len(found)
            batch = log.read(position, room)
            self._positions[partition] = batch[-1].offset + 1 if len(batch) == room else log.end
            found = found + batch if found else batch
            if len(found) >= max_records:
                break
        return found

    async def _wait(self, timeout_s: float) -> None:
        """Wait until something is appended to the input topic, the assignment changes, or time is up."""
        self._woken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._broker.topic(self._input_topic).appended(self._woken)

    async def _assigned(self, partitions: Collection[Partition]) -> None:
        """Called by the group: notifies the listener, and only then lets ``poll`` see the partitions."""
        for partition in partitions:
            self._logs[partition] = self._broker.topic(partition.topic).partitions[partition.index]
        restored = {partition: await self._taken_over(partition) for partition in partitions}
        if self._listener is not None:
            await self._listener.on_assigned(restored)
        for partition in partitions:
            self._positions[partition] = self._start_of(partition)
        self._woken.set()

    async def _taken_over(self, partition: Partition) -> Restored:
        """Fence and restore; commit a first position that is not the beginning, so that it stays."""
        restored = self._restore(partition)
        if restored.commit is not None or self._from_earliest:
            return restored
        first = Commit(self._logs[partition].end)
        if self._sessions_topic is None:
            self._group.committed[partition] = first
        else:
            # The stored sessions belong to earlier records and would never finish.
            await self.transact(partition, [], [StateRecord(key, None) for key in restored.state], first)
        return Restored(first, {})

    def _restore(self, partition: Partition) -> Restored:
        """Fence every previous holder, and read the broker's state."""
        self._epochs[partition] = self._group.fence(partition)
        commit = self._group.committed.get(partition)
        if self._sessions_topic is None:
            return Restored(commit, {})
        prefix = self._key_prefix
        stored = self._sessions_of(partition, "restore").latest()
        own = {key[len(prefix) :]: value for key, value in stored.items() if key.startswith(prefix)}
        return Restored(commit, own)

    def _start_of(self, partition: Partition) -> int:
        """Where reading begins: at the committed position, else at the oldest record."""
        commit = self._group.committed.get(partition)
        return 0 if commit is None else commit.offset

    def _sessions_of(self, partition: Partition, purpose: str) -> CompactedLog:
        """The stored state of a partition that this member holds."""
        if self._member is None:
            raise TransportError(f"{purpose} was called before start or after stop")
        if self._sessions_topic is None:
            raise TransportError(f"{purpose} needs a sessions topic; give one to the transport")
        check_held(partition, self._logs)
        log = self._broker.topic(self._sessions_topic).partitions[partition.index]
        assert isinstance(log, CompactedLog)  # noqa: S101 - checked by start
        return log

    def _check_sessions_topic(self) -> None:
        """Raise TransportUnavailable unless the sessions topic is compacted and as wide as the input."""
        if self._sessions_topic is None:
            return
        sessions = self._broker.topic(self._sessions_topic)
        if not sessions.compacted:
            raise TransportUnavailable(f"topic {sessions.name} is not compacted; create it so")
        width = len(self._broker.topic(self._input_topic).partitions)
        if len(sessions.partitions) != width:
            raise TransportUnavailable(
                f"topic {sessions.name} has {len(sessions.partitions)} partitions and "
                f"{self._input_topic} has {width}; create it with as many"
            )

    async def _revoked(self, partitions: Collection[Partition]) -> None:
        """Called by the group: the listener may still publish; after it the partitions are gone."""
        self._positions.clear()
        try:
            if self._listener is not None:
                await self._listener.on_revoked(partitions)
        finally:
            self._forget()

    def _listener_failed(self, error: BaseException) -> None:
        self._failure = error
        self._woken.set()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _forget(self) -> None:
        self._positions.clear()
        self._logs.clear()
        self._epochs.clear()
        self._paused.clear()
