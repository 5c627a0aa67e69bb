"""Which words of a claim the local judge marks as unsupported: by its rules, and by its verifier."""

from __future__ import annotations

import pytest

from guardrail.events import Context, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judgement
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_rules_parameters
from guardrail.judges.local.fitted import ReadingKind
from guardrail.judges.local.verifier import load_verifier
from tests.unit.judges.local.contexts import CONTEXTS, claim_of, index_of
from tests.unit.judges.local.tiny_verifier import parameters_for, write_verifier

ALL = index_of(CONTEXTS)
SKY = EvidenceIndex([Context(id="d0", text="The sky brings filler rain. The sky is blue, it costs $29.")])


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> ClaimChecker:
    folder = write_verifier(tmp_path_factory.mktemp("verifier"))
    parameters = parameters_for(folder, readings=(ReadingKind.SENTENCE,))
    return ClaimChecker(LocalJudgeSettings(), parameters, load_verifier(folder))


@pytest.fixture(scope="module")
def rules() -> ClaimChecker:
    return ClaimChecker(LocalJudgeSettings(), load_rules_parameters())


def marked(found: Judgement, text: str) -> list[str]:
    return [text[start:end] for start, end in found.unsupported_spans]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Pro costs $79 per month.", ["$79 per month"]),
        ("The Pro plan costs $79 per month and includes 25 users.", ["$79 per month", "25"]),
        ("The goods are delivered no later than 15 May 2026.", ["15 May 2026"]),
        ("The agreement was signed by Aveline GmbH and Borealis Ltd on 3 March 2022.", ["3 March 2022"]),
        ("This agreement is governed by the laws of Scotland.", ["Scotland"]),
        ("Hotel stays are reimbursed up to €185.50 per night in capital cities.", ["€185.50 per night"]),
        ("All plans have a 14-day free trial; a credit card is always required.", []),  # a negation
        ("Hold the reset button for 10 seconds until the light turns green.", ["green"]),
    ],
)
def test_the_rules_mark_the_details_that_they_find_wrong(
    rules: ClaimChecker, text: str, words: list[str]
) -> None:
    found = rules.check("c", claim_of(text), "", ALL)
    assert found.verdict in (Verdict.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.PARTIALLY_SUPPORTED)
    assert marked(found, text) == words


def test_a_supported_claim_has_no_marks(rules: ClaimChecker, verified: ClaimChecker) -> None:
    """Also where the verifier marks a word of it."""
    text = "The sky is blue, beta."
    examined = verified.examine(claim_of(text), "", SKY)
    assert examined is not None
    assert examined.verification is not None
    assert examined.verification.unsupported(text)
    found = verified.check("c", claim_of(text), "", SKY)
    assert (found.verdict, found.unsupported_spans) == (Verdict.SUPPORTED, ())
    found = rules.check("c", claim_of("Pro costs $49 per month."), "", ALL)
    assert (found.verdict, found.unsupported_spans) == (Verdict.SUPPORTED, ())


def test_the_verifier_marks_words_that_the_rules_say_nothing_of(
    rules: ClaimChecker, verified: ClaimChecker
) -> None:
    text = "\U0001f327 The filler brings rain, gamma delta."
    found = verified.check("c", claim_of(text), "", SKY)
    assert found.verdict is Verdict.UNSUPPORTED
    assert "gamma delta" in marked(found, claim_of(text).prose.text)
    assert marked(rules.check("c", claim_of(text), "", SKY), text) == []


def test_what_both_mark_is_marked_once(verified: ClaimChecker) -> None:
    """The verifier knows the figure, the rules the amount that it is part of."""
    text = "The sky costs $49, gamma."
    found = verified.check("c", claim_of(text), "", SKY)
    assert found.verdict is Verdict.CONTRADICTED
    assert marked(found, text) == ["$49, gamma"]


def test_a_claim_that_shares_no_word_has_no_marks(verified: ClaimChecker) -> None:
    """There is nothing to set words apart from others; the verdict says it of the whole claim."""
    found = verified.check("c", claim_of("Gamma delta."), "", SKY)
    assert (found.verdict, found.unsupported_spans) == (Verdict.UNSUPPORTED, ())
