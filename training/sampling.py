"""Which rows the combiner is fitted on, and what each counts."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from training.perturb import NEGATIVE_KINDS, change, names_of
from training.rows import LICENCES, Row
from training.synthesis import documents, minimal_pairs

WEIGHTS: Final[dict[str, float]] = {
    "summedits": 5.0,
    "wice": 5.0,
    "begin": 5.0,
    "attribution-bench": 2.0,
    "written": 0.2,  # the verifier knows their writers: nothing says that users word things as they do
    "synthetic-absent": 1.5,
    "synthetic-reworded": 0.8,
    "synthetic-name": 0.6,
    "synthetic": 0.3,
    "help": 0.3,
    "breaking-nli": 0.3,
}
"""By how a data set's name begins, the first that fits; others 1. Sets that look like answers count more,
made-up ones less."""

_MADE: Final = ("-changed", "-stranger")
_MOST_ROWS: Final = 2200  # of one data set
_DISTRACTED: Final = 0.65
_PASSAGE_SENTENCES: Final = (4, 24)


def weight_of(dataset: str) -> float:
    """What all rows of a data set count together, relative to the others."""
    if dataset.endswith(_MADE):
        return WEIGHTS["synthetic"]
    return next((weight for name, weight in WEIGHTS.items() if dataset.startswith(name)), 1.0)


def sample(rows: Iterable[Row], *, seed: int, pairs_per_document: int = 3) -> Iterator[Row]:
    """The rows to fit on: freely licensed ones, short premises hidden in passages, and minimal pairs."""
    random_ = random.Random(seed)
    by_set: dict[str, list[Row]] = defaultdict(list)
    texts: dict[str, None] = {}
    for row in rows:
        if row.dataset in LICENCES and not row.is_held_out:
            by_set[row.dataset].append(row)
    for dataset, found in sorted(by_set.items()):
        chosen = random_.sample(found, min(len(found), _MOST_ROWS))
        premises = [text for row in found for text in row.contexts if text.count(" ") < 60]
        for row in chosen:
            yield from _variants(row, premises, random_)
        for row in found:
            texts.update(dict.fromkeys(row.contexts))
        print(f"  {dataset}: {len(chosen)} of {len(found)}")
    long_texts = documents((row for found in by_set.values() for row in found), held_out=False)
    yield from minimal_pairs(long_texts, per_document=pairs_per_document, seed=seed)


def _variants(row: Row, premises: list[str], random_: random.Random) -> Iterator[Row]:
    """The row, its premise among others if it is short; for sets of positives only, with a detail
    changed."""
    contexts = _hidden(row, premises, random_)
    yield Row(row.dataset, contexts, row.claim, row.label, row.question, row.lead_in)
    if row.dataset == "wikisplit":
        names = names_of(" ".join(random_.sample(premises, 20)))
        kind = random_.choice(NEGATIVE_KINDS)
        changed = change(kind, row.claim, names, random_)
        if changed:
            yield Row(f"synthetic-{kind}", contexts, changed, "contradicted")
    if row.dataset in ("fever", "wikisplit", "fool-me-twice") and row.supported and random_.random() < 0.3:
        others = tuple(random_.sample(premises, 12))
        yield Row("synthetic-absent", (" ".join(others),), row.claim, "unsupported")


def _hidden(row: Row, premises: list[str], random_: random.Random) -> tuple[str, ...]:
    if sum(text.count(" ") for text in row.contexts) >= 60 or random_.random() > _DISTRACTED:
        return row.contexts
    count = random_.randint(*_PASSAGE_SENTENCES)
    others = [*row.distractors, *random_.sample(premises, min(count, len(premises)))][:count]
    sentences = [*row.contexts, *others]
    random_.shuffle(sentences)
    half = random_.randint(1, len(sentences))
    cut = (" ".join(sentences[:half]), " ".join(sentences[half:]))
    return tuple(text for text in cut if text)
