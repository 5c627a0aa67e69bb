"""How benchmarks.chat_answers counts what becomes of right answers and their wrong twins."""

from __future__ import annotations

import pytest

from benchmarks.chat_answers import Judged, Outcome, failures, lines, outcome, report
from guardrail.evals.statistics import wilson
from guardrail.events import Decision, PolicyRef, ResponseVerdict, Timings, VerdictCounts
from tests.chat_answers import Answer, ChatCase, Document


def verdict(decision: Decision, unverified: int = 0) -> ResponseVerdict:
    return ResponseVerdict(
        id="v",
        response_id="r",
        score=0.5,
        counts=VerdictCounts(unverified=unverified),
        decision=decision,
        rule="a rule",
        mode="stream",
        complete=True,
        summary="",
        timings=Timings(total_ms=1.0),
        policy=PolicyRef(name="default", version="1"),
    )


def pair(kind: str, right: Decision, wrong: Decision, unverified: int = 0) -> Judged:
    answer = Answer.model_validate(
        {
            "kind": kind,
            "right": f"Adults pay €12, {kind}.",
            "wrong": f"Adults pay €15, {kind}.",
            "wrong_kind": "price",
            "severity_hint": "critical",
        }
    )
    case = ChatCase(f"museum-{kind}", "What is it?", (Document(id="c1", text="Adults €12."),), answer)
    return Judged(case, verdict(right), verdict(wrong, unverified))


FOUND = [
    pair("bold", Decision.RELEASE, Decision.BLOCK),
    pair("bold", Decision.REDACT, Decision.REDACT),
    pair("short", Decision.BLOCK, Decision.RELEASE),
    pair("short", Decision.RELEASE, Decision.FLAG),
    pair("short", Decision.RELEASE, Decision.BLOCK, unverified=1),
]


def test_redacted_and_blocked_are_withheld_and_what_was_not_checked_is_apart() -> None:
    assert [outcome(one.right) for one in FOUND[:3]] == [
        Outcome.UNTOUCHED,
        Outcome.WITHHELD,
        Outcome.WITHHELD,
    ]
    assert outcome(FOUND[4].wrong) is Outcome.UNVERIFIED


def test_counts_in_all_by_kind_and_of_pairs_told_apart() -> None:
    figures = report(FOUND)
    counts = {
        side: {one.value: figures[side][one.value]["count"] for one in Outcome} for side in ("right", "wrong")
    }
    assert counts == {
        "right": {"untouched": 3, "flagged": 0, "withheld": 2, "unverified": 0},
        "wrong": {"untouched": 1, "flagged": 1, "withheld": 2, "unverified": 1},
    }
    assert figures["told_apart"]["count"] == 2
    assert figures["right_by_kind"]["short"]["withheld"]["share"] == pytest.approx(1 / 3)
    assert figures["wrong_by_wrong_kind"]["price"]["answers"] == 5
    line = next(line for line in lines(figures) if line.startswith("  bold"))
    assert line.split()[:4] == ["bold", "2", "1", "="]


def test_shown_are_right_answers_that_were_touched_and_wrong_ones_that_were_not() -> None:
    titles = [line for line in failures(FOUND) if line.startswith("museum")]
    assert [title.split(":")[0] for title in titles] == [
        "museum-bold right, bold",
        "museum-short right, short",
        "museum-short WRONG, price",
    ]


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0)],
)
def test_wilson_intervals(hits: int, of: int, low: float, high: float) -> None:
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-4)


def test_more_hits_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="hits 3 of 2"):
        wilson(3, 2)
