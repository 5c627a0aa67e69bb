"""How long one step takes over Kafka when nothing else is asked of the machine.

    python -m benchmarks.transaction_steps [--bootstrap-servers HOST:PORT] [--seconds 20] [--gap-ms 50]

This is the floor of what exactly once adds. Four transactional producers, one a partition as in the guard,
each commit a small step (a delivery, a verdict, a piece of session state and the input position) every
``--gap-ms``. Told are the time of a step, the time from its beginning to the moment a read_committed reader
has its delivery, and the round trips to the broker of which it consists: from the moment that the client
sends a request until it has the answer. A broker's first minute is slow (its code is compiled as it runs),
so ``--warm-up`` seconds of steps without a gap go before; they are not counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient

from benchmarks.frame import PARTITIONS, command_line, kafka_for_benchmark, new_topics, percentiles
from consumers.kafka import TransactionalProducer
from consumers.kafka.client import quiet_client_log
from consumers.settings import KafkaSettings
from consumers.transport import Commit, OutRecord, Partition, StateRecord
from guardrail.partitioning import partition_of

Trips = dict[str, list[float]]
"""Seconds of round trips by the name of the request."""


@contextmanager
def timed_requests() -> Iterator[Trips]:
    """The round trips of every client of this process, the readers' fetches aside."""
    found: Trips = defaultdict(list)
    send: Any = AIOKafkaClient.send

    async def timed(self: AIOKafkaClient, node_id: Any, request: Any, **options: Any) -> Any:
        begun = time.perf_counter()
        answer = await send(self, node_id, request, **options)
        found[type(request).__name__.removesuffix("Request")].append(time.perf_counter() - begun)
        return answer

    AIOKafkaClient.send = timed  # type: ignore[method-assign]
    try:
        yield found
    finally:
        AIOKafkaClient.send = send  # type: ignore[method-assign]
        found.pop("Fetch", None)


class _Steps:
    """Producers that step side by side, and a reader of what they commit."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._topics = settings.topics
        self._begun: dict[bytes, float] = {}
        self.step: list[float] = []
        self.seen: list[float] = []

    async def run(self, seconds: float, gap_s: float) -> None:
        """Step for ``seconds``; what is measured is added to ``step`` and ``seen``."""
        topics = self._topics
        reader = AIOKafkaConsumer(
            topics.deliveries,
            bootstrap_servers=self._settings.bootstrap_servers,
            isolation_level="read_committed",
        )
        partitions = [Partition(topics.responses, index) for index in range(PARTITIONS)]
        outputs = [topics.deliveries, topics.verdicts]
        producers = [TransactionalProducer(self._settings, one, outputs) for one in partitions]
        await reader.start()
        try:
            for producer in producers:
                await producer.start()
            end = time.perf_counter() + seconds
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(self._read(reader))
                lanes = [
                    group.create_task(self._lane(*lane, end, gap_s))
                    for lane in zip(partitions, producers, strict=True)
                ]
                await asyncio.wait(lanes)
                await asyncio.sleep(0.5)
                reading.cancel()
        finally:
            await reader.stop()
            for producer in producers:
                await producer.stop()

    async def _lane(
        self, partition: Partition, producer: TransactionalProducer, end: float, gap_s: float
    ) -> None:
        key = next(k for n in range(10_000) if partition_of(k := b"%d" % n, PARTITIONS) == partition.index)
        number = 0
        while (begun := time.perf_counter()) < end:
            number += 1
            name = b"%d-%d " % (partition.index, number)
            self._begun[name] = begun
            outputs = [
                OutRecord(self._topics.deliveries, key, name + b"x" * 300),
                OutRecord(self._topics.verdicts, key, b"x" * 700),
            ]
            state = [StateRecord(b"%d" % (number % 50), b"x" * 400)]
            await producer.transact(outputs, state, Commit(number))
            self.step.append(time.perf_counter() - begun)
            await asyncio.sleep(gap_s)

    async def _read(self, reader: AIOKafkaConsumer) -> None:
        async for record in reader:
            name = record.value.rstrip(b"x")
            if name in self._begun:
                self.seen.append(time.perf_counter() - self._begun.pop(name))


async def measure(bootstrap: str, warm_up_s: float, seconds: float, gap_s: float) -> None:
    """Warm up, measure and print."""
    quiet_client_log()
    topics = await new_topics(bootstrap)
    settings = KafkaSettings(bootstrap_servers=bootstrap, group_id=topics.responses, topics=topics)
    await _Steps(settings).run(warm_up_s, 0.002)
    steps = _Steps(settings)
    with timed_requests() as trips:
        await steps.run(seconds, gap_s)
    print(f"{PARTITIONS} producers, a step every {gap_s * 1000:g} ms each, {len(steps.step):,} steps")
    for name, values in (("step", steps.step), ("begun to read", steps.seen)):
        found = percentiles(values)
        print(f"{name:<24} p50 {found['p50']:>6.1f} ms  p99 {found['p99']:>6.1f} ms")
    for name, values in sorted(trips.items(), key=lambda each: -sum(each[1])):
        often = len(values) / len(steps.step)
        if often >= 0.1:
            found = percentiles(values)
            print(
                f"  {name:<22} p50 {found['p50']:>6.1f} ms  p99 {found['p99']:>6.1f} ms  {often:.1f} a step"
            )


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, kafka=True)
    parser.add_argument("--warm-up", type=float, default=40.0, help="seconds")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--gap-ms", type=float, default=50.0)
    arguments = parser.parse_args()
    with kafka_for_benchmark(arguments.bootstrap_servers) as bootstrap:
        uvloop.run(measure(bootstrap, arguments.warm_up, arguments.seconds, arguments.gap_ms / 1000))


if __name__ == "__main__":
    main()
