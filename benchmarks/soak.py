"""Does the guard stay flat? Steady load for half an hour, its memory and file descriptors watched.

    python -m benchmarks.soak --minutes 30

A real Kafka, a ``guardrail run`` process (exactly once, local judge), and a load of responses that begin and
end all the time: streamed, aborted, abandoned by their producers, with bad records among them. The topic of
stored sessions is cleaned every few seconds, and another producer has aborted a transaction on it, of which
cleaning leaves an empty control batch; after the load a guard is started again and takes it over. The ids of
finished responses reach the bound on what is remembered within the warm-up. What is watched are the guard's
own metrics. Exit status 1 unless flat: resident memory after the warm-up, fitted by a line, grows by less
than 5 % an hour beyond twice the fit's standard error; no more descriptors are open in the last third than in
the first; every response got its final event; the guard left with status 0; the next one was ready.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.frame import command_line
from benchmarks.kafka import PARTITIONS, GuardProcess, kafka_for_benchmark, new_topics
from benchmarks.workload import events_of, made_up
from consumers.kafka.client import quiet_client_log
from consumers.settings import Topics
from guardrail.events import Event, ResponseAborted
from guardrail.judges.streams import beside

MEMORY_GROWTH_AN_HOUR: Final = 0.05
"""Flat: the fitted growth of resident memory, less two standard errors, is under this share an hour."""
ABORTED, ABANDONED, BAD = 0.02, 0.01, 0.01
"""Shares of the responses: aborted, never ended by their producer, with a bad record beside them."""
EVERY_S: Final = 5.0
GRACE_S: Final = 90.0
TICK_S: Final = 0.05
CLEANED_SOON: Final = {
    "segment.ms": "4000",
    "delete.retention.ms": "4000",
    "max.compaction.lag.ms": "8000",
    "min.cleanable.dirty.ratio": "0.01",
}
# So low that both bounds on what is remembered are reached within minutes.
# They are constants of the guard, which is therefore started by hand.
GUARD: Final = (
    "-c",
    "from guardrail.cli import main; from guardrail.limits import Limits; "
    "Limits.finished_responses_remembered, Limits.finished_response_ttl_ms = 200, 60_000; main()",
)
SETTINGS: Final = {"policies.default.incomplete_timeout_ms": "10000"}


class Sample(NamedTuple):
    """The guard at one moment, by its own metrics."""

    minutes: float
    resident_mib: float
    descriptors: float
    lag: float


@dataclass(slots=True)
class Load:
    """Streams that are kept going, and the final events that came of them."""

    topics: Topics
    at_once: int
    rate: float
    started: int = 0
    bad: int = 0
    answered: set[bytes] = field(default_factory=set)

    async def write(self, producer: AIOKafkaProducer, seconds: float) -> None:
        """Keep ``at_once`` streams going for so long, and then let them end."""
        rng, begun = random.Random(0), time.monotonic()
        live: list[Iterator[Event]] = []
        owed, tick = 0.0, begun
        while live or time.monotonic() - begun < seconds:
            while len(live) < self.at_once and time.monotonic() - begun < seconds:
                live.append(self._stream(rng))
                if rng.random() < BAD:
                    # No response is owed for these: the key is none, the id unknown.
                    self.bad += 1
                    await producer.send(
                        self.topics.responses, rng.choice((b"{", b"\xff", _unknown(self.bad)))
                    )
            owed += self.rate * TICK_S
            for _ in range(int(owed)):
                live = [stream for stream in live if await self._send_next(producer, stream)]
            owed -= int(owed)
            tick = max(tick + TICK_S, time.monotonic() - 1.0)  # behind schedule: not all at once afterwards
            await asyncio.sleep(max(0.0, tick - time.monotonic()))

    async def _send_next(self, producer: AIOKafkaProducer, stream: Iterator[Event]) -> bool:
        event = next(stream, None)
        if event is None:
            return False
        key: str = event.response_id  # type: ignore[attr-defined]
        await producer.send(self.topics.responses, event.to_json(), key=key.encode())
        return True

    def _stream(self, rng: random.Random) -> Iterator[Event]:
        """One response; its texts are made when it begins, so that only those in flight are held."""
        self.started += 1
        response = made_up(rng, f"soak-{self.started:08d}", 62 * rng.randint(1, 20))
        events, fate = list(events_of(response)), rng.random()
        if fate >= ABORTED + ABANDONED:
            yield from events
            return
        yield from events[: len(events) // 2]
        if fate < ABORTED:
            yield ResponseAborted(response_id=response.response_id, reason="cancelled")

    async def read(self, consumer: AIOKafkaConsumer) -> None:
        """Note final events, until cancelled."""
        async for record in consumer:
            if json.loads(record.value)["type"] != "delivery.segment":
                self.answered.add(record.key)


def _unknown(number: int) -> bytes:
    event = {"type": "response.delta", "response_id": f"never-begun-{number}", "seq": 0, "text": "?"}
    return json.dumps(event).encode()


async def abort_one(bootstrap: str, topic: str) -> None:
    """A transaction of another producer on every partition."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"of-another-{topic}")
    async with producer:
        await producer.begin_transaction()
        for index in range(PARTITIONS):
            await producer.send_and_wait(topic, b"x", key=b"aborted", partition=index)
        await producer.abort_transaction()


async def sampled(guard: GuardProcess, samples: list[Sample]) -> None:
    """Add a sample every few seconds, until cancelled."""
    begun = time.monotonic()
    while guard.runs:
        told = await guard.metrics()
        samples.append(
            Sample(
                (time.monotonic() - begun) / 60,
                told["process_resident_memory_bytes"] / 2**20,
                told["process_open_fds"],
                told.get("guardrail_partition_lag_records", 0.0),
            )
        )
        await asyncio.sleep(EVERY_S)


async def soak(bootstrap: str, arguments: argparse.Namespace) -> bool:
    """Run it all; was it flat?"""
    quiet_client_log()
    topics = await new_topics(bootstrap, of_sessions=CLEANED_SOON)
    await abort_one(bootstrap, topics.sessions)
    load, samples = Load(topics, arguments.responses, arguments.rate), list[Sample]()
    guard = GuardProcess(bootstrap, topics, topics.responses, SETTINGS, GUARD)
    consumer = AIOKafkaConsumer(
        topics.deliveries,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    async with guard:
        async with consumer, producer, beside(load.read(consumer)):
            async with beside(sampled(guard, samples)) as sampling:
                await load.write(producer, arguments.minutes * 60)
                if sampling.done():
                    sampling.result()
            end = time.monotonic() + GRACE_S
            while len(load.answered) < load.started and time.monotonic() < end:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.5)
        status = await guard.end()
        await guard.start()  # raises where it does not take over
    flat = judged(samples, arguments.warm_up_minutes, load, status)
    title = (
        f"{arguments.minutes:g} minutes, {arguments.responses} responses at once, {arguments.rate:g} tokens/s"
        f" each, {load.started:,} responses, {load.bad:,} bad records"
    )
    print(f"{title}: {'flat' if flat else 'NOT FLAT'}")
    return flat


def growth(samples: Sequence[Sample]) -> tuple[float, float]:
    """MiB an hour by a least-squares line through resident memory, and the standard error of that."""
    hours, memory = [one.minutes / 60 for one in samples], [one.resident_mib for one in samples]
    slope, start = statistics.linear_regression(hours, memory)
    mean = statistics.fmean(hours)
    spread = sum((x - mean) ** 2 for x in hours)
    rest = sum((y - start - slope * x) ** 2 for x, y in zip(hours, memory, strict=True))
    return slope, math.sqrt(rest / (len(hours) - 2) / spread)


def judged(samples: Sequence[Sample], warm_up_minutes: float, load: Load, status: int) -> bool:
    """Print what was found after the warm-up; is it flat? Raises ValueError with fewer than three samples."""
    counted = [sample for sample in samples if sample.minutes >= warm_up_minutes]
    if len(counted) < 3:
        raise ValueError(
            f"only {len(counted)} samples after the warm-up: the guard ended, or the run is short"
        )
    slope, error = growth(counted)
    mean = statistics.fmean(one.resident_mib for one in counted)
    third = len(counted) // 3
    first, last = (
        statistics.median(one.descriptors for one in some) for some in (counted[:third], counted[-third:])
    )
    print(
        f"resident {mean:.1f} MiB, {slope:+.1f} MiB an hour (standard error {error:.1f}); descriptors "
        f"{first:g} to {last:g}; lag at most {max(one.lag for one in samples):,.0f}; answered "
        f"{len(load.answered):,} of {load.started:,}; left with status {status}"
    )
    grows = slope - 2 * error > MEMORY_GROWTH_AN_HOUR * mean
    return not grows and last <= first and not status and len(load.answered) == load.started


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, kafka=True)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--warm-up-minutes", type=float, help="default: 5, or a third of a shorter run")
    parser.add_argument("--responses", type=int, default=50, help="streams at once")
    parser.add_argument("--rate", type=float, default=20.0, help="tokens a second of each stream")
    arguments = parser.parse_args()
    if arguments.warm_up_minutes is None:
        arguments.warm_up_minutes = min(5.0, arguments.minutes / 3)
    with kafka_for_benchmark(arguments.bootstrap_servers) as bootstrap:
        sys.exit(0 if uvloop.run(soak(bootstrap, arguments)) else 1)


if __name__ == "__main__":
    main()
