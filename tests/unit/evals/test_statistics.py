"""Figures, against values worked out by hand and against each other."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evals import statistics
from guardrail.evals.statistics import (
    COLUMNS,
    Figure,
    auroc,
    average_precision,
    balanced_accuracy,
    binned,
    bootstrap,
    calibration_error,
    cohen_kappa,
    costs_by_threshold,
    f1,
    mcnemar,
    precision_recall,
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


def test_balanced_accuracy_is_the_mean_of_both_recalls() -> None:
    assert balanced_accuracy([True, True, True, False], [1.0, 0.6, 0.5, 0.0]) == pytest.approx(
        (2 / 3 + 1) / 2
    )
    assert math.isnan(balanced_accuracy([True], [1.0]))


def test_calibration_error_by_hand() -> None:
    truths, p = [True, False, True, True], [0.1, 0.1, 0.95, 0.95]
    # Two stretches: 0.1 is predicted where half are true, 0.95 where all are.
    assert calibration_error(truths, p) == pytest.approx((2 * 0.4 + 2 * 0.05) / 4)
    assert calibration_error([True, False], [0.5, 0.5]) == pytest.approx(0.0)
    assert math.isnan(calibration_error([], []))


@given(CLAIMS)
def test_reliability_holds_every_claim_once(claims: list[tuple[bool, float]]) -> None:
    truths, p = [t for t, _ in claims], [s for _, s in claims]
    bins = reliability(truths, p)
    assert sum(b.weight for b in bins) == len(claims)
    assert sum(b.weight * b.observed for b in bins) == pytest.approx(sum(truths))
    assert sum(b.weight * b.predicted for b in bins) == pytest.approx(sum(p))


@pytest.mark.parametrize("figure", [auroc, balanced_accuracy, calibration_error])
def test_weighted_figures_are_those_of_claims_that_stand_so_often(figure: Figure) -> None:
    random = np.random.default_rng(3)
    truths, weights = random.integers(0, 2, 60).astype(bool), random.integers(0, 4, 60)
    scores = random.integers(0, 12, 60) / 11
    repeated = np.repeat(truths, weights), np.repeat(scores, weights)
    assert figure(truths, scores, weights) == pytest.approx(figure(*repeated, None))


def test_average_precision_by_hand() -> None:
    # In order: true, false, true -> precision 1 at the first, 2/3 at the third.
    assert average_precision([True, False, True], [0.9, 0.5, 0.1]) == pytest.approx((1 + 2 / 3) / 2)
    # Tied scores are one step: everything is found at once, at the precision of the whole.
    assert average_precision([True, False], [0.5, 0.5]) == pytest.approx(0.5)
    assert math.isnan(average_precision([True], [0.5]))


@given(CLAIMS)
def test_places_of_scores_give_what_the_scores_give(claims: list[tuple[bool, float]]) -> None:
    groups = [[claim] for claim in claims]
    for figure in (auroc, average_precision):
        by_score = bootstrap(groups, figure, rounds=5)
        by_rank = bootstrap(groups, figure, rounds=5, by_rank=True)
        assert asdict(by_rank) == pytest.approx(asdict(by_score), nan_ok=True)


def test_whole_numbers_that_are_no_places_are_ranked_like_any() -> None:
    truths = [True, False, True, False]
    for scores in ([-5, -7, 900, 3], [10, 2, 300, 40]):
        floats = [float(score) for score in scores]
        assert auroc(truths, scores) == auroc(truths, floats)
        assert average_precision(truths, scores) == average_precision(truths, floats)


def test_f1_and_kappa_by_hand() -> None:
    truths, scores = [True, True, False, False, False], [0.9, 0.2, 0.8, 0.1, 0.1]
    assert f1(truths, scores) == pytest.approx(2 * 1 / (2 * 1 + 2))
    # Agreed 3 of 5; by chance (2*2 + 3*3) / 25.
    assert cohen_kappa(truths, scores) == pytest.approx((3 / 5 - 13 / 25) / (1 - 13 / 25))
    assert cohen_kappa([True, False], [0.9, 0.1]) == pytest.approx(1.0)


def test_mcnemar_is_the_exact_binomial() -> None:
    assert mcnemar(0, 5) == pytest.approx(2 / 32)
    assert mcnemar(5, 0) == mcnemar(0, 5)
    assert mcnemar(0, 0) == mcnemar(3, 3) == 1.0


@given(st.lists(CLAIMS, min_size=1, max_size=6))
def test_claims_that_are_alike_are_drawn_together_with_the_same_result(
    groups: list[list[tuple[bool, float]]],
) -> None:
    verdicts = [[(truth, float(score > 0.5)) for truth, score in group] for group in groups]
    for figure in (balanced_accuracy, auroc, f1, cohen_kappa, calibration_error):
        together = bootstrap(verdicts, figure, rounds=5)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(statistics, "_FEW_LEVELS", 0)
            one_by_one = bootstrap(verdicts, figure, rounds=5)
        assert asdict(together) == pytest.approx(asdict(one_by_one), nan_ok=True)


# -------------------------------------------------------------------------------------------------- curves

NAN = float("nan")


def test_precision_and_recall_by_hand() -> None:
    """Lowest scores first, equal ones together, and an answer without a score last."""
    wrong = np.array([True, False, True, True, False])
    scores = np.array([0.1, 0.3, 0.3, NAN, 0.9])
    found = precision_recall(wrong, scores)
    assert [point.x for point in found] == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1])
    assert [point.y for point in found] == pytest.approx([1, 2 / 3, 1 / 2, 3 / 5])


def test_without_a_wrong_answer_there_is_no_curve() -> None:
    assert precision_recall(np.array([False, False]), np.array([0.1, 0.2])) == ()


def test_costs_by_hand() -> None:
    """Below 0.5 lie one wrong and one right answer; one wrong answer has no score and is never acted on."""
    wrong = np.array([True, False, True, True])
    scores = np.array([0.2, 0.4, 0.8, NAN])
    cost = dict(costs_by_threshold(wrong, scores, miss=5))
    assert cost[0.0] == 15 / 4
    assert cost[0.5] == (5 * 2 + 1) / 4
    assert cost[1.0] == (5 + 1) / 4


def test_scores_fall_into_columns_with_one_in_the_last() -> None:
    counts = binned(np.array([0.0, 0.049, 0.05, 1.0, NAN]))
    assert len(counts) == COLUMNS
    assert (counts[0], counts[1], counts[-1], sum(counts)) == (2, 1, 1, 4)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=600))
def test_recall_rises_to_one_and_precision_ends_at_the_share_of_wrong_answers(
    answers: list[tuple[bool, float]],
) -> None:
    wrong, scores = (np.array(each) for each in zip(*answers, strict=True))
    found = precision_recall(wrong, scores)
    if not wrong.any():
        assert found == ()
        return
    recall = [point.x for point in found]
    assert recall == sorted(recall)
    assert len(found) <= 400
    assert found[-1] == pytest.approx((1.0, wrong.mean()))
