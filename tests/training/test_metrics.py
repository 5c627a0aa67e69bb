"""Figures, against values worked out by hand and against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.metrics import (
    auroc,
    balanced_accuracy,
    best_threshold,
    calibration_error,
    f1,
    mean,
    precision_at_recall,
    reliability,
)

CLAIMS = st.lists(st.tuples(st.booleans(), st.integers(0, 8).map(lambda n: n / 8)), min_size=1, max_size=40)


def test_auroc_counts_pairs_and_ties_half() -> None:
    assert auroc([True, True, False, False], [0.9, 0.4, 0.4, 0.1]) == pytest.approx(3.5 / 4)
    assert auroc([False, True], [0.9, 0.1]) == 0.0
    assert math.isnan(auroc([True, True], [0.1, 0.2]))


@given(CLAIMS)
def test_auroc_is_the_share_of_pairs_in_order(claims: list[tuple[bool, float]]) -> None:
    truths, scores = [t for t, _ in claims], [s for _, s in claims]
    pairs = [(a, b) for t, a in claims if t for u, b in claims if not u]
    if not pairs:
        assert math.isnan(auroc(truths, scores))
        return
    counted = sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)
    assert auroc(truths, scores) == pytest.approx(counted)


def test_balanced_accuracy_and_f1() -> None:
    truths, answers = [True, True, True, False], [True, True, False, False]
    assert balanced_accuracy(truths, answers) == pytest.approx((2 / 3 + 1) / 2)
    assert f1(truths, answers) == pytest.approx(4 / 5)
    assert math.isnan(balanced_accuracy([True], [True]))
    assert math.isnan(f1([False], [False]))


def test_precision_at_recall_takes_all_that_tie() -> None:
    truths = [True, False, True, True, False]
    assert precision_at_recall(truths, [0.9, 0.8, 0.7, 0.6, 0.1], 0.6) == pytest.approx(2 / 3)
    assert precision_at_recall(truths, [0.5] * 5, 0.6) == pytest.approx(3 / 5)
    assert precision_at_recall(truths, [0.9, 0.8, 0.7, 0.6, 0.1], 1.0) == pytest.approx(3 / 4)


def test_calibration_error_by_hand() -> None:
    truths, p = [True, False, True, True], [0.1, 0.1, 0.95, 0.95]
    # Two stretches: 0.1 is predicted where half are true, 0.95 where all are.
    assert calibration_error(truths, p) == pytest.approx((2 * 0.4 + 2 * 0.05) / 4)
    assert calibration_error([True, False], [0.5, 0.5]) == pytest.approx(0.0)
    assert calibration_error(truths, p, weights=[0, 0, 1, 1]) == pytest.approx(0.05)
    assert math.isnan(calibration_error([], []))


@given(CLAIMS)
def test_reliability_holds_every_claim_once(claims: list[tuple[bool, float]]) -> None:
    truths, p = [t for t, _ in claims], [s for _, s in claims]
    bins = reliability(truths, p)
    assert sum(b.count for b in bins) == len(claims)
    assert sum(b.count * b.observed for b in bins) == pytest.approx(sum(truths))
    assert sum(b.count * b.predicted for b in bins) == pytest.approx(sum(p))


@given(CLAIMS)
def test_no_threshold_is_better_than_the_best(claims: list[tuple[bool, float]]) -> None:
    truths, scores = [t for t, _ in claims], [s for _, s in claims]

    def right(threshold: float) -> float:
        return balanced_accuracy(truths, [s >= threshold for s in scores])

    if len(set(truths)) < 2:
        with pytest.raises(ValueError, match="both classes"):
            best_threshold(truths, scores)
        return
    best = best_threshold(truths, scores)
    assert right(best) == pytest.approx(max(right(threshold) for threshold in set(scores)))


@pytest.mark.parametrize(("values", "expected"), [([1.0, math.nan, 3.0], 2.0), ([0.5], 0.5)])
def test_the_mean_leaves_out_what_is_no_figure(values: Sequence[float], expected: float) -> None:
    assert mean(values) == expected
    assert math.isnan(mean([math.nan]))
