"""Rows of one news document are held out together, however they came to share it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from training.examples import DataError
from training.factcg import DATASET, FILE, factcg_rows
from training.rows import LICENCES


def document(number: int) -> list[str]:
    return [
        f"In town {number} the council has met {word} times since the spring."
        for word in ("two", "ten", "six")
    ]


def write(folder: Path, count: int) -> Path:
    """Of each document a claim with its text, the same with a sentence taken out, and another claim with the
    rest of the text."""
    rows = []
    for number in range(count):
        first, second, third = document(number)
        rows += [
            {"claim": f"Claim {number}.", "contexts": [f"{first} {second}"], "label": "supported"},
            {"claim": f"Claim {number}.", "contexts": [f"{first} Short."], "label": "not_supported"},
            {"claim": f"Other {number}.", "contexts": [f"{second} {third}"], "label": "supported"},
        ]
    with gzip.open(folder / FILE, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return folder


def test_rows_of_a_document_are_on_one_side(tmp_path: Path) -> None:
    rows = factcg_rows(write(tmp_path, 80))
    sides = [{row.is_held_out for row in rows[at : at + 3]} for at in range(0, len(rows), 3)]
    assert all(len(side) == 1 for side in sides)
    assert 5 <= sum(side == {True} for side in sides) <= 30  # about a fifth
    assert {row.dataset for row in rows} == {DATASET}
    assert DATASET in LICENCES


def test_without_the_file_there_are_none_and_another_file_is_named(tmp_path: Path) -> None:
    assert factcg_rows(tmp_path) == []
    (tmp_path / FILE).write_bytes(b"no gzip")
    with pytest.raises(DataError, match=FILE):
        factcg_rows(tmp_path)
