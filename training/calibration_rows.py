"""The rows that a combiner is fitted on."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from training.examples import Example, read_examples
from training.factcg import factcg_rows
from training.prepare import source_rows
from training.rows import LICENCES, Row
from training.synthesis import documents, minimal_pairs
from training.written import MEASURED, WRITTEN

MOST_ROWS: Final = 700  # of one data set
_DOCUMENTS: Final = 120
_PAIRS_A_DOCUMENT: Final = 3
_ALONE: Final = 0.4  # of rows with one context keep it alone; the others get the company of other rows'
_COMPANY: Final = (1, 4)


def held_out_rows(data: Path, work: Path, *, seed: int, most: int = MOST_ROWS) -> list[Row]:
    """Rows that no verifier was trained on: at most ``most`` of each data set of the work folder, in the
    company of contexts of others as a retriever would bring them, held-out rows of FactCG's documents, and
    minimal pairs of other held-out documents.

    Raises DataError. Data sets whose licence doesn't allow a shipped model have no part.
    """
    random_ = random.Random(seed)
    by_set: dict[str, list[Example]] = defaultdict(list)
    for name in ("prepared.jsonl.gz", "synthetic.jsonl.gz"):
        for example in read_examples(work / name):
            usable = _base(example.dataset) in LICENCES or example.dataset.startswith(WRITTEN)
            if example.held_out and usable and example.source != MEASURED:
                by_set[example.dataset].append(example)
    chosen = [
        example
        for _, found in sorted(by_set.items())
        for example in random_.sample(found, min(len(found), most))
    ]
    rows = list(_with_company(chosen, random_))
    news = [row for row in factcg_rows(data) if row.is_held_out]
    rows.extend(random_.sample(news, min(len(news), most)))
    texts = documents(source_rows(data), held_out=True)
    texts = random_.sample(texts, min(len(texts), _DOCUMENTS))
    rows.extend(minimal_pairs(texts, per_document=_PAIRS_A_DOCUMENT, seed=seed))
    return rows


def _base(dataset: str) -> str:
    """The data set of the pool that a row's data set was made of; made from several: as if one."""
    if dataset.startswith("synthetic"):
        return "wikisplit"  # made from texts of LICENCES only
    return dataset.removesuffix("-changed").removesuffix("-stranger")


def _with_company(examples: Sequence[Example], random_: random.Random) -> Iterator[Row]:
    contexts = [example.contexts[0] for example in examples]
    for example in examples:
        row = Row(
            example.dataset, example.contexts, example.claim, example.label, example.question,
            example.lead_in,
        )  # fmt: skip
        if len(row.contexts) == 1 and random_.random() > _ALONE:
            others = [t for t in random_.sample(contexts, random_.randint(*_COMPANY)) if t != row.contexts[0]]
            mixed = [*row.contexts, *others]
            random_.shuffle(mixed)
            row = replace(row, contexts=tuple(mixed))
        yield row
