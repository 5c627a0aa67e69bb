"""The logs of the in-process broker: a topic is a list of partitions, a partition a list of records."""

from __future__ import annotations

import asyncio
from typing import Protocol

from consumers.transport import Headers, Partition, Record
from guardrail.errors import TransportError


class Log(Protocol):
    """Records of one partition, from ``start`` (oldest kept) to ``end`` (next to be written)."""

    @property
    def partition(self) -> Partition: ...

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int:
        """Offset that the next record gets."""
        ...

    def append(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> Record:
        """Write one record at the end."""
        ...

    def read(self, offset: int, max_records: int | None) -> list[Record]:
        """Records from ``offset`` (which is at least ``start``) on; fewer only when no more are there."""
        ...


class PartitionLog:
    """A log that keeps every record, or the newest ones.

    With a bound, the oldest are dropped in blocks so that appending stays constant in time: between one
    and two times ``retention_records`` are kept.
    """

    __slots__ = ("_records", "_retention_records", "partition", "start")

    def __init__(self, partition: Partition, retention_records: int | None) -> None:
        if retention_records is not None and retention_records < 1:
            raise ValueError(
                f"retention_records {retention_records}: give at least 1, or None to keep everything"
            )
        self.partition = partition
        self.start = 0
        self._records: list[Record] = []
        self._retention_records = retention_records

    @property
    def end(self) -> int:
        """Offset that the next record gets."""
        return self.start + len(self._records)

    def append(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> Record:
        """Write one record at the end."""
        records = self._records
        record = Record(self.partition, self.start + len(records), key, value, headers, timestamp_ms)
        records.append(record)
        keep = self._retention_records
        if keep is not None and len(records) >= 2 * keep:
            self.start += len(records) - keep
            del records[:-keep]
        return record

    def read(self, offset: int, max_records: int | None) -> list[Record]:
        """Records from ``offset`` (which is at least ``start``) on."""
        first = offset - self.start
        return self._records[first : None if max_records is None else first + max_records]


class CompactedLog:
    """A log that keeps the latest record of every key, in the order of writing.

    Kafka compacts now and then; here it is done at every write, and a deleted key goes at once with its
    tombstone: memory follows the number of live keys, not that of writes. Offsets have gaps, as in Kafka.
    """

    __slots__ = ("_latest", "end", "partition", "start")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.start = 0
        self.end = 0
        self._latest: dict[bytes, Record] = {}

    def append(self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int) -> Record:
        """Write one record at the end; a value of None deletes the key. No key: TransportError."""
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
        """Records kept from ``offset`` on."""
        return [record for record in self._latest.values() if record.offset >= offset][:max_records]

    def latest(self) -> dict[bytes, bytes]:
        """The value of every live key, in the order in which these values were written."""
        return {key: record.value for key, record in self._latest.items() if record.value is not None}


class TopicLog:
    """The partitions of a topic, and who waits for a record in one of them."""

    __slots__ = ("_turn", "compacted", "name", "partitions", "waiting")

    def __init__(
        self, name: str, partitions: int, retention_records: int | None, *, compacted: bool = False
    ) -> None:
        self.name = name
        self.compacted = compacted
        places = [Partition(name, index) for index in range(partitions)]
        self.partitions: list[Log] = (
            [CompactedLog(place) for place in places]
            if compacted
            else [PartitionLog(place, retention_records) for place in places]
        )
        self.waiting: set[asyncio.Future[None]] = set()
        self._turn = 0

    def next_without_key(self) -> Log:
        """Records without a key go around the partitions."""
        self._turn += 1
        return self.partitions[self._turn % len(self.partitions)]

    def wake(self) -> None:
        """Tell everyone who waits that there is a new record."""
        waiting, self.waiting = self.waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def appended(self) -> None:
        """Return at the next record written to any partition."""
        future = asyncio.get_running_loop().create_future()
        self.waiting.add(future)
        try:
            await future
        finally:
            self.waiting.discard(future)
