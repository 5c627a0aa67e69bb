"""What judges are measured on, and the held-out rows that their thresholds come from."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from benchmarks.labelled_sets import EXPERTQA, POOL, labelled_sets
from guardrail.evidence.sentences import sentence_spans
from training.prepare import examples, read_data
from training.rows import Row, expert_answers, pool
from training.synthesis import minimal_pairs

CRITICAL: Final = frozenset(("number", "date", "unit", "name", "negation", "swap"))
"""Kinds of changed details that make a claim dangerous."""
FAITHFUL: Final = ("verbatim", "reworded")
"""Kinds of made rows that are supported: whatever is called otherwise is a false alarm."""

_LONG: Final = 60  # words of a text that sentences are taken from
_PASSAGE_WORDS: Final = 150
_PASSAGES: Final = 3


def labelled(data: Path, *, limit: int, seed: int) -> dict[str, list[Row]]:
    """At most ``limit`` claims of each set that has both classes. Raises OSError where a file is missing."""
    found = labelled_sets(data, limit, seed)
    return {name: rows for name, rows in found.items() if len({row.supported for row in rows}) == 2}


def validation(data: Path, *, limit: int, seed: int) -> list[Row]:
    """Rows of the training pool that nothing is fitted on, at most ``limit`` of each set: where thresholds
    come from that are no verdicts of a judge."""
    by_set: dict[str, list[Row]] = defaultdict(list)
    for e in examples(read_data(data, experimental=False), seed=seed):
        if e.held_out:
            by_set[e.dataset].append(Row(e.dataset, e.contexts, e.claim, e.label, e.question, e.lead_in))
    random_ = random.Random(seed)
    return [row for _, rows in sorted(by_set.items()) for row in random_.sample(rows, min(len(rows), limit))]


def made(data: Path, *, limit: int, seed: int) -> dict[str, list[Row]]:
    """By kind of error, at most ``limit`` claims each: sentences of the documents of the validation files
    with one detail changed, and ``FAITHFUL`` ones."""
    found: dict[str, list[Row]] = defaultdict(list)
    texts = long_texts(data, seed=seed)
    for row in minimal_pairs(texts, per_document=4, seed=seed):
        kind = row.dataset.removeprefix("synthetic-")
        if len(found[kind]) < limit:
            found[kind].append(row)
    return dict(sorted(found.items()))


def passages_of_150_words(rows: Iterable[Row], *, count: int) -> Iterator[Row]:
    """Rows with three passages of about 150 words: what a claim costs is measured on these."""
    for row in rows:
        passages = list(_passages(" ".join(row.contexts)))[:_PASSAGES]
        if len(passages) == _PASSAGES and count > 0:
            count -= 1
            yield replace(row, contexts=tuple(passages))


def long_texts(data: Path, *, seed: int) -> list[str]:
    """The distinct long contexts of the validation files, shuffled."""
    rows = [*pool(data / POOL), *expert_answers(data / EXPERTQA)]
    texts = dict.fromkeys(text for row in rows for text in row.contexts if text.count(" ") >= _LONG)
    found = list(texts)
    random.Random(seed).shuffle(found)
    return found


def _passages(text: str) -> Iterator[str]:
    """The text cut behind the sentences with which 150 words are full; a rest is left."""
    begin = 0
    _, ends = sentence_spans(text)
    for _, end in pairwise([0, *ends]):
        if text.count(" ", begin, end) >= _PASSAGE_WORDS:
            yield text[begin:end].strip()
            begin = end
