"""What anybody would write with aiokafka in place of the guard: the yardsticks of its pipeline."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.frame import BATCH, PARTITIONS

BATCH_BYTES = 128 * 1024


async def bare_loop(bootstrap: str, in_topic: str, out_topic: str, n: int) -> float:
    """Seconds to consume ``n`` records, ``json.loads`` each, send each on with its key, and commit.

    Straightforward aiokafka: ``getmany``, one ``send`` per record, all acknowledgements awaited before
    the positions are committed, acks from all replicas, idempotent. Counted from the first record on.
    """
    consumer = AIOKafkaConsumer(
        in_topic,
        bootstrap_servers=bootstrap,
        group_id=f"bare-{uuid.uuid4().hex}",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, max_batch_size=BATCH_BYTES
    )
    await consumer.start()
    await producer.start()
    try:
        started, done = 0.0, 0
        while done < n:
            batches = await consumer.getmany(timeout_ms=200, max_records=BATCH)
            if batches and not started:
                started = time.perf_counter()
            sent = []
            positions = {}
            for tp, records in batches.items():
                for record in records:
                    event = json.loads(record.value or b"")
                    sent.append(
                        await producer.send(out_topic, record.value, key=event["response_id"].encode())
                    )
                done += len(records)
                positions[TopicPartition(tp.topic, tp.partition)] = records[-1].offset + 1
            if sent:
                await asyncio.wait(sent)
                for future in sent:
                    future.result()
                await consumer.commit(positions)
        return time.perf_counter() - started
    finally:
        await consumer.stop()
        await producer.stop()


class _Lane:
    """One partition's producer, and the outputs it owes."""

    def __init__(self, bootstrap: str, group: str, out_topic: str, per_input: float, size: int) -> None:
        self._group = group
        self._out_topic = out_topic
        self._per_input = per_input
        self._padding = "x" * max(0, size - 40)
        self._owed = 0.0
        self.written = 0
        self.producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=f"{group}-{uuid.uuid4().hex}",
            acks="all",
            max_batch_size=BATCH_BYTES,
        )

    async def step(self, tp: TopicPartition, records: Sequence[Any]) -> None:
        """Parse, answer and commit what one poll brought of the partition."""
        async with self.producer.transaction():
            sent = []
            for record in records:
                event = json.loads(record.value)
                self._owed += self._per_input
                while self._owed >= 1.0:
                    self._owed -= 1.0
                    value = json.dumps({"id": event["response_id"], "text": self._padding}).encode()
                    sent.append(await self.producer.send(self._out_topic, value, key=record.key))
            if sent:
                await asyncio.wait(sent)
                for future in sent:
                    future.result()
            self.written += len(sent)
            await self.producer.send_offsets_to_transaction({tp: records[-1].offset + 1}, self._group)


async def bare_transactional_loop(
    bootstrap: str, in_topic: str, out_topic: str, n: int, *, per_input: float, size: int
) -> float:
    """Seconds to take ``n`` records, ``per_input`` outputs of ``size`` bytes each, counted from the first.

    One member reads all partitions; for each of them one producer with a transactional id of its own. What a
    poll brings of a partition is parsed, answered and committed, with its position, in one transaction;
    partitions side by side.
    """
    group = f"bare-{uuid.uuid4().hex}"
    consumer = AIOKafkaConsumer(
        in_topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    lanes = [_Lane(bootstrap, group, out_topic, per_input, size) for _ in range(PARTITIONS)]
    await consumer.start()
    for lane in lanes:
        await lane.producer.start()
    try:
        started, done = 0.0, 0
        while done < n:
            batches = await consumer.getmany(timeout_ms=200, max_records=BATCH)
            if batches and not started:
                started = time.perf_counter()
            async with asyncio.TaskGroup() as group_of_steps:
                for tp, records in batches.items():
                    done += len(records)
                    group_of_steps.create_task(lanes[tp.partition].step(tp, records))
        return time.perf_counter() - started
    finally:
        await consumer.stop()
        for lane in lanes:
            await lane.producer.stop()
