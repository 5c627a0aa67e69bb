"""What a reader of a topic says of what comes, and of what doesn't."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.structs import ConsumerRecord

from consumers.kafka import examiner
from consumers.kafka.examiner import Examiner
from consumers.reading import Range, TopicReader
from consumers.transport import LOG_APPEND_TIME
from guardrail.errors import TransportError
from tests.support.kafka_settings import kafka_settings

TOPIC = "t"
SETTINGS = kafka_settings(request_timeout_ms=100)


def record(partition: int, offset: int, timestamp_ms: int = 0, timestamp_type: int = 0) -> Any:
    return ConsumerRecord(TOPIC, partition, offset, timestamp_ms, timestamp_type, b"k", b"v", None, 1, 1, ())


class Consumer:
    """Gives the records of each partition one by one, and of ``ends`` no more than it has."""

    def __init__(self, ends: list[int], records: list[Any]) -> None:
        self._ends = ends
        self._records = records
        self._reached: dict[TopicPartition, int] = {}

    async def beginning_offsets(self, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, 0)

    async def end_offsets(self, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        return dict(zip(tps, self._ends, strict=True))

    def assign(self, tps: list[TopicPartition]) -> None:
        self._reached = dict.fromkeys(tps, 0)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._reached[tp] = offset

    async def position(self, tp: TopicPartition) -> int:
        return self._reached[tp]

    def last_poll_timestamp(self, tp: TopicPartition) -> None:
        """Nothing was ever answered."""

    async def getmany(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        for tp, reached in self._reached.items():
            for one in self._records:
                if (one.partition, one.offset) == (tp.partition, reached):
                    self._reached[tp] += 1
                    return {tp: [one]}
        return {}


async def reader_of(ends: list[int], records: list[Any], part: Range | None = None) -> TopicReader:
    reader = TopicReader(SETTINGS, TOPIC, cast("AIOKafkaConsumer", Consumer(ends, records)))
    await reader.begin(range(len(ends)))
    await reader.take(part or Range())
    return reader


async def test_a_standstill_is_told_with_its_partition_and_its_offset() -> None:
    reader = await reader_of([1, 3], [record(0, 0), record(1, 0), record(1, 1)])
    with pytest.raises(TransportError, match=r"reading t\[1\]: nothing came .* 0\.1 s, at offset 2 of 3; do"):
        _ = [one async for one in reader.until_end()]


async def test_the_newest_time_is_of_those_that_the_broker_stamped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic was switched to LogAppendTime; what a producer wrote before may be of any time."""
    records = [record(0, 0, 9_000_000), record(0, 1, 5_000, LOG_APPEND_TIME), record(1, 0, 8_000_000)]

    @asynccontextmanager
    async def opened(_settings: object, _topic: str, *, part: Range) -> AsyncIterator[TopicReader]:
        yield await reader_of([2, 1], records, part)

    monkeypatch.setattr(examiner, "open_topic", opened)
    asked = Examiner(SETTINGS, cast("Any", None), cast("Any", None))
    assert await asked.newest_append_s(TOPIC) == 5.0
    records[1] = record(0, 1, 5_000)
    assert await asked.newest_append_s(TOPIC) is None
