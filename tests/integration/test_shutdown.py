"""SIGTERM to ``guardrail run`` at bad moments: it ends in order, and the next one does the rest, once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from consumers.settings import KafkaSettings, Topics
from consumers.topics import create_topics
from guardrail.events import (
    Context,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Event,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
)
from tests.support.kafka_broker import KafkaBroker, free_ports
from tests.support.kafka_guards import KafkaSide
from tests.support.programs import running

pytestmark = pytest.mark.kafka

HEAD: dict[str, Any] = {
    "question": "What does the Pro plan cost?",
    "contexts": (
        Context(id="pricing", text="The Pro plan costs $20 per month. It can be cancelled at any time."),
    ),
}
FAITHFUL = "The Pro plan costs $20 per month."
ID = "held"
EVENTS: list[Event] = [
    ResponseStarted(response_id=ID, **HEAD),
    *(ResponseDelta(response_id=ID, seq=n, text=char) for n, char in enumerate(FAITHFUL)),
    ResponseCompleted(response_id=ID, seq=len(FAITHFUL)),
]


def configuration(bootstrap: str, **more: Any) -> dict[str, Any]:
    tag = uuid.uuid4().hex[:12]
    kafka = {
        "bootstrap_servers": bootstrap,
        "group_id": f"guards-{tag}",
        "topics": {role: f"{role}-{tag}" for role in Topics.model_fields},
        "client": {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 500},
    }
    # A claim waits for as long as this machine takes to start the guard that is to have it judged.
    policies = {"default": {"claim_timeout_ms": 300_000, "incomplete_timeout_ms": 300_000}}
    return {"kafka": kafka, "shutdown": {"budget_ms": 5_000}, "policies": policies, **more}


@asynccontextmanager
async def hanging_judge() -> AsyncIterator[tuple[dict[str, Any], asyncio.Event]]:
    """Settings of a judge that takes every question and never answers, and whether it was asked."""
    asked = asyncio.Event()
    open_ones: list[asyncio.StreamWriter] = []

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.append(writer)
        asked.set()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield {"kind": "llm", "llm": {"base_url": url, "api_key": "none"}}, asked
    finally:
        server.close()
        for writer in open_ones:
            writer.close()


@asynccontextmanager
async def chat(config: dict[str, Any]) -> AsyncIterator[KafkaSide]:
    side = KafkaSide(KafkaSettings.model_validate(config["kafka"]), partitions=2)
    await create_topics(side.settings, partitions=2, replication_factor=1)
    await side.start()
    try:
        yield side
    finally:
        await side.stop()


async def answered_once(side: KafkaSide) -> None:
    """Wait for the end of the response; all of it stands there once."""
    while True:
        events = await side.read(side.settings.topics.deliveries)
        finals = [e for e in events if isinstance(e, DeliveryCompleted | DeliveryBlocked)]
        if finals:
            break
    segments = [e for e in events if isinstance(e, DeliverySegment)]
    assert len(finals) == 1
    assert [e.seq for e in segments] == list(range(len(segments)))
    assert isinstance(finals[0], DeliveryCompleted), finals
    assert "".join(e.text for e in segments) == FAITHFUL
    assert await side.read_raw(side.settings.topics.dead_letters) == []


async def test_with_a_judge_that_hangs(kafka_bootstrap: str, tmp_path: Path) -> None:
    async with hanging_judge() as (judge, asked):
        config = configuration(kafka_bootstrap)
        async with chat(config) as side:
            with running(tmp_path, config | {"judge": judge}) as first:
                await side.send(EVENTS)
                await asked.wait()
                assert await first.ends() == 0
                assert {"guard.drain_timeout", "guard.stopped"} <= first.events()
            with running(tmp_path, config):
                await answered_once(side)


async def test_while_a_rebalance_is_under_way(kafka_bootstrap: str, tmp_path: Path) -> None:
    """The first gives its partitions back, which its judge delays, and is told to end meanwhile."""
    async with hanging_judge() as (judge, asked):
        config = configuration(kafka_bootstrap)
        async with chat(config) as side:
            with running(tmp_path, config | {"judge": judge}) as first:
                await side.send(EVENTS)
                await asked.wait()
                with running(tmp_path, config) as second:
                    group = config["kafka"]["group_id"]
                    await first.logs(f"Heartbeat failed for group {group} because it is rebalancing")
                    assert await first.ends() == 0
                    assert "guard.stopped" in first.events()
                    await answered_once(side)
                    assert await second.ends() == 0


async def test_before_kafka_can_be_reached(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    config = configuration(f"127.0.0.1:{port}")
    with running(tmp_path, config) as first:
        await first.logs("guard.kafka_awaited")
        assert await first.ends() == 0
        assert "guard.stopped" in first.events()


async def test_with_the_broker_gone(own_kafka: KafkaBroker, tmp_path: Path) -> None:
    own_kafka.start()
    async with hanging_judge() as (judge, asked):
        config = configuration(own_kafka.bootstrap_servers)
        async with chat(config) as side:
            with running(tmp_path, config | {"judge": judge}) as first:
                await side.send(EVENTS)
                await asked.wait()
                own_kafka.kill()
                assert await first.ends() == 0
                assert {"guard.drain_timeout", "guard.stopped"} <= first.events()
            own_kafka.start()
            with running(tmp_path, config):
                await answered_once(side)
