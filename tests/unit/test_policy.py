from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from guardrail.events import CitationBacking, ClaimVerdict, Decision, Finding, Severity
from guardrail.judges import Verdict
from guardrail.policy import (
    CONFIDENT_CONTRADICTION,
    DEFAULT_RULES,
    NEARLY_SUPPORTED,
    FailPolicy,
    Policy,
    Rule,
    parse_rule,
)
from tests.support.records import claim_verdict

S, V, D, F = Severity, Verdict, Decision, Finding
DOUBTED = NEARLY_SUPPORTED / 2


def claim(
    verdict: Verdict = V.SUPPORTED, severity: Severity = S.NORMAL, support: float | None = 0.5, **more: Any
) -> ClaimVerdict:
    """A verdict of a judge that is quite sure of it and gives no probability of a contradiction."""
    return claim_verdict("r", 0, verdict=verdict, severity=severity, support=support, **more)


def decide(policy: Policy, verdict: Verdict, severity: Severity, support: float | None = 0.5) -> Decision:
    return policy.decide_claim(claim(verdict, severity, support))[0]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (claim(V.SUPPORTED, S.CRITICAL), D.RELEASE),
        (claim(V.PARTIALLY_SUPPORTED, S.MAJOR, 0.1), D.RELEASE),
        (claim(V.PARTIALLY_SUPPORTED, S.CRITICAL, NEARLY_SUPPORTED), D.RELEASE),
        (claim(V.PARTIALLY_SUPPORTED, S.CRITICAL, DOUBTED), D.FLAG),
        (claim(V.UNSUPPORTED, S.MINOR), D.RELEASE),
        (claim(V.UNSUPPORTED, S.NORMAL), D.FLAG),
        (claim(V.UNSUPPORTED, S.CRITICAL, 0.0), D.FLAG),
        (claim(V.CONTRADICTED, S.MINOR), D.RELEASE),
        (claim(V.CONTRADICTED, S.NORMAL), D.FLAG),
        (claim(V.CONTRADICTED, S.MAJOR), D.BLOCK),
        (claim(V.CONTRADICTED, S.MAJOR, contradiction=CONFIDENT_CONTRADICTION), D.BLOCK),
        # Whoever gives the probability is believed in it, whatever the confidence.
        (claim(V.CONTRADICTED, S.CRITICAL, contradiction=0.5), D.FLAG),
        (claim(V.CONTRADICTED, S.CRITICAL, confidence=0.5), D.FLAG),
        (claim(V.SUPPORTED, S.CRITICAL, contradiction=0.99), D.RELEASE),
        (claim(V.UNSUPPORTED, S.CRITICAL, findings=(F.FIGURE_CONFLICT,)), D.BLOCK),
        (claim(V.UNSUPPORTED, S.MAJOR, findings=(F.FIGURE_CONFLICT,)), D.BLOCK),
        (claim(V.UNSUPPORTED, S.NORMAL, findings=(F.FIGURE_CONFLICT,)), D.FLAG),
        (claim(V.UNSUPPORTED, S.MAJOR, 0.14, findings=(F.FIGURE_ABSENT,)), D.FLAG),
        (
            claim(V.UNSUPPORTED, S.MAJOR, 0.14, findings=(F.FIGURE_ABSENT,), severity_reasons=("contact",)),
            D.REDACT,
        ),
        (claim(V.CONTRADICTED, S.MAJOR, 0.14, contradiction=0.8, findings=(F.FIGURE_ABSENT,)), D.REDACT),
        (claim(V.UNSUPPORTED, S.CRITICAL, 0.14, findings=(F.FIGURE_ABSENT,)), D.REDACT),
        (claim(V.PARTIALLY_SUPPORTED, S.CRITICAL, 0.15, findings=(F.FIGURE_ABSENT,)), D.FLAG),
        (claim(V.UNSUPPORTED, S.CRITICAL, findings=(F.FIGURE_ABSENT, F.FIGURE_CONFLICT)), D.BLOCK),
        (claim(V.PARTIALLY_SUPPORTED, S.MINOR, 0.49, findings=(F.FIGURE_AMBIGUOUS,)), D.FLAG),
        (claim(V.SUPPORTED, S.MINOR, findings=(F.CONTEXTS_DISAGREE,)), D.FLAG),
        (claim(V.SUPPORTED, S.MINOR, findings=(F.LINK_ABSENT,)), D.FLAG),
        (claim(V.PARTIALLY_SUPPORTED, S.MINOR, findings=(F.DISPLAY_MISMATCH,)), D.FLAG),
    ],
)
def test_default_rules(said: ClaimVerdict, expected: Decision) -> None:
    assert Policy().decide_claim(said)[0] is expected


@given(
    st.sampled_from([V.SUPPORTED, V.PARTIALLY_SUPPORTED, V.UNSUPPORTED, V.CONTRADICTED]),
    st.sampled_from(S),
    st.floats(0, 1),
    st.floats(0, CONFIDENT_CONTRADICTION, exclude_max=True),
)
def test_by_default_nothing_is_withheld_for_a_claim_that_is_only_doubted(
    verdict: Verdict, severity: Severity, support: float, sure: float
) -> None:
    for said in (
        claim(verdict, severity, support, confidence=sure),
        claim(verdict, severity, support, confidence=1.0, contradiction=sure),
    ):
        assert Policy().decide_claim(said)[0] in {D.RELEASE, D.FLAG}


def test_the_default_rules_are_told_as_they_are_written() -> None:
    assert [rule.line for rule in Policy().rules] == list(DEFAULT_RULES)


def test_a_rule_on_citations_is_for_claims_that_cite() -> None:
    rule = Rule.model_validate("citation other|none: flag")
    said = (None, *CitationBacking)
    assert [backing for backing in said if rule.matches(claim(citation_backing=backing))] == [
        CitationBacking.OTHER,
        CitationBacking.NONE,
    ]


@pytest.mark.parametrize(
    ("fail_policy", "expected"),
    [(FailPolicy.FAIL_CLOSED, D.BLOCK), (FailPolicy.FAIL_OPEN, D.RELEASE), (FailPolicy.FLAG, D.FLAG)],
)
def test_unverified_claims_follow_the_fail_policy_not_the_rules(
    fail_policy: FailPolicy, expected: Decision
) -> None:
    policy = Policy(on_unverified=fail_policy, rules=(Rule.model_validate("always: redact"),))
    decision, rule = policy.decide_claim(claim(V.UNVERIFIED, support=None, confidence=0.0))
    assert decision is expected
    assert rule == f"on_unverified: {fail_policy}"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (DEFAULT_RULES, D.FLAG),
        (["finding calculation_unchecked and severity >= critical: redact"], D.REDACT),
        (["finding calculation_unchecked: release"], D.RELEASE),
        (["always: release"], D.FLAG),  # names no finding, and it is never clean
        (["always: block"], D.BLOCK),
        (["severity >= minor: block"], D.BLOCK),  # the same
        (["severity >= critical: block"], D.FLAG),
        (["verdict UNVERIFIED: block"], D.BLOCK),
        (["verdict UNSUPPORTED|UNVERIFIED: redact"], D.REDACT),
        (["verdict UNVERIFIED and finding figure_absent|calculation_unchecked: block"], D.BLOCK),
        (["finding calculation_unchecked and support < 0.9: block"], D.FLAG),
    ],
)
def test_claims_that_a_judge_left_open_follow_rules_on_their_finding(
    rules: list[str], expected: Decision
) -> None:
    policy = Policy.model_validate({"rules": rules, "on_unverified": "fail_closed"})
    open_claim = claim(V.UNVERIFIED, S.CRITICAL, None, confidence=0.0, findings=(F.CALCULATION_UNCHECKED,))
    assert policy.decide_claim(open_claim)[0] is expected
    assert not open_claim.unanswered
    late = claim(V.UNVERIFIED, S.CRITICAL, None, confidence=0.0, findings=(F.LINK_ABSENT,))
    assert late.unanswered
    assert policy.decide_claim(late)[0] is D.BLOCK


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
            "support < 0.3 and contradiction >= 0.6 and confidence >= 0.8: block",
            {"support_below": "0.3", "min_contradiction": "0.6", "min_confidence": "0.8", "action": "block"},
        ),
        ("contradiction < 0.2: release", {"contradiction_below": "0.2", "action": "release"}),
        (
            "finding figure_conflict|FIGURE_ABSENT and severity >= major: redact",
            {"finding": ("figure_conflict", "figure_absent"), "min_severity": "major", "action": "redact"},
        ),
        (
            "citation other|None and verdict SUPPORTED: flag",
            {"citation": ("other", "none"), "verdict": ("SUPPORTED",), "action": "flag"},
        ),
        ("reason price|dosage: block", {"reason": ("price", "dosage"), "action": "block"}),
        ("always: flag", {"action": "flag"}),
        ("too dear: support < 0.123456789: block", {"support_below": "0.123456789", "action": "block"}),
        ("support team: reason contact: redact", {"reason": ("contact",), "action": "redact"}),
        ("Über: Preis: reason price: block", {"reason": ("price",), "action": "block"}),
    ],
)
def test_rules_in_one_line(text: str, fields: dict[str, object]) -> None:
    named = parse_rule(text)
    name = named.pop("name", "")
    assert named == fields
    rule = Rule.model_validate(text)
    assert (rule.name or rule.line).startswith(name)
    assert Rule.model_validate(rule.line) == rule


@pytest.mark.parametrize(
    "text",
    [
        "verdict CONTRADICTED",
        "verdict > CONTRADICTED: block",
        "verdict MAYBE: block",
        "severity >= huge: block",
        "support 0.3: block",
        "finding > figure_conflict: block",
        "finding figure: block",
        "citation wrong: block",
        "contradiction <= 0.3: block",
        "contradiction >= 2: block",
        "support >= 0.5 and support < 0.5: block",
        "severity >= major and severity <= normal: block",
        "support < 3: block",
        "mood bad: block",
        "severity >= major and severity >= minor: block",
        ": block",
        "always: explode",
        "verdict SUPPORTED: always: release",  # a condition where the name would be
        "verdict CONTRADICTED and severity >= major: reason price: block",
        "always: reason price: block",
        "",
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        Rule.model_validate(text)


def test_conditions_on_support_fail_where_there_is_none() -> None:
    rule = Rule.model_validate("support < 0.9: block")
    assert not rule.matches(claim(V.UNVERIFIED, support=None))


@pytest.mark.parametrize(
    ("said", "matches"),
    [
        (claim(V.CONTRADICTED, confidence=0.7), True),
        (claim(V.CONTRADICTED, confidence=0.69), False),
        (claim(V.UNSUPPORTED, confidence=0.9), False),
        (claim(V.UNSUPPORTED, contradiction=0.7), True),
        (claim(V.CONTRADICTED, confidence=0.9, contradiction=0.69), False),
    ],
)
def test_without_a_probability_of_contradiction_the_confidence_in_one_counts(
    said: ClaimVerdict, matches: bool
) -> None:
    """In both directions: under the bound is what is not at least the bound."""
    assert Rule.model_validate("contradiction >= 0.7: block").matches(said) is matches
    assert Rule.model_validate("contradiction < 0.7: block").matches(said) is not matches


@pytest.mark.parametrize(
    ("score", "expected"),
    [(None, D.RELEASE), (0.39, D.BLOCK), (0.4, D.FLAG), (0.79, D.FLAG), (0.8, D.RELEASE), (1.0, D.RELEASE)],
)
def test_thresholds_on_the_score(score: float | None, expected: Decision) -> None:
    assert Policy(flag_below=0.8, block_below=0.4).decide_score(score)[0] is expected


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
