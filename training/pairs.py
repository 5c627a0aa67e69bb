"""Examples -> the pairs that a verifier is trained on: WORK/pairs.jsonl.gz.

    python -m training.pairs --data DIR --work WORK [--seed S]

A row is an example with what is read of its contexts: ``premise``, the text that the teacher reads, up to
``TEACHER_WORDS`` words of the best windows in the order of the text; and ``readings``, the texts that the
judge would read for the claim (``guardrail.judges.local.search``), as spans of ``premise``. ``settled``
says of each reading whether the label holds for it: a window that lacks words of the claim that others have
may say less than the label is about. Of those a teacher says what they make of the claim
(``training.distil``); without one (``training.train``) they are read only for claims that nothing supports.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from guardrail.events import Context
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.local.search import (
    WindowText,
    find_candidates,
    load_rarity,
    spans_of,
    view_of,
    windows_of,
)
from training.chat_wording import chat_worded, spans_in
from training.examples import DataError, Example, Label, read_examples
from training.factcg import factcg_rows
from training.prepare import SEED
from training.rows import LICENCES
from training.steps import running

REPEATED: Final[Mapping[str, int]] = {
    "attribution-bench": 2,
    "begin": 2,
    "check-covid": 2,
    "factcg": 2,
    "fever-symmetric": 2,
    "fool-me-twice": 2,
    "summedits": 2,
    "synthetic-addition": 2,
    "synthetic-name": 2,
    "wice": 2,
    "written-forms-additions": 12,
    "written-passages-answers": 3,
    "written-passages-findings": 3,
    "written-passages-joined": 3,
    "written-passages-roles": 3,
    "written-passages-taken_back": 4,
    "written-passages-webpages": 3,
}
"""Small sets that look like answers, or teach what others don't, are read more than once, by how their names
begin."""

TEACHER_WORDS: Final = 300
PAIRS: Final = "pairs.jsonl.gz"
_SENTENCES: Final = 12
_NEARLY: Final = 0.9  # of what all that is read has of the claim, for a label to hold for one reading
_CHAT: Final = 0.2  # of claims are worded as chat assistants do
_CHUNK: Final = 2000
_BRIEF_WORDS: Final = 35
_BRIEF_SHARE: Final = 0.25
TWINS_SHARE: Final = 0.2  # not tuned; the courses told of in docs/training.md took half to three quarters
_SETTLED_SHARE: Final = 0.7  # of claims that are not supported read beside what decides them
_RARITY = load_rarity()


def pair_of(example: Example, random_: random.Random) -> dict[str, Any] | None:
    """The row of an example; None where its contexts have no words."""
    claim, spans = example.claim, () if example.supported else example.spans
    if example.twin is None and random_.random() < _CHAT:
        claim = chat_worded(claim, random_)
        spans = spans_in(example.claim, claim, spans)
    index = EvidenceIndex(
        [Context(id=f"c{number}", text=text) for number, text in enumerate(example.contexts)]
    )
    if not len(index.layout.sentences):
        return None
    view = view_of(claim, example.question, example.lead_in, _RARITY)
    matches = find_candidates(index.layout, view, _SENTENCES).sentences
    if not matches:
        return None
    windows = list(windows_of(view, index, matches))
    windows, premise, readings = _laid_out(index, windows)
    read = [_terms(index, window) for window in windows]
    everything = view.share(frozenset().union(*read))
    settled = [view.share(terms) >= _NEARLY * everything for terms in read]
    return {
        "dataset": example.dataset,
        "licence": example.licence,
        "claim": claim,
        "premise": premise,
        "readings": readings,
        "settled": settled,
        "supported": example.supported,
        "contradicted": example.contradicted,
        "spans": spans,
        "held_out": example.held_out,
        "twin": example.twin,
    }


def _terms(index: EvidenceIndex, window: WindowText) -> frozenset[int]:
    layout = index.layout
    return frozenset(
        term
        for number in window.sentences
        for term in layout.terms[layout.sentences.first[number] : layout.sentences.last[number]]
    )


def _laid_out(
    index: EvidenceIndex, windows: list[WindowText]
) -> tuple[list[WindowText], str, list[list[list[int]]]]:
    """The windows that have room in the premise; the premise, what is read of them in the order of the text;
    and of each window the spans in it."""
    sentences = index.layout.sentences
    held: set[int] = set()
    words = 0
    kept: list[WindowText] = []
    for window in windows:
        new = [number for number in window.sentences if number not in held]
        length = sum(sentences.last[n] - sentences.first[n] for n in new)
        if kept and words + length > TEACHER_WORDS:
            continue
        held.update(new)
        words += length
        kept.append(window)
    read = [spans_of(index, window.sentences) for window in kept]
    at: dict[tuple[int, int, int], list[int]] = {}
    parts: list[str] = []
    length = 0
    longest_first = sorted({span for spans in read for span in spans}, key=lambda s: (s[0], s[1], -s[2]))
    before = (-1, 0, 0)
    for span in longest_first:
        context, start, end = span
        text = " ".join(index.shown(context)[start:end].split())
        if (context, start) == before[:2]:  # who speaks, whose first sentence is read for another window
            begin = at[before][0]
        else:
            begin, before = length, span
            parts.append(text)
            length += len(text) + 1
        at[span] = [begin, begin + len(text)]
    return kept, " ".join(parts), [[at[span] for span in spans] for spans in read]


def times(dataset: str) -> int:
    """How often the examples of a data set are read."""
    return next((count for name, count in REPEATED.items() if dataset.startswith(name)), 1)


def _rows(chunk: list[Example], seed: int) -> list[str]:
    random_ = random.Random(seed)
    found = (pair_of(example, random_) for example in chunk)
    return [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in found if row]


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """What the model reads and is to say. ``contradicted`` and ``spans``: None where nobody knows.
    ``twin``: the number that a right claim and its wrong twin share."""

    dataset: str
    licence: str
    claim: str
    premise: str
    supported: bool
    contradicted: bool | None
    spans: tuple[tuple[int, int], ...] | None
    twin: int | None = None


def training_pairs(
    path: Path, *, pairs: int | None, seed: int, twins: float = TWINS_SHARE
) -> list[TrainingPair]:
    """At most ``pairs`` of a file that the step wrote, one reading of each row, held-out rows left out.

    ``twins``: the share that right claims and their wrong twins have, as far as there are enough; they follow
    each other. Of the other rows whose premise is a sentence or two at most ``_BRIEF_SHARE`` are taken: what
    the judge reads is mostly longer. Without ``pairs`` all twins are taken. Raises DataError.
    """
    random_ = random.Random(seed)
    brief: list[TrainingPair] = []
    others: list[TrainingPair] = []
    together: dict[int, list[TrainingPair]] = {}
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                pair = _drawn(json.loads(line), random_)
                if pair is None:
                    continue
                if pair.twin is not None:
                    together.setdefault(pair.twin, []).append(pair)
                else:
                    (brief if pair.premise.count(" ") < _BRIEF_WORDS else others).append(pair)
    except (OSError, EOFError, KeyError, ValueError) as error:
        raise DataError(f"{path}: can't be read ({error}); make it with training.pairs") from error
    units = list(together.values())
    if pairs is not None:
        units = random_.sample(units, min(len(units), round(twins * pairs / 2)))
    total = len(brief) + len(others) if pairs is None else pairs - sum(map(len, units))
    few = min(len(brief), max(round(_BRIEF_SHARE * total), total - len(others)))
    units += [[pair] for pair in random_.sample(brief, few)]
    units += [[pair] for pair in random_.sample(others, min(len(others), total - few))]
    random_.shuffle(units)
    return list(chain.from_iterable(units))


def _drawn(row: dict[str, Any], random_: random.Random) -> TrainingPair | None:
    """One reading of a row that is trained on; None of others."""
    if row["held_out"]:
        return None
    readings = list(zip(row["readings"], row["settled"], strict=True))
    if row["supported"] or random_.random() < _SETTLED_SHARE:
        readings = [each for each in readings if each[1]]
    if not readings:
        return None
    pieces, settled = random_.choice(readings)
    spans = row["spans"] if settled else None
    return TrainingPair(
        row["dataset"],
        row["licence"],
        row["claim"],
        " ".join(row["premise"][start:end] for start, end in pieces),
        row["supported"],
        row["contradicted"] if settled else None,
        None if spans is None else tuple((start, end) for start, end in spans),
        row["twin"],
    )


def _documents(data: Path) -> Iterator[Example]:
    for row in factcg_rows(data):
        yield Example(
            row.dataset, LICENCES[row.dataset], row.claim, row.contexts, cast("Label", row.label),
            held_out=row.is_held_out,
        )  # fmt: skip


def main() -> None:
    """Run the step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    with running(parser, "pairs"):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    counts: Counter[str] = Counter()
    random_ = random.Random(options.seed)

    def examples() -> Iterator[Example]:
        found = (read_examples(options.work / f"{name}.jsonl.gz") for name in ("prepared", "synthetic"))
        for example in chain(*found, _documents(options.data)):
            yield from [example] * (1 if example.held_out else times(example.dataset))

    everything = list(examples())
    if not everything:
        raise DataError(f"{options.work}: no examples; run training.prepare and training.synthesise")
    random_.shuffle(everything)
    listed = [everything[at : at + _CHUNK] for at in range(0, len(everything), _CHUNK)]
    with (
        ProcessPoolExecutor(options.processes) as pool,
        gzip.open(options.work / PAIRS, "wt", encoding="utf-8", compresslevel=4) as out,
    ):
        for rows in pool.map(_rows, listed, range(options.seed, options.seed + len(listed))):
            for row in rows:
                counts["rows"] += 1
                out.write(row + "\n")
    print(f"{counts['rows']:,} rows in {options.work / PAIRS}")


if __name__ == "__main__":
    main()
