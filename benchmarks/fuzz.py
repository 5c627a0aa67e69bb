"""Fuzzes decoding, engine and sessions: does anything crash, hang, or go missing?

    python -m benchmarks.fuzz --events 1000000 --seed 1
    python -m benchmarks.fuzz --replay SEED

Episodes of a few responses side by side, with records lost, repeated, swapped, replayed under other ids, with
wrong fields, versions, types, bytes and keys, go through ``parse_input`` into a live engine, whose judge is
slow, silent, wrong or faulty, while time passes and the engine is replaced by one restored from what was
captured. A model of the protocol says beforehand what may become of each record; the outputs are checked one
by one and at the end. ``--events`` counts mutated records. Same seed, same episodes, on any number of
processes. Exit status 1 when anything was found; every finding names the seed that shows it again.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator

from benchmarks.frame import command_line
from tests.support.fuzzing.run import Tally, run_seeds

CHUNK = 100
SEEDS_A_RUN = 10_000_000
MOST_FINDINGS = 20
PROGRESS = 50_000


def chunks(first: int) -> Iterator[range]:
    """Seeds in order, a hundred at a time."""
    while True:
        yield range(first, first + CHUNK)
        first += CHUNK


def fuzz(events: int, seed: int, processes: int) -> Tally:
    """Episodes until ``events`` mutated records have been taken."""
    tally = Tally()
    told = 0
    waiting = chunks(seed * SEEDS_A_RUN)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        running: dict[concurrent.futures.Future[Tally], range] = {}
        while running or tally.mutated < events:
            while tally.mutated < events and len(running) < processes * 2:
                seeds = next(waiting)
                running[pool.submit(run_seeds, seeds)] = seeds
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                seeds = running.pop(future)
                try:
                    tally.add(future.result())
                except concurrent.futures.process.BrokenProcessPool:
                    sys.exit(
                        f"a process died within the seeds {seeds.start}..{seeds.stop}; its trace is above"
                    )
            told += PROGRESS if (tell := tally.mutated >= told + PROGRESS) else 0
            if tell:
                print(
                    f"{tally.mutated:,} mutated, {len(tally.findings)} findings", file=sys.stderr, flush=True
                )
            if len(tally.findings) >= MOST_FINDINGS:
                events = 0
    return tally


def report(tally: Tally, seconds: float) -> None:
    """Everything that was counted, and what was found."""
    print(
        f"{tally.mutated:,} mutated of {tally.records:,} records in {tally.episodes:,} episodes, "
        f"{tally.counts['responses']:,} responses, {seconds:.0f} s, {tally.records / seconds:,.0f} records/s"
    )
    print(f"accounted for: {tally.accounted:,} of {tally.records:,}")
    for title, counted in (("what became of them", tally.counts), ("what was done to them", tally.mutations)):
        print(f"\n{title}")
        for what, n in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
            print(f"  {n:>12,}  {what}")
    print(f"\nfindings: {len(tally.findings)}")
    shown: set[str] = set()
    for finding in tally.findings:
        alike = finding.kind + finding.message[:40]
        if alike in shown:
            print(f"seed {finding.seed}: {finding.kind}: {finding.message[:100]}")
            continue
        shown.add(alike)
        print(f"\nseed {finding.seed}: {finding.kind}: {finding.message[:500]}\n{finding.where}")


def main() -> None:
    """Command line."""
    parser = command_line(__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="mutated records")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--replay", type=int, metavar="SEED", help="one episode, by the seed of a finding")
    arguments = parser.parse_args()
    started = time.perf_counter()
    if arguments.replay is not None:
        tally = run_seeds([arguments.replay])
    else:
        tally = fuzz(arguments.events, arguments.seed, arguments.processes)
    report(tally, time.perf_counter() - started)
    complete = tally.accounted == tally.records
    sys.exit(1 if tally.findings or not complete else 0)


if __name__ == "__main__":
    main()
