"""Which rows a combiner may be fitted on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.made_data import write_data, write_work
from training.calibration_rows import held_out_rows
from training.examples import DataError, Example, read_examples, write_examples


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
