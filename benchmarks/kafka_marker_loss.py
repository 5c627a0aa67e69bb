"""Does one broker, killed and started again, keep a transaction whole? A question to Kafka, without a guard.

    python -m benchmarks.kafka_marker_loss --kills 15

Plain aiokafka producers write one number to a partition of each of four topics, and an offset, in one
transaction after the other. The only broker is killed at random moments and started again; new producers take
over the same ids, as guards do. In the end each id commits one transaction more, so that nothing is open, and
a ``read_committed`` reader tells which numbers came: each in all four topics or in none, exactly once, and
everything whose commit was answered. Where that fails, the broker's own log says why (``--keep``): Kafka
4.3.0 skips the markers of partitions that have no leader yet (KAFKA-20734).

Exits with 1 when a transaction was torn or lost.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from benchmarks.frame import command_line
from consumers.kafka.client import quiet_client_log
from tests.support.kafka_broker import KafkaBroker

TOPICS: Final = ("loss.a", "loss.b", "loss.c", "loss.d")
GROUP: Final = "loss"
SKIPPED: Final = "Couldn't find leader endpoint for partitions"
_STEP_S: Final = 10.0
_TAKE_OVER_S: Final = 60.0
_IDLE_S: Final = 3.0
_ERRORS: Final = (
    KafkaError,
    OSError,
    TimeoutError,
    AssertionError,
    AttributeError,
    asyncio.InvalidStateError,
)
"""The library's, with those that its calls end in after a fatal error."""


class TalkativeBroker(KafkaBroker):
    """Logs what its transaction coordinator decides."""

    def _java(self, main: str, *arguments: str, heap_mb: int = 128) -> list[str]:
        command = super()._java(main, *arguments, heap_mb=heap_mb)
        loggers = ("kafka.coordinator.transaction", "org.apache.kafka.coordinator.transaction")
        options = {
            **{f"log.{name}": "debug" for name in loggers},
            "showDateTime": "true",
            "dateTimeFormat": "HH:mm:ss.SSS",
        }
        java, *rest = command
        return [java, *(f"-Dorg.slf4j.simpleLogger.{name}={value}" for name, value in options.items()), *rest]

    def markers_skipped(self) -> int:
        """How often the coordinator took a partition without a leader for a deleted one."""
        return self.log.read_text(errors="replace").count(SKIPPED)


@dataclass(slots=True)
class Writer:
    """One transactional id. ``answered``: numbers whose commit was answered, and when (time.monotonic())."""

    index: int
    bootstrap: str
    next_number: int = 0
    answered: dict[int, float] = field(default_factory=dict)

    async def run(self, stop: asyncio.Event) -> None:
        """Take over and write until told to stop; over again after any failure. Then once more."""
        while True:
            producer = await self._taken_over()
            try:
                while True:
                    ending = stop.is_set()
                    await self._step(producer)
                    if ending:
                        return
            except _ERRORS:
                continue
            finally:
                with suppress(*_ERRORS, asyncio.CancelledError):
                    await asyncio.wait_for(producer.stop(), 1.0)

    async def _taken_over(self) -> AIOKafkaProducer:
        deadline = time.monotonic() + _TAKE_OVER_S
        while True:
            producer = AIOKafkaProducer(
                bootstrap_servers=self.bootstrap,
                transactional_id=f"loss-{self.index}",
                transaction_timeout_ms=10_000,
                request_timeout_ms=5_000,
                retry_backoff_ms=20,
                linger_ms=0,
            )
            try:
                async with asyncio.timeout(_STEP_S):
                    await producer.start()
            except _ERRORS:
                with suppress(*_ERRORS, asyncio.CancelledError):
                    await asyncio.wait_for(producer.stop(), 1.0)
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)
            else:
                return producer

    async def _step(self, producer: AIOKafkaProducer) -> None:
        number = self.next_number
        self.next_number += 1
        async with asyncio.timeout(_STEP_S):
            await producer.begin_transaction()
            sent = [
                await producer.send(topic, b"%d" % number, partition=self.index, key=b"%d" % self.index)
                for topic in TOPICS
            ]
            position = {TopicPartition("loss.input", self.index): number + 1}
            await producer.send_offsets_to_transaction(position, GROUP)
            await asyncio.gather(*sent)
            await producer.commit_transaction()
        self.answered[number] = time.monotonic()


async def committed(bootstrap: str, writers: int) -> dict[str, Counter[tuple[int, int]]]:
    """What a ``read_committed`` reader gets: by topic, how often each (writer, number)."""
    found: dict[str, Counter[tuple[int, int]]] = {topic: Counter() for topic in TOPICS}
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    await consumer.start()
    try:
        assigned = [TopicPartition(topic, index) for topic in TOPICS for index in range(writers)]
        consumer.assign(assigned)
        await consumer.seek_to_beginning(*assigned)
        last = time.monotonic()
        while time.monotonic() - last < _IDLE_S:
            for place, records in (await consumer.getmany(timeout_ms=200)).items():
                last = time.monotonic()
                found[place.topic].update((place.partition, int(record.value or b"")) for record in records)
    finally:
        await consumer.stop()
    return found


async def run(broker: KafkaBroker, kills: int, writers: int, seed: int) -> int:
    """Kill, start, compare. How many transactions were torn."""
    rng = random.Random(seed)
    bootstrap = broker.bootstrap_servers
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, writers, 1) for topic in (*TOPICS, "loss.input")])
    await admin.close()
    stop = asyncio.Event()
    made = [Writer(index, bootstrap) for index in range(writers)]
    killed: list[float] = []
    async with asyncio.TaskGroup() as group:
        for writer in made:
            group.create_task(writer.run(stop))
        for _ in range(kills):
            await asyncio.sleep(rng.uniform(0.5, 2.5))
            killed.append(time.monotonic())
            broker.kill()  # blocks the loop, so that no writer learns anything between
            broker.start()
        await asyncio.sleep(1.0)
        stop.set()
    found = await committed(bootstrap, writers)
    torn = []
    for writer in made:
        for number in range(writer.next_number):
            times = [found[topic][writer.index, number] for topic in TOPICS]
            if len(set(times)) > 1 or times[0] > 1 or (number in writer.answered and times[0] != 1):
                torn.append((writer, number, times))
    for writer, number, times in torn:
        at = writer.answered.get(number)
        before = min((kill - at for kill in killed if at is not None and kill >= at), default=None)
        said = "never answered" if at is None else "answered"
        said += "" if before is None else f" {1000 * before:.0f} ms before the kill"
        print(f"TORN loss-{writer.index} number {number}: committed {times} times; commit {said}")
    total = sum(writer.next_number for writer in made)
    print(f"{total} transactions, {kills} kills, {len(torn)} torn")
    return len(torn)


def main() -> int:
    """Command line. The exit status."""
    parser = command_line(__doc__)
    parser.add_argument("--kills", type=int, default=15)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="keep the broker's log and data there")
    given = parser.parse_args()
    quiet_client_log()
    with TalkativeBroker() as broker:
        torn = asyncio.run(run(broker, given.kills, given.writers, given.seed))
        print(f"the broker's log says {broker.markers_skipped()} times: {SKIPPED}")
        if given.keep is not None:
            shutil.copytree(broker.folder, given.keep, dirs_exist_ok=True)
    return 1 if torn else 0


if __name__ == "__main__":
    sys.exit(main())
