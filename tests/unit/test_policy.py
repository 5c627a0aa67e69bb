from __future__ import annotations

import pytest
from pydantic import ValidationError

from guardrail.events import Decision, Severity, Verdict
from guardrail.policy import FailPolicy, Policy, Rule, parse_rule

S, V, D = Severity, Verdict, Decision


def decide(policy: Policy, verdict: Verdict, severity: Severity, support: float | None = 0.5) -> Decision:
    return policy.decide_claim(verdict, severity, support, 0.9, ())[0]


def test_the_default_policy_blocks_a_contradicted_price_however_good_the_rest() -> None:
    decision, rule = Policy().decide_claim(V.CONTRADICTED, S.CRITICAL, 0.01, 0.99, ("price",))
    assert decision is D.BLOCK
    assert rule == "verdict CONTRADICTED and severity >= major: block"


@pytest.mark.parametrize(
    ("verdict", "severity", "expected"),
    [
        (V.SUPPORTED, S.CRITICAL, D.RELEASE),
        (V.PARTIALLY_SUPPORTED, S.MAJOR, D.RELEASE),
        (V.PARTIALLY_SUPPORTED, S.CRITICAL, D.FLAG),
        (V.UNSUPPORTED, S.MINOR, D.RELEASE),
        (V.UNSUPPORTED, S.NORMAL, D.FLAG),
        (V.UNSUPPORTED, S.CRITICAL, D.REDACT),
        (V.CONTRADICTED, S.NORMAL, D.REDACT),
        (V.CONTRADICTED, S.MAJOR, D.BLOCK),
    ],
)
def test_default_rules(verdict: Verdict, severity: Severity, expected: Decision) -> None:
    assert decide(Policy(), verdict, severity) is expected


@pytest.mark.parametrize(
    ("fail_policy", "expected"),
    [(FailPolicy.FAIL_CLOSED, D.BLOCK), (FailPolicy.FAIL_OPEN, D.RELEASE), (FailPolicy.FLAG, D.FLAG)],
)
def test_unverified_claims_follow_the_fail_policy_not_the_rules(
    fail_policy: FailPolicy, expected: Decision
) -> None:
    policy = Policy(on_unverified=fail_policy, rules=(Rule.model_validate("always: redact"),))
    decision, rule = policy.decide_claim(V.UNVERIFIED, S.NORMAL, None, 0.0, ())
    assert decision is expected
    assert rule == f"on_unverified: {fail_policy}"


def test_the_first_rule_that_matches_decides() -> None:
    policy = Policy.model_validate({"rules": ["severity minor: release", "verdict UNSUPPORTED: block"]})
    assert decide(policy, V.UNSUPPORTED, S.MINOR) is D.RELEASE
    assert decide(policy, V.UNSUPPORTED, S.NORMAL) is D.BLOCK


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (
            "verdict CONTRADICTED and severity >= major: block",
            {"verdict": ("CONTRADICTED",), "min_severity": "major", "action": "block"},
        ),
        (
            "verdict unsupported|partially_supported AND severity <= normal: Flag",
            {"verdict": ("UNSUPPORTED", "PARTIALLY_SUPPORTED"), "max_severity": "normal", "action": "flag"},
        ),
        (
            "severity critical: redact",
            {"min_severity": "critical", "max_severity": "critical", "action": "redact"},
        ),
        (
            "support < 0.3 and confidence >= 0.8: block",
            {"support_below": "0.3", "min_confidence": "0.8", "action": "block"},
        ),
        ("reason price|dosage: block", {"reason": ("price", "dosage"), "action": "block"}),
        ("always: flag", {"action": "flag"}),
    ],
)
def test_rules_in_one_line(text: str, fields: dict[str, object]) -> None:
    assert parse_rule(text) == fields
    rule = Rule.model_validate(text)
    assert Rule.model_validate(rule.name).model_dump(exclude={"name"}) == rule.model_dump(exclude={"name"})


@pytest.mark.parametrize(
    "text",
    [
        "verdict CONTRADICTED",
        "verdict > CONTRADICTED: block",
        "verdict MAYBE: block",
        "severity >= huge: block",
        "support 0.3: block",
        "support < 3: block",
        "mood bad: block",
        "severity >= major and severity >= minor: block",
        ": block",
        "always: explode",
        "",
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        Rule.model_validate(text)


def test_conditions_on_support_fail_where_there_is_none() -> None:
    rule = Rule.model_validate("support < 0.9: block")
    assert not rule.matches(V.UNVERIFIED, S.NORMAL, None, 0.0, ())


@pytest.mark.parametrize(
    ("score", "expected"),
    [(None, D.RELEASE), (0.39, D.BLOCK), (0.4, D.FLAG), (0.79, D.FLAG), (0.8, D.RELEASE), (1.0, D.RELEASE)],
)
def test_thresholds_on_the_score(score: float | None, expected: Decision) -> None:
    assert Policy().decide_score(score)[0] is expected


def test_nothing_to_check_is_its_own_reason() -> None:
    assert Policy().decide_score(None) == (D.RELEASE, "nothing to check")


def test_thresholds_in_the_wrong_order_are_refused_with_a_remedy() -> None:
    with pytest.raises(ValidationError, match="lower block_below or raise flag_below"):
        Policy(flag_below=0.3, block_below=0.5)


def test_percentages_instead_of_shares_are_refused() -> None:
    """75 for 0.75 silently disables blocking elsewhere."""
    with pytest.raises(ValidationError):
        Policy(flag_below=75)


def test_weights_left_out_keep_their_defaults() -> None:
    policy = Policy(weights={S.CRITICAL: 10})
    assert policy.weights == {S.MINOR: 0.25, S.NORMAL: 1.0, S.MAJOR: 2.0, S.CRITICAL: 10}


def test_no_credit_can_be_given_to_what_was_not_checked() -> None:
    with pytest.raises(ValidationError, match="UNVERIFIED claims are not scored"):
        Policy(credits={V.UNVERIFIED: 1.0})
