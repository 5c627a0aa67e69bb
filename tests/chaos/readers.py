"""Readers on plain aiokafka: one that is there all the time, and one that reads everything at the end."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from tests.chaos.history import Log, Logs, Read
from tests.chaos.workload import number_of

OUTPUTS: Final = ("deliveries", "verdicts", "flagged", "dead_letters")
NOTABLE_GAP_S: Final = 0.5
Isolation = Literal["read_committed", "read_uncommitted"]
_FINAL, _VERDICT, _BOTH = 1, 2, 3
_FINALS: Final = (b'"type":"delivery.completed"', b'"type":"delivery.blocked"')
_VERDICTS: Final = (b'"type":"verdict.response"',)


@asynccontextmanager
async def plain_consumer(
    bootstrap: str, isolation: Isolation, topics: Mapping[str, str], partitions: int
) -> AsyncIterator[tuple[AIOKafkaConsumer, dict[TopicPartition, tuple[str, int]]]]:
    """A consumer of all partitions of ``topics`` (name by role), from their beginnings, and their roles."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2 * 1024 * 1024,
        fetch_max_wait_ms=50,
    )
    places = {TopicPartition(name, n): (role, n) for role, name in topics.items() for n in range(partitions)}
    await consumer.start()
    try:
        consumer.assign(list(places))
        await consumer.seek_to_beginning()
        yield consumer, places
    finally:
        await consumer.stop()


class LiveReader:
    """Reads the outputs while they are written, as a chat service does: read_committed, faults and all."""

    def __init__(self, cases: int) -> None:
        self.logs: Logs = {}
        self.done = 0
        """Cases whose final delivery and verdict have been seen."""
        self.records = 0
        self.gaps: list[tuple[float, float, int]] = []
        """Begin, end (time.monotonic) and partition of each longer silence of deliveries."""
        self.last_progress = time.monotonic()
        self._state = bytearray(cases)
        self._last: dict[int, float] = {}

    async def run(self, bootstrap: str, topics: Mapping[str, str], partitions: int) -> None:
        """Read until cancelled."""
        async with plain_consumer(bootstrap, "read_committed", topics, partitions) as (consumer, places):
            while True:
                try:
                    batches = await consumer.getmany(timeout_ms=100)
                except KafkaError as error:
                    if not error.retriable:
                        raise
                    continue
                for tp, records in batches.items():
                    role, partition = places[tp]
                    log = self.logs.setdefault((role, partition), Log())
                    for record in records:
                        log.add(record.offset, record.key, record.value)
                        self._note(role, record.key, record.value or b"")
                    if role == "deliveries":
                        self._mind_the_gap(partition)
                    self.records += len(records)

    def unfinished(self, numbers: Sequence[int]) -> list[int]:
        """Those of ``numbers`` of which a final event is missing."""
        return [number for number in numbers if self._state[number] != _BOTH]

    def _note(self, role: str, key: bytes | None, value: bytes) -> None:
        kinds, mark = {"deliveries": (_FINALS, _FINAL), "verdicts": (_VERDICTS, _VERDICT)}.get(role, ((), 0))
        if not any(kind in value for kind in kinds):
            return
        number = number_of(key, None)
        if number is None or number >= len(self._state):
            return
        before = self._state[number]
        self._state[number] |= mark
        if before != _BOTH and self._state[number] == _BOTH:
            self.done += 1
            self.last_progress = time.monotonic()

    def _mind_the_gap(self, partition: int) -> None:
        now = time.monotonic()
        last = self._last.get(partition)
        if last is not None and now - last > NOTABLE_GAP_S:
            self.gaps.append((last, now, partition))
        self._last[partition] = now


async def read_all(
    bootstrap: str, isolation: Isolation, topics: Mapping[str, str], partitions: int
) -> AsyncIterator[list[Read]]:
    """Everything that stands in ``topics`` now, batch by batch, in the order of each partition's offsets."""
    async with plain_consumer(bootstrap, isolation, topics, partitions) as (consumer, places):
        ends = await consumer.end_offsets(list(places))
        left = {tp for tp in places if await consumer.position(tp) < ends[tp]}
        while left:
            for tp, records in (await consumer.getmany(timeout_ms=200)).items():
                role, partition = places[tp]
                yield [
                    Read(role, partition, r.offset, r.timestamp, r.key, r.value, tuple(r.headers))
                    for r in records
                    if r.offset < ends[tp]
                ]
            left = {tp for tp in left if await consumer.position(tp) < ends[tp]}


async def read_logs(bootstrap: str, isolation: Isolation, topics: Mapping[str, str], partitions: int) -> Logs:
    """Offsets and checksums of everything that stands in ``topics`` now."""
    logs: Logs = {(role, n): Log() for role in topics for n in range(partitions)}
    async for batch in read_all(bootstrap, isolation, topics, partitions):
        for read in batch:
            logs[read.topic, read.partition].add(read.offset, read.key, read.value)
    return logs


async def ends(
    bootstrap: str, isolation: Isolation, topics: Mapping[str, str], partitions: int
) -> dict[tuple[str, int], int]:
    """Where each partition ends: for read_committed, before the first open transaction."""
    async with plain_consumer(bootstrap, isolation, topics, partitions) as (consumer, places):
        found = await consumer.end_offsets(list(places))
        return {places[tp]: offset for tp, offset in found.items()}
