"""The table of judged responses: aligned, narrow, harmless."""

from __future__ import annotations

from collections import Counter

from guardrail.cli.evaluate_report import header, most_frequent, row, totals, why
from guardrail.evals import EvaluationResult
from guardrail.evals.overview import Overview, Reasons
from guardrail.events import Decision
from guardrail.judges import Usage, Verdict
from guardrail.render import symbols_for
from tests.unit.demo.events import claim, verdict

CLAIMS = (
    claim("a", (0, 1)),
    claim("b", (1, 2), Verdict.CONTRADICTED, index=1),
    claim("c", (2, 3), Verdict.UNVERIFIED, index=2),
)


def test_rows_are_as_wide_as_the_header_and_fit_80_columns() -> None:
    rows = [
        header().plain,
        row(verdict(), 1.0).plain,
        row(verdict(Decision.BLOCK, CLAIMS, response_id="x" * 200), None).plain,
    ]
    assert len({len(each) for each in rows}) == 1
    assert len(rows[0]) <= 80


def test_a_row_counts_the_claims_by_verdict() -> None:
    told = row(verdict(Decision.BLOCK, CLAIMS), 0.25).plain
    assert told.split() == ["r", "0.250", "block", "3", "1", ".", ".", "1", "1"]


def test_an_id_cannot_break_the_table() -> None:
    assert "\x1b" not in row(verdict(response_id="a\x1b[2J\nb"), 1.0).plain
    assert "\n" not in row(verdict(response_id="a\x1b[2J\nb"), 1.0).plain


def test_below_a_row_stand_rule_claim_and_reason_of_what_was_not_simply_released() -> None:
    wrong = CLAIMS[1].model_copy(update={"reasoning": "no\x1b[2J source"})
    judged = verdict(Decision.BLOCK, (CLAIMS[0], wrong)).model_copy(update={"deciding_claim": "c1"})
    told = why(judged, symbols_for("utf-8"), 79).plain.splitlines()
    assert told == ["", "  rule    contradicted fact", "  claim   ✘ b", "  reason  no\\x1b[2J source"]
    older = judged.model_copy(update={"deciding_claim": None})
    assert why(older, symbols_for("utf-8"), 79).plain == "\n  rule    contradicted fact"
    assert why(verdict(claims=CLAIMS), symbols_for("utf-8"), 79).plain == ""


def told_of(*results: EvaluationResult) -> list[str]:
    run = Overview(worst=0)
    for result in results:
        run.add(result)
    return [line.plain for line in totals(run, Reasons())]


def test_totals_leave_out_of_the_mean_what_has_no_score() -> None:
    judged = [verdict(Decision.BLOCK, CLAIMS, score=0.25), verdict(score=0.75), verdict(score=None)]
    assert told_of(*(EvaluationResult(verdict=each) for each in judged), EvaluationResult(error="x")) == [
        "3 responses: 2 release, 1 block, mean score 0.500",
        "      1 block by rule: contradicted fact",
        "3 claims: 1 supported, 1 contradicted, 1 unverified",
        "1 of 3 claims were not judged, and count in no score: the events say why",
        "1 answer could not be judged",
    ]


def test_totals_tell_what_was_consumed_who_was_missed_and_why_claims_were_not_judged() -> None:
    late = claim("a", (0, 1)).model_copy(update={"degraded_from": ("llm:m: late",)})
    failed = claim("b", (1, 2), Verdict.UNVERIFIED, index=1)
    failed = failed.model_copy(update={"reasoning": "no\x1b[2J\nconnection"})
    usage = Usage(
        judge_calls=2, input_tokens=1500, cached_input_tokens=1000, output_tokens=30, cost_usd=0.00125
    )
    judged = verdict(Decision.BLOCK, (late, failed), score=0.5).model_copy(update={"usage": usage})
    told = told_of(*[EvaluationResult(verdict=judged)] * 2)[3:]
    assert told[0] == "2 of 4 claims were not judged, and count in no score: the events say why"
    assert told[1].split(maxsplit=1)[0] == "2"
    assert "connection" in told[1]
    assert "\x1b" not in told[1]
    assert told[2:] == [
        "2 of 4 claims were judged by a fallback judge",
        "      2 llm:m: late",
        "4 calls of the judge: 3,000 tokens in (2,000 cached), 60 out, 0.0025 USD",
    ]


def test_of_many_reasons_the_most_frequent_come_first() -> None:
    reasons = Reasons()
    for number in range(1_000):
        reasons.add(f"reason {number}", "")
    for _ in range(3):
        reasons.add("reason 7", "")
    told = [line.plain.strip() for line in most_frequent(reasons.counts)]
    assert told[0] == "4 reason 7"
    assert len(told) == 6
    assert told[-1] == "995 for other reasons"
    assert len(reasons.counts) <= 501


def test_texts_that_look_the_same_on_a_line_count_as_one() -> None:
    told = most_frequent(Counter({"so it goes " * 10 + each: 2 for each in "abcdefgh"}))
    assert len(told) == 1
    assert told[0].plain.startswith("     16 so it goes")
    (whole,) = most_frequent(Counter({"so it goes " * 10 + "on": 2}), width=200)
    assert whole.plain == f"      2 {'so it goes ' * 10}on"


def test_one_more_than_are_shown_is_named_rather_than_counted() -> None:
    assert len(most_frequent(Counter("abcdef"))) == 6
    assert most_frequent(Counter("abcdefg"))[-1].plain == "      2 for other reasons"


def test_rules_beyond_those_that_are_counted_are_for_other_reasons() -> None:
    rules = [*(f"rule {number}" for number in range(600)), *["rule 7"] * 4]
    blocked = verdict(Decision.BLOCK)
    told = told_of(*(EvaluationResult(verdict=blocked.model_copy(update={"rule": each})) for each in rules))
    assert told[1] == "      5 block by rule: rule 7"
    assert told[6] == "    595 for other reasons"
    assert told[7] == "0 claims: none"


def test_totals_of_nothing() -> None:
    assert told_of() == ["0 responses: none judged", "0 claims: none"]
