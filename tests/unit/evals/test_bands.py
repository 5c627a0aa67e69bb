"""The cascade's bands are as wide as labels show them to be right, and kept where labels don't tell."""

from __future__ import annotations

import numpy as np

from guardrail.evals.calibration import FittedBand, fit_bands
from guardrail.evals.records import Judged
from guardrail.events import Finding, Severity, Verdict
from guardrail.judges.cascade import DEFAULT_BANDS
from tests.unit.evals.tuning_cases import claim, judged, label

S, U = Verdict.SUPPORTED, Verdict.UNSUPPORTED


def answers(count: int = 1500, cut: float = 0.8, **fields: object) -> list[Judged]:
    """Claims called SUPPORTED: right from ``cut`` of support on, below it by half."""
    random = np.random.default_rng(4)
    found = []
    for number, support in enumerate(random.uniform(0.5, 1.0, count)):
        one = claim(f"r{number}", 0, S, round(float(support), 3), **fields)
        right = support >= cut or random.random() < 0.5
        found.append(judged(one.response_id, [one], [label(one, S if right else U)]))
    return found


def normal(responses: list[Judged], right: float) -> FittedBand:
    return {each.severity: each for each in fit_bands(responses, right)}[Severity.NORMAL]


def test_the_least_support_with_which_settled_claims_are_right_is_found() -> None:
    found = normal(answers(), 0.99)
    assert 0.78 <= found.accept_support <= 0.82
    assert found.problem == ""
    assert found.right.count / found.right.total > 0.98
    assert found.settled.total == 1500


def test_other_severities_keep_what_they_have_and_say_why() -> None:
    for each in fit_bands(answers(), 0.99):
        if each.severity is not Severity.NORMAL:
            assert each.accept_support == DEFAULT_BANDS[each.severity].accept_support
            assert "no labelled claims" in each.problem


def test_too_few_claims_or_claims_that_are_never_right_show_nothing() -> None:
    few = normal(answers(60), 0.99)
    assert (few.accept_support, few.problem != "") == (0.92, True)
    never = normal(answers(cut=1.1), 0.9)
    assert never.accept_support == 0.92
    assert "don't show 90.0% right" in never.problem


def test_judgements_that_are_none_of_the_first_judge_are_left_out() -> None:
    for fields in (
        {"judge": "llm:m"},
        {"degraded_from": ("llm: late",)},
        {"findings": (Finding.CHECKED_IN_PART,)},
    ):
        assert normal(answers(**fields), 0.9).problem == "no labelled claims"
