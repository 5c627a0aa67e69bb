"""Claims that people labelled, by data set, as benchmarks of the local judge and the cascade read them."""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from pathlib import Path
from typing import Final

from training.rows import Row, expert_answers, pool

POOL: Final = "pool-val.jsonl.gz"
EXPERTQA: Final = "expertqa-val.jsonl"


def require_files(parser: argparse.ArgumentParser, folder: Path, *names: str) -> None:
    """End the program with status 2, and say which file is missing, unless ``folder`` holds all of them."""
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        lacking = " and no ".join(missing)
        parser.error(f"--data: {folder} has no {lacking}; name the folder that holds the labelled sets")


def labelled_sets(folder: Path, limit: int, seed: int) -> dict[str, list[Row]]:
    """At most ``limit`` claims of each set, drawn with ``seed``, by the set's name in order.

    Raises OSError where ``folder`` lacks ``POOL`` or ``EXPERTQA``.
    """
    by_set: dict[str, list[Row]] = defaultdict(list)
    for row in pool(folder / POOL):
        by_set[row.dataset].append(row)
    by_set["expertqa"] = list(expert_answers(folder / EXPERTQA))
    random_ = random.Random(seed)
    return {name: random_.sample(rows, min(len(rows), limit)) for name, rows in sorted(by_set.items())}
