"""How fast a bare transactional loop is here: the yardstick of the guard's exactly-once pipeline.

    python -m benchmarks.bare_transactional_loop --records 200000 [--bootstrap-servers HOST:PORT]

What anybody would write for exactly once with aiokafka: one member reads four partitions; for each of them
one producer with a transactional id of its own; what a poll brings of a partition is parsed, answered and
committed, with its position, in one transaction; partitions side by side. Without an address it starts a
Kafka of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import time
import uuid
from collections.abc import Sequence
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks.bare_kafka_loop import BATCH, BATCH_BYTES, create_topic, fill, kafka_for_benchmark
from consumers.kafka.client import quiet_client_log


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
    bootstrap: str, in_topic: str, out_topic: str, n: int, partitions: int, *, per_input: float, size: int
) -> float:
    """Seconds to take ``n`` records, ``per_input`` outputs of ``size`` bytes each, counted from the first."""
    group = f"bare-{uuid.uuid4().hex}"
    consumer = AIOKafkaConsumer(
        in_topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    lanes = [_Lane(bootstrap, group, out_topic, per_input, size) for _ in range(partitions)]
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


async def measure(bootstrap: str, n: int, partitions: int, rounds: int) -> None:
    """Print the rate, best of ``rounds``, with one output for every input and for every twentieth."""
    quiet_client_log()
    in_topic, out_topic = f"bench-in-{uuid.uuid4().hex}", f"bench-out-{uuid.uuid4().hex}"
    await create_topic(bootstrap, in_topic, partitions)
    await create_topic(bootstrap, out_topic, partitions)
    await fill(bootstrap, in_topic, n)
    for per_input, size in ((1.0, 60), (0.05, 600)):
        best = math.inf
        for _ in range(rounds):
            best = min(
                best,
                await bare_transactional_loop(
                    bootstrap, in_topic, out_topic, n, partitions, per_input=per_input, size=size
                ),
            )
        print(f"{per_input:>5.2f} outputs of {size} bytes an input   {n / best:>10,.0f} records/s")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap-servers", help="use this Kafka instead of starting one")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with kafka_for_benchmark(arguments.bootstrap_servers) as bootstrap:
        uvloop.run(measure(bootstrap, arguments.records, arguments.partitions, arguments.rounds))


if __name__ == "__main__":
    main()
