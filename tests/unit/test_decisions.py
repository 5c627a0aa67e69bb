"""Which claim a decision was about: everybody who shows one asks this, so that they never name two."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.decisions import deciding_claims, redecide_record
from guardrail.events import Decision, Finding, PolicyRef, Severity, Verdict
from guardrail.policy import Policy, Rule
from tests.support.records import claim, recorded

S, P, U, C, X = Verdict
DEFAULT = Policy()
REDACTING = next(rule.name for rule in DEFAULT.rules if rule.action is Decision.REDACT)
DOUBTFUL = claim(P, text="You are entitled to 50 % of the fare.", severity=Severity.MAJOR, support=0.4)
INVENTED = claim(U, text="That makes €48.00.", findings=(Finding.FIGURE_ABSENT,), support=0.05, segment=1)
NAMED = Rule(name="invented figure", finding=(Finding.FIGURE_ABSENT,), action=Decision.REDACT)


TWO = ("verdict UNSUPPORTED: release", "severity >= major: redact")


def told(*found: dict[str, Any], policies: tuple[Policy, ...] = (), **fields: Any) -> list[str]:
    verdict = recorded("r", found, **fields)
    return [each.text for each in deciding_claims(verdict, policies)]


def test_the_claim_that_was_redacted_is_named_not_the_first_one_in_doubt() -> None:
    decided = redecide_record(DEFAULT, recorded("r", [claim(), DOUBTFUL, INVENTED]))
    assert (decided.decision, decided.rule) == (Decision.REDACT, REDACTING)
    fields: dict[str, Any] = {"decision": decided.decision, "rule": decided.rule}
    assert told(claim(), DOUBTFUL, INVENTED, policy=DEFAULT.ref, **fields) == ["That makes €48.00."]


def test_a_rule_without_a_name_of_its_own_is_read_from_the_decision_alone() -> None:
    unknown = PolicyRef(name="of another file", version="7", digest="0123456789ab")
    fields: dict[str, Any] = {"decision": Decision.REDACT, "rule": REDACTING, "policy": unknown}
    assert told(DOUBTFUL, INVENTED, **fields) == ["That makes €48.00."]


def test_a_rule_that_the_operator_named_is_looked_up_in_the_policy() -> None:
    own = Policy(name="own", rules=(NAMED,))
    fields: dict[str, Any] = {"decision": Decision.REDACT, "rule": "invented figure", "policy": own.ref}
    assert told(DOUBTFUL, INVENTED, policies=(own,), **fields) == ["That makes €48.00."]
    changed = own.model_copy(update={"flag_below": 0.9})
    assert told(DOUBTFUL, INVENTED, policies=(changed,), **fields) == ["That makes €48.00."]
    assert told(DOUBTFUL, INVENTED, **fields) == [], "nothing is made up where the policy isn't known"


def test_an_earlier_rule_takes_its_claims_from_a_later_one() -> None:
    mild = Policy(name="own", rules=tuple(map(Rule.model_validate, TWO)))
    fields: dict[str, Any] = {
        "decision": Decision.REDACT,
        "rule": "severity >= major: redact",
        "policy": mild.ref,
    }
    assert told(INVENTED, DOUBTFUL, policies=(mild,), **fields) == ["You are entitled to 50 % of the fare."]


def test_of_a_decision_by_the_score_the_claim_that_costs_it_most_is_first_even_a_supported_one() -> None:
    unsure = claim(S, text="The lid was open.", support=0.54)
    minor = claim(U, text="It is red.", support=0.1, severity=Severity.MINOR)
    fields: dict[str, Any] = {"decision": Decision.FLAG, "rule": "score < flag_below 0.55"}
    assert told(minor, claim(X, text="Unchecked."), unsure, **fields) == ["The lid was open.", "It is red."]


def test_a_rule_that_an_operator_named_like_the_score_is_that_rule() -> None:
    own = Policy(name="own", rules=(NAMED.model_copy(update={"name": "score < our taste"}),))
    fields: dict[str, Any] = {"decision": Decision.REDACT, "rule": "score < our taste", "policy": own.ref}
    assert told(DOUBTFUL, INVENTED, policies=(own,), **fields) == ["That makes €48.00."]


def test_the_shipped_policy_stands_in_for_no_other_of_its_name() -> None:
    own = Policy(name="default", rules=(NAMED,))
    fields: dict[str, Any] = {"decision": Decision.REDACT, "rule": "invented figure", "policy": own.ref}
    assert told(DOUBTFUL, INVENTED, **fields) == []


@pytest.mark.parametrize("rule", ["aborted", "timed out", "segment kind code", "sequence_gap"])
def test_what_no_claim_decided_names_none(rule: str) -> None:
    assert told(DOUBTFUL, INVENTED, decision=Decision.BLOCK, rule=rule, policy=DEFAULT.ref) == []


def test_a_released_answer_has_none_and_an_unverified_claim_decides_by_on_unverified() -> None:
    assert told(DOUBTFUL) == []
    fields: dict[str, Any] = {"decision": Decision.BLOCK, "rule": "on_unverified: fail_closed"}
    assert told(DOUBTFUL, claim(X, text="Unchecked."), **fields) == ["Unchecked."]
