"""What the guard costs: token streams through the whole pipeline, with a judge that answers at once.

    python -m benchmarks.pipeline --responses 1000 [--bootstrap-servers HOST:PORT]

Measures, in turns and in one run, over the same input records: a bare loop that consumes, parses and
produces every record (what anybody would write), and the guard, which cuts, judges, decides and writes
deliveries and verdicts, both at least once (benchmarks.exactly_once has the other guarantee). Once over a
real Kafka and once in process. Without an address it starts a Kafka of its own. Prints input records (almost
all are deltas of 4 characters) per second and the ratio of the medians.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import uvloop

from benchmarks.bare_loops import bare_loop
from benchmarks.frame import command_line, ratio
from benchmarks.instant_judge import InstantJudge
from benchmarks.kafka import PARTITIONS, create_topic, kafka_for_benchmark, new_topics, write
from benchmarks.workload import token_streams
from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.kafka import KafkaTransport
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import KafkaSettings, Topics
from consumers.transport import Commit, OutRecord, Partition, Record, StateRecord, Transport
from guardrail.config import LoggingSettings
from guardrail.logs import configure_logging
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter

AT_LEAST_ONCE: Final[dict[str, Any]] = {"delivery_guarantee": "at_least_once", "commit_interval_ms": 200}


class Timed:
    """A transport that notes how long the work took and how much was written. Sets ``over`` once positions
    are committed after ``records`` input records.

    ``seconds`` is from the first record read to the last output written.
    """

    def __init__(self, inner: Transport, records: int) -> None:
        self._inner = inner
        self._expected = records
        self._positions: dict[Partition, int] = {}
        self._first_read = self._last_written = 0.0
        self.over = asyncio.Event()
        self.written = self.bytes = self.state_written = self.state_bytes = self.steps = 0

    def __getattr__(self, name: str) -> Any:
        """Everything else passes on."""
        return getattr(self._inner, name)

    @property
    def seconds(self) -> float:
        return self._last_written - self._first_read

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        records = await self._inner.poll(timeout_ms, max_records)
        if records and not self._first_read:
            self._first_read = time.perf_counter()
        return records

    async def publish(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        await self._inner.publish(records, commits)
        self._note(records, commits)

    async def transact(
        self,
        partition: Partition,
        records: Sequence[OutRecord],
        state: Sequence[StateRecord],
        commit: Commit,
    ) -> None:
        await self._inner.transact(partition, records, state, commit)
        self.steps += 1
        self.state_written += len(state)
        self.state_bytes += sum(len(record.value or b"") for record in state)
        self._note(records, {partition: commit})

    def _note(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        if records:
            self._last_written = time.perf_counter()
            self.written += len(records)
            self.bytes += sum(len(record.value or b"") for record in records)
        self._positions.update({partition: commit.offset for partition, commit in commits.items()})
        if sum(self._positions.values()) == self._expected:
            self.over.set()


async def guarded(transport: Transport, topics: Topics, records: int, **options: Any) -> Timed:
    """Have a guard with the instant judge take so many records; what it took."""
    timed = Timed(transport, records)
    as_transport: Any = timed
    given = GuardOptions(topics=topics, **options)
    guard = GuardConsumer(as_transport, InstantJudge(), PolicyRouter.single(Policy()), given)
    await guard.run(timed.over)
    return timed


def input_records(responses: int, topic: str) -> list[OutRecord]:
    """The workload: 200 responses at a time, 1,000 characters each, in deltas of 4 characters."""
    return [
        OutRecord(topic, event.response_id.encode(), event.to_json())  # type: ignore[attr-defined]
        for event in token_streams(responses, at_once=200)
    ]


def report(name: str, n: int, bare: Sequence[float], ours: Sequence[float]) -> None:
    """One line: rates of the best round each, and the ratio of the medians."""
    print(
        f"{name:<10} bare loop {n / min(bare):>9,.0f} records/s   guard {n / min(ours):>9,.0f} records/s   "
        f"ratio {ratio(bare, ours):.2f}"
    )


async def over_kafka(bootstrap: str, responses: int, rounds: int) -> None:
    """Bare aiokafka loop against the guard on the same broker."""
    topics = await new_topics(bootstrap)
    bare_topic = f"{topics.responses}-bare"
    await create_topic(bootstrap, bare_topic)
    records = input_records(responses, topics.responses)
    await write(bootstrap, records)
    bare, ours = [], []
    for number in range(rounds):
        bare.append(await bare_loop(bootstrap, topics.responses, bare_topic, len(records)))
        settings = KafkaSettings(
            bootstrap_servers=bootstrap,
            group_id=f"{topics.responses}-{number}",
            topics=topics,
            delivery_guarantee="at_least_once",
        )
        ours.append((await guarded(KafkaTransport(settings), topics, len(records), **AT_LEAST_ONCE)).seconds)
    report("Kafka", len(records), bare, ours)


async def in_process(responses: int, rounds: int) -> None:
    """The same in process: a loop over the in-memory broker against the guard on it."""
    topics = Topics()
    records = input_records(responses, topics.responses)
    bare, ours = [], []
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
        ours.append((await guarded(transport, topics, len(records), **AT_LEAST_ONCE)).seconds)
    report("in process", len(records), bare, ours)


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
