"""One word replaced by another that stands in such places elsewhere."""

from __future__ import annotations

import random

import pytest

from training.perturb_words import Substitutes

PLANS = [
    f"The {plan} plan {verb} forty euros a month."
    for plan in ("basic", "premium", "large")
    for verb in ("costs", "saves")
    for _ in range(2)
]


@pytest.fixture(scope="module")
def substitutes() -> Substitutes:
    return Substitutes([*PLANS, *["The old film ended late.", "The old movie ended late."] * 3])


def changes(substitutes: Substitutes, sentence: str) -> set[str]:
    made = (substitutes.replaced(sentence, random.Random(seed)) for seed in range(40))
    return {change.claim for change in made if change}


def test_a_word_gives_way_to_one_seen_in_its_place(substitutes: Substitutes) -> None:
    assert changes(substitutes, "The basic plan costs forty euros a month.") == {
        "The premium plan costs forty euros a month.",
        "The large plan costs forty euros a month.",
        "The basic plan saves forty euros a month.",
    }


def test_the_change_says_where_it_is(substitutes: Substitutes) -> None:
    sentence = "The premium plan rose."
    change = substitutes.replaced(sentence, random.Random(1))
    assert change is not None
    assert change.old is not None
    ((start, end),) = change.spans
    assert sentence[slice(*change.old)] == "premium"
    assert change.claim[start:end] in ("basic", "large")
    assert (change.kind, change.label) == ("word", "unsupported")


@pytest.mark.parametrize(
    "sentence",
    [
        "The old film ended late.",  # only a synonym stands there, too
        "The basic premium large plan was it.",  # whatever fits is in the sentence already
        "Nobody came.",
        "",
        "12 %",
    ],
)
def test_nothing_is_replaced_where_nothing_else_fits(substitutes: Substitutes, sentence: str) -> None:
    assert changes(substitutes, sentence) == set()
