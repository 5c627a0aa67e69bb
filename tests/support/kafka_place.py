"""Topics and a group on a real Kafka for one test of steps."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from consumers.kafka import KafkaTransport, TransactionalProducer, read_state
from consumers.settings import KafkaSettings
from consumers.transport import OutRecord, Partition
from tests.support.kafka_settings import changed
from tests.support.transports import KafkaHarness, RecordingListener, poll_while


class Place:
    """Topics and a group of one test."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.harness = KafkaHarness(bootstrap_servers)
        self.group = f"group-{uuid.uuid4().hex}"
        self.topic = self.output = self.sessions = ""
        self._closing: list[Any] = []

    async def create(self, partitions: int = 1) -> Partition:
        self.topic = await self.harness.create_topic(partitions)
        self.output = await self.harness.create_topic(partitions)
        self.sessions = await self.harness.create_topic(partitions, compacted=True)
        return Partition(self.topic, 0)

    @property
    def settings(self) -> KafkaSettings:
        topics = self.harness.settings.topics.model_copy(update={"sessions": self.sessions})
        return self.harness.settings.model_copy(update={"group_id": self.group, "topics": topics})

    async def producer(self, partition: Partition, **changes: Any) -> TransactionalProducer:
        made = TransactionalProducer(changed(self.settings, **changes), partition)
        self._closing.append(made)
        await made.start()
        return made

    async def join(self, **changes: Any) -> tuple[KafkaTransport, RecordingListener]:
        """A member, with what it is told; stopped at the end of the test."""
        listener = RecordingListener()
        made = self.harness.exact_member(self.topic, self.sessions, self.group, **changes)
        assert isinstance(made, KafkaTransport)
        self._closing.append(made)
        await made.start(listener)
        return made, listener

    async def member(self, **changes: Any) -> tuple[KafkaTransport, RecordingListener]:
        """A member that holds all partitions."""
        made, listener = await self.join(**changes)
        await poll_while(made, lambda: not listener.held)
        return made, listener

    def out(self, *values: bytes) -> list[OutRecord]:
        return [OutRecord(self.output, b"k", value) for value in values]

    async def written(self) -> list[bytes | None]:
        return [record.value for record in await self.harness.read_all(self.output)]

    async def state(self, index: int = 0) -> dict[bytes, bytes]:
        return (await read_state(self.settings, self.sessions, [index]))[index]

    async def close(self) -> None:
        await asyncio.gather(*(one.stop() for one in self._closing))
        await self.harness.close()
