"""A transport in process: topics, partitions, groups and offsets without a broker.

The guard runs on it unchanged, so it keeps Kafka's promises where callers can see them: the partition
follows from the key by Kafka's own hash, order holds within a partition, positions start at the committed
offset, members of a group share the partitions and every change of membership revokes all of them first
(the eager protocol), and a member that lost a partition cannot commit it. Nothing is durable.

One event loop only; none of it is thread-safe.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from itertools import count
from typing import Final, Literal

from consumers.checks import check_commits
from consumers.memory_groups import Group, Member
from consumers.memory_log import PartitionLog, TopicLog
from consumers.partitioning import partition_of
from consumers.transport import AssignmentListener, Commit, Headers, OutRecord, Partition, Record
from guardrail.errors import TransportError, TransportUnavailable


class MemoryBroker:
    """Topics and groups of one process."""

    def __init__(
        self, topics: Mapping[str, int] | None = None, *, retention_records: int | None = None
    ) -> None:
        """``topics`` are created, name to number of partitions.

        ``retention_records`` bounds every partition that is created without a bound of its own: at least
        that many of its newest records are kept, at most twice as many. None keeps everything.
        """
        self._retention_records = retention_records
        self._topics: dict[str, TopicLog] = {}
        self._groups: dict[str, Group] = {}
        for name, partitions in (topics or {}).items():
            self.create_topic(name, partitions)

    def create_topic(self, name: str, partitions: int = 1, *, retention_records: int | None = None) -> None:
        """Add a topic; doing so again with the same number of partitions changes nothing."""
        if partitions < 1:
            raise ValueError(f"topic {name}: {partitions} partitions; give at least 1")
        known = self._topics.get(name)
        if known is None:
            self._topics[name] = TopicLog(name, partitions, retention_records or self._retention_records)
        elif len(known.partitions) != partitions:
            raise ValueError(f"topic {name} exists with {len(known.partitions)} partitions, not {partitions}")

    def append(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers = (), timestamp_ms: int = 0
    ) -> Record:
        """Write one record and wake its readers. A timestamp of 0 is replaced by now."""
        log = self.topic(topic)
        partitions = log.partitions
        if len(partitions) == 1:
            partition = partitions[0]
        elif key is None:
            partition = log.next_without_key()
        else:
            partition = partitions[partition_of(key, len(partitions))]
        record = partition.append(key, value, headers, timestamp_ms or time.time_ns() // 1_000_000)
        if log.waiting:
            log.wake()
        return record

    def topic(self, name: str) -> TopicLog:
        """The log of a topic. Raises TransportUnavailable when there is none."""
        log = self._topics.get(name)
        if log is None:
            known = ", ".join(sorted(self._topics)) or "none"
            raise TransportUnavailable(f"topic {name} does not exist (there are: {known}); create it first")
        return log

    def read(
        self, topic: str, index: int = 0, offset: int = 0, max_records: int | None = None
    ) -> list[Record]:
        """Records of one partition from ``offset`` on, or from the oldest one kept if that is later."""
        log = self.topic(topic).partitions[index]
        return log.read(max(offset, log.start), max_records)

    def records(self, topic: str) -> list[Record]:
        """All records kept, partition after partition."""
        return [record for log in self.topic(topic).partitions for record in log.read(log.start, None)]

    async def subscribe(self, topic: str, from_offset: int = 0) -> AsyncIterator[Record]:
        """Follow all partitions of a topic from ``from_offset`` on; never ends by itself.

        Order holds within a partition. Outside every group: a reader of the outputs, not a member.
        """
        log = self.topic(topic)
        positions = [from_offset] * len(log.partitions)
        while True:
            found = False
            for index, partition in enumerate(log.partitions):
                batch = partition.read(max(positions[index], partition.start), None)
                for record in batch:
                    positions[index] = record.offset + 1
                    found = True
                    yield record
            if not found:
                await log.appended()

    def committed(self, group_id: str, partition: Partition) -> Commit | None:
        """What a group committed last for a partition."""
        return self.group(group_id).committed.get(partition)

    def lag(self, group_id: str, topic: str) -> int:
        """Records of a topic that a group has not committed."""
        committed = self.group(group_id).committed
        lag = 0
        for log in self.topic(topic).partitions:
            commit = committed.get(log.partition)
            lag += log.end - max(commit.offset if commit else 0, log.start)
        return lag

    def group(self, group_id: str) -> Group:
        """The group of that name, made at its first mention."""
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id)
        return group


class MemoryTransport:
    """``consumers.transport.Transport`` on a MemoryBroker."""

    _serial: Final = count(1)

    def __init__(
        self,
        broker: MemoryBroker,
        group_id: str,
        input_topics: Collection[str],
        *,
        auto_offset_reset: Literal["earliest", "latest"] = "earliest",
    ) -> None:
        self._broker = broker
        self._group = broker.group(group_id)
        self._input_topics = tuple(input_topics)
        self._from_earliest = auto_offset_reset == "earliest"
        self._name = f"{group_id}-{next(self._serial):06d}"
        self._member: Member | None = None
        self._listener: AssignmentListener | None = None
        self._positions: dict[Partition, int] = {}
        self._logs: dict[Partition, PartitionLog] = {}
        self._paused: set[Partition] = set()
        self._waiting: asyncio.Future[None] | None = None
        self._failure: BaseException | None = None
        self._turn = 0

    async def start(self, listener: AssignmentListener) -> None:
        """Join the group; partitions are assigned in the background, as Kafka does."""
        if self._member is not None:
            raise TransportError("start was called twice; make a new transport to join again")
        partitions = [
            log.partition for name in self._input_topics for log in self._broker.topic(name).partitions
        ]
        self._listener = listener
        self._member = Member(
            self._name, tuple(partitions), self._assigned, self._revoked, self._listener_failed
        )
        self._group.join(self._member)

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        """See ``Transport.poll``. Raises what the listener raised, and TransportError when not started."""
        if self._member is None:
            raise TransportError("poll was called before start or after stop")
        self._raise_failure()
        records = self._fetch(max_records)
        if records:
            # A backlog would otherwise keep every other task of the loop from running.
            await asyncio.sleep(0)
            return records
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
        """See ``Transport.resume``."""
        self._paused.difference_update(partitions)
        self._wake()

    async def publish(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        """See ``Transport.publish``. Raises PartitionLost, TransportUnavailable, TransportError."""
        if self._member is None:
            raise TransportError("publish was called before start or after stop")
        check_commits(commits, self._logs)
        append = self._broker.append
        now_ms = time.time_ns() // 1_000_000
        for topic, key, value, headers in records:
            append(topic, key, value, headers, now_ms)
        self._group.committed.update(commits)

    async def stop(self) -> None:
        """Leave the group. The listener hears nothing; drain before. Not to be called from the listener."""
        member, self._member = self._member, None
        if member is None:
            return
        await self._group.leave(member)
        self._forget()
        self._wake()

    def _fetch(self, max_records: int) -> list[Record]:
        """Up to ``max_records``, every partition getting its turn to be first."""
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
            if position < log.start:
                position = self._positions[partition] = log.start if self._from_earliest else log.end
            if position >= log.end:
                continue
            batch = log.read(position, max_records - len(found))
            self._positions[partition] = position + len(batch)
            found = found + batch if found else batch
            if len(found) >= max_records:
                break
        return found

    async def _wait(self, timeout_s: float) -> None:
        """Until something was appended to an input topic, the assignment changed, or time is up."""
        loop = asyncio.get_running_loop()
        waiting = loop.create_future()
        self._waiting = waiting
        logs = [self._broker.topic(name) for name in self._input_topics]
        for log in logs:
            log.waiting.add(waiting)
        timer = loop.call_later(timeout_s, self._wake)
        try:
            await waiting
        finally:
            timer.cancel()
            self._waiting = None
            for log in logs:
                log.waiting.discard(waiting)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def _assigned(self, partitions: Collection[Partition]) -> None:
        """Called by the group: tell the listener, and only then let ``poll`` see the partitions."""
        committed = {partition: self._group.committed.get(partition) for partition in partitions}
        for partition in partitions:
            self._logs[partition] = self._broker.topic(partition.topic).partitions[partition.index]
        if self._listener is not None:
            await self._listener.on_assigned(committed)
        for partition, commit in committed.items():
            log = self._logs[partition]
            start = log.start if self._from_earliest else log.end
            self._positions[partition] = commit.offset if commit else start
        self._wake()

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
        self._wake()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _forget(self) -> None:
        self._positions.clear()
        self._logs.clear()
        self._paused.clear()
