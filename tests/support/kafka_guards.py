"""Guards on a real Kafka, with topics of their own, fed and read by a plain client."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaProducer

from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.kafka import KafkaTransport
from consumers.settings import KafkaSettings, Topics
from consumers.topics import create_topics
from guardrail.events import AnyOutputEvent, DeliveryCompleted, Event, parse_output
from guardrail.judges import Judge
from guardrail.routing import PolicyRouter
from tests.support.guards import running
from tests.support.kafka_settings import kafka_settings
from tests.support.transports import committed


def own_settings(bootstrap_servers: str) -> KafkaSettings:
    """Topics and a group that no other test uses."""
    tag = uuid.uuid4().hex[:12]
    topics = Topics(**{field: f"{field}-{tag}" for field in Topics.model_fields})
    return kafka_settings(
        bootstrap_servers=bootstrap_servers,
        group_id=f"guards-{tag}",
        topics=topics,
        session_timeout_ms=10_000,
        heartbeat_interval_ms=500,
    )


def in_a_file(settings: KafkaSettings, **client: int) -> dict[str, Any]:
    """The section ``kafka`` of a file that says the same: of these topics and this group."""
    return {
        "bootstrap_servers": settings.bootstrap_servers,
        "group_id": settings.group_id,
        "topics": settings.topics.model_dump(),
        "client": client,
    }


class KafkaSide:
    """The chat service's side: writes responses, reads everything that comes out."""

    def __init__(self, settings: KafkaSettings, partitions: int = 4) -> None:
        self.settings = settings
        self._partitions = partitions
        self._producer = AIOKafkaProducer(
            bootstrap_servers=settings.bootstrap_servers, acks="all", enable_idempotence=True
        )

    async def start(self) -> None:
        await create_topics(self.settings, partitions=self._partitions, replication_factor=1)
        await self._producer.start()

    async def stop(self) -> None:
        await self._producer.stop()

    async def send(self, events: Iterable[Event]) -> None:
        futures = [
            await self._producer.send(
                self.settings.topics.responses,
                event.to_json(),
                key=event.response_id.encode(),  # type: ignore[attr-defined]
            )
            for event in events
        ]
        await asyncio.gather(*futures)

    async def read(self, topic: str) -> list[AnyOutputEvent]:
        """Everything that stands in a topic now."""
        return [parse_output(value) for value in await self.read_raw(topic)]

    async def completed(self) -> None:
        """Return once an answer has come out wholly."""
        while True:
            found = await self.read(self.settings.topics.deliveries)
            if any(isinstance(event, DeliveryCompleted) for event in found):
                return
            await asyncio.sleep(0.05)

    async def read_raw(self, topic: str) -> list[bytes]:
        """The values that stand in a topic now."""
        return [record.value or b"" for record in await committed(self.settings.bootstrap_servers, topic)]


@asynccontextmanager
async def kafka_side(bootstrap_servers: str, partitions: int = 4) -> AsyncIterator[KafkaSide]:
    side = KafkaSide(own_settings(bootstrap_servers), partitions)
    try:
        await side.start()
        yield side
    finally:
        await side.stop()


@asynccontextmanager
async def kafka_guard(
    settings: KafkaSettings, judge: Judge, router: PolicyRouter, *, recovery_grace_ms: int = 20_000
) -> AsyncIterator[GuardConsumer]:
    """A guard that runs while the block does, and leaves cleanly at its end."""
    guard = GuardConsumer(
        KafkaTransport(settings),
        judge,
        router,
        GuardOptions(
            topics=settings.topics,
            delivery_guarantee=settings.delivery_guarantee,
            recovery_grace_ms=recovery_grace_ms,
            poll_timeout_ms=20,
            drain_timeout_ms=5_000,
        ),
    )
    async with running(guard):
        yield guard
