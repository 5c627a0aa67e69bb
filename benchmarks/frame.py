"""What all benchmarks share: their options, rounds, figures of times, tables, and a line on the machine.

Standard library only: the simulated model of ``benchmarks.peers`` runs where there is nothing else.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from pathlib import Path


def command_line(doc: str | None, *, kafka: bool = False) -> argparse.ArgumentParser:
    """A parser whose help is ``doc``, a script's own. ``kafka``: the script can be given a broker."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if kafka:
        parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="default: a Kafka of its own")
    return parser


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile; nan of nothing."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def p50_p99(seconds: Sequence[float]) -> dict[str, float]:
    """Both, in milliseconds."""
    return {
        name: round(percentile(seconds, share) * 1000, 1) for name, share in (("p50", 0.5), ("p99", 0.99))
    }


async def took(run: Awaitable[object]) -> tuple[float, float]:
    """Seconds that it takes, by the clock and of this process's processor time."""
    began, busy = time.perf_counter(), time.process_time()
    await run
    return time.perf_counter() - began, time.process_time() - busy


def ratio(bare: Sequence[float], ours: Sequence[float]) -> float:
    """What is left of the bare one's pace: the medians of both, over rounds taken in turns."""
    return percentile(bare, 0.5) / percentile(ours, 0.5)


def cpu_seconds(pid: int) -> float:
    """CPU time a process has used, its threads included (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int | None = None) -> int:
    """Resident memory of a process (Linux), of this one by default."""
    pages = int(Path(f"/proc/{pid or 'self'}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of Markdown."""
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows))


def markdown_row(cells: Mapping[str, object], *, head: bool = False) -> str:
    """A row for a table that is printed while it is measured; with ``head`` its columns' names first."""
    table = markdown(list(cells), [list(cells.values())])
    return table if head else table.splitlines()[-1]


def machine() -> str:
    """Cores, and how many processes wanted one of them on average in the last 15 minutes."""
    load = f", load average {os.getloadavg()[2]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores{load}"
