"""Writing many records at once: one future per batch instead of one per record.

``AIOKafkaProducer.send`` costs a coroutine, a future and a partition look-up for every record. Here the
records of one call are packed into the producer's own batches, partition by partition, and the batches are
sent: same wire format, same idempotence, about a third of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerClosed

from consumers.kafka_client import client_options, translated
from consumers.partitioning import partition_of
from consumers.transport import OutRecord
from guardrail.errors import TransportError
from guardrail.kafka_settings import KafkaSettings

_STOP_S: Final = 2.0
_RECORD_OVERHEAD_BYTES: Final = 128
"""More than the framing of a record and its batch."""


class KafkaWriter:
    """An idempotent producer that acknowledges with all in-sync replicas."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._producer = AIOKafkaProducer(
            **client_options(settings),
            enable_idempotence=True,
            acks="all",
            compression_type=None if settings.compression == "none" else settings.compression,
            linger_ms=settings.linger_ms,
            max_batch_size=settings.max_batch_bytes,
            max_request_size=settings.max_request_bytes,
        )
        self._keyless_turn = 0

    async def start(self) -> None:
        """Connect."""
        await self._producer.start()

    async def stop(self) -> None:
        """Close; safe after a failed start.

        What ``write`` has returned for is acknowledged, so only writes that failed or are still under way
        can be pending: they get a moment and are then given up, which the library can't do by itself (it
        would wait for its delivery timeout, and leave its tasks behind when interrupted).
        """
        producer = self._producer
        stopping = asyncio.ensure_future(producer.stop())
        done, _ = await asyncio.wait([stopping], timeout=_STOP_S)
        if not done:
            producer._message_accumulator.fail_all(ProducerClosed())
            if producer._sender.sender_task is not None:
                producer._sender.sender_task.cancel()
        await asyncio.wait([stopping])
        if stopping.cancelled() or stopping.exception() is not None:
            # Interrupted half-way it leaves its connections open and its metadata task running.
            await producer.client.close()
        await stopping

    async def write(self, records: Sequence[OutRecord]) -> None:
        """Write ``records``, in order within a partition, and return when all are acknowledged.

        Raises TransportError; then any of them may have been written.
        """
        if not records:
            return
        sent: dict[asyncio.Future[Any], str] = {}
        try:
            async with asyncio.timeout(self._settings.delivery_timeout_ms / 1000):
                lanes = await self._pack(records)
                # First batches first: a second one of a partition waits until its first is on the way.
                for wave in zip_longest(*lanes.values()):
                    for (topic, index), batch in zip(lanes, wave, strict=True):
                        if batch is not None:
                            sent[await self._producer.send_batch(batch, topic, partition=index)] = topic
                await asyncio.wait(sent)
            for future in sent:
                future.result()
        except (KafkaError, TimeoutError) as error:
            topics = ", ".join(_unwritten(sent) or sorted({record.topic for record in records}))
            raise translated(
                error,
                f"writing {len(records)} records to Kafka, topic {topics}",
                "do the brokers answer, and does the topic still exist? "
                "'guardrail topics create' makes those that are missing",
            ) from error
        finally:
            for future in sent:
                # An exception that nobody looks at would be logged when the future goes.
                future.add_done_callback(_look_at)

    async def _pack(self, records: Sequence[OutRecord]) -> dict[tuple[str, int], list[Any]]:
        """Batches by topic and partition, in the order of ``records``."""
        producer = self._producer
        limit = self._settings.max_request_bytes - _RECORD_OVERHEAD_BYTES
        now_ms = time.time_ns() // 1_000_000
        partitions: dict[str, int] = {}
        lanes: dict[tuple[str, int], list[Any]] = {}
        for record in records:
            topic, key, value = record.topic, record.key, record.value
            count = partitions.get(topic)
            if count is None:
                count = partitions[topic] = len(await producer.partitions_for(topic))
            if (len(key) if key else 0) + (len(value) if value else 0) > limit:
                raise TransportError(
                    f"a record for {topic} has {len(key or b'') + len(value or b'')} bytes, more than "
                    f"max_request_bytes {self._settings.max_request_bytes}; raise it and the topic's "
                    "max.message.bytes"
                )
            if key is None:
                self._keyless_turn += 1
                lane_id = (topic, self._keyless_turn % count)
            else:
                lane_id = (topic, partition_of(key, count))
            lane = lanes.get(lane_id)
            if lane is None:
                lane = lanes[lane_id] = [producer.create_batch()]
            headers = list(record.headers)
            if lane[-1].append(timestamp=now_ms, key=key, value=value, headers=headers) is None:
                lane.append(producer.create_batch())
                lane[-1].append(timestamp=now_ms, key=key, value=value, headers=headers)
        return lanes


def _unwritten(sent: Mapping[asyncio.Future[Any], str]) -> list[str]:
    """The topics of what was sent and is not acknowledged."""
    return sorted(
        {
            topic
            for future, topic in sent.items()
            if not future.done() or future.cancelled() or future.exception() is not None
        }
    )


def _look_at(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
