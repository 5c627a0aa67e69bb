"""Records what the guard does as what is expected: ``python -m tests.golden.record [GROUP …]``.

When that is right, ``tests/golden/__init__.py`` says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.golden import cases, compare, normal

ROOT: Final = Path(__file__).parents[2]
_MOST_OF_A_LOG: Final = 5_000
EXPECTED: Final = Path(__file__).parent / "expected"


def replayed(group: str) -> list[dict[str, Any]]:
    """What came of the cases of a group, run in a process of its own. Raises RuntimeError, with its log."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GUARDRAIL_") and not name.lower().endswith("_proxy")
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.replay", group],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise RuntimeError(f"{group} could not be run:\n{done.stderr[-_MOST_OF_A_LOG:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def expected(group: str) -> list[dict[str, Any]]:
    """The recorded lines of a group; none when it has never been recorded."""
    path = EXPECTED / f"{group}.jsonl"
    return list(normal.read(path.read_text(encoding="utf-8"))) if path.exists() else []


def record(groups: Sequence[str]) -> None:
    """Write the expectation of ``groups`` anew, and print what changes. Floats that differ by no more than
    they may stay as they were, so that a diff shows only what changed."""
    for group in groups:
        before = expected(group)
        now = [line for result in replayed(group) for line in normal.lines(result)]
        changes = compare.differences(before, now)
        if changes:
            (EXPECTED / f"{group}.jsonl").write_text(normal.written(now), encoding="utf-8")
        print(f"{group}: {len(changes)} changes", *changes[:20], sep="\n  ")  # noqa: T201


if __name__ == "__main__":
    record(sys.argv[1:] or cases.group_names())
