"""What both producers share: their options, packing records into batches, sending them, and closing.

``AIOKafkaProducer.send`` costs a coroutine, a future and a partition look-up for every record. Here the
records of one call are packed into the producer's own batches, partition by partition, and the batches are
sent, one future each: same wire format, same idempotence, about a third of the time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerClosed

from consumers.kafka_client import client_options
from consumers.partitioning import partition_of
from consumers.transport import OutRecord, StateRecord
from guardrail.errors import TransportError
from guardrail.kafka_settings import KafkaSettings

_STOP_S: Final = 2.0
_RECORD_OVERHEAD_BYTES: Final = 128
"""More than the framing of a record and its batch."""

Sent = dict["asyncio.Future[Any]", str]
"""A future for every batch sent, with the topic it went to."""


def producer_options(settings: KafkaSettings) -> dict[str, Any]:
    """Arguments of an idempotent producer that asks for all in-sync replicas. Raises ConfigError."""
    return {
        **client_options(settings),
        "enable_idempotence": True,
        "acks": "all",
        "compression_type": None if settings.compression == "none" else settings.compression,
        "linger_ms": settings.linger_ms,
        "max_batch_size": settings.max_batch_bytes,
        "max_request_size": settings.max_request_bytes,
    }


class Packer:
    """Packs records into batches of one producer, by topic and partition."""

    def __init__(self, producer: AIOKafkaProducer, settings: KafkaSettings) -> None:
        self._producer = producer
        self._max_request_bytes = settings.max_request_bytes
        self._keyless_turn = 0

    async def pack(
        self, records: Sequence[OutRecord], state: Iterable[StateRecord] = (), at: tuple[str, int] = ("", 0)
    ) -> dict[tuple[str, int], list[Any]]:
        """Batches by topic and partition, in the order of ``records``; those of ``state`` all go to ``at``.

        Raises TransportError for a record that is too large, KafkaError for a topic that is not there.
        """
        producer = self._producer
        now_ms = time.time_ns() // 1_000_000
        partitions: dict[str, int] = {}
        lanes: dict[tuple[str, int], list[Any]] = {}
        for topic, key, value, headers in records:
            count = partitions.get(topic)
            if count is None:
                count = partitions[topic] = len(await producer.partitions_for(topic))
            if key is None:
                self._keyless_turn += 1
                lane_id = (topic, self._keyless_turn % count)
            else:
                lane_id = (topic, partition_of(key, count))
            self._put(lanes, lane_id, now_ms, key, value, list(headers))
        for changed in state:
            self._put(lanes, at, now_ms, changed.key, changed.value, [])
        return lanes

    def _put(
        self,
        lanes: dict[tuple[str, int], list[Any]],
        lane_id: tuple[str, int],
        now_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
    ) -> None:
        size = (len(key) if key else 0) + (len(value) if value else 0)
        if size > self._max_request_bytes - _RECORD_OVERHEAD_BYTES:
            raise TransportError(
                f"a record for {lane_id[0]} has {size} bytes, more than max_request_bytes "
                f"{self._max_request_bytes}; raise it and the topic's max.message.bytes"
            )
        lane = lanes.get(lane_id)
        if lane is None:
            lane = lanes[lane_id] = [self._producer.create_batch()]
        if lane[-1].append(timestamp=now_ms, key=key, value=value, headers=headers) is None:
            lane.append(self._producer.create_batch())
            lane[-1].append(timestamp=now_ms, key=key, value=value, headers=headers)


async def submit(
    producer: AIOKafkaProducer, lanes: Mapping[tuple[str, int], Sequence[Any]], sent: Sent
) -> None:
    """Hand all batches to the producer and note the future of each in ``sent``, also when it fails half-way.

    First batches first: a second one of a partition waits until its first is on the way.
    """
    for wave in zip_longest(*lanes.values()):
        for (topic, index), batch in zip(lanes, wave, strict=True):
            if batch is not None:
                future = await producer.send_batch(batch, topic, partition=index)
                # An exception that nobody looks at would be logged when the future goes.
                future.add_done_callback(look_at)
                sent[future] = topic


async def acknowledged(sent: Sent) -> None:
    """Wait for every batch, and raise what the first failed one met."""
    if sent:
        await asyncio.wait(sent)
    for future in sent:
        future.result()


def unwritten(sent: Sent) -> list[str]:
    """The topics of what was sent and is not acknowledged."""
    return sorted(
        {
            topic
            for future, topic in sent.items()
            if not future.done() or future.cancelled() or future.exception() is not None
        }
    )


async def close_producer(producer: AIOKafkaProducer) -> None:
    """Close, leaving no task and no socket; safe after a failed start. Raises only what is no KafkaError.

    What is still pending has failed or is given up: it gets a moment, and then its end, which the library
    can't do by itself (it would wait for its delivery timeout, and leave its tasks behind when interrupted).
    """
    stopping = asyncio.ensure_future(producer.stop())
    try:
        await asyncio.wait([stopping], timeout=_STOP_S)
    finally:
        if not stopping.done():
            producer._message_accumulator.fail_all(ProducerClosed())
            if producer._sender.sender_task is not None:
                producer._sender.sender_task.cancel()
        await asyncio.wait([stopping])
        if stopping.cancelled() or stopping.exception() is not None:
            # Interrupted half-way it leaves its connections open and its tasks running.
            await producer.client.close()
            await _end_requests(producer)
        _look_at_pending(producer)
    if not stopping.cancelled():
        error = stopping.exception()
        if error is not None and not isinstance(error, (KafkaError, OSError)):
            raise error


async def _end_requests(producer: AIOKafkaProducer) -> None:
    """End the tasks of a sender that was cancelled twice: it keeps no list of them outside its loop."""
    orphans = []
    for task in asyncio.all_tasks():
        frame = getattr(task.get_coro(), "cr_frame", None)
        if frame is not None and frame.f_locals.get("self") is producer._sender:
            task.cancel()
            orphans.append(task)
    await asyncio.gather(*orphans, return_exceptions=True)


def _look_at_pending(producer: AIOKafkaProducer) -> None:
    """See to it that what was given up is not logged as an exception never retrieved."""
    for batches in producer._message_accumulator._batches.values():
        for batch in batches:
            batch.future.add_done_callback(look_at)
            batch._drain_waiter.add_done_callback(look_at)
    transactions = producer._txn_manager
    if transactions is not None and transactions._transaction_waiter is not None:
        transactions._transaction_waiter.add_done_callback(look_at)


def look_at(future: asyncio.Future[Any]) -> None:
    """Retrieve a future's exception."""
    if not future.cancelled():
        future.exception()
