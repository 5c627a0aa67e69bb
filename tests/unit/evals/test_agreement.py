"""Agreement with labels: figures by hand, slices, decisions, and what too few labels can't tell."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.evals.agreement import Agreement, agreement
from guardrail.evals.results import EvaluationResult
from guardrail.evals.statistics import Rate
from guardrail.events import Decision, Label, Response, Severity, Verdict
from tests.unit.evals.verdicts import claim_verdict, of, response_verdict

S, P, U, C, X = Verdict


def result(
    number: int,
    verdicts: tuple[Verdict, ...],
    truths: tuple[Verdict, ...],
    decision: Decision = Decision.RELEASE,
    **head: Any,
) -> EvaluationResult:
    """An answer with verdicts on its claims, and a label for each."""
    response_id = f"r{number}"
    return EvaluationResult(
        response=Response(response_id=response_id, answer="…", **head),
        verdict=of(*verdicts, response_id=response_id, decision=decision),
        labels=tuple(
            Label(response_id=response_id, claim_id=f"c{n}", verdict=truth) for n, truth in enumerate(truths)
        ),
    )


def quick(*results: EvaluationResult, **options: Any) -> Agreement:
    return agreement(results, **{"rounds": 20, **options})


def test_figures_of_claims_by_hand() -> None:
    found = quick(result(1, (S, S, U), (S, S, U)), result(2, (S, P, C, X), (U, S, C, S)))
    claims = found.claims
    # Right: S, S, P; wrong: U, S, C. The claim that is UNVERIFIED is left out.
    assert (claims.right, claims.wrong, found.coverage.unverified) == (3, 3, 1)
    assert (claims.caught, claims.false_alarms) == (Rate(2, 3), Rate(1, 3))
    figures = {name: estimate.value for name, estimate in claims.figures.items()}
    assert figures["balanced_accuracy"] == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert figures["f1"] == pytest.approx(2 * 2 / (2 * 2 + 2))
    assert figures["kappa"] == pytest.approx((4 / 6 - 1 / 2) / (1 / 2))
    # Support 0.9, 0.9, 0.5 of the right ones; 0.2, 0.9, 0.05 of the wrong: 6 of 9 pairs in order, 2 ties.
    assert figures["auroc"] == pytest.approx((6 + 2 / 2) / 9)
    # Wrong ones first: 0.05, 0.2 -> precision 1; then with the tie at 0.9, 3 of 6.
    assert figures["average_precision"] == pytest.approx((1 + 1 + 3 / 6) / 3)
    bins = {round(each.predicted, 2): (each.weight, each.observed) for each in claims.bins}
    assert bins == {0.05: (1, 0), 0.2: (1, 0), 0.5: (1, 1), 0.9: (3, pytest.approx(2 / 3))}
    assert figures["calibration_error"] == pytest.approx((0.05 + 0.2 + 0.5 + 3 * (0.9 - 2 / 3)) / 6)


def test_what_the_policy_does_to_right_and_wrong_answers() -> None:
    found = quick(
        result(1, (S,), (S,), Decision.RELEASE),
        result(2, (S,), (S,), Decision.FLAG),
        result(3, (S,), (S,), Decision.BLOCK),
        result(4, (S,), (S,), Decision.REDACT),
        result(5, (U,), (U,), Decision.BLOCK),
        result(6, (U,), (U,), Decision.FLAG),
        result(7, (U,), (U,), Decision.RELEASE),
    ).decisions
    assert found.wrongly_withheld == Rate(2, 4)
    assert found.wrongly_flagged == Rate(1, 4)
    assert (found.missed, found.shown) == (Rate(1, 3), Rate(2, 3))
    assert found.missed_by_severity == {Severity.NORMAL: Rate(1, 3)}


def test_misses_are_told_by_the_severity_of_the_worst_error() -> None:
    verdict = response_verdict([claim_verdict(0, S, Severity.CRITICAL), claim_verdict(1, S, Severity.MINOR)])
    labels = [Label(response_id="r1", claim_id=f"c{n}", verdict=C) for n in (0, 1)]
    found = quick(EvaluationResult(verdict=verdict), labels=labels)
    assert found.decisions.missed_by_severity == {Severity.CRITICAL: Rate(1, 1)}


def test_slices_by_route_model_severity_and_category() -> None:
    labelled = result(1, (S, U), (S, S), route="sales", generator_model="m1")
    wrong = EvaluationResult(
        response=Response(response_id="r2", answer="…", route="help"),
        verdict=of(S, S, response_id="r2"),
        labels=(
            Label(response_id="r2", claim_id="c0", verdict=C, category="price", severity=Severity.CRITICAL),
        ),
    )
    unlabelled = EvaluationResult(
        response=Response(response_id="r3", answer="…", route="other"), verdict=of(S, response_id="r3")
    )
    slices = quick(labelled, wrong, unlabelled).slices
    assert {name: list(values) for name, values in slices.items()} == {
        "route": ["help", "sales"],
        "generator_model": ["m1"],
        "severity": ["critical", "normal"],
        "category": ["price"],
    }
    assert slices["route"]["sales"].claims.false_alarms == Rate(1, 2)
    assert slices["category"]["price"].claims.caught == Rate(0, 1)
    decisions = slices["route"]["help"].decisions
    assert decisions is not None
    assert decisions.missed == Rate(1, 1)
    assert slices["severity"]["critical"].decisions is None


def test_any_published_score_can_rank_the_answers() -> None:
    answers = [result(1, (S, S), (S, S)), result(2, (S, C), (S, C)), result(3, (), ())]
    for score in (None, "strict", "llama_index"):
        assert quick(*answers, score=score).answers.figures["auroc"].value == 1.0


def test_what_counts_as_an_error_holds_for_labels_and_verdicts_alike() -> None:
    answers = [result(1, (P, U, C), (S, P, U))]
    strict, mild = quick(*answers), quick(*answers, mildest=U)
    assert (strict.claims.right, strict.claims.false_alarms, strict.claims.caught) == (
        1,
        Rate(1, 1),
        Rate(2, 2),
    )
    assert (mild.claims.right, mild.claims.false_alarms, mild.claims.caught) == (2, Rate(1, 2), Rate(1, 1))


def test_without_labels_nothing_is_said_but_that() -> None:
    found = quick(EvaluationResult(verdict=of(S, U)), EvaluationResult(error="not valid JSON"))
    assert found.warnings == ("no label is about any of these answers, so nothing can be said of agreement",)
    assert all(math.isnan(each.value) for each in found.claims.figures.values())
    assert found.lines() == [
        "Labels: 0 of 2 answers, 0 of 2 claims",
        "Left out: answers without a verdict 1",
        f"! {found.warnings[0]}",
    ]


def test_too_few_labels_are_said_plainly() -> None:
    few = quick(*(result(n, (S,), (S,)) for n in range(12)), result(12, (U,), (U,)))
    assert few.warnings == (
        "12 claims that people call right: figures of claims are rough, see their intervals; 50 or more are "
        "better",
        "1 claim that people call wrong: too few to say anything of claims; label at least 10, better 50",
        "12 answers that people call right: figures of answers are rough, see their intervals; 50 or more "
        "are better",
        "1 answer that people call wrong: too few to say anything of answers; label at least 10, better 50",
    )
    enough = quick(*(result(n, (S,), (S if n % 2 else U,)) for n in range(100)))
    assert enough.warnings == ()


def test_labels_from_elsewhere_are_joined_by_the_id_of_the_answer() -> None:
    labels = [Label(response_id="r1", verdict=S), Label(response_id="r9", verdict=S)]
    found = quick(EvaluationResult(verdict=of(S, S)), labels=labels)
    assert (found.claims.right, found.answers.right, found.coverage.stray) == (2, 1, 1)
    assert "1 label is about answers that are not in the results" in found.warnings


def test_errors_in_no_claim_are_told() -> None:
    label = Label(response_id="r1", span=(500, 510), verdict=U)
    found = quick(EvaluationResult(verdict=of(S), labels=(label,)))
    assert (found.answers.wrong, found.claims.wrong, found.coverage.outside) == (1, 0, 1)
    assert any(warning.startswith("1 marked error is in no claim") for warning in found.warnings)


def test_intervals_draw_whole_answers_and_hold_the_figure() -> None:
    answers = [result(n, (S, U, P), (S, U if n % 3 else S, U if n % 2 else S)) for n in range(60)]
    for estimate in agreement(answers, rounds=200).claims.figures.values():
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.low < estimate.high


def test_names_are_escaped_on_terminals_and_the_report_has_them_as_they_are() -> None:
    hostile = "\x1b[2J\nroute"
    found = quick(result(1, (S,), (U,), route=hostile))
    assert all(line.isprintable() for line in found.lines())
    assert list(found.data()["slices"]["route"]) == [hostile]


def test_data_is_json_without_nan() -> None:
    data = quick(result(1, (S,), (S,))).data()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["claims"]["auroc"]["value"] is None
    assert data["claims"]["false_alarms"]["of"] == 1


@pytest.mark.parametrize(
    ("options", "named"), [({"mildest": S}, "mildest: SUPPORTED"), ({"score": "bleu"}, "'bleu' is unknown")]
)
def test_what_cannot_be_is_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        quick(result(1, (S,), (S,)), **options)


TRUTHS = st.sampled_from((S, P, U, C, X))
ANSWERS = st.lists(st.lists(st.tuples(TRUTHS, TRUTHS), max_size=4), max_size=6)


@given(ANSWERS)
@settings(max_examples=40)
def test_of_any_labels_every_claim_counts_once_and_figures_are_in_bounds(answers: Any) -> None:
    found = quick(
        *(
            result(n, tuple(v for v, _ in claims), tuple(t for _, t in claims))
            for n, claims in enumerate(answers)
        ),
        rounds=3,
    )
    said = [(verdict, truth) for claims in answers for verdict, truth in claims if truth is not X]
    assert found.coverage.claims_known == len(said)
    assert found.claims.right + found.claims.wrong + found.coverage.unverified == len(said)
    for name, estimate in (*found.claims.figures.items(), *found.answers.figures.items()):
        low = -1.0 if name == "kappa" else 0.0
        assert math.isnan(estimate.value) or low <= estimate.value <= 1.0
    assert found.lines()
