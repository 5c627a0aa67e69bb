"""The rows that a combiner is fitted on, and which of them belong together when they are split."""

from __future__ import annotations

import random
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from guardrail.evidence.sentences import sentence_spans
from guardrail.evidence.tokens import words
from training.examples import Example, read_examples
from training.prepare import source_rows
from training.rows import LICENCES, Row
from training.synthesis import documents, minimal_pairs
from training.written import MEASURED, WRITTEN

MOST_ROWS: Final = 700  # of one data set
_DOCUMENTS: Final = 120
_PAIRS_A_DOCUMENT: Final = 3
_LONG: Final = 60  # words
_ALONE: Final = 0.4  # of rows with one context keep it alone; the others get the company of other rows'
_COMPANY: Final = (1, 4)


def held_out_rows(data: Path, work: Path, *, seed: int, most: int = MOST_ROWS) -> list[Row]:
    """Rows that no verifier was trained on: at most ``most`` of each data set of the work folder, in the
    company of contexts of others as a retriever would bring them, and minimal pairs of held-out documents.

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
    texts = documents(source_rows(data), held_out=True)
    texts = random_.sample(texts, min(len(texts), _DOCUMENTS))
    rows.extend(minimal_pairs(texts, per_document=_PAIRS_A_DOCUMENT, seed=seed))
    return rows


def split_by_document(rows: Sequence[Row], *, share: float, seed: int) -> list[bool]:
    """Which rows are set apart: about ``share`` of them, rows of the same source text always together.

    A source is the long text that several rows share, else the sentence of the contexts that has most of
    the claim's words: that brings a claim and what was made of it together.
    """
    common = Counter(text for row in rows for text in set(row.contexts) if text.count(" ") >= _LONG)
    salt = str(seed).encode()
    return [zlib.crc32(salt + _source(row, common).encode()) % 1000 < 1000 * share for row in rows]


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


def _source(row: Row, common: Counter[str]) -> str:
    shared = sorted(text for text in row.contexts if common[text] > 1)
    if shared:
        return shared[0]
    claim = {term for _, term, _ in words(row.claim)}
    return max(
        _sentences(row.contexts),
        key=lambda sentence: len(claim & {term for _, term, _ in words(sentence)}),
        default=row.claim,
    )


def _sentences(contexts: Iterable[str]) -> Iterator[str]:
    for text in contexts:
        for start, end in zip(*sentence_spans(text), strict=True):
            yield " ".join(text[start:end].split())
