from __future__ import annotations

import math
import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.judges.decisions.judge import EVERY, FIRST, OrderBias, in_second_order
from guardrail.judges.decisions.transports import Choice

VALUES = ("a", "b", "c", "d")


def softmax(logits: dict[str, float]) -> dict[str, float]:
    whole = sum(math.exp(each) for each in logits.values())
    return {value: math.exp(each) / whole for value, each in logits.items()}


def said(meant: dict[str, float], preferences: list[float], order: Iterable[str]) -> dict[str, float]:
    """What a model says that means ``meant`` (log-odds) and prefers places; in the options' first order."""
    biased = softmax({value: meant[value] + preferences[place] for place, value in enumerate(order)})
    return {value: biased[value] for value in meant}


@settings(max_examples=30)
@given(
    st.integers(2, 4),
    st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4),
    st.integers(0, 10_000),
)
def test_a_preference_for_places_is_found_without_labels_and_taken_out(
    places: int, preferred: list[float], seed: int
) -> None:
    values, preferences = VALUES[:places], preferred[:places]
    other = list(in_second_order(Choice("c1", "", dict.fromkeys(values, ""), "")).options)
    bias, rng = OrderBias(places), random.Random(seed)
    for _ in range(300):
        meant = {value: rng.uniform(-1.5, 1.5) for value in values}
        bias.learn(said(meant, preferences, values), said(meant, preferences, other))
    mean = sum(preferences) / places
    assert list(bias.preferences) == pytest.approx([each - mean for each in preferences], abs=0.05)
    meant = {value: rng.uniform(-1.5, 1.5) for value in values}
    for order in (values, other):
        fair = bias.fair(said(meant, preferences, order), moved=order is not values)
        assert fair == pytest.approx(softmax(meant), abs=0.03)
    assert bias.differs < 0.05


def test_without_a_sample_nothing_is_changed_and_a_small_one_counts_little() -> None:
    bias, answer = OrderBias(4), {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}
    assert bias.fair(answer) == pytest.approx(answer)
    bias.learn({"a": 0.97, "b": 0.01, "c": 0.01, "d": 0.01}, {"a": 0.01, "b": 0.97, "c": 0.01, "d": 0.01})
    assert max(map(abs, bias.preferences)) < 0.4


def test_answers_of_0_and_1_do_not_break_it() -> None:
    bias = OrderBias(2)
    for _ in range(100):
        bias.learn({"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0})
    assert sum(bias.fair({"a": 1.0, "b": 0.0}).values()) == pytest.approx(1.0)


def test_claims_are_asked_twice_until_enough_have_answered_and_then_few() -> None:
    bias, answer = OrderBias(4), {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}
    assert all(bias.to_measure() for _ in range(100))  # of an outage nothing is learned
    for _ in range(FIRST):
        bias.learn(answer, answer)
    assert sum(bias.to_measure() for _ in range(10 * EVERY)) == 10


def test_one_claim_teaches_little_however_sure_the_model_is() -> None:
    bias, steered = OrderBias(4), {"a": 0.001, "b": 0.001, "c": 0.001, "d": 0.997}
    other = {"a": 0.997, "b": 0.001, "c": 0.001, "d": 0.001}
    for _ in range(FIRST):
        bias.learn({"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25}, {"a": 0.25, "b": 0.25, "c": 0.25, "d": 0.25})
    bias.learn(steered, other)
    assert max(map(abs, bias.preferences)) < 0.2
