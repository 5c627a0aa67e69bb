"""Claims that people labelled, by data set, and made ones, as benchmarks of judges read them."""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from pathlib import Path
from typing import Final

from training.rows import Row, expert_answers, pool
from training.synthesis import minimal_pairs
from training.written import measured_rows, read_facts

POOL: Final = "pool-val.jsonl.gz"
EXPERTQA: Final = "expertqa-val.jsonl"
CRITICAL: Final = frozenset(("number", "date", "unit", "name", "negation", "swap"))
"""Kinds of changed details that make a claim dangerous."""
FAITHFUL: Final = ("verbatim", "reworded")
"""Kinds of made rows that are supported: whatever is called otherwise is a false alarm."""
_LONG: Final = 60  # words of a text that sentences are taken from


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


def changed_sentences(folder: Path, limit: int, seed: int) -> dict[str, list[Row]]:
    """By kind of error, at most ``limit`` claims each: sentences of the documents of the validation files
    with one detail changed, and ``FAITHFUL`` ones."""
    rows = [*pool(folder / POOL), *expert_answers(folder / EXPERTQA)]
    texts = list(dict.fromkeys(text for row in rows for text in row.contexts if text.count(" ") >= _LONG))
    random.Random(seed).shuffle(texts)
    found: dict[str, list[Row]] = defaultdict(list)
    for row in minimal_pairs(texts, per_document=4, seed=seed):
        kind = row.dataset.removeprefix("synthetic-")
        if len(found[kind]) < limit:
            found[kind].append(row)
    return dict(sorted(found.items()))


def made_claims(folder: Path, pairs: int, seed: int) -> dict[str, list[Row]]:
    """``changed_sentences`` and four times as many ``written_claims``."""
    return changed_sentences(folder, pairs, seed) | written_claims(4 * pairs, seed)


def written_claims(limit: int, seed: int) -> dict[str, list[Row]]:
    """At most ``limit`` claims of the facts written for training that nothing was fitted on, faithful ones
    and others apart."""
    rows = measured_rows(read_facts(), limit=limit, seed=seed)
    return {
        "written, faithful": [row for row in rows if row.supported],
        "written, others": [row for row in rows if not row.supported],
    }
