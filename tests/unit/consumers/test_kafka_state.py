"""When reading stored state may end before the end offset: only where the broker keeps having nothing."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from consumers.kafka.recovery import Meanwhile, until_answered
from consumers.reading import _EMPTY_ANSWERS, CompactionWatch
from consumers.settings import KafkaSettings
from consumers.transport import Partition
from guardrail import telemetry
from guardrail.errors import TransportUnavailable
from tests.support.kafka_settings import kafka_settings

TP = TopicPartition("sessions", 0)
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
            with pytest.raises(TransportUnavailable, match="gave up"):
                await until_answered(settings, [Partition("t", 0)], attempt)
    assert telemetry.FAILED_TAKEOVERS._value.get() == failed + 3 + 2, "not those while Kafka is away"
