"""``guardrail replay kafka:…``: the part of a topic that was asked for, and labels from theirs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from typer.testing import CliRunner

from consumers.reading import Range, open_topic
from consumers.settings import KafkaSettings
from consumers.topics import create_topics
from guardrail.cli import app
from guardrail.errors import ConfigError
from guardrail.events import Label, SegmentKind, Verdict
from tests.support.kafka_guards import own_settings
from tests.support.records import claim, recorded

pytestmark = pytest.mark.kafka

HOUR_MS = 3_600_000
BEGIN_MS = 1_772_366_400_000  # 2026-03-01T12:00Z


def record(number: int) -> bytes:
    verdict = Verdict.UNSUPPORTED if number % 2 else Verdict.SUPPORTED
    made = recorded(f"r{number}", [claim(verdict)], [SegmentKind.SENTENCE], judged_to_end=True)
    return made.to_json()


@pytest.fixture
async def settings(kafka_bootstrap: str) -> KafkaSettings:
    """Two partitions, in each the records of six hours, one an hour, and a verdict on a claim."""
    made = own_settings(kafka_bootstrap)
    await create_topics(made, partitions=2, replication_factor=1)
    producer = AIOKafkaProducer(bootstrap_servers=kafka_bootstrap)
    await producer.start()
    try:
        for hour in range(6):
            for partition in (0, 1):
                await producer.send_and_wait(
                    made.topics.verdicts,
                    record(2 * hour + partition),
                    partition=partition,
                    timestamp_ms=BEGIN_MS + hour * HOUR_MS,
                )
        label = Label(response_id="r1", verdict=Verdict.UNSUPPORTED)
        await producer.send_and_wait(made.topics.labels, label.to_json(), key=b"r1")
    finally:
        await producer.stop()
    return made


async def read(settings: KafkaSettings, part: Range) -> list[str]:
    async with open_topic(settings, settings.topics.verdicts, part=part) as reader:
        return sorted([json.loads(record.value or b"")["response_id"] async for record in reader.until_end()])


async def test_a_part_is_named_by_times_partitions_and_offsets(settings: KafkaSettings) -> None:
    hour = [f"r{number}" for number in (4, 5)]
    third = Range(since_ms=BEGIN_MS + 2 * HOUR_MS, until_ms=BEGIN_MS + 3 * HOUR_MS)
    assert await read(settings, third) == hour
    assert await read(settings, Range(partitions={1: (None, None)})) == ["r1", "r11", "r3", "r5", "r7", "r9"]
    assert await read(settings, Range(partitions={0: (1, 3)})) == ["r2", "r4"]
    assert await read(settings, Range(third.since_ms, None, {1: (3, 4)})) == ["r7"]
    assert await read(settings, Range(since_ms=BEGIN_MS + 9 * HOUR_MS)) == []
    assert await read(settings, Range(until_ms=BEGIN_MS)) == []
    assert await read(settings, Range(partitions={0: (99, None)})) == []
    with pytest.raises(ConfigError, match="no partition 2; it has 0 to 1"):
        await read(settings, Range(partitions={2: (None, None)}))


async def test_yesterdays_traffic_is_one_command(settings: KafkaSettings, tmp_path: Path) -> None:
    config = tmp_path / "new.yaml"
    topics = settings.topics.model_dump()
    told: dict[str, Any] = {
        "kafka": {"topics": topics},
        "policies": {"default": {"rules": ["verdict UNSUPPORTED: flag"], "flag_below": 0}},
    }
    config.write_text(json.dumps(told))
    arguments = ["replay", "kafka:", "-c", str(config), "-b", settings.bootstrap_servers, "--json"]
    arguments += ["--since", "2026-03-01T12:00", "--until", "2026-03-01T15:00", "--labels", "kafka:"]
    done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["responses"] == 6
    assert {(each["from"], each["to"], each["count"]) for each in found["moves"]} == {
        ("release", "release", 3),
        ("release", "flag", 3),
    }
    assert found["misses"]["before"]["count"] == 1
    assert found["misses"]["after"]["count"] == 0
    assert settings.topics.verdicts in found["examples"][0]["place"]
