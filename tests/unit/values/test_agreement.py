"""Equivalents agree, whatever they look like; different amounts, units and precisions do not."""

from __future__ import annotations

import pytest

from guardrail.values import Value, agree, extract
from tests.unit.values.pairs import AGREE, DISAGREE


def only(text: str) -> Value:
    """The one value of a text."""
    values = extract(text)
    assert len(values) == 1, f"{text!r}: {[(v.kind.value, v.text) for v in values]}"
    return values[0]


@pytest.mark.parametrize(("claim", "source"), AGREE)
def test_equivalents_agree(claim: str, source: str) -> None:
    assert agree(only(claim), only(source))


@pytest.mark.parametrize(("claim", "source"), DISAGREE)
def test_others_disagree(claim: str, source: str) -> None:
    assert not agree(only(claim), only(source))


def test_the_table_is_wide_enough() -> None:
    assert len(AGREE) + len(DISAGREE) >= 120
    assert len({*AGREE, *DISAGREE}) == len(AGREE) + len(DISAGREE)
