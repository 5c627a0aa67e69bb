"""Hedges put into a source."""

from __future__ import annotations

import random

import pytest

from training.perturb_hedges import hedged


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("The bridge was built by Roman engineers.", "was "),
        ("The ferry carries 40 passengers.", " 40 passengers"),
        ("The refund will arrive by post.", "arrive by post"),
        ("The clinics are open on Sundays.", "open on Sundays"),
    ],
)
def test_the_sentence_says_less_with_its_hedge(sentence: str, word: str) -> None:
    for seed in range(20):
        change = hedged(sentence, random.Random(seed))
        assert change is not None
        assert change.old is not None
        assert change.kind == "qualifier"
        assert change.label == "unsupported"
        ((start, end),) = change.spans
        put, was = change.claim[start:end], sentence[slice(*change.old)]
        assert put != was
        assert change.claim[:start] + was + change.claim[end:] == sentence
        assert word in change.claim


@pytest.mark.parametrize(
    "sentence",
    ["She left early.", "He sold up to 40 houses.", "Born on 7 June.", "They lost about 12 sheep."],
)
def test_what_has_no_place_for_one_is_left_alone(sentence: str) -> None:
    assert hedged(sentence, random.Random(1)) is None
