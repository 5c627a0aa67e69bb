"""What exactly once costs: the delay that transactions add, and the share of throughput they leave.

    python -m benchmarks.exactly_once [--bootstrap-servers HOST:PORT] [--only latency|throughput]

Delay: 200 responses stream at once, 50 tokens a second each, over four partitions, through a real Kafka and a
guard process whose judge answers at once; exactly_once and at_least_once in turns, so that both meet the
machine in the same moods. Writer, guard and reader are processes of their own. Two delays are told of every
delivered segment: ``token``, from sending the delta that makes the segment whole to the moment a
read_committed reader has its delivery, and ``verdict``, from the judge's answer to the same moment. What the
transaction adds is the difference of the two modes' percentiles; the verdict delay of exactly_once is more
than it can add, because it holds writing and fetching too.

Throughput: the guard in exactly_once mode reads a topic full of token streams; a bare transactional loop
(benchmarks.bare_loops) reads the same and writes as many records of the same size as the guard
did, one after the other in the same run. Their ratio is what the guard leaves of Kafka's own pace.

Without an address it starts a Kafka of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from typing import Final, NamedTuple

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.bare_loops import bare_transactional_loop
from benchmarks.frame import command_line, cpu_seconds, p50_p99, percentile, ratio
from benchmarks.instant_judge import INSTANT, times_of
from benchmarks.kafka import PARTITIONS, GuardProcess, create_topic, kafka_for_benchmark, new_topics, write
from benchmarks.pipeline import guarded, input_records
from benchmarks.workload import events_of, made_up
from consumers.kafka import KafkaTransport
from consumers.kafka.client import quiet_client_log
from consumers.settings import KafkaSettings
from guardrail.claims import BuiltinSeverityRater, ClaimCutter
from guardrail.config import LoggingSettings
from guardrail.events import Response, ResponseCompleted, ResponseDelta
from guardrail.logs import configure_logging
from guardrail.policy import Policy

MODES: Final = ("at_least_once", "exactly_once")
RESPONSES: Final = 800
WARM_UP_S: Final = 20.0
PAUSE_S: Final = 1.5
SILENCE_S: Final = 60.0
AIMS_MS: Final = {"p50": 15.0, "p99": 60.0}
THROUGHPUT_AIM: Final = 0.5
Segment = tuple[str, int]
"""Response and number."""


@dataclass(frozen=True, slots=True)
class Phase:
    """``responses`` streams side by side into one topic, each of ``tokens_per_second`` for ``seconds``."""

    name: str
    topic: str
    responses: int
    tokens_per_second: float
    seconds: float
    seed: int

    def ids(self) -> list[str]:
        """Ids of its responses."""
        return [f"{self.name}-{number}" for number in range(self.responses)]


class Due(NamedTuple):
    """One event, when it is due after the phase's start, and the segments that are whole with it."""

    at: float
    response_id: str
    value: bytes
    completes: tuple[int, ...]


@dataclass(slots=True)
class Written:
    """When the event was sent that makes a segment whole."""

    completing: dict[Segment, float] = field(default_factory=dict)
    worst_lag_s: float = 0.0


class Seen(NamedTuple):
    """One delivered segment, and when a read_committed reader had it."""

    segment: Segment
    at: float
    claim_ids: tuple[str, ...]


# ------------------------------------------------------------------------- writer and reader, processes each


def schedule(phase: Phase) -> Iterator[Due]:
    """Every event of the phase in the order of time; streams begin evenly spread over their first second."""
    rng, rater = random.Random(phase.seed), BuiltinSeverityRater(Policy().severity)
    chars = round(phase.seconds * phase.tokens_per_second * 4)
    streams = [
        _stream(made_up(rng, response_id, chars), number / phase.responses, phase.tokens_per_second, rater)
        for number, response_id in enumerate(phase.ids())
    ]
    return merge(*streams, key=lambda due: due.at)


def _stream(response: Response, begin: float, rate: float, rater: BuiltinSeverityRater) -> Iterator[Due]:
    # The guard's own cutter says which delta makes a segment whole, so that no other delay is counted.
    cutter = ClaimCutter(rater, max_segment_chars=Policy().max_segment_chars)
    for number, event in enumerate(events_of(response)):
        cut = cutter.feed(event.text) if isinstance(event, ResponseDelta) else []
        cut = cutter.finish() if isinstance(event, ResponseCompleted) else cut
        whole = tuple(each.segment.index for each in cut)
        yield Due(begin + number / rate, response.response_id, event.to_json(), whole)


def write_phases(bootstrap: str, phases: Sequence[Phase]) -> Written:
    """Write the phases one after the other; the body of a process."""
    return uvloop.run(_write_phases(bootstrap, phases))


async def _write_phases(bootstrap: str, phases: Sequence[Phase]) -> Written:
    quiet_client_log()
    written = Written()
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True) as producer:
        for phase in phases:
            dues = list(schedule(phase))
            await asyncio.sleep(PAUSE_S)
            start = time.monotonic()
            for due in dues:
                if (wait := start + due.at - time.monotonic()) > 0.001:
                    await asyncio.sleep(wait)
                now = time.monotonic()
                written.worst_lag_s = max(written.worst_lag_s, now - start - due.at)
                written.completing |= {(due.response_id, segment): now for segment in due.completes}
                await producer.send(phase.topic, due.value, key=due.response_id.encode())
            await producer.flush()
    return written


def read_until_final(bootstrap: str, topics: Sequence[str], responses: frozenset[str]) -> list[Seen]:
    """All segments delivered of these responses, until each has its final event; the body of a process.

    Gives up, with what there is, when nothing comes for a minute.
    """
    return uvloop.run(_read_until_final(bootstrap, topics, responses))


async def _read_until_final(bootstrap: str, topics: Sequence[str], responses: frozenset[str]) -> list[Seen]:
    quiet_client_log()
    consumer = AIOKafkaConsumer(
        *topics, bootstrap_servers=bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
    )
    seen: list[Seen] = []
    waiting, last = set(responses), time.monotonic()
    async with consumer:
        while waiting and time.monotonic() - last < SILENCE_S:
            batches = await consumer.getmany(timeout_ms=200)
            now = time.monotonic()
            last = now if batches else last
            for record in (record for records in batches.values() for record in records):
                event = json.loads(record.value or b"")
                if (name := event["response_id"]) not in responses:
                    continue
                if event["type"] == "delivery.segment":
                    seen.append(Seen((name, event["segment"]), now, tuple(event["claim_ids"])))
                else:
                    waiting.discard(name)
    return seen


# ---------------------------------------------------------------------------------------------------- delay


async def latency(bootstrap: str, args: argparse.Namespace) -> None:
    """Measure and print the delays."""
    quiet_client_log()
    topics = {mode: await new_topics(bootstrap) for mode in MODES}

    def phase(mode: str, number: int, seconds: float) -> Phase:
        topic = topics[mode].responses
        return Phase(f"{mode}-{number}", topic, args.responses, args.tokens_per_second, seconds, number)

    rounds = [phase(mode, number, args.seconds) for number in range(1, args.rounds + 1) for mode in MODES]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        async with AsyncExitStack() as stack:
            guards = {}
            for mode, own in topics.items():
                settings = {"kafka.delivery_guarantee": mode, **INSTANT}
                guard = GuardProcess(bootstrap, own, own.responses, settings)
                guards[mode] = await stack.enter_async_context(guard)
            deliveries = [own.deliveries for own in topics.values()]
            # Nothing is counted before both guards have answered a whole phase.
            await _through(pool, bootstrap, deliveries, [phase(mode, 0, WARM_UP_S) for mode in MODES])
            before = {mode: cpu_seconds(guard.pid) for mode, guard in guards.items()}
            written, seen = await _through(pool, bootstrap, deliveries, rounds)
            used = {mode: cpu_seconds(guard.pid) - before[mode] for mode, guard in guards.items()}
        verdicts = {mode: json.loads(times_of(own.responses).read_text()) for mode, own in topics.items()}
    found = {mode: delays(mode, written, seen, verdicts[mode]) for mode in MODES}
    at_least, exactly = (found[mode] for mode in MODES)
    found["added"] = {
        delay: {name: round(exactly[delay][name] - at_least[delay][name], 1) for name in AIMS_MS}
        for delay in exactly
    }
    segments = {mode: sum(one.segment[0].startswith(f"{mode}-") for one in seen) for mode in MODES}
    print(
        f"{args.responses} responses at once, {args.tokens_per_second:g} tokens/s each, {PARTITIONS} "
        f"partitions, {args.rounds} phases of {args.seconds:g} s in each mode; segments: {segments}; "
        f"aims: {AIMS_MS}"
    )
    for name, each in found.items():
        cells = "   ".join(
            f"{delay} to delivery p50 {told['p50']:>6.1f} ms  p99 {told['p99']:>6.1f} ms"
            for delay, told in each.items()
        )
        busy = f"   guard {used[name] / args.seconds / args.rounds:.2f} CPU" if name in used else ""
        print(f"{name:<14} {cells}{busy}")
    print(f"the writer was at worst {written.worst_lag_s * 1000:.0f} ms behind its schedule", flush=True)


async def _through(
    pool: ProcessPoolExecutor, bootstrap: str, deliveries: Sequence[str], phases: Sequence[Phase]
) -> tuple[Written, list[Seen]]:
    """Write the phases and read what the guards deliver of them."""
    responses = frozenset(response_id for phase in phases for response_id in phase.ids())
    run = partial(asyncio.get_running_loop().run_in_executor, pool)
    reading = run(read_until_final, bootstrap, deliveries, responses)
    return await run(write_phases, bootstrap, phases), await reading


def delays(
    mode: str, written: Written, seen: Sequence[Seen], verdicts: dict[str, float]
) -> dict[str, dict[str, float]]:
    """Both delays of one mode's deliveries. A claim that says what one before it says isn't judged again:
    segments with such a claim have no verdict of their own."""
    ours = [one for one in seen if one.segment[0].startswith(f"{mode}-")]
    judged = [one for one in ours if one.claim_ids and verdicts.keys() >= set(one.claim_ids)]
    return {
        "token": p50_p99([one.at - written.completing[one.segment] for one in ours]),
        "verdict": p50_p99([one.at - max(verdicts[claim] for claim in one.claim_ids) for one in judged]),
    }


# ----------------------------------------------------------------------------------------------- throughput


async def throughput(bootstrap: str, rounds: int) -> None:
    """Measure and print what a guard and a bare loop take."""
    quiet_client_log()
    configure_logging(LoggingSettings(level="warning"))
    first = await new_topics(bootstrap)
    records = input_records(RESPONSES, first.responses)
    await write(bootstrap, records)
    ours, bare, n = [], [], len(records)
    for _ in range(rounds):
        topics = (await new_topics(bootstrap)).model_copy(update={"responses": first.responses})
        out = f"{topics.deliveries}-bare"
        await create_topic(bootstrap, out)
        settings = KafkaSettings(bootstrap_servers=bootstrap, group_id=topics.deliveries, topics=topics)
        transport = KafkaTransport(settings, topics.responses)
        timed = await guarded(
            transport,
            topics,
            n,
            delivery_guarantee="exactly_once",
            max_record_bytes=settings.max_request_bytes,
        )
        ours.append(timed.seconds)
        per_input, size = timed.written / n, timed.bytes // max(1, timed.written)
        bare.append(
            await bare_transactional_loop(bootstrap, topics.responses, out, n, per_input=per_input, size=size)
        )
    print(
        f"{n:,} records of {RESPONSES} token streams, {PARTITIONS} partitions, medians of {rounds}:  "
        f"bare transactional loop {n / percentile(bare, 0.5):,.0f} records/s   guard, exactly once "
        f"{n / percentile(ours, 0.5):,.0f} records/s   ratio {ratio(bare, ours):.2f} (aim {THROUGHPUT_AIM:g})"
    )
    print(
        f"the guard took {timed.steps:,} steps, wrote {timed.written:,} outputs of {size:,} bytes and "
        f"{timed.state_written:,} records of state, {timed.state_bytes:,} bytes; the bare loop wrote outputs "
        "of the same number and size"
    )


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, kafka=True)
    parser.add_argument("--responses", type=int, default=200, help="streams at once")
    parser.add_argument("--tokens-per-second", type=float, default=50.0, help="of each stream")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a phase")
    parser.add_argument("--rounds", type=int, default=3, help="phases, or runs, of each kind")
    parser.add_argument("--only", choices=["latency", "throughput"])
    arguments = parser.parse_args()
    with kafka_for_benchmark(arguments.bootstrap_servers) as bootstrap:
        if arguments.only != "throughput":
            uvloop.run(latency(bootstrap, arguments))
        if arguments.only != "latency":
            uvloop.run(throughput(bootstrap, arguments.rounds))


if __name__ == "__main__":
    main()
