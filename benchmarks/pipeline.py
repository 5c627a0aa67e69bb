"""What the guard costs: token streams through the whole pipeline, with a judge that answers at once.

    python -m benchmarks.pipeline --responses 1000 [--bootstrap-servers HOST:PORT]

Measures, in turns and in one run, over the same input records: a bare loop that consumes, parses and
produces every record (what anybody would write), and the guard, which cuts, judges, decides and writes
deliveries and verdicts, both at least once (benchmarks.exactly_once has the other guarantee). Once over a
real Kafka and once in process. Without an address it starts a Kafka of its own. Prints input records (almost
all are deltas of 4 characters) per second and the ratio.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Sequence
from typing import Any, Final

import uvloop

from benchmarks.bare_loops import bare_loop
from benchmarks.frame import PARTITIONS, command_line, create_topic, kafka_for_benchmark, new_topics, write
from benchmarks.instant_judge import InstantJudge
from benchmarks.timed_transport import Timed
from benchmarks.workload import token_streams
from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.kafka import KafkaTransport
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import KafkaSettings, Topics
from consumers.transport import OutRecord, Transport
from guardrail.config import LoggingSettings
from guardrail.logs import configure_logging
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter

AT_LEAST_ONCE: Final[dict[str, Any]] = {"delivery_guarantee": "at_least_once", "commit_interval_ms": 200}


async def guarded(transport: Transport, topics: Topics, records: int, **options: Any) -> Timed:
    """Have a guard with the instant judge take so many records; what it took."""
    stop = asyncio.Event()
    timed = Timed(transport, records, stop)
    guard = GuardConsumer(
        timed, InstantJudge(), PolicyRouter.single(Policy()), GuardOptions(topics=topics, **options)
    )
    await guard.run(stop)
    return timed


def input_records(responses: int, topic: str) -> list[OutRecord]:
    """The workload: 200 responses at a time, 1,000 characters each, in deltas of 4 characters."""
    return [
        OutRecord(topic, event.response_id.encode(), event.to_json())  # type: ignore[attr-defined]
        for event in token_streams(responses, at_once=200)
    ]


def report(name: str, n: int, bare: Sequence[float], ours: Sequence[float], written: int) -> None:
    """One line: rates of the best round each, and the ratio of the medians."""
    ratio = sorted(bare)[len(bare) // 2] / sorted(ours)[len(ours) // 2]
    print(
        f"{name:<10} bare loop {n / min(bare):>9,.0f} records/s   guard {n / min(ours):>9,.0f} records/s   "
        f"ratio {ratio:.2f}   (guard wrote {written:,} records)"
    )


async def over_kafka(bootstrap: str, responses: int, rounds: int) -> None:
    """Bare aiokafka loop against the guard on the same broker."""
    topics = await new_topics(bootstrap)
    bare_topic, group = f"{topics.responses}-bare", uuid.uuid4().hex
    await create_topic(bootstrap, bare_topic, PARTITIONS)
    records = input_records(responses, topics.responses)
    await write(bootstrap, records)
    bare, ours, written = [], [], 0
    for number in range(rounds):
        bare.append(await bare_loop(bootstrap, topics.responses, bare_topic, len(records)))
        settings = KafkaSettings(
            bootstrap_servers=bootstrap,
            group_id=f"bench-{group}-{number}",
            topics=topics,
            delivery_guarantee="at_least_once",
        )
        timed = await guarded(KafkaTransport(settings), topics, len(records), **AT_LEAST_ONCE)
        ours.append(timed.seconds)
        written = timed.written
    report("Kafka", len(records), bare, ours, written)


async def in_process(responses: int, rounds: int) -> None:
    """The same in process: a loop over the in-memory broker against the guard on it."""
    topics = Topics()
    records = input_records(responses, topics.responses)
    bare, ours, written = [], [], 0
    for _ in range(rounds):
        broker = MemoryBroker(
            dict.fromkeys((*topics.names(), "bare"), PARTITIONS), compacted=[topics.sessions]
        )
        for record in records:
            broker.append(record.topic, record.key, record.value)
        started = time.perf_counter()
        for index in range(PARTITIONS):
            for read in broker.read(topics.responses, index):
                event = json.loads(read.value or b"")
                broker.append("bare", event["response_id"].encode(), read.value)
        bare.append(time.perf_counter() - started)
        transport = MemoryTransport(broker, "guard", topics.responses)
        timed = await guarded(transport, topics, len(records), **AT_LEAST_ONCE)
        ours.append(timed.seconds)
        written = timed.written
    report("in process", len(records), bare, ours, written)


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, kafka=True)
    parser.add_argument("--responses", type=int, default=800)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["kafka", "memory"])
    arguments = parser.parse_args()
    configure_logging(LoggingSettings(level="warning"))
    print(f"{arguments.responses} responses of 1,000 characters, 200 at a time, deltas of 4 characters")
    if arguments.only != "kafka":
        uvloop.run(in_process(arguments.responses, arguments.rounds))
    if arguments.only != "memory":
        with kafka_for_benchmark(arguments.bootstrap_servers) as bootstrap:
            uvloop.run(over_kafka(bootstrap, arguments.responses, arguments.rounds))


if __name__ == "__main__":
    main()
