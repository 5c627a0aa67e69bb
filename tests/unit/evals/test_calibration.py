"""Calibrations are recovered from labels, chosen on responses held out; none is made that helps nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from guardrail.evals.aims import Aim
from guardrail.evals.calibration import (
    Fitted,
    FittedBand,
    best_line,
    calibrated,
    calibrating,
    calibrations_of,
    fit_bands,
    fit_calibrations,
    fit_isotonic,
    fit_temperature,
)
from guardrail.evals.records import Judged
from guardrail.evals.tuning import tune
from guardrail.events import Finding, Severity, Verdict
from guardrail.judges.calibrated import Calibrations, Isotonic, JudgeCalibration, Temperature
from guardrail.judges.cascade import DEFAULT_BANDS
from guardrail.policy import Policy
from tests.unit.evals.tuning_cases import claim, judged, label

S, U = Verdict.SUPPORTED, Verdict.UNSUPPORTED


def answers(right: Callable[[float], float], count: int = 1500, judge: str = "local") -> list[Judged]:
    """Answers of two claims; ``right`` gives the probability that one is so, of what the judge says."""
    random = np.random.default_rng(5)
    found = []
    for number in range(count // 2):
        said = [round(float(p), 4) for p in random.uniform(0.02, 0.98, 2)]
        claims = [claim(f"r{number}", n, S, p, judge=judge) for n, p in enumerate(said)]
        labels = [label(c, S if random.random() < right(p) else U) for c, p in zip(claims, said, strict=True)]
        found.append(judged(f"r{number}", claims, labels))
    return found


def sharper(p: float) -> float:
    return Temperature(temperature=0.5).apply(p)


def level(p: float) -> float:
    return 0.2 if p < 0.7 else 0.9


def of_support(responses: list[Judged]) -> Fitted:
    [support] = [each for each in fit_calibrations(responses) if each.probability == "support"]
    return support


def test_a_judge_that_is_too_unsure_gets_its_temperature() -> None:
    found = of_support(answers(sharper))
    assert found.method == "temperature"
    assert isinstance(found.calibration, Temperature)
    assert found.calibration.temperature == pytest.approx(0.5, abs=0.08)
    assert found.errors[1] < found.errors[0]


def test_a_step_is_learned_by_isotonic_regression() -> None:
    found = of_support(answers(level))
    assert found.method == "isotonic"
    assert isinstance(found.calibration, Isotonic)
    assert found.calibration.apply(0.3) == pytest.approx(0.2, abs=0.07)
    assert found.calibration.apply(0.9) == pytest.approx(0.9, abs=0.07)


def test_a_calibrated_judge_is_left_alone() -> None:
    found = of_support(answers(float))
    assert (found.method, found.calibration) == ("none", None)
    assert "by more than chance" in found.problem
    assert calibrations_of([found]) == Calibrations()


def test_judges_are_calibrated_apart() -> None:
    responses = answers(sharper, judge="local") + [
        judged(f"x-{each.verdict.response_id}", each.claims, each.labels)
        for each in answers(level, judge="llm:gpt-4.1-mini")
    ]
    judges = calibrations_of(fit_calibrations(responses)).judges
    assert isinstance(judges["local"].support, Temperature)
    assert isinstance(judges["llm:gpt-4.1-mini"].support, Isotonic)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_labels_of_one_class_or_too_few_give_none_and_say_how_many_are_needed(p: float) -> None:
    one_class = of_support(answers(lambda _: p))
    assert (one_class.method, one_class.calibration) == ("none", None)
    assert "at least 50 of either kind are needed" in one_class.problem
    few = of_support(answers(sharper, 40))
    assert "at least 50" in few.problem


def test_temperature_is_that_of_the_least_loss() -> None:
    said = np.array([0.9] * 4 + [0.1] * 4)
    true = np.array([True, True, True, False, True, False, False, False])  # three of four: 0.75
    assert fit_temperature(said, true).apply(0.9) == pytest.approx(0.75, abs=0.001)


def test_isotonic_pools_what_breaks_the_order_and_is_never_certain() -> None:
    said = np.repeat([0.1, 0.4, 0.6, 0.9], 100)
    true = np.concatenate([np.arange(100) < share for share in (20, 60, 50, 100)])
    found = fit_isotonic(said, true)
    assert [x for x, _ in found.points] == pytest.approx([0.1, 0.5, 0.9])
    assert [y for _, y in found.points] == pytest.approx([0.2, 0.55, 1.0], abs=0.01)
    assert found.points[-1][1] < 1
    assert fit_isotonic(np.full(10, 0.5), np.arange(10) < 3).points == ((0.5, 0.3),)


def test_the_line_of_a_decision_model_is_where_its_verdicts_are_best_balanced() -> None:
    said = np.array([0.2, 0.4, 0.6, 0.7, 0.9, 0.9])
    assert best_line(said, np.array([False, False, False, True, True, True])) == pytest.approx(0.65)
    name = "decisions:small"
    found = calibrations_of(fit_calibrations(answers(level, judge=name))).judges[name]
    assert found.lines is not None
    assert isinstance(found.support, Isotonic)
    assert found.support.apply(0.6) <= found.lines.supported <= found.support.apply(0.8)
    assert calibrations_of(fit_calibrations(answers(level))).judges["local"].lines is None


def test_a_line_of_contradiction_alone_moves_no_verdict() -> None:
    name = "decisions:small"
    alone = Fitted(name, "contradiction", 100, 50, line=0.4)
    assert calibrations_of([alone]) == Calibrations()
    half = Temperature(temperature=0.5)
    found = calibrations_of([replace(alone, method="temperature", calibration=half)]).judges[name]
    assert (found.contradiction, found.lines) == (half, None)
    both = calibrations_of([alone, Fitted(name, "support", 100, 50, line=0.6)]).judges[name]
    assert both.lines is not None
    assert (both.lines.supported, both.lines.contradicted) == (0.6, 0.4)


def test_calibrated_responses_keep_verdicts_and_the_bound_on_what_was_checked_in_part() -> None:
    calibrations = Calibrations(judges={"local": JudgeCalibration(support=Temperature(temperature=0.25))})
    part = claim("r", 1, Verdict.PARTIALLY_SUPPORTED, 0.48, findings=(Finding.CHECKED_IN_PART,))
    more = part.model_copy(update={"support": 0.6})
    one = judged("r", [claim("r", 0, S, 0.7), part, more, claim("r", 3, S, 0.7, judge="other")])
    supports = [each.support for each in calibrated(one, calibrations).claims]
    assert supports[0] == pytest.approx(0.967, abs=0.001)
    assert supports[1] == pytest.approx(0.421, abs=0.001)
    assert supports[2:] == [0.49, 0.7]
    unverified = judged("r", [claim("r", 0, Verdict.UNVERIFIED, None)])
    assert calibrated(unverified, calibrations) == unverified


def test_thresholds_are_tuned_on_probabilities_that_the_fold_was_not_fitted_on() -> None:
    responses = answers(level, 600)
    plain = tune(responses, Policy(rules=()), Aim(cost_miss=1, cost_false=1))
    both = tune(responses, Policy(rules=()), Aim(cost_miss=1, cost_false=1), calibrate=calibrating)
    assert both.baseline_counts.table.tolist() == plain.baseline_counts.table.tolist()
    assert both.held_out.wrong == plain.held_out.wrong
    assert both.policy.flag_below != plain.policy.flag_below


# ------------------------------------------------------------------------------------- the cascade's bands


def banded(count: int = 1500, cut: float = 0.8, **fields: object) -> list[Judged]:
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
    found = normal(banded(), 0.99)
    assert 0.78 <= found.accept_support <= 0.82
    assert found.problem == ""
    assert found.right.count / found.right.total > 0.98
    assert found.settled.total == 1500


def test_other_severities_keep_what_they_have_and_say_why() -> None:
    for each in fit_bands(banded(), 0.99):
        if each.severity is not Severity.NORMAL:
            assert each.accept_support == DEFAULT_BANDS[each.severity].accept_support
            assert "no labelled claims" in each.problem


def test_too_few_claims_or_claims_that_are_never_right_show_nothing() -> None:
    few = normal(banded(60), 0.99)
    assert (few.accept_support, few.problem != "") == (0.92, True)
    never = normal(banded(cut=1.1), 0.9)
    assert never.accept_support == 0.92
    assert "don't show 90.0% right" in never.problem


def test_judgements_that_are_none_of_the_first_judge_are_left_out() -> None:
    for fields in (
        {"judge": "llm:m"},
        {"degraded_from": ("llm: late",)},
        {"findings": (Finding.CHECKED_IN_PART,)},
    ):
        assert normal(banded(**fields), 0.9).problem == "no labelled claims"
