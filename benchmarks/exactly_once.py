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
import contextlib
import json
import multiprocessing
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import uvloop
import yaml

from benchmarks.bare_loops import bare_transactional_loop
from benchmarks.frame import (
    PARTITIONS,
    command_line,
    cpu_seconds,
    create_topic,
    kafka_for_benchmark,
    new_topics,
    percentiles,
    write,
)
from benchmarks.paced_streams import Phase, Seen, Written, read_until_final, write_phases
from benchmarks.pipeline import guarded, input_records
from benchmarks.timed_transport import Timed
from consumers.kafka import KafkaTransport
from consumers.kafka.client import quiet_client_log
from consumers.settings import KafkaSettings, Topics
from guardrail.config import LoggingSettings
from guardrail.logs import configure_logging

MODES = ("at_least_once", "exactly_once")
RESPONSES = 800
THROUGHPUT_AIM = 0.5
WARM_UP_S = 20.0
PAUSE_S = 1.5
STOP_TIMEOUT_S = 60
MOST_BEHIND_MS = 250
AIMS_MS = {"p50": 15.0, "p99": 60.0}


@contextlib.contextmanager
def guard_process(
    folder: Path, bootstrap: str, topics: Topics, mode: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A guard with the instant judge, stopped in order at the end. The times of its verdicts go to a file."""
    config = folder / f"{mode}.yaml"
    kafka = {
        "bootstrap_servers": bootstrap,
        "group_id": topics.responses,
        "topics": topics.model_dump(),
        "delivery_guarantee": mode,
    }
    config.write_text(yaml.safe_dump({"kafka": kafka, "logging": {"level": "warning"}}))
    times = f"{folder}/{mode}.times"
    command = [sys.executable, "-m", "benchmarks.guard_process", times, "run", "--config", str(config)]
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def delays(
    mode: str, run: str, written: Written, seen: Sequence[Seen], verdicts: dict[str, float]
) -> dict[str, Any]:
    """Both delays of one mode's deliveries. A claim that says what one before it says isn't judged again:
    segments with such a claim have no verdict of their own."""
    ours = [one for one in seen if one.response_id.startswith(f"{run}-{mode}-")]
    token = [one.at - written.completing[one.response_id, one.segment] for one in ours]
    judged = [one for one in ours if one.claim_ids and verdicts.keys() >= set(one.claim_ids)]
    verdict = [one.at - max(verdicts[claim] for claim in one.claim_ids) for one in judged]
    return {"segments": len(ours), "token": percentiles(token), "verdict": percentiles(verdict)}


def added(results: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """What exactly once takes longer, percentile by percentile."""
    return {
        delay: {
            name: round(results["exactly_once"][delay][name] - results["at_least_once"][delay][name], 1)
            for name in AIMS_MS
        }
        for delay in ("token", "verdict")
    }


def latency(bootstrap: str, arguments: argparse.Namespace) -> bool:
    """Measure and print the delays; are the aims met?"""
    run = uuid.uuid4().hex[:8]
    topics = {mode: asyncio.run(new_topics(bootstrap, f"bench-{run}-{mode}")) for mode in MODES}

    def phase(mode: str, number: int, seconds: float) -> Phase:
        name = f"{run}-{mode}-{number}"
        return Phase(
            name, topics[mode].responses, arguments.responses, arguments.tokens_per_second, seconds, number
        )

    rounds = range(1, arguments.rounds + 1)
    phases = [phase(mode, number, arguments.seconds) for number in rounds for mode in MODES]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written, seen, used = _with_guards(
            bootstrap, topics, folder, phases, [phase(m, 0, WARM_UP_S) for m in MODES]
        )
        verdicts = {mode: json.loads((folder / f"{mode}.times").read_text()) for mode in MODES}
    results = {mode: delays(mode, run, written, seen, verdicts[mode]) for mode in MODES}
    busy = arguments.seconds * arguments.rounds
    shares = {mode: round(seconds / busy, 2) for mode, seconds in used.items()}
    return _report(arguments, results, shares, written)


def _with_guards(
    bootstrap: str,
    topics: Mapping[str, Topics],
    folder: Path,
    phases: Sequence[Phase],
    warm_up: Sequence[Phase],
) -> tuple[Written, list[Seen], dict[str, float]]:
    """What was written and seen of ``phases``, and each guard's CPU seconds meanwhile."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool, contextlib.ExitStack() as stack:
        guards = {
            mode: stack.enter_context(guard_process(folder, bootstrap, topics[mode], mode)) for mode in MODES
        }
        # Nothing is counted before both guards have answered a whole phase.
        _through(pool, bootstrap, topics, warm_up)
        before = {mode: cpu_seconds(guard.pid) for mode, guard in guards.items()}
        written, seen = _through(pool, bootstrap, topics, phases)
        return written, seen, {mode: cpu_seconds(guard.pid) - before[mode] for mode, guard in guards.items()}


def _through(
    pool: ProcessPoolExecutor, bootstrap: str, topics: Mapping[str, Topics], phases: Sequence[Phase]
) -> tuple[Written, list[Seen]]:
    """Write the phases and read what the guards deliver of them."""
    responses = {response_id for phase in phases for response_id in phase.ids()}
    deliveries = [topics[mode].deliveries for mode in MODES]
    reading = pool.submit(read_until_final, bootstrap, deliveries, responses)
    writing = pool.submit(write_phases, bootstrap, phases, PAUSE_S)
    return writing.result(), reading.result()


def _report(
    arguments: argparse.Namespace,
    results: dict[str, dict[str, Any]],
    cpu: dict[str, float],
    written: Written,
) -> bool:
    more = added(results)
    met = all(more[delay][name] <= aim for delay in more for name, aim in AIMS_MS.items())
    print(
        f"{arguments.responses} responses at once, {arguments.tokens_per_second:g} tokens/s each, "
        f"{PARTITIONS} partitions, {arguments.rounds} phases of {arguments.seconds:g} s in each mode"
    )
    for mode in MODES:
        found = results[mode]
        cells = "   ".join(
            f"{delay} to delivery p50 {found[delay]['p50']:>6.1f} ms  p99 {found[delay]['p99']:>6.1f} ms"
            for delay in ("token", "verdict")
        )
        print(f"{mode:<14} {cells}   ({found['segments']:,} segments, guard {cpu[mode]:.2f} CPU)")
    cells = "   ".join(
        f"{delay} to delivery p50 {more[delay]['p50']:>6.1f} ms  p99 {more[delay]['p99']:>6.1f} ms"
        for delay in more
    )
    print(f"{'added':<14} {cells}   aims: p50 {AIMS_MS['p50']:g} ms, p99 {AIMS_MS['p99']:g} ms")
    print(f"the writer was at worst {written.worst_lag_s * 1000:.0f} ms behind its schedule")
    print(
        json.dumps({"latency_ms": results, "added_ms": more, "guard_cpu": cpu, "aims_met": met}), flush=True
    )
    return met


async def _throughput(bootstrap: str, rounds: int) -> bool:
    quiet_client_log()
    first = await new_topics(bootstrap)
    records = input_records(RESPONSES, first.responses)
    await write(bootstrap, records)
    ours: list[float] = []
    bare: list[float] = []
    for _ in range(rounds):
        topics = (await new_topics(bootstrap)).model_copy(update={"responses": first.responses})
        out = f"{topics.deliveries}-bare"
        await create_topic(bootstrap, out, PARTITIONS)
        settings = KafkaSettings(bootstrap_servers=bootstrap, group_id=topics.deliveries, topics=topics)
        transport = KafkaTransport(settings, topics.responses)
        timed = await guarded(
            transport,
            topics,
            len(records),
            delivery_guarantee="exactly_once",
            max_record_bytes=settings.max_request_bytes,
        )
        ours.append(timed.seconds)
        per_input, size = timed.written / len(records), timed.bytes // max(1, timed.written)
        bare.append(
            await bare_transactional_loop(
                bootstrap, topics.responses, out, len(records), per_input=per_input, size=size
            )
        )
    return _throughput_report(len(records), ours, bare, timed)


def _throughput_report(n: int, ours: Sequence[float], bare: Sequence[float], timed: Timed) -> bool:
    middle = len(ours) // 2
    ratio = sorted(bare)[middle] / sorted(ours)[middle]
    result: Mapping[str, object] = {
        "records": n,
        "guard_records_per_s": round(n / sorted(ours)[middle]),
        "bare_records_per_s": round(n / sorted(bare)[middle]),
        "ratio": round(ratio, 2),
        "aim_met": ratio >= THROUGHPUT_AIM,
        "guard_steps": timed.steps,
        "outputs": timed.written,
        "output_bytes": timed.bytes,
        "state_records": timed.state_written,
        "state_bytes": timed.state_bytes,
    }
    print(
        f"{n:,} records of {RESPONSES} token streams, {PARTITIONS} partitions, medians of {len(ours)}:  "
        f"bare transactional loop {result['bare_records_per_s']:,} records/s   "
        f"guard, exactly once {result['guard_records_per_s']:,} records/s   ratio {ratio:.2f} "
        f"(aim {THROUGHPUT_AIM:g})"
    )
    print(
        f"the guard took {timed.steps:,} steps, wrote {timed.written:,} outputs of "
        f"{timed.bytes / max(1, timed.written):,.0f} bytes and {timed.state_written:,} records of state, "
        f"{timed.state_bytes:,} bytes; the bare loop wrote outputs of the same number and size"
    )
    print(json.dumps({"throughput": result}), flush=True)
    return ratio >= THROUGHPUT_AIM


def throughput(bootstrap: str, rounds: int) -> bool:
    """Measure and print; is the aim met?"""
    configure_logging(LoggingSettings(level="warning"))
    return uvloop.run(_throughput(bootstrap, rounds))


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
            latency(bootstrap, arguments)
        if arguments.only != "latency":
            throughput(bootstrap, arguments.rounds)


if __name__ == "__main__":
    main()
