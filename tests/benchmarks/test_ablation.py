"""What the ablation leaves out."""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

import pytest

from benchmarks.ablation import RULES
from guardrail.claims import Claim
from guardrail.events import Context, Finding, Severity
from guardrail.evidence import EvidenceIndex
from guardrail.judges import Judgement, Verdict
from guardrail.judges.local.check import build_checker
from guardrail.judges.local.settings import LocalJudgeSettings, VerifierSettings


def judged(text: str, source: str, rule: str | None = None) -> Judgement:
    """By words and figures alone, with a rule left out."""
    checker = build_checker(LocalJudgeSettings(verifier=VerifierSettings(enabled=False)))
    claim = Claim(0, 0, text, 0, len(text), Severity.NORMAL)
    with ExitStack() as stack:
        for place, name, instead in RULES[rule] if rule else ():
            stack.enter_context(patch.object(place, name, instead))
        return checker.check("c", claim, "", EvidenceIndex([Context(id="a", text=source)]))


@pytest.mark.parametrize(
    ("rule", "claim", "source", "finding"),
    [
        ("figures: all", "The harbour fee is $40.", "The harbour fee is $50.", Finding.FIGURE_CONFLICT),
        ("figures: conflicts", "The harbour fee is $40.", "The harbour fee is $50.", Finding.FIGURE_CONFLICT),
        (
            "figures: exchanged",
            "It has 7 doors and 90 windows.",
            "It has 90 doors and 7 windows.",
            Finding.FIGURE_CONFLICT,
        ),
        ("figures: absent", "The trip costs $40.", "The trip is long.", Finding.FIGURE_ABSENT),
    ],
)
def test_without_its_rule_a_finding_is_not_made(rule: str, claim: str, source: str, finding: Finding) -> None:
    assert finding in judged(claim, source).findings
    assert finding not in judged(claim, source, rule).findings


def test_without_silence_it_is_not_checked() -> None:
    said, source = "The documents don't mention parking.", "Parking is free behind the house."
    assert judged(said, source).reasoning.startswith("The documents may speak of it")
    assert not judged(said, source, "silence").reasoning.startswith("The documents may speak of it")


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_where_it_is_looked_for(rule: str) -> None:
    assert judged("The fee is $50.", "The fee is $50.", rule).verdict is Verdict.SUPPORTED
