"""The published scores: the originals' arithmetic to the last bit, bounds, and answers without claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evals.results import ScoreValue
from guardrail.evals.scores import (
    MEANING,
    SCORES,
    ScoreOptions,
    all_scores,
    haystack_score,
    llama_index_score,
    mastra_score,
    ragas_score,
    score_value,
    statements,
)
from guardrail.events import ClaimPart, Severity, Verdict
from guardrail.guard import Guard
from guardrail.policy import Policy
from guardrail.scoring import Formula
from tests.support.judges import WordJudge
from tests.unit.evals.verdicts import claim_verdict, of, response_verdict

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("published_scores.json").read_bytes())
S, P, U, C, X = Verdict
CLAIMS = st.lists(st.tuples(st.sampled_from(Verdict), st.sampled_from(Severity)), max_size=30)


def binary(ones: int, total: int) -> list[int]:
    return [1] * ones + [0] * (total - ones)


# ------------------------------------------------------------------------- what the originals calculate


def test_haystack_reckons_the_same() -> None:
    assert [row for row in RECORDED["haystack"] if haystack_score(binary(*row[:2])) != row[2]] == []


def test_ragas_reckons_the_same_and_says_nan_where_there_is_none() -> None:
    assert [row for row in RECORDED["ragas"] if ragas_score(binary(*row[:2])) != row[2]] == []


def test_mastra_reckons_and_rounds_the_same() -> None:
    def ours(yes: int, total: int, scale: float) -> float:
        return mastra_score(["yes" if n < yes else "no" if n % 2 else "unsure" for n in range(total)], scale)

    assert [row for row in RECORDED["mastra"] if ours(*row[:3]) != row[3]] == []


def test_mastra_counts_yes_only_as_it_is_written() -> None:
    assert mastra_score(["yes", "Yes", "YES"]) == 0.33


def test_llama_index_passes_or_fails() -> None:
    for passing, score in RECORDED["llama_index"]:
        assert llama_index_score(passing) == score


def test_the_record_covers_every_score_that_has_an_original() -> None:
    assert RECORDED.keys() >= SCORES.keys() - {"severity_weighted", "strict"}
    assert min(len(RECORDED[name]) for name in ("haystack", "ragas", "mastra")) > 200


# ----------------------------------------------------------------------------- scores of our verdicts


def test_all_claims_supported_is_the_best_of_each() -> None:
    scores = all_scores(of(S, S, S))
    assert {name: score.value for name, score in scores.items()} == {
        **dict.fromkeys(SCORES, 1.0),
        "severity_weighted": 0.9,
    }
    assert scores["llama_index"].passed is True
    assert score_value("mastra", of(S, S, C), scale=10).value == 6.67


def test_without_claims_haystack_and_mastra_say_0_and_the_others_nothing() -> None:
    scores = all_scores(of())
    assert {name: score.value for name, score in scores.items()} == {
        "severity_weighted": None,
        "strict": None,
        "haystack": 0.0,
        "ragas": None,
        "mastra": 0.0,
        "llama_index": None,
    }
    assert all("states nothing that can be checked" in (score.reason or "") for score in scores.values())


def test_an_answer_of_which_nothing_could_be_checked_has_no_score() -> None:
    scores = all_scores(of(X, X))
    assert [score.value for score in scores.values()] == [None] * len(SCORES)
    assert all(score.reason for score in scores.values())


def test_unverified_claims_are_left_out_and_the_reason_says_so() -> None:
    score = score_value("ragas", of(S, U, X))
    assert score.value == 0.5
    assert score.reason == "1 of 3 claims could not be checked and is left out"


def test_unverified_claims_count_as_not_supported_on_request() -> None:
    scores = all_scores(of(S, S, X), options=ScoreOptions(unverified="fail"))
    assert scores["haystack"].value == pytest.approx(2 / 3)
    assert scores["mastra"].value == 0.67
    assert scores["llama_index"].passed is False
    assert scores["severity_weighted"].value == 0.6
    assert all(score.reason is None for score in scores.values())


def parts(*verdicts: Verdict) -> tuple[ClaimPart, ...]:
    return tuple(ClaimPart(text=f"Part {n}.", verdict=each) for n, each in enumerate(verdicts))


def test_the_parts_of_a_claim_are_its_statements() -> None:
    verdict = response_verdict(
        [claim_verdict(0, C, parts=parts(S, S, C)), claim_verdict(1, S), claim_verdict(2, X)]
    )
    told = statements(verdict)
    assert [each.verdict for each in told] == [S, S, C, S, X]
    assert [each.text for each in told[1:4]] == ["Part 1.", "Part 2.", verdict.claims[1].text]
    assert [each.claim.index for each in told] == [0, 0, 0, 1, 2]
    scores = all_scores(verdict)
    assert [scores[name].value for name in ("strict", "haystack", "ragas", "mastra")] == [0.75] * 4
    assert scores["llama_index"].value == 0.0
    assert scores["ragas"].reason == "1 of 5 statements could not be checked and is left out"
    assert scores["severity_weighted"] == score_value("severity_weighted", of(C, S, X))


def test_a_claim_whose_parts_could_not_be_judged_is_one_statement_and_the_score_says_so() -> None:
    verdict = response_verdict([claim_verdict(0, C, parts=parts(X, X, X)), claim_verdict(1, S)])
    assert [each.verdict for each in statements(verdict)] == [C, S]
    score = score_value("ragas", verdict)
    assert score.value == 0.5
    assert score.reason == "1 claim counts as one statement: the parts could not be judged"


@pytest.mark.parametrize("whole", [P, U, C])
@pytest.mark.parametrize("of_parts", [(S, S), (S, X)])
def test_what_is_wrong_between_the_parts_is_not_lost(whole: Verdict, of_parts: tuple[Verdict, ...]) -> None:
    verdict = response_verdict([claim_verdict(0, whole, parts=parts(*of_parts))])
    assert [(each.text, each.verdict) for each in statements(verdict)] == [(verdict.claims[0].text, whole)]
    assert score_value("strict", verdict).value == 0.0


def test_an_unverified_claim_is_one_statement() -> None:
    assert [
        each.verdict for each in statements(response_verdict([claim_verdict(0, X, parts=parts(S, C))]))
    ] == [X]


def test_a_part_has_the_reason_only_where_it_speaks_of_it() -> None:
    wrong = claim_verdict(0, C, parts=parts(S, C), reasoning="It is 5.")
    right = claim_verdict(1, S, parts=parts(S, S), reasoning="It says so.")
    told = [each.reasoning for each in statements(response_verdict([wrong, right]))]
    assert told == ["", "It is 5.", "It says so.", "It says so."]


@given(
    CLAIMS.flatmap(
        lambda claims: st.tuples(
            *(st.tuples(st.just(each), st.lists(st.sampled_from(Verdict), max_size=4)) for each in claims)
        )
    )
)
def test_no_score_is_perfect_where_a_claim_is_not_supported(claims: tuple[Any, ...]) -> None:
    verdict = response_verdict(
        [
            claim_verdict(n, one, severity, parts=parts(*more))
            for n, ((one, severity), more) in enumerate(claims)
        ]
    )
    wrong = any(one in {P, U, C} for (one, _), _ in claims)
    for name in ("strict", "haystack", "ragas", "mastra"):
        value = score_value(name, verdict).value
        assert not wrong or value is None or value < 1.0


def test_an_answer_with_an_unverified_claim_may_fail_but_not_pass() -> None:
    passing = score_value("llama_index", of(S, S, X))
    assert (passing.value, passing.passed) == (None, None)
    assert passing.reason == "no claim fails it, but 1 is unverified: it may not pass"
    assert score_value("llama_index", of(S, C, X)).passed is False


def test_severity_weighs_in_ours_alone() -> None:
    verdicts = (S, S, S, C)
    critical = response_verdict(
        [
            claim_verdict(n, v, Severity.CRITICAL if v is C else Severity.NORMAL)
            for n, v in enumerate(verdicts)
        ]
    )
    before, after = all_scores(of(*verdicts)), all_scores(critical)
    assert [name for name in SCORES if before[name] != after[name]] == ["severity_weighted"]
    assert (after["severity_weighted"].value or 0) < (before["severity_weighted"].value or 0)


def test_a_verdict_without_its_claims_still_has_its_counts() -> None:
    stored = of(S, U).model_copy(update={"claims": (), "omitted": ("claims.evidence", "claims")})
    scores = all_scores(stored)
    assert scores["severity_weighted"].value == stored.score
    assert scores["ragas"].value == 0.5
    weighed = score_value("severity_weighted", stored, weights=dict.fromkeys(Severity, 1.0))
    assert weighed.value is None
    assert "stored without its claims" in (weighed.reason or "")


@pytest.mark.parametrize("formula", Formula)
async def test_ours_is_what_the_policy_of_the_verdict_reckoned(formula: Formula) -> None:
    weights = {Severity.MINOR: 1.0, Severity.NORMAL: 3.0, Severity.MAJOR: 5.0, Severity.CRITICAL: 9.0}
    policy = Policy(mode="observe", score=formula, weights=weights)
    async with Guard(WordJudge(), policy) as guard:
        verdict = await guard.check("", ["c"], "It costs $5. It is wrong. It is new. We ship on Monday.")
    assert len({claim.verdict for claim in verdict.claims}) > 1
    assert score_value("severity_weighted", verdict).value == verdict.score
    again = score_value("severity_weighted", verdict, formula=formula, weights=weights)
    assert again.value == verdict.score
    assert score_value("severity_weighted", verdict, formula=formula).value != verdict.score


def test_claims_without_weight_have_no_score() -> None:
    nothing = dict.fromkeys(Severity, 0.0)
    assert score_value("severity_weighted", of(S), weights=nothing) == ScoreValue(
        value=None, reason="the weights of all checked claims are 0"
    )
    assert (
        score_value("severity_weighted", of(S, score=None)).reason
        == "the weights of all checked claims are 0"
    )


def test_every_verdict_has_a_meaning_and_only_supported_claims_count() -> None:
    assert set(MEANING) == set(Verdict)
    for verdict, (one, answer, passes) in MEANING.items():
        assert (one == 1) == (answer == "yes") == (passes is True) == (verdict is S)
        assert (one is None) == (answer is None) == (passes is None) == (verdict is X)


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [
        ("bleu", {}, "'bleu' is unknown; there are severity_weighted, strict"),
        ("mastra", {"scale": 0.0}, "scale: 0.0"),
        ("ragas", {"unverified": "guess"}, "unverified: 'guess'"),
    ],
)
def test_what_cannot_be_is_refused(name: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        score_value(name, of(S), **options)


# --------------------------------------------------------------------------------------- of any answer


@given(CLAIMS, st.sampled_from(["leave_out", "fail"]), st.sampled_from([1.0, 10.0]))
def test_scores_are_within_bounds_or_say_why_not(claims: Any, unverified: Any, scale: float) -> None:
    verdict = response_verdict([claim_verdict(n, *each) for n, each in enumerate(claims)])
    options = ScoreOptions(unverified=unverified, scale=scale)
    for name, score in all_scores(verdict, options=options).items():
        if score.value is None:
            assert score.reason
        else:
            assert 0.0 <= score.value <= (scale if name == "mastra" else 1.0)
        assert (score.passed is None) == (name != "llama_index" or score.value is None)


@given(CLAIMS.flatmap(lambda claims: st.tuples(st.just(claims), st.permutations(claims))))
def test_no_score_depends_on_the_order_of_the_claims(claims: Any) -> None:
    one, other = (
        response_verdict([claim_verdict(n, *each) for n, each in enumerate(order)]) for order in claims
    )
    assert all_scores(one) == all_scores(other)


@given(CLAIMS.filter(bool), st.data())
def test_a_claim_that_becomes_supported_lowers_no_score(claims: Any, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(claims) - 1))
    better = [(S if n == at else verdict, severity) for n, (verdict, severity) in enumerate(claims)]
    before, after = (
        all_scores(response_verdict([claim_verdict(n, *each) for n, each in enumerate(which)]))
        for which in (claims, better)
    )
    for name in SCORES:
        if (was := before[name].value) is not None:
            assert (now := after[name].value) is None or now >= was, name
