"""Records what the guard does as what is expected: ``python -m tests.golden.record [GROUP …]``.

When that is right, ``tests/golden/__init__.py`` says. ``--compare GROUP`` records nothing: it compares what
``tests.golden.replay`` printed, on another processor say, with what is expected.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

from tests.golden import cases, compare, normal

ROOT: Final = Path(__file__).parents[2]
_MOST_OF_A_LOG: Final = 5_000
SEEDS: Final = range(1, 9)
"""Of the moves that no recorded case may be turned by; the tests try the first."""


Lines = Sequence[compare.Line]


def replayed(group: str, seeds: Sequence[int], *options: str) -> list[list[Lines]]:
    """What came of the cases of a group, by case: as they are, and for each seed with moved probabilities.
    ``options`` are those of ``replay``. Raises RuntimeError, with its log."""
    found: list[Lines] = [
        normal.lines(result) for result in results(group, "--moved", *map(str, seeds), *options)
    ]
    size = len(found) // (len(seeds) + 1)
    return [found[at : at + size] for at in range(0, len(found), size)]


def results(group: str, *options: str) -> list[dict[str, Any]]:
    """What ``replay`` printed: what came of each case before it is shortened."""
    running, log = _replay()
    assert running.stdin is not None
    assert running.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        print(group, *options, file=running.stdin, flush=True)
    lines = []
    while (line := running.stdout.readline()) != "\n":
        if not line:
            _replay.cache_clear()
            running.wait()
            raise RuntimeError(f"{group} could not be run:\n{log.read_text('utf-8')[-_MOST_OF_A_LOG:]}")
        lines.append(json.loads(line))
    return lines


@cache
def _replay() -> tuple[subprocess.Popen[str], Path]:
    """``replay`` in a process of its own until this one ends, and its log."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GUARDRAIL_") and not name.lower().endswith("_proxy")
    }
    with tempfile.NamedTemporaryFile("w", prefix="guardrail-golden-", suffix=".log", delete=False) as log:
        running = subprocess.Popen(
            [sys.executable, "-m", "tests.golden.replay"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            encoding="utf-8",
        )
    path = Path(log.name)

    def end() -> None:
        running.communicate()
        path.unlink()

    atexit.register(end)
    return running, path


def expected(group: str) -> list[dict[str, Any]]:
    """The recorded lines of a group; none when it has never been recorded."""
    path = cases.EXPECTED / f"{group}.jsonl"
    return list(normal.read(path.read_text(encoding="utf-8"))) if path.exists() else []


def turned(stood: Sequence[Lines], moved: Sequence[Lines]) -> list[str]:
    """What differs, floats aside, when the probabilities of the verifier are moved."""
    return compare.differences(joined(stood), joined(moved), tolerance=math.inf)


def joined(lines: Iterable[Sequence[compare.Line]]) -> list[compare.Line]:
    return list(chain.from_iterable(lines))


def record(groups: Sequence[str]) -> int:
    """Write the expectation of ``groups``, or of all, anew, and print what changes. Floats that differ by no
    more than they may stay as they were, so that a diff shows only what changed.

    Cases so near to a line that another processor might turn them are left out of samples; others are named,
    to be written more clearly. Returns how many of these there are, and how many a sample has too few.
    """
    near_a_line = 0
    for group in groups or cases.group_names():
        before = expected(group)
        now, *moves = replayed(group, SEEDS, "--all")
        told = [one for moved in moves for one in turned(now, moved)]
        near = {one.partition(":")[0] for one in told}
        if group in cases.SAMPLES:
            print(f"{group}: {len(near)} of {len(now)} left out: {' '.join(sorted(near))}")  # noqa: T201
            now = [lines for lines in now if lines[0]["case"] not in near]
            near_a_line += max(0, cases.SAMPLES[group] - len(now))
        elif near:
            print(f"{group}: near a line:", *sorted(set(told)), sep="\n  ")  # noqa: T201
            near_a_line += len(near)
        changes = compare.differences(before, joined(now))
        if changes:
            (cases.EXPECTED / f"{group}.jsonl").write_text(normal.written(joined(now)), encoding="utf-8")
        print(f"{group}: {len(changes)} changes", *changes[:20], sep="\n  ")  # noqa: T201
    return near_a_line


def compare_printed(group: str, printed: Iterable[str]) -> int:
    """Print how the lines of ``tests.golden.replay`` differ from what is expected, and return in how much."""
    found = joined(normal.lines(json.loads(line)) for line in printed)
    told = compare.differences(expected(group), found)
    count = sum("case" in line for line in found)
    print(f"{group}: {count} cases, {len(told)} differences", *told, sep="\n  ")  # noqa: T201
    return len(told)


if __name__ == "__main__":
    groups = sys.argv[1:]
    failed = compare_printed(groups[1], sys.stdin) if groups[:1] == ["--compare"] else record(groups)
    sys.exit(min(failed, 1))
