"""Claims that something need not be done, beside sources that demand it, or don't."""

from __future__ import annotations

import pytest

from guardrail.events import Context, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judgement
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.assembly import build_checker
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_rules_parameters
from tests.unit.judges.local.contexts import claim_of

SOURCE = (
    "Anyone who cannot come should cancel by telephone at least 24 hours before. Contact lenses must be "
    "removed before the drops are used. Helmets have to be worn on the scaffold. Children under 12 must be "
    "accompanied by an adult. Adults need no ticket for the garden. Staff must wear a badge unless they work "
    "from home. Tablets should be taken with water; they need not be chewed."
)


@pytest.fixture(scope="module", params=["with the verifier", "rules alone"])
def judge(request: pytest.FixtureRequest) -> ClaimChecker:
    if request.param == "rules alone":
        return ClaimChecker(LocalJudgeSettings(), load_rules_parameters())
    return build_checker(LocalJudgeSettings())


def judged(judge: ClaimChecker, claim: str, source: str = SOURCE) -> Judgement:
    return judge.check("r:0", claim_of(claim), "", EvidenceIndex([Context(id="c1", text=source)]))


@pytest.mark.parametrize(
    "claim",
    [
        "There is no need to cancel by telephone.",
        "You needn't cancel by telephone.",
        "It is not necessary to cancel by telephone if you cannot come.",
    ],
)
def test_what_a_source_demands_is_needed(judge: ClaimChecker, claim: str) -> None:
    found = judged(judge, claim)
    assert found.verdict is Verdict.CONTRADICTED
    assert found.support is not None
    assert found.support < 0.5
    assert found.evidence[0].quote.startswith("Anyone who cannot come should cancel")


@pytest.mark.parametrize(
    "claim",
    [
        "You do not have to wear a helmet on the scaffold.",
        "You don't need to take your contact lenses out before you use the drops.",
    ],
)
def test_a_demand_in_other_words_leaves_no_claim_that_it_is_not_needed(
    judge: ClaimChecker, claim: str
) -> None:
    assert judged(judge, claim).verdict in (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)


@pytest.mark.parametrize(
    "claim", ["The tablets need not be chewed.", "Adults do not need a ticket for the garden."]
)
def test_what_a_source_does_not_demand_is_not_needed(claim: str) -> None:
    assert judged(build_checker(LocalJudgeSettings()), claim).verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        (
            "You don't have to register your bicycle.",
            "Bicycles must be registered only if they have a motor.",
        ),
        ("Staff at home need not wear a badge.", "Staff must wear a badge unless they are at home."),
        ("Children over 12 need not be accompanied.", "Children under 12 must be accompanied by an adult."),
        ("Members need not pay a deposit.", "Guests must pay a deposit. Members need not pay a deposit."),
    ],
)
def test_an_exception_is_no_demand(judge: ClaimChecker, claim: str, source: str) -> None:
    assert "need not be done" not in judged(judge, claim, source).reasoning
