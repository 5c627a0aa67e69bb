"""Which claim a decision was about: the guard says it once, in its events, and its readers read that."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.decisions import claims_decided_by, decided_by_score, redecide_record
from guardrail.events import (
    Decision,
    Finding,
    FlaggedCase,
    ResponseVerdict,
    Severity,
    Verdict,
    claim_that_decided,
    parse_output,
)
from guardrail.policy import FailPolicy, Policy, Rule
from guardrail.scoring import Formula
from tests.support.records import claim, recorded
from tests.support.sessions import Driver

S, P, U, C, X = Verdict
DEFAULT = Policy()
REDACTING = next(rule.name for rule in DEFAULT.rules if rule.action is Decision.REDACT)
DOUBTFUL = claim(P, text="You are entitled to 50 % of the fare.", severity=Severity.MAJOR, support=0.4)
INVENTED = claim(U, text="That makes €48.00.", findings=(Finding.FIGURE_ABSENT,), support=0.05, segment=1)
NAMED = Rule(name="invented figure", finding=(Finding.FIGURE_ABSENT,), action=Decision.REDACT)
TWO = ("verdict UNSUPPORTED: release", "severity >= major: redact")


def told(
    *found: dict[str, Any],
    policy: Policy = DEFAULT,
    decision: Decision = Decision.REDACT,
    rule: str = REDACTING,
) -> list[str]:
    return [each.text for each in claims_decided_by(decision, rule, recorded("r", found).claims, policy)]


def test_the_claim_that_was_redacted_is_named_not_the_first_one_in_doubt() -> None:
    decided = redecide_record(DEFAULT, recorded("r", [claim(), DOUBTFUL, INVENTED]))
    assert (decided.decision, decided.rule) == (Decision.REDACT, REDACTING)
    assert told(claim(), DOUBTFUL, INVENTED) == ["That makes €48.00."]


def test_a_rule_that_the_operator_named_is_that_rule() -> None:
    own = Policy(rules=(NAMED,))
    assert told(DOUBTFUL, INVENTED, policy=own, rule="invented figure") == ["That makes €48.00."]


def test_an_earlier_rule_takes_its_claims_from_a_later_one() -> None:
    mild = Policy(rules=tuple(map(Rule.model_validate, TWO)))
    assert told(INVENTED, DOUBTFUL, policy=mild, rule="severity >= major: redact") == [DOUBTFUL["text"]]


def test_of_two_rules_of_one_name_it_is_the_one_that_decided_so() -> None:
    mild = NAMED.model_copy(update={"finding": (), "verdict": (P,), "action": Decision.FLAG})
    own = Policy(rules=(mild, NAMED))
    assert told(DOUBTFUL, INVENTED, policy=own, rule="invented figure") == ["That makes €48.00."]


def test_of_a_decision_by_the_score_the_claim_that_costs_it_most_is_first_even_a_supported_one() -> None:
    unsure = claim(S, text="The lid was open.", support=0.54)
    minor = claim(U, text="It is red.", support=0.1, severity=Severity.MINOR)
    unchecked, full = claim(X, text="Unchecked."), claim(S, text="It is a lid.", support=1.0)
    for decision, rule in (
        (Decision.FLAG, "score < flag_below 0.55"),
        (Decision.BLOCK, "score < block_below 1e-05"),
    ):
        found = told(minor, unchecked, full, unsure, decision=decision, rule=rule)
        assert found == ["The lid was open.", "It is red."]
        assert decided_by_score(rule)


def test_of_equal_cost_the_first_in_the_text_is_first() -> None:
    same = [claim(U, text=text, support=0.1) for text in ("One.", "Two.")]
    assert told(*same, decision=Decision.FLAG, rule="score < flag_below 0.55") == ["One.", "Two."]


def test_a_rule_that_an_operator_named_like_the_score_is_that_rule() -> None:
    own = Policy(rules=(NAMED.model_copy(update={"name": "score < our taste"}),))
    assert told(DOUBTFUL, INVENTED, policy=own, rule="score < our taste") == ["That makes €48.00."]
    assert not decided_by_score("score < our taste")


@pytest.mark.parametrize("rule", ["aborted", "timed out", "segment kind code", "sequence_gap"])
def test_what_no_claim_decided_names_none(rule: str) -> None:
    assert told(DOUBTFUL, INVENTED, decision=Decision.BLOCK, rule=rule) == []


def test_a_released_answer_has_none_and_an_unverified_claim_decides_by_on_unverified() -> None:
    assert told(DOUBTFUL, decision=Decision.RELEASE, rule="score and rules passed") == []
    for how, decision in ((FailPolicy.FAIL_CLOSED, Decision.BLOCK), (FailPolicy.FLAG, Decision.FLAG)):
        policy = Policy(on_unverified=how)
        found = told(
            DOUBTFUL, claim(X, text="No."), policy=policy, decision=decision, rule=f"on_unverified: {how}"
        )
        assert found == ["No."]


# ------------------------------------------------------------------------------------ in the events


def test_the_running_score_is_rounded_before_it_is_compared() -> None:
    """Of two thirds, 0.666667 is left: that is not below 0.666667."""
    found = [claim(), claim(segment=1), claim(U, segment=2), claim(segment=3)]
    policy = Policy(rules=(), score=Formula.CREDITS, block_below=0.666667, flag_below=0.666667)
    assert redecide_record(policy, recorded("r", found)).decision is Decision.RELEASE


def test_the_verdict_and_the_case_of_a_session_name_it() -> None:
    own = Rule(name="our own", verdict=(C,), action=Decision.BLOCK)
    driver = Driver(Policy(name="own", rules=(own,)))
    driver.whole("It is partly so. It is wrong. It is wrong again. ")
    for event in (driver.verdict, driver.case):
        decided = claim_that_decided(event)
        assert decided is not None
        assert (event.rule, decided.index) == ("our own", 1)
        read = parse_output(event.to_json())
        assert isinstance(read, ResponseVerdict | FlaggedCase)
        assert read.deciding_claim == driver.claims[1].claim_id


def test_where_no_claim_decided_the_field_is_absent() -> None:
    released, aborted = Driver(), Driver()
    released.whole("It is so. ")
    aborted.feed("It is so. It is wr")
    aborted.apply(aborted.session.abort(aborted.now))
    for event in (released.verdict, aborted.verdict, aborted.case):
        assert b"deciding_claim" not in event.to_json()
        assert claim_that_decided(event) is None


def test_a_claim_that_was_left_out_of_a_large_event_is_not_shown() -> None:
    whole = recorded("r", [INVENTED], deciding_claim="r-0")
    decided = claim_that_decided(whole)
    assert decided is not None
    assert decided.text == "That makes €48.00."
    assert claim_that_decided(whole.model_copy(update={"claims": (), "omitted": ("claims",)})) is None
