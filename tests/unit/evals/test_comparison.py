"""What changed between two runs: joined by id, tested in pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from guardrail.evals.comparison import Comparison
from guardrail.evals.results import EvaluationResult
from guardrail.evals.statistics import mcnemar, mean_estimate
from guardrail.events import Decision, Verdict
from tests.unit.evals.results import claim, failed, result

ANSWER = "One. Two."


def compare(before: list[EvaluationResult], now: list[EvaluationResult], *, examples: int = 10) -> Comparison:
    found = Comparison(before, examples=examples)
    for each in now:
        found.add(each)
    return found


def test_answers_are_joined_by_id_whatever_their_order() -> None:
    found = compare(
        [result("a", score=0.2), result("b", score=0.4), result("gone")],
        [result("b", Decision.BLOCK, score=0.1), result("a", score=0.3), result("new")],
    )
    assert (found.joined, found.only_before, found.only_now) == (2, 1, 1)
    assert found.decisions == {(Decision.RELEASE, Decision.BLOCK): 1, (Decision.RELEASE, Decision.RELEASE): 1}
    assert sorted(found.differences()) == pytest.approx([-0.3, 0.1])


def test_answers_with_one_id_are_joined_in_their_order() -> None:
    found = compare(
        [result("a", score=0.1), result("a", score=0.9)], [result("a", score=0.1), result("a", score=0.9)]
    )
    assert found.joined == 2
    assert found.differences() == [0.0, 0.0]
    assert found.examples() == []


def test_an_error_in_one_run_changes_no_decision() -> None:
    broken = failed("timeout").model_copy(update={"response": result("a").response})
    for before, now in ((broken, result("a")), (result("a"), broken)):
        found = compare([before], [now])
        assert (found.joined, found.errors, found.changed_decisions) == (1, 1, 0)
    assert compare([result("a")], [failed("no JSON")]).only_now == 1


def test_claims_are_joined_whatever_their_ids_by_place_or_else_by_number() -> None:
    before = [claim(ANSWER, "One."), claim(ANSWER, "Two.", index=1)]
    other_ids = [each.model_copy(update={"claim_id": f"other-{each.index}"}) for each in before]
    moved = [each.model_copy(update={"span": (each.span[0] + 9, each.span[1] + 9)}) for each in other_ids]
    for now in (other_ids, moved):
        found = compare([result("a", claims=before)], [result("a", claims=now)])
        assert found.verdicts == {(Verdict.SUPPORTED, Verdict.SUPPORTED): 2}
        assert found.claims_apart == 0


def test_claims_are_joined_and_those_of_one_run_counted() -> None:
    before = [claim(ANSWER, "One."), claim(ANSWER, "Two.", index=1)]
    now = [claim(ANSWER, "One.", Verdict.CONTRADICTED), claim(ANSWER, "wo.", index=1)]
    found = compare([result("a", claims=before)], [result("a", claims=now)])
    assert found.verdicts == {(Verdict.SUPPORTED, Verdict.CONTRADICTED): 1}
    assert found.changed_verdicts == 1
    assert found.claims_apart == 2


def test_examples_are_the_largest_changes_with_both_sides() -> None:
    before = [result(name, score=0.5) for name in ("same", "score", "flag", "block")]
    now = [
        result("same", score=0.5),
        result("score", score=0.9),
        result("flag", Decision.FLAG, score=0.5),
        result("block", Decision.BLOCK, score=0.5),
    ]
    found = compare(before, now, examples=2).examples()
    assert [(each.now.place, each.before is not None) for each in found] == [
        ("line of block", True),
        ("line of flag", True),
    ]
    assert found[0].before is before[3]
    assert [each.now.place for each in compare(before, now).examples()][-1] == "line of score"


def test_mcnemar_is_of_the_answers_withheld_in_one_run_alone() -> None:
    before = [result(str(n), Decision.BLOCK if n < 2 else Decision.RELEASE) for n in range(12)]
    now = [result(str(n), Decision.REDACT if n >= 2 else Decision.RELEASE) for n in range(12)]
    withheld, acted = compare(before, now).paired()
    assert (withheld.only_before, withheld.only_now) == (2, 10)
    assert withheld.p_value == pytest.approx(mcnemar(2, 10))
    assert (acted.only_before, acted.only_now) == (2, 10)


def test_with_labels_it_is_also_of_the_decisions_that_are_right() -> None:
    truths = [Verdict.CONTRADICTED, Verdict.SUPPORTED]
    before = [result(str(n), Decision.RELEASE, truth=truth) for n, truth in enumerate(truths)]
    now = [result(str(n), Decision.BLOCK, truth=truth) for n, truth in enumerate(truths)]
    _, _, withheld, _ = compare(before, now).paired()
    assert (withheld.only_before, withheld.only_now) == (1, 1)


def test_the_interval_of_the_mean_difference_draws_pairs() -> None:
    scores = np.linspace(0, 1, 50)
    before = [result(str(n), score=float(each)) for n, each in enumerate(scores)]
    now = [result(str(n), score=float(min(1, each + 0.02))) for n, each in enumerate(scores)]
    found = compare(before, now).mean_difference()
    # Scores spread over 0..1, so two independent means would be told apart to 0.1 at best.
    assert 0.015 < found.low <= found.value <= found.high < 0.021


def test_figures_are_json_without_nan() -> None:
    told = compare([], []).figures()
    assert told["scores"]["mean_difference"] == {"value": None, "low": None, "high": None}
    assert told["decisions"]["release"]["block"] == 0


def test_a_mean_of_nothing_is_undefined_and_one_of_many_has_the_interval_that_drawing_gives() -> None:
    assert math.isnan(mean_estimate([]).value)
    values = np.random.default_rng(7).uniform(size=1999)
    drawn, calculated = mean_estimate(values.tolist()), mean_estimate([*values.tolist(), 0.5])
    assert drawn.low == pytest.approx(calculated.low, abs=0.002)
    assert drawn.high == pytest.approx(calculated.high, abs=0.002)


def test_mcnemar_of_many_agrees_with_the_exact_test() -> None:
    assert mcnemar(1040, 959) == pytest.approx(mcnemar(1041, 960), rel=0.05)
    assert mcnemar(50_000, 50_000) == 1.0
    assert mcnemar(100_000, 1) == 0.0
