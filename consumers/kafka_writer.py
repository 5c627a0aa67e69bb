"""Writing many records at once, at least once: a producer without transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from consumers.kafka_client import translated
from consumers.kafka_producing import (
    Packer,
    Sent,
    acknowledged,
    close_producer,
    producer_options,
    submit,
    unwritten,
)
from consumers.transport import OutRecord
from guardrail.kafka_settings import KafkaSettings


class KafkaWriter:
    """An idempotent producer that acknowledges with all in-sync replicas."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._producer = AIOKafkaProducer(**producer_options(settings))
        self._packer = Packer(self._producer, settings)

    async def start(self) -> None:
        """Connect."""
        await self._producer.start()

    async def stop(self) -> None:
        """Close; safe after a failed start.

        What ``write`` has returned for is acknowledged, so only writes that failed or are still under way
        can be pending: they get a moment and are then given up.
        """
        await close_producer(self._producer)

    async def write(self, records: Sequence[OutRecord]) -> None:
        """Write ``records``, in order within a partition, and return when all are acknowledged.

        Raises TransportError; then any of them may have been written.
        """
        if not records:
            return
        sent: Sent = {}
        try:
            async with asyncio.timeout(self._settings.delivery_timeout_ms / 1000):
                await submit(self._producer, await self._packer.pack(records), sent)
                await acknowledged(sent)
        except (KafkaError, TimeoutError) as error:
            topics = ", ".join(unwritten(sent) or sorted({record.topic for record in records}))
            raise translated(
                error,
                f"writing {len(records)} records to Kafka, topic {topics}",
                "do the brokers answer, and does the topic still exist? "
                "'guardrail topics create' makes those that are missing",
            ) from error
