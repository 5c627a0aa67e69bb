"""Claims that say a thing in words that no source has: what is read for them, and what may come of it."""

from __future__ import annotations

import pytest

from guardrail.claims.model import Claim
from guardrail.events import Context, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.assembly import build_checker
from guardrail.judges.local.candidates import Candidates, find_candidates
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.claim_view import view_of
from guardrail.judges.local.combiner import load_rules_parameters
from guardrail.judges.local.rarity import Rarity
from guardrail.judges.local.verdict import NO_WORD_SHARED
from tests.unit.judges.local.contexts import claim_of

OFFICE = (
    "Our office opens at nine and closes at five. Visitors sign in at the front desk and receive a badge for "
    "the day. Parking is available behind the house, and bicycles can be left near the main entrance. Please "
    "call ahead to arrange a tour. Lunch is served from noon in the canteen upstairs, where guests are "
    "welcome too, and coffee is free. Employees must wear helmets on the construction site."
)
HARD_HATS = "Staff need hard hats at building works."
ASKED = "What do I have to wear on the construction site?"


@pytest.fixture(scope="module")
def checker() -> ClaimChecker:
    return build_checker(LocalJudgeSettings())


@pytest.fixture(scope="module")
def rules() -> ClaimChecker:
    return ClaimChecker(LocalJudgeSettings(), load_rules_parameters())


def index(*texts: str) -> EvidenceIndex:
    return EvidenceIndex([Context(id=f"d{n}", text=text) for n, text in enumerate(texts)])


def candidates(claim: Claim, question: str, evidence: EvidenceIndex, sentences: int = 6) -> Candidates:
    view = view_of(claim, question, Rarity({}))
    return find_candidates(evidence.layout, view, sentences, 3, in_other_words=True)


def numbers(found: Candidates) -> list[int]:
    return [match.number for match in found.sentences]


def test_the_questions_sentence_comes_first_then_the_opening_ones() -> None:
    found = candidates(claim_of(HARD_HATS), ASKED, index(OFFICE))
    assert numbers(found) == [5, 0, 1]
    assert (found.shared, found.present, found.passages) == (False, frozenset(), ())


def test_few_sentences_with_a_word_get_the_company_of_the_questions() -> None:
    found = candidates(claim_of("Guests need hard hats."), ASKED, index(OFFICE))
    assert numbers(found) == [4, 5]
    assert found.shared


def test_never_more_sentences_than_asked_for() -> None:
    assert numbers(candidates(claim_of(HARD_HATS), ASKED, index(OFFICE), sentences=1)) == [5]
    assert numbers(candidates(claim_of("Guests need hard hats."), ASKED, index(OFFICE), sentences=1)) == [4]


def test_without_a_context_there_is_nothing_to_read() -> None:
    assert numbers(candidates(claim_of(HARD_HATS), ASKED, index())) == []


@pytest.mark.parametrize(
    ("source", "claim", "unrelated"),
    [
        ("Dogs are not allowed inside the restaurant.", "Pets cannot enter that eatery.", HARD_HATS),
        (OFFICE, HARD_HATS, "Tickets cost thirty euros."),
    ],
)
def test_what_shares_no_word_is_read_and_never_called_supported(
    checker: ClaimChecker, source: str, claim: str, unrelated: str
) -> None:
    said = checker.check("c", claim_of(claim), ASKED, index(source))
    other = checker.check("c", claim_of(unrelated), ASKED, index(source))
    assert Verdict.SUPPORTED not in (said.verdict, other.verdict)
    assert said.support is not None
    assert other.support is not None
    assert said.support > other.support


def test_an_unrelated_claim_quotes_no_sentence_and_marks_no_word(checker: ClaimChecker) -> None:
    found = checker.check("c", claim_of("Tickets cost thirty euros."), "", index(OFFICE))
    assert (found.verdict, found.reasoning) == (Verdict.UNSUPPORTED, NO_WORD_SHARED)
    assert (found.evidence, found.unsupported_spans) == ((), ())


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Tickets are 12 euros; the museum closes at six on Mondays.", "Berlin lies on the Spree."),
        ("Take one tablet of ibuprofen with water after a meal.", "Nobody answered."),
        (OFFICE, "Mount Everest was first climbed by Hillary and Tenzing."),
        ("Basic costs 29.", "…"),
        ("Basic costs 29.", "\u200b"),
    ],
)
def test_a_claim_about_something_else_is_no_part_of_what_the_source_says(
    checker: ClaimChecker, source: str, claim: str
) -> None:
    assert checker.check("c", claim_of(claim), "", index(source)).verdict is Verdict.UNSUPPORTED


def test_rules_alone_and_haste_have_nothing_to_compare(checker: ClaimChecker, rules: ClaimChecker) -> None:
    alone = rules.check("c", claim_of(HARD_HATS), ASKED, index(OFFICE))
    (hurried,) = checker.check_all(
        {"c": claim_of(HARD_HATS)}, ASKED, index(OFFICE), lambda: False, lambda: True
    )
    for found in (alone, hurried):
        assert (found.verdict, found.reasoning) == (Verdict.UNSUPPORTED, NO_WORD_SHARED)
        assert found.support == pytest.approx(0.01)


def test_a_wrong_detail_is_no_matter_of_probability_but_keeps_it(checker: ClaimChecker) -> None:
    """Who goes by the probability is to see where rules and verifier disagree."""
    texts = index("The Pro plan costs $49 per month and includes 20 users.")
    found = checker.check("c", claim_of("The Pro plan costs $79 per month."), "", texts)
    assert found.verdict is Verdict.CONTRADICTED
    assert found.support is not None
    assert 0.0 < found.support < 0.5
