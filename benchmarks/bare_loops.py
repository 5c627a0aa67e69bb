"""What anybody would write with aiokafka in place of the guard: the yardsticks of its pipeline."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.kafka import BATCH, PARTITIONS

BATCH_BYTES: Final = 128 * 1024
Step = Callable[[AIOKafkaConsumer, Mapping[TopicPartition, Sequence[Any]]], Awaitable[None]]
"""Takes what a poll brought, and commits it."""


async def _seconds(bootstrap: str, group: str, in_topic: str, n: int, step: Step) -> float:
    """Seconds to poll ``n`` records and take each poll's, counted from the first record on."""
    consumer = AIOKafkaConsumer(
        in_topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    async with consumer:
        started, done = 0.0, 0
        while done < n:
            batches = await consumer.getmany(timeout_ms=200, max_records=BATCH)
            if batches and not started:
                started = time.perf_counter()
            await step(consumer, batches)
            done += sum(map(len, batches.values()))
        return time.perf_counter() - started


async def _acknowledged(sent: Sequence[asyncio.Future[Any]]) -> None:
    if sent:
        await asyncio.wait(sent)
        for future in sent:
            future.result()


async def bare_loop(bootstrap: str, in_topic: str, out_topic: str, n: int) -> float:
    """Seconds to consume ``n`` records, ``json.loads`` each, send each on with its key, and commit.

    Straightforward aiokafka: ``getmany``, one ``send`` per record, all acknowledgements awaited before
    the positions are committed, acks from all replicas, idempotent.
    """
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, max_batch_size=BATCH_BYTES
    )

    async def step(consumer: AIOKafkaConsumer, batches: Mapping[TopicPartition, Sequence[Any]]) -> None:
        sent = []
        for records in batches.values():
            for record in records:
                key = json.loads(record.value or b"")["response_id"].encode()
                sent.append(await producer.send(out_topic, record.value, key=key))
        await _acknowledged(sent)
        if batches:
            await consumer.commit({tp: records[-1].offset + 1 for tp, records in batches.items()})

    async with producer:
        return await _seconds(bootstrap, f"bare-{uuid.uuid4().hex}", in_topic, n, step)


async def bare_transactional_loop(
    bootstrap: str, in_topic: str, out_topic: str, n: int, *, per_input: float, size: int
) -> float:
    """Seconds to take ``n`` records, ``per_input`` outputs of ``size`` bytes each.

    One member reads all partitions; for each of them one producer with a transactional id of its own. What a
    poll brings of a partition is parsed, answered and committed, with its position, in one transaction;
    partitions side by side.
    """
    group, padding = f"bare-{uuid.uuid4().hex}", "x" * max(0, size - 40)
    owed = [0.0] * PARTITIONS
    producers = [
        AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=f"{group}-{index}",
            acks="all",
            max_batch_size=BATCH_BYTES,
        )
        for index in range(PARTITIONS)
    ]

    async def answer(tp: TopicPartition, records: Sequence[Any]) -> None:
        producer = producers[tp.partition]
        async with producer.transaction():
            sent = []
            for record in records:
                event = json.loads(record.value)
                owed[tp.partition] += per_input
                while owed[tp.partition] >= 1.0:
                    owed[tp.partition] -= 1.0
                    value = json.dumps({"id": event["response_id"], "text": padding}).encode()
                    sent.append(await producer.send(out_topic, value, key=record.key))
            await _acknowledged(sent)
            await producer.send_offsets_to_transaction({tp: records[-1].offset + 1}, group)

    async def step(_: AIOKafkaConsumer, batches: Mapping[TopicPartition, Sequence[Any]]) -> None:
        async with asyncio.TaskGroup() as steps:
            for tp, records in batches.items():
                steps.create_task(answer(tp, records))

    for producer in producers:
        await producer.start()
    try:
        return await _seconds(bootstrap, group, in_topic, n, step)
    finally:
        for producer in producers:
            await producer.stop()
