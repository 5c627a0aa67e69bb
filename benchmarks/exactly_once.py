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
(benchmarks.bare_transactional_loop) reads the same and writes as many records of the same size as the guard
did, one after the other in the same run. Their ratio is what the guard leaves of Kafka's own pace.

Without an address it starts a Kafka of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from benchmarks.bare_kafka_loop import create_topic, kafka_for_benchmark
from benchmarks.exactly_once_throughput import throughput
from benchmarks.paced_streams import Phase, Seen, Written, read_until_final, write_phases

MODES = ("at_least_once", "exactly_once")
PARTITIONS = 4
WARM_UP_S = 20.0
PAUSE_S = 1.5
STOP_TIMEOUT_S = 60
MOST_BEHIND_MS = 250
AIMS_MS = {"p50": 15.0, "p99": 60.0}


def topics_of(run: str, mode: str) -> dict[str, str]:
    """The topics of one mode, named after the run."""
    names = ("responses", "deliveries", "verdicts", "flagged", "dead_letters", "sessions")
    return {name: f"bench-{run}-{mode}-{name}" for name in names}


@contextlib.contextmanager
def guard_process(
    folder: Path, bootstrap: str, run: str, mode: str, times: str | None = None, **settings: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A guard with the instant judge, stopped in order at the end. ``times``: where verdicts' times go."""
    config = folder / f"{mode}.yaml"
    kafka = {
        "bootstrap_servers": bootstrap,
        "group_id": f"bench-{run}-{mode}",
        "topics": topics_of(run, mode),
        "delivery_guarantee": mode,
    }
    config.write_text(yaml.safe_dump({"kafka": kafka, "logging": {"level": "warning"}, **settings}))
    command = [sys.executable, "-m", "benchmarks.guard_process", times or "-", "run", "--config", str(config)]
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


def cpu_seconds(pid: int) -> float:
    """CPU time a process has used, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50 and p99 in milliseconds."""
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50": round(cuts[49] * 1000, 1), "p99": round(cuts[98] * 1000, 1)}


def delays(
    mode: str, run: str, written: Written, seen: Sequence[Seen], verdicts: dict[str, float]
) -> dict[str, Any]:
    """Both delays of one mode's deliveries."""
    ours = [one for one in seen if one.response_id.startswith(f"{run}-{mode}-")]
    token = [one.at - written.completing[one.response_id, one.segment] for one in ours]
    verdict = [one.at - max(verdicts[claim] for claim in one.claim_ids) for one in ours if one.claim_ids]
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
    for mode in MODES:
        for topic in topics_of(run, mode).values():
            asyncio.run(create_topic(bootstrap, topic, PARTITIONS))

    def phase(mode: str, number: int, seconds: float) -> Phase:
        name, topic = f"{run}-{mode}-{number}", topics_of(run, mode)["responses"]
        return Phase(name, topic, arguments.responses, arguments.tokens_per_second, seconds, number)

    rounds = range(1, arguments.rounds + 1)
    phases = [phase(mode, number, arguments.seconds) for number in rounds for mode in MODES]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written, seen, used = _with_guards(
            bootstrap, run, folder, phases, [phase(m, 0, WARM_UP_S) for m in MODES]
        )
        verdicts = {mode: json.loads((folder / f"{mode}.times").read_text()) for mode in MODES}
    results = {mode: delays(mode, run, written, seen, verdicts[mode]) for mode in MODES}
    busy = arguments.seconds * arguments.rounds
    shares = {mode: round(seconds / busy, 2) for mode, seconds in used.items()}
    return _report(arguments, results, shares, written)


def _with_guards(
    bootstrap: str, run: str, folder: Path, phases: Sequence[Phase], warm_up: Sequence[Phase]
) -> tuple[Written, list[Seen], dict[str, float]]:
    """What was written and seen of ``phases``, and each guard's CPU seconds meanwhile."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool, contextlib.ExitStack() as stack:
        guards = {
            mode: stack.enter_context(guard_process(folder, bootstrap, run, mode, f"{folder}/{mode}.times"))
            for mode in MODES
        }
        # Nothing is counted before both guards have answered a whole phase.
        _through(pool, bootstrap, run, warm_up)
        before = {mode: cpu_seconds(guard.pid) for mode, guard in guards.items()}
        written, seen = _through(pool, bootstrap, run, phases)
        return written, seen, {mode: cpu_seconds(guard.pid) - before[mode] for mode, guard in guards.items()}


def _through(
    pool: ProcessPoolExecutor, bootstrap: str, run: str, phases: Sequence[Phase]
) -> tuple[Written, list[Seen]]:
    """Write the phases and read what the guards deliver of them."""
    responses = {response_id for phase in phases for response_id in phase.ids()}
    deliveries = [topics_of(run, mode)["deliveries"] for mode in MODES]
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


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap-servers", help="use this Kafka instead of starting one")
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
