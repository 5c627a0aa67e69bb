"""The in-process broker: topics by name and groups by name.

One event loop only; none of it is thread-safe. Nothing is durable.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Collection, Mapping

from consumers.memory_groups import Group
from consumers.memory_log import TopicLog
from consumers.partitioning import partition_of
from consumers.transport import Commit, Headers, Partition, Record
from guardrail.errors import TransportError, TransportUnavailable


class MemoryBroker:
    """Topics and groups of one process."""

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        compacted: Collection[str] = (),
        retention_records: int | None = None,
    ) -> None:
        """``topics`` are created, name to number of partitions; those named in ``compacted`` are so.

        ``retention_records`` bounds every partition that is created without a bound of its own: at least
        that many of its newest records are kept, at most twice as many. None keeps everything. A compacted
        topic keeps the latest value of every key, whatever the bound.
        """
        self._retention_records = retention_records
        self._topics: dict[str, TopicLog] = {}
        self._groups: dict[str, Group] = {}
        for name, partitions in (topics or {}).items():
            self.create_topic(name, partitions, compacted=name in compacted)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        compacted: bool = False,
        retention_records: int | None = None,
    ) -> None:
        """Add a topic; doing so again in the same way changes nothing."""
        if partitions < 1:
            raise ValueError(f"topic {name}: {partitions} partitions; give at least 1")
        known = self._topics.get(name)
        if known is None:
            bound = retention_records or self._retention_records
            self._topics[name] = TopicLog(name, partitions, bound, compacted=compacted)
        elif len(known.partitions) != partitions:
            raise ValueError(f"topic {name} exists with {len(known.partitions)} partitions, not {partitions}")
        elif known.compacted != compacted:
            raise ValueError(f"topic {name} exists and is {'' if known.compacted else 'not '}compacted")

    def append(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Headers = (), timestamp_ms: int = 0
    ) -> Record:
        """Write one record and wake its readers. A timestamp of 0 is replaced by now.

        Raises TransportUnavailable for an unknown topic, TransportError for a record without a key in a
        compacted one.
        """
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

    def check_writable(self, topic: str, key: bytes | None) -> None:
        """Raise TransportUnavailable or TransportError for a record that ``append`` would refuse."""
        if self.topic(topic).compacted and key is None:
            raise TransportError(f"topic {topic} is compacted: every record needs a key")

    def write_state(self, partition: Partition, key: bytes, value: bytes | None, timestamp_ms: int) -> None:
        """Write to a partition that was chosen by its number; a value of None deletes the key."""
        log = self.topic(partition.topic)
        log.partitions[partition.index].append(key, value, (), timestamp_ms)
        if log.waiting:
            log.wake()

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
