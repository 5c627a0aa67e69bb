"""What a reader of a topic says of what comes and of what doesn't, and when it is at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord

from consumers import doctor
from consumers.doctor import Examiner
from consumers.kafka.recovery import Meanwhile, until_answered
from consumers.reading import _EMPTY_ANSWERS, CompactionWatch, Range, TopicReader
from consumers.settings import KafkaSettings
from consumers.transport import LOG_APPEND_TIME, Partition
from guardrail import telemetry
from guardrail.errors import TransportError, TransportUnavailable
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

    monkeypatch.setattr(doctor, "open_topic", opened)
    asked = Examiner(SETTINGS, cast("Any", None), cast("Any", None))
    assert await asked.newest_append_s(TOPIC) == 5.0
    records[1] = record(0, 1, 5_000)
    assert await asked.newest_append_s(TOPIC) is None


# ------------------------------------------------- only where the broker keeps having nothing is the end

TP = TopicPartition(TOPIC, 0)
END = 38


class Answers:
    """A consumer's view of the broker's answers to its fetches."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.stable: int | None = None

    def come(self, stable: int = END) -> None:
        """One more answer, later than the last."""
        self.at, self.stable = (self.at or 0) + 1, stable

    def last_poll_timestamp(self, tp: TopicPartition) -> int | None:
        return self.at

    def last_stable_offset(self, tp: TopicPartition) -> int | None:
        return self.stable


def polls(reading: CompactionWatch, answers: Any, position: int = 0, count: int = 10) -> list[bool]:
    return [reading.nothing_more(answers, TP, position, END) for _ in range(count)]


def test_one_empty_answer_is_not_the_end_however_often_it_is_looked_at() -> None:
    reading, answers = CompactionWatch(0), Answers()
    assert not any(polls(reading, answers)), "no answer at all"
    answers.come()
    assert not any(polls(reading, answers, count=100))


def test_a_place_that_stays_empty_is_the_end() -> None:
    reading, answers = CompactionWatch(0), Answers()
    ended = []
    for _ in range(_EMPTY_ANSWERS):
        answers.come()
        ended += polls(reading, answers, count=1)
    assert ended == [False] * (_EMPTY_ANSWERS - 1) + [True]


def test_records_after_empty_answers_begin_the_count_anew() -> None:
    reading, answers = CompactionWatch(0), Answers()
    for _ in range(_EMPTY_ANSWERS - 1):
        answers.come()
        polls(reading, answers, count=1)
    assert polls(reading, answers, position=5, count=3) == [False] * 3


def test_answers_from_before_the_end_was_stable_do_not_count() -> None:
    reading, answers = CompactionWatch(0), Answers()
    for _ in range(3 * _EMPTY_ANSWERS):
        answers.come(stable=END - 1)
        assert polls(reading, answers, count=1) == [False]


# ------------------------------------------------------------------------------------ taking over


async def test_the_time_to_take_over_in_does_not_run_while_kafka_is_away_or_others_are_served() -> None:
    settings = kafka_settings(bootstrap_servers="127.0.0.1:1").model_copy()
    failed = telemetry.FAILED_TAKEOVERS._value.get()
    for away in (True, False):
        attempts: list[int] = []

        async def attempt(attempts: list[int] = attempts) -> str:
            attempts.append(1)
            if len(attempts) < 4:
                raise KafkaError("not yet")
            return "taken"

        meanwhile = Meanwhile(lambda away=away: not away, lambda away=away: away)  # type: ignore[misc]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(KafkaSettings, "recovery_timeout_ms", 1)
            assert await until_answered(settings, [Partition("t", 0)], attempt, meanwhile) == "taken"
            attempts.clear()
            nothing_else = Meanwhile(lambda: False, lambda: False)
            with pytest.raises(TransportUnavailable, match="gave up"):
                await until_answered(settings, [Partition("t", 0)], attempt, nothing_else)
    assert telemetry.FAILED_TAKEOVERS._value.get() == failed + 3 + 2, "not those while Kafka is away"
