"""A transport in process: topics, partitions, groups and offsets without a broker.

The guard runs on it unchanged, so it keeps Kafka's promises where callers can see them: the partition
follows from the key by Kafka's own hash, order holds within a partition, positions start at the committed
offset, members of a group share the partitions and every change of membership revokes all of them first
(the eager protocol), and a member that lost a partition cannot commit it. With a sessions topic, steps are
exactly once: every assignment and every recovery of a partition fences its holders so far.

One event loop only; none of it is thread-safe. Nothing is durable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Final, Literal

from consumers.checks import check_commits
from consumers.memory_broker import MemoryBroker
from consumers.memory_groups import Member
from consumers.memory_log import CompactedLog, Log
from consumers.state_records import key_prefix
from consumers.transport import (
    AssignmentListener,
    Commit,
    OutRecord,
    Partition,
    Record,
    Restored,
    StateRecord,
)
from guardrail.errors import PartitionLost, StepFailed, TransportError, TransportUnavailable

__all__ = ["MemoryBroker", "MemoryTransport"]


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
        sessions_topic: str | None = None,
    ) -> None:
        """``sessions_topic`` is compacted, has as many partitions as the one input topic, and makes steps
        exactly once; without it ``transact`` and ``recover`` are refused.
        """
        if sessions_topic is not None and len(input_topics) != 1:
            raise ValueError(f"{len(input_topics)} input topics share a sessions topic; give one input topic")
        self._broker = broker
        self._group = broker.group(group_id)
        self._input_topics = tuple(input_topics)
        self._sessions_topic = sessions_topic
        self._key_prefix = key_prefix(group_id)
        self._from_earliest = auto_offset_reset == "earliest"
        self._name = f"{group_id}-{next(self._serial):06d}"
        self._member: Member | None = None
        self._listener: AssignmentListener | None = None
        self._positions: dict[Partition, int] = {}
        self._logs: dict[Partition, Log] = {}
        self._epochs: dict[Partition, int] = {}
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
        self._check_sessions_topic()
        self._listener = listener
        self._member = Member(
            self._name, tuple(partitions), self._assigned, self._revoked, self._listener_failed
        )
        self._group.join(self._member)

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        """See ``Transport.poll``. Raises what the listener raised, and TransportError when not started."""
        if self._member is None:
            raise TransportError("poll was called before start or after stop")
        # A backlog would otherwise keep every other task of the loop from running. Before fetching, not
        # after: a partition may be recovered meanwhile, and what was fetched before must not be returned.
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

    async def transact(
        self,
        partition: Partition,
        records: Sequence[OutRecord],
        state: Sequence[StateRecord],
        commit: Commit,
    ) -> None:
        """See ``Transport.transact``: nothing else runs between the first check and the last write.

        Raises StepFailed when the partition was fenced, PartitionLost, TransportUnavailable,
        TransportError; nothing was written then.
        """
        epoch = self._epochs.get(partition)
        # Other tasks run while a broker is asked, so they do here. Cancelled now, nothing is written.
        await asyncio.sleep(0)
        sessions = self._sessions_of(partition, "transact")
        if epoch != self._group.epochs[partition]:
            raise StepFailed(
                f"{partition.topic}[{partition.index}] was fenced by a later holder; nothing was written"
            )
        check_commits({partition: commit}, self._logs)
        for record in records:
            self._broker.check_writable(record.topic, record.key)
        now_ms = time.time_ns() // 1_000_000
        for topic, key, value, headers in records:
            self._broker.append(topic, key, value, headers, now_ms)
        for change in state:
            key = self._key_prefix + change.key
            self._broker.write_state(sessions.partition, key, change.value, now_ms)
        self._group.committed[partition] = commit

    async def recover(self, partition: Partition) -> Restored:
        """See ``Transport.recover``. Raises PartitionLost, TransportError."""
        self._sessions_of(partition, "recover")
        restored = await self._taken_over(partition)
        if partition in self._positions:  # else it is just being assigned or revoked
            self._positions[partition] = self._start_of(partition)
        self._wake()
        return restored

    async def stop(self, within_s: float | None = None) -> None:  # noqa: ARG002 - takes no time
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
            room = max_records - len(found)
            batch = log.read(position, room)
            self._positions[partition] = batch[-1].offset + 1 if len(batch) == room else log.end
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
        for partition in partitions:
            self._logs[partition] = self._broker.topic(partition.topic).partitions[partition.index]
        restored = {partition: await self._taken_over(partition) for partition in partitions}
        if self._listener is not None:
            await self._listener.on_assigned(restored)
        for partition in partitions:
            self._positions[partition] = self._start_of(partition)
        self._wake()

    async def _taken_over(self, partition: Partition) -> Restored:
        """Fence and restore; a first position that is not the beginning is committed, so that it stays."""
        restored = self._restore(partition)
        if restored.commit is not None or self._from_earliest:
            return restored
        first = Commit(self._logs[partition].end)
        if self._sessions_topic is None:
            self._group.committed[partition] = first
        else:
            # What is stored are sessions of records before that: they would never be finished.
            await self.transact(partition, [], [StateRecord(key, None) for key in restored.state], first)
        return Restored(first, {})

    def _restore(self, partition: Partition) -> Restored:
        """Fence every holder so far, and read what the broker has."""
        self._epochs[partition] = self._group.fence(partition)
        commit = self._group.committed.get(partition)
        if self._sessions_topic is None:
            return Restored(commit, {})
        prefix = self._key_prefix
        stored = self._sessions_of(partition, "restore").latest()
        own = {key[len(prefix) :]: value for key, value in stored.items() if key.startswith(prefix)}
        return Restored(commit, own)

    def _start_of(self, partition: Partition) -> int:
        """Where reading begins: at the committed position, else with the oldest record."""
        commit = self._group.committed.get(partition)
        return self._logs[partition].start if commit is None else commit.offset

    def _sessions_of(self, partition: Partition, purpose: str) -> CompactedLog:
        """The stored state of a partition that this member holds."""
        if self._member is None:
            raise TransportError(f"{purpose} was called before start or after stop")
        if self._sessions_topic is None:
            raise TransportError(f"{purpose} needs a sessions topic; give one to the transport")
        if partition not in self._logs:
            raise PartitionLost(
                f"{partition.topic}[{partition.index}] is not held by this member (any more); "
                "nothing was written"
            )
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
        width = len(self._broker.topic(self._input_topics[0]).partitions)
        if len(sessions.partitions) != width:
            raise TransportUnavailable(
                f"topic {sessions.name} has {len(sessions.partitions)} partitions and "
                f"{self._input_topics[0]} has {width}; create it with as many"
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
        self._wake()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _forget(self) -> None:
        self._positions.clear()
        self._logs.clear()
        self._epochs.clear()
        self._paused.clear()
