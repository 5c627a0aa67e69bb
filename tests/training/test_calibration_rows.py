"""Which rows a combiner may be fitted on, and that what belongs together stays together."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.training.made_data import document, write_data, write_work
from training.calibration_rows import held_out_rows, split_by_document
from training.examples import DataError, Example, read_examples, write_examples
from training.rows import Row


def test_rows_of_one_document_are_never_on_both_sides() -> None:
    random_ = random.Random(1)
    texts = [document(random_, 9) for _ in range(60)]
    rows = [Row("wice-claim", (text,), f"Claim {n}.", "supported") for text in texts for n in range(4)]
    apart = split_by_document(rows, share=0.3, seed=5)
    sides = [set(apart[4 * n : 4 * n + 4]) for n in range(len(texts))]
    assert all(len(side) == 1 for side in sides)
    assert 0.1 < sum(apart) / len(apart) < 0.5
    assert split_by_document(rows, share=0.3, seed=6) != apart


def test_a_claim_stays_with_what_was_made_of_it() -> None:
    rows = []
    for number in range(40):
        source = f"The bridge number {number} was opened by the mayor in {1900 + number}."
        for claim, others in (
            (source, "It rains. "),
            (source.replace("opened", "closed"), ""),
            (source.replace("mayor", "king"), "Somebody laughed a lot. "),
        ):
            rows.append(Row("synthetic-name", (others + source,), claim, "supported"))
    apart = split_by_document(rows, share=0.4, seed=1)
    assert all(len(set(apart[n : n + 3])) == 1 for n in range(0, len(apart), 3))
    assert len(set(apart)) == 2


def test_only_held_out_rows_of_sets_that_may_be_shipped(tmp_path: Path) -> None:
    data, work = write_data(tmp_path / "data"), write_work(tmp_path / "work")
    examples = list(read_examples(work / "prepared.jsonl.gz"))
    secret = Example("lingnli", "not stated", "A secret claim.", ("A premise.",), "supported", held_out=True)
    write_examples(work / "prepared.jsonl.gz", [*examples, secret])
    rows = held_out_rows(data, work, seed=1, most=50)
    claims = {row.claim for row in rows if row.dataset == "conjnli"}
    assert claims
    assert len([row for row in rows if row.dataset == "conjnli"]) <= 50
    assert not claims & {e.claim for e in examples if not e.held_out and e.claim not in _held(examples)}
    assert "A secret claim." not in {row.claim for row in rows}
    assert any(len(row.contexts) > 1 for row in rows)


def test_a_missing_work_file_is_named(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    with pytest.raises(DataError, match=r"prepared\.jsonl\.gz"):
        held_out_rows(data, tmp_path, seed=1)


def _held(examples: list[Example]) -> set[str]:
    return {example.claim for example in examples if example.held_out}
