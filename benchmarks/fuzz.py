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

import itertools
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from benchmarks.frame import command_line, markdown
from tests.support.fuzzing.run import Tally, run_seeds

CHUNK = 100
SEEDS_A_RUN = 10_000_000
MOST_FINDINGS = 20


def fuzz(events: int, seed: int, processes: int) -> Tally:
    """Episodes until ``events`` mutated records have been taken."""
    tally, first = Tally(), seed * SEEDS_A_RUN
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        chunks = (range(at, at + CHUNK) for at in itertools.count(first, CHUNK))
        # A wave for all processes at a time, so that no more is begun than is asked for.
        while tally.mutated < events and len(tally.findings) < MOST_FINDINGS:
            wave = list(itertools.islice(chunks, processes))
            try:
                for found in pool.map(run_seeds, wave):
                    tally.add(found)
            except BrokenProcessPool:
                sys.exit(f"a process died within the seeds {wave[0].start}..{wave[-1].stop}: see above")
            print(f"{tally.mutated:,} mutated, {len(tally.findings)} findings", file=sys.stderr, flush=True)
    return tally


def report(tally: Tally, seconds: float) -> None:
    """Everything that was counted, and what was found."""
    print(
        f"{tally.mutated:,} mutated of {tally.records:,} records in {tally.episodes:,} episodes, "
        f"{tally.counts['responses']:,} responses, {seconds:.0f} s, {tally.records / seconds:,.0f} records/s"
    )
    print(f"accounted for: {tally.accounted:,} of {tally.records:,}")
    for title, counted in (("what became of them", tally.counts), ("what was done to them", tally.mutations)):
        print(markdown([title, "times"], Counter(counted).most_common()))
    print(f"\nfindings: {len(tally.findings)}")
    for finding in tally.findings:
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
    sys.exit(1 if tally.findings or tally.accounted != tally.records else 0)


if __name__ == "__main__":
    main()
