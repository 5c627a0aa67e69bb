"""The curves by which thresholds are chosen, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evals.statistics import COLUMNS, binned, costs_by_threshold, precision_recall

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
