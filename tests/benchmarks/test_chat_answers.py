"""How benchmarks.chat_answers counts what becomes of right and wrong answers."""

from __future__ import annotations

import pytest

from benchmarks.chat_answers import Judged, Outcome, failures, outcome, rates, report
from guardrail.events import Context, Decision, PolicyRef, ResponseVerdict, Timings, VerdictCounts
from tests.exact_answers import ExactCase


def judged(label: str, kind: str, decision: Decision, unverified: int = 0) -> Judged:
    verdict = ResponseVerdict(
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
    contexts = (Context(id="c1", text="Adults €12."),)
    return Judged(ExactCase("museum", "", kind, label, "What is it?", contexts, "Adults €12.", ""), verdict)


FOUND = [
    judged("right", "bold", Decision.RELEASE),
    judged("right", "bold", Decision.REDACT),
    judged("right", "short", Decision.BLOCK),
    judged("wrong", "price", Decision.RELEASE),
    judged("wrong", "price", Decision.FLAG),
    judged("wrong", "price", Decision.BLOCK, unverified=1),
]


@pytest.mark.parametrize(("label", "counts"), [("right", (1, 0, 2, 0)), ("wrong", (1, 1, 0, 1))])
def test_redacted_and_blocked_are_withheld_and_what_was_not_checked_is_apart(
    label: str, counts: tuple[int, ...]
) -> None:
    assert tuple(rate.count for rate in rates(FOUND, label).values()) == counts
    assert outcome(FOUND[-1].verdict) is Outcome.UNVERIFIED


def test_the_report_has_a_row_for_each_label_and_kind() -> None:
    rows = [line.split(" | ")[:3] for line in report(FOUND).splitlines()[2:]]
    assert rows[:3] == [
        ["| right", "3", "1 of 3: 33.3 [6.1, 79.2]"],
        ["| wrong", "3", "1 of 3: 33.3 [6.1, 79.2]"],
        ["| right, bold", "2", "1 of 2: 50.0 [9.5, 90.5]"],
    ]


def test_shown_are_right_answers_that_were_touched_and_wrong_ones_that_were_not() -> None:
    titles = [line.split(":")[0] for line in failures(FOUND) if line.startswith("museum")]
    assert titles == ["museum right, bold", "museum right, short", "museum wrong, price"]
