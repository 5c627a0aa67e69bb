"""What a data set counts in fitting the combiner."""

from __future__ import annotations

import pytest

from training.sampling import WEIGHTS, weight_of


@pytest.mark.parametrize(
    ("dataset", "like"),
    [
        ("wice-subclaim", "wice"),
        ("wice-subclaim-stranger", "synthetic"),
        ("wikisplit-changed", "synthetic"),
        ("synthetic-name", "synthetic-name"),
        ("synthetic-number", "synthetic"),
        ("written-law", "written"),
    ],
)
def test_made_rows_count_as_made_whatever_they_were_made_of(dataset: str, like: str) -> None:
    assert weight_of(dataset) == WEIGHTS[like]


def test_other_sets_count_one() -> None:
    assert weight_of("fever") == 1.0
