"""The figures of one run: what is counted, what is kept whole, what bounds it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evals.overview import OTHERS, Overview, is_right, named_groups
from guardrail.evals.results import EvaluationResult, ScoreValue
from guardrail.events import Decision, Severity, Verdict
from tests.unit.evals.results import claim, failed, result

ANSWER = "One. Two. Three."


def overview(*results: EvaluationResult, worst: int = 10) -> Overview:
    found = Overview(worst=worst)
    for each in results:
        found.add(each)
    return found


def test_an_error_is_a_result_and_counts_in_no_rate_and_no_mean() -> None:
    found = overview(result(score=0.5), failed("no JSON"), failed("no JSON", "line 9")).figures()
    assert (found["results"], found["errors"]) == (3, 2)
    assert found["decisions"]["release"]["of"] == 1
    assert found["mean_score"]["value"] == 0.5
    assert found["error_reasons"] == [{"reason": "no JSON", "count": 2, "first": "line 1"}]


def test_an_undefined_score_is_counted_with_its_reason_and_is_null_in_json() -> None:
    scores = {"ragas": ScoreValue(value=None, reason="no statements"), "strict": ScoreValue(value=0.25)}
    found = overview(result(score=None, scores=scores)).figures()
    assert found["undefined_scores"] == 1
    assert found["mean_score"]["value"] is None
    assert found["scores"]["ragas"]["mean"]["value"] is None
    assert found["scores"]["ragas"]["undefined"] == 1
    assert found["scores"]["strict"]["mean"]["value"] == 0.25
    assert found["undefined_reasons"][0]["reason"] == "ragas: no statements"


def test_a_score_that_passes_or_fails_has_a_rate() -> None:
    passed = [
        result(scores={"llama_index": ScoreValue(value=float(p), passed=p)}) for p in (True, True, False)
    ]
    rate = overview(*passed).figures()["scores"]["llama_index"]["passed"]
    assert (rate["count"], rate["of"]) == (2, 3)


def test_verdicts_are_counted_by_severity() -> None:
    claims = [
        claim(ANSWER, "One.", Verdict.CONTRADICTED, severity=Severity.MINOR),
        claim(ANSWER, "Two.", Verdict.CONTRADICTED, index=1),
        claim(ANSWER, "Three.", index=2),
    ]
    whole = overview(result(claims=claims, answer=ANSWER)).whole
    assert whole.claims_with([Verdict.CONTRADICTED]) == 2
    assert whole.claims_with([Verdict.CONTRADICTED], [Severity.MINOR]) == 1
    assert whole.claims_with([Verdict.SUPPORTED], [Severity.CRITICAL]) == 1


def test_the_worst_have_the_strictest_decision_then_the_lowest_score_then_came_first() -> None:
    found = overview(
        result("fine", score=0.1),
        result("flagged", Decision.FLAG, score=0.05),
        result("blocked", Decision.BLOCK, score=0.7),
        result("blocked too", Decision.BLOCK, score=0.2),
        result("as bad", Decision.BLOCK, score=0.2),
        worst=4,
    )
    kept = [each.verdict.response_id for each in found.worst.in_order() if each.verdict]
    assert kept == ["blocked too", "as bad", "blocked", "flagged"]


@given(st.lists(st.tuples(st.sampled_from(Decision), st.integers(0, 4)), max_size=30), st.integers(0, 6))
def test_the_worst_are_those_that_sorting_all_gives(answers: list[tuple[Decision, int]], most: int) -> None:
    results = [result(str(n), decision, score=at / 4) for n, (decision, at) in enumerate(answers)]
    order = sorted(range(len(results)), key=lambda n: (-answers[n][0].rank, answers[n][1], n))
    kept = overview(*results, worst=most).worst.in_order()
    assert kept == [results[n] for n in order[:most]]


@pytest.mark.parametrize(
    ("truth", "right"),
    [
        (None, None),
        (Verdict.UNVERIFIED, None),
        (Verdict.SUPPORTED, True),
        (Verdict.CONTRADICTED, False),
        (Verdict.PARTIALLY_SUPPORTED, False),
    ],
)
def test_labels_say_whether_an_answer_is_right(truth: Verdict | None, right: bool | None) -> None:
    assert is_right(result(truth=truth)) is right
    assert is_right(result(truth=truth).model_copy(update={"verdict": None})) is None


def test_labels_give_misses_and_wrongful_blocks_with_intervals() -> None:
    found = overview(
        result("missed", score=0.8, truth=Verdict.CONTRADICTED),
        result("caught", Decision.BLOCK, truth=Verdict.CONTRADICTED),
        result("wrongful", Decision.REDACT, truth=Verdict.SUPPORTED),
        result("nobody said"),
    )
    labelled = found.figures()["labelled"]
    assert labelled["wrong"]["release"]["count"] == 1
    assert 0 < labelled["wrong"]["release"]["low"] < 0.5 < labelled["wrong"]["release"]["high"] < 1
    assert labelled["right"]["redact"]["count"] == 1
    assert [each.place for each in found.misses.in_order()] == ["line of missed"]
    assert [each.place for each in found.wrongful.in_order()] == ["line of wrongful"]


def test_agreement_with_many_labels_is_measured_on_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guardrail.evals.overview.MOST_LABELLED", 30)
    truths = [Verdict.SUPPORTED, Verdict.CONTRADICTED]
    found = overview(*(result(str(n), truth=truths[n % 2]) for n in range(300))).agreement
    assert found is not None
    assert found.answers.right + found.answers.wrong == 30
    assert 5 < found.answers.wrong < 25
    assert found.coverage.answers == 300
    assert "agreement is measured on 30 of 300 answers with labels, drawn at random" in found.warnings


def test_without_labels_there_is_no_agreement() -> None:
    assert overview(result()).figures()["labelled"] is None


def test_groups_are_the_largest_first_and_absent_where_nothing_names_them() -> None:
    found = overview(result(route="b"), result(route="a"), result(route="a"), failed("no JSON"))
    assert [each.name for each in named_groups(found.groups["route"])] == ["a", "(none)", "b"]
    assert named_groups(found.groups["tenant"]) == []


def test_names_rules_and_reasons_that_never_repeat_take_bounded_memory() -> None:
    found = Overview(worst=1)
    for number in range(1200):
        found.add(result(str(number), Decision.FLAG, route=f"route {number}", rule=f"rule {number}"))
        found.add(failed(f"reason {number}"))
    assert len(found.groups["route"]) <= 201
    assert found.groups["route"][OTHERS].results > 900
    assert len(found.rules) <= 501
    assert found.rules[Decision.FLAG, OTHERS] == 700
    assert len(found.errors.counts) <= 501
    assert sum(found.rules.values()) == 1200
