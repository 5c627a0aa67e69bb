"""What the client tells of a Kafka that is away, and how often it asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any

import pytest

from guardrail.client.presence import ClientPresence, Pace
from guardrail.log_events import CODE
from tests.support.aiokafka_secrets import send_secrets

TOPICS = ("in", "out")


def pauses(pace: Pace, gaps: list[float]) -> list[float]:
    """The pause before each update, where they are asked for these seconds after the one before."""
    now, found = 0.0, []
    for gap in gaps:
        now += gap
        found.append(pace.pause_s(now))
        now += found[-1]
        pace.updated(now)
    return found


def test_updates_at_once_after_each_other_pause_ever_longer() -> None:
    assert pauses(Pace(), [0.001] * 9) == [0, 0, 0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_updates_far_from_each_other_never_pause() -> None:
    assert pauses(Pace(), [30.0] * 9) == [0] * 9


def test_a_quiet_time_ends_the_pauses() -> None:
    assert pauses(Pace(), [0.001] * 6 + [5.0, 0.001])[-2:] == [0, 0]


def codes(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [found for record in caplog.records if (found := getattr(record, CODE, None))]


def saw(
    presence: ClientPresence, now: float, *, answered: bool = True, missing: Collection[str] = ()
) -> None:
    presence.saw(answered=answered, topics=TOPICS, missing=missing, now=now)


def test_each_change_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    presence = ClientPresence(["a:1", "b:2"])
    for now in range(5):
        saw(presence, now, answered=False)
    for now in range(5, 10):
        saw(presence, now, missing=TOPICS)
    for now in range(10, 13):
        saw(presence, now)
    assert codes(caplog) == [
        "client.kafka_away",
        "client.kafka_back",
        "client.topics_missing",
        "client.topics_back",
    ]
    assert "servers='a:1,b:2'" in caplog.text
    assert "away_s=5" in caplog.text


def test_what_is_away_for_a_moment_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    presence = ClientPresence("a:1")
    for begin in (0.0, 10.0):
        saw(presence, begin, answered=False)
        saw(presence, begin + 0.5, answered=False)
        saw(presence, begin + 0.9, missing=TOPICS)
        saw(presence, begin + 1.2)
    assert codes(caplog) == []


async def test_neither_password_nor_record_of_the_client_is_for_debugging(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("aiokafka.conn"), "filters", [])  # a guard's drops repetitions
    caplog.set_level(logging.DEBUG)
    with ClientPresence("a:1").known():
        await send_secrets()
    assert "SECRET" not in caplog.text
    await send_secrets()
    assert caplog.text.count("SECRET") == 2  # of another client


async def log_as_aiokafka(name: str, line: str, *values: Any) -> None:
    logging.getLogger(name).error(line, *values)


async def test_lines_of_the_clients_own_tasks_are_spared_and_those_of_others_are_not(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = "aiokafka.cluster"
    monkeypatch.setattr(
        logging.getLogger(logger), "filters", []
    )  # a guard in this process has one of its own
    presence = ClientPresence("a:1")
    with presence.known():
        for topic in ("in", "in", "out"):
            await asyncio.create_task(log_as_aiokafka(logger, "Topic %s not found", topic))
    assert [record.getMessage() for record in caplog.records] == ["Topic in not found", "Topic out not found"]
    caplog.clear()
    saw(presence, 0.0, answered=False)
    saw(presence, 2.0, answered=False)
    caplog.clear()
    with presence.known():
        mine = asyncio.create_task(log_as_aiokafka(logger, "Topic %s is news", "in"))
    await mine
    assert caplog.records == []
    await asyncio.create_task(log_as_aiokafka(logger, "Topic %s is news", "in"))
    await asyncio.create_task(log_as_aiokafka(logger, "Topic %s is news", "in"))
    assert len(caplog.records) == 2
