"""Public data sets -> examples to train on.

    python -m training.prepare --data DIR --work WORK [--experimental] [--seed S]

``DIR`` holds public data sets as they were published, a folder each (``training/published.py``), or
``pool-train.jsonl.gz``, or both (docs/training.md). Rows of data sets whose licence doesn't
allow a model that is shipped are left out, but with ``--experimental``, whose models ``training.export``
refuses to call shippable. Short premises are mostly hidden among other sentences, as a retrieved passage
hides them; sets of positives only get negatives with one detail changed. Facts written for the purpose
(``training/written``) are added, and sentences about who does what to whom
(``training.relations``). Writes ``WORK/prepared.jsonl.gz``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from guardrail.evidence.sentences import sentence_spans
from training.balance import balanced
from training.changes import label_of
from training.examples import DataError, Example, write_examples
from training.perturb import NEGATIVE_KINDS, change, names_of
from training.published import folders, sources
from training.relations import read_grammar, relation_examples
from training.rows import LICENCES, Row, expert_answers, is_held_out, pool
from training.written import FOLDER, read_facts, twin_examples, written_examples

POOL: Final = "pool-train.jsonl.gz"
VALIDATION: Final = "pool-val.jsonl.gz"
EXPERT_ANSWERS: Final = "expertqa-val.jsonl"
SEED: Final = 20261121
RELATIONS: Final = 12_000
MOST_ROWS: Final[dict[str, int]] = {"breaking-nli": 4000, "help": 3000, "wikisplit": 30000}
"""Of sets that are large for what they teach; others are taken whole."""

_TELLING_WORDS: Final = 8
_SHORT: Final = 60  # words; a premise below is a sentence or two, not a passage
_HIDDEN: Final = 0.55
_COMPANY: Final = (1, 6)  # other sentences in the passage
_CHANGED: Final = ("wikisplit",)  # sets of positives only
_STRANGERS: Final = 0.1  # of positives that come again, in the company of a premise that is not theirs


def read_data(data: Path, *, experimental: bool) -> Iterator[tuple[Example, tuple[str, ...]]]:
    """The usable rows of ``data``, each with sentences of its source that don't decide it: those of its pool,
    then of every published set whose folder is there. Raises DataError, also where there is neither.

    A set that the pool holds is not read again from its folder, which a line on stderr says: the pool's rows
    may be the same ones, and what a pool gave before stays the same when a set is put beside it.
    """
    file, found = data / POOL, sources(data)
    if not file.exists() and not found:
        raise DataError(
            f"{data}: neither {POOL} nor a folder of a published data set ({', '.join(folders())});"
            " --data names the folder that holds them (docs/training.md, The data)"
        )
    in_pool = set()
    measured = _measured(data) if found else frozenset()
    sides: dict[int, bool] = {}
    if file.exists():
        for pair in read_pool(file, experimental=experimental):
            in_pool.add(pair[0].dataset)
            sides.update(dict.fromkeys(map(_key, pair[0].contexts), pair[0].held_out))
            yield pair
    for source in found:
        if source.published.dataset in in_pool:
            folder = data / source.published.folder
            print(f"{source.published.dataset} is in {file}: {folder} is not read for it", file=sys.stderr)
            continue
        for raw in source.rows():
            example = _read(raw)
            distractors = tuple(raw.get("distractors") or ())
            keys = [*map(_key, example.contexts)]
            if not measured.isdisjoint(_keys((example.claim, *example.contexts, *distractors))):
                continue
            if raw.get("source") and any(
                sides.get(key, example.held_out) != example.held_out for key in keys
            ):
                continue  # the text is in another set, on the other side of the split
            sides.update(dict.fromkeys(keys, example.held_out))
            yield example, distractors


def _measured(data: Path) -> frozenset[int]:
    """Claims and contexts that are measured on, and their sentences, where ``data`` has them: sets published
    apart share some.

    Raises DataError.
    """
    found: set[int] = set()
    for name, rows in ((VALIDATION, pool), (EXPERT_ANSWERS, expert_answers)):
        path = data / name
        if not path.exists():
            continue
        try:
            for row in rows(path):
                found.update(_keys((row.claim, *row.contexts)))
        except (OSError, EOFError, KeyError, TypeError, ValueError, zlib.error) as error:
            raise DataError(
                f"{path}: no rows to measure on ({type(error).__name__}); copy it again"
            ) from error
    return frozenset(found)


def _keys(texts: Iterable[str]) -> Iterator[int]:
    """Of texts as a whole, and of their sentences but for short ones, which many texts have."""
    for text in texts:
        if _letters(text):
            yield _key(text)
        for start, end in zip(*sentence_spans(text), strict=True):
            if text.count(" ", start, end) >= _TELLING_WORDS:
                yield _key(text[start:end])


def _key(text: str) -> int:
    return hash(_letters(text))


def _letters(text: str) -> str:
    """A text without what differs where it was put back from tokens."""
    return "".join(filter(str.isalnum, text)).lower()


def source_rows(data: Path) -> Iterator[Row]:
    """The rows of ``data`` that a shipped model may be fitted on, as the later steps take them."""
    for example, distractors in read_data(data, experimental=False):
        yield Row(
            example.dataset,
            example.contexts,
            example.claim,
            example.label,
            example.question,
            distractors=distractors,
            held_out=example.held_out,
        )


def read_pool(path: Path, *, experimental: bool) -> Iterator[tuple[Example, tuple[str, ...]]]:
    """The usable rows of a pool file, each with sentences of its source that don't decide it."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    raw: dict[str, Any] = json.loads(line)
                    if experimental or raw["dataset"] in LICENCES:
                        yield _read(raw), tuple(raw.get("distractors") or ())
                except (ValueError, KeyError, TypeError) as error:
                    raise DataError(f"{path}, line {number}: no row of the pool ({error!r})") from error
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror}); --data names its folder") from error


def _read(raw: Mapping[str, Any]) -> Example:
    contexts = tuple(str(text) for text in raw["contexts"])
    source = raw.get("source")
    if source is not None and not (isinstance(source, str) and source):
        raise TypeError("'source' is not text")
    return Example(
        dataset=raw["dataset"],
        licence=LICENCES.get(raw["dataset"], "not stated"),
        claim=raw["claim"],
        contexts=contexts,
        label=raw["label"],
        spans=_marked(raw),
        held_out=any(map(is_held_out, [source] if source else contexts)),
        question=raw.get("question") or "",
    )


def _marked(raw: Mapping[str, Any]) -> tuple[tuple[int, int], ...] | None:
    """Code points of the tokens that annotators marked as unsupported."""
    tokens, flags = raw.get("claim_tokens"), raw.get("non_supported_spans")
    if not tokens or not flags:
        return None
    spans, at = [], 0
    for token, flag in zip(tokens, flags, strict=True):
        start = raw["claim"].find(token, at)
        if start < 0:
            return None
        at = start + len(token)
        if flag:
            spans.append((start, at))
    return tuple(spans)


def examples(rows: Iterable[tuple[Example, tuple[str, ...]]], *, seed: int) -> Iterator[Example]:
    """What is trained on: at most ``MOST_ROWS`` of each set, with what is made of them."""
    random_ = random.Random(seed)
    by_set: dict[str, list[tuple[Example, tuple[str, ...]]]] = defaultdict(list)
    for pair in rows:
        by_set[pair[0].dataset].append(pair)
    for dataset, found in sorted(by_set.items()):
        chosen = random_.sample(found, min(len(found), MOST_ROWS.get(dataset, len(found))))
        company = {
            held: [
                text
                for other, _ in found
                if other.held_out == held
                for text in other.contexts
                if _is_short(text)
            ]
            for held in (False, True)
        }
        for row, distractors in chosen:
            yield from _variants(row, distractors, company[row.held_out], random_)


def _is_short(text: str) -> bool:
    return text.count(" ") < _SHORT


def _variants(
    row: Example, distractors: Sequence[str], company: Sequence[str], random_: random.Random
) -> Iterator[Example]:
    contexts = _hidden(row.contexts, distractors, company, random_)
    yield replace(row, contexts=contexts)
    if row.dataset in _CHANGED and company:
        names = names_of(" ".join(random_.sample(company, min(20, len(company)))))
        for kind in random_.sample(NEGATIVE_KINDS, len(NEGATIVE_KINDS)):
            changed = change(kind, row.claim, names, random_)
            if changed:
                yield replace(
                    row,
                    dataset=f"{row.dataset}-changed",
                    claim=changed,
                    contexts=contexts,
                    label=label_of(kind),
                    kind=kind,
                    spans=changed_spans(row.claim, changed),
                )
                break
    if row.supported and company and _is_short(row.contexts[0]) and random_.random() < _STRANGERS:
        others = tuple(text for text in random_.sample(company, min(3, len(company))) if text not in contexts)
        if others:
            yield replace(
                row, dataset=f"{row.dataset}-stranger", contexts=(" ".join(others),), label="unsupported"
            )


def changed_spans(before: str, after: str) -> tuple[tuple[int, int], ...] | None:
    """The words of ``after`` that one change brought in; None where it only took words away."""
    first, last = 0, 0
    shorter = min(len(before), len(after))
    while first < shorter and before[first] == after[first]:
        first += 1
    while last < shorter - first and before[-1 - last] == after[-1 - last]:
        last += 1
    start, end = first, len(after) - last
    while start > 0 and not after[start - 1].isspace():
        start -= 1
    while end < len(after) and not after[end].isspace():
        end += 1
    return ((start, end),) if after[start:end].strip() else None


def _hidden(
    contexts: tuple[str, ...], distractors: Sequence[str], company: Sequence[str], random_: random.Random
) -> tuple[str, ...]:
    """A short premise among other sentences, one text; long ones and a share of the short as they are."""
    if not all(_is_short(text) for text in contexts) or random_.random() > _HIDDEN:
        return contexts
    count = random_.randint(*_COMPANY)
    strangers = random_.sample(company, min(count, len(company)))
    others = [*distractors, *strangers][:count] if random_.random() < 0.7 else strangers
    texts = [*contexts, *(text for text in others if text not in contexts)]
    random_.shuffle(texts)
    return (" ".join(texts),)


def main() -> None:
    """Run the step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--experimental", action="store_true", help="also sets that may not be shipped")
    parser.add_argument("--facts", type=Path, default=FOLDER, help="written facts; default: the project's")
    parser.add_argument("--relations", type=int, default=RELATIONS, help="examples about roles, made by rule")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    counts: Counter[str] = Counter()

    def counted(made: Iterable[Example]) -> Iterator[Example]:
        for example in made:
            counts[f"{example.dataset} {example.label}"] += 1
            yield example

    try:
        rows = read_data(options.data, experimental=options.experimental)
        facts = read_facts(options.facts)
        made = chain(
            examples(rows, seed=options.seed),
            balanced(written_examples(facts, seed=options.seed), seed=options.seed),
            twin_examples(facts, seed=options.seed),
            balanced(
                relation_examples(read_grammar(), count=options.relations, seed=options.seed),
                seed=options.seed,
            ),
        )
        written = write_examples(options.work / "prepared.jsonl.gz", counted(made))
    except DataError as error:
        parser.exit(1, f"prepare: {error}\n")
    for name, count in sorted(counts.items()):
        print(f"{count:8,} {name}")
    print(f"{written:8,} examples in {options.work / 'prepared.jsonl.gz'}")


if __name__ == "__main__":
    main()
