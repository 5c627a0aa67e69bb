"""Short modifiers left out of a sentence."""

from __future__ import annotations

import random

import pytest

from training.modifiers import without_modifier


@pytest.mark.parametrize(
    ("sentence", "shorter"),
    [
        ("Knead the rye dough with your hands.", {"Knead the rye dough."}),
        ("The ferry leaves the harbour every Sunday.", {"The ferry leaves the harbour."}),
        ("The club was founded by teachers in 1974.", {"The club was founded by teachers."}),
        (
            "Guests get a woollen blanket and an electric heater.",
            {"Guests get a woollen blanket and a heater."},
        ),
        ("The crew painted the old boat.", {"The crew painted the boat."}),
        ("The nurse carefully warms the bottle.", {"The nurse warms the bottle."}),
    ],
)
def test_one_is_left_out(sentence: str, shorter: set[str]) -> None:
    found = {without_modifier(sentence, random.Random(seed)) for seed in range(20)}
    assert shorter <= found
    assert None not in found


@pytest.mark.parametrize(
    "sentence",
    [
        "Nobody may enter the laboratory without gloves.",
        "All members vote on Sunday.",
        "The dose is higher than in the old trial.",
        "If the road is wet, drive with care.",
        "The board never met in private rooms.",
    ],
)
def test_what_would_say_more_without_it_is_left_alone(sentence: str) -> None:
    assert without_modifier(sentence, random.Random(1)) is None


@pytest.mark.parametrize(
    "sentence",
    ["The office is in the old town.", "The band consists of two singers.", "She is a former mayor."],
)
def test_what_the_sentence_needs_stays(sentence: str) -> None:
    for seed in range(10):
        shorter = without_modifier(sentence, random.Random(seed))
        assert shorter in (None, "The office is in the town.", "The band consists of singers.")
