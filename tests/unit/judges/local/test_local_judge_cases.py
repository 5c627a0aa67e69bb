"""One wrong detail in a faithful sentence is caught; the faithful one passes, also in other words."""

from __future__ import annotations

import pytest

from guardrail.events import Verdict
from guardrail.judges.base import Judgement
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_rules_parameters
from tests.unit.judges.local.contexts import CONTEXTS, claim_of, index_of

CHECKER = ClaimChecker(LocalJudgeSettings(), load_rules_parameters())
INDEX = index_of(CONTEXTS)

FAITHFUL = (
    "Adults and children over 12 years take one tablet every 6 to 8 hours, with or after food.",
    "Take one tablet every 6 to 8 hours with or after food.",
    "Do not take more than three tablets in 24 hours.",
    "Do not take more than 1200 mg in 24 hours.",
    "Do not take this medicine in the last three months of pregnancy.",
    "It must not be given to children under 12 years.",
    "Store below 25 °C.",
    "If you forget a dose, don't take a double dose to make up for it.",
    "Common side effects include indigestion and heartburn.",
    "Call the helpline on 0800 555 0199.",
    "The Pro plan costs $49 per month.",
    "Pro costs $49 a month and includes 20 users.",
    "Basic costs $29 a month and Pro $49.",
    "Pro includes 20 users.",
    "Annual billing saves 20 percent.",
    "Annual billing saves a fifth.",
    "All plans have a two-week free trial.",
    "All plans have a 14-day free trial.",
    "No credit card is required.",
    "Basic has 100 GB of storage and Pro has 1 TB.",
    "Refunds are available within 30 days of purchase.",
    "Support for Basic is by email only.",
    "Employees may book business class for flights over six hours.",
    "Hotels are reimbursed up to €180 per night in capital cities.",
    "Alcohol isn't reimbursed.",
    "Expense reports are due within 30 days of returning.",
    "The daily allowance for meals is €45.",
    "Trips over $5,000 need approval by the finance director, Maria Keller.",
    "Trips over 5000 dollars need approval by the finance director.",
    "Either party may terminate the agreement with 90 days' written notice.",
    "The supplier shall deliver the goods by 2026-03-15.",
    "Late payments bear interest of 1.5% per month.",
    "Liability is limited to 2 million euros.",
    "Liability is limited to EUR 2,000,000.",
    "The agreement is governed by the laws of Ireland.",
    "Aveline GmbH and Borealis Ltd signed the agreement on March 3rd, 2021.",
    "Hold the reset button for 10 seconds until the light turns red.",
    "The default address is 192.168.1.1.",
    "The warranty lasts two years from the date of purchase.",
    "Water damage is not covered by the warranty.",
    "Version 4.2 added support for WPA3.",
    "The store closes at 5:30 PM.",
)

WRONG_IN_ONE_DETAIL = (
    "Take one tablet every 4 to 6 hours with or after food.",
    "Take two tablets every 6 to 8 hours with or after food.",
    "Do not take more than 1,800 mg in 24 hours.",
    "Do not take more than six tablets in 24 hours.",
    "Do not take more than three tablets in 12 hours.",
    "You can take it if you are in the last three months of pregnancy.",
    "Give it to children under 12 years.",
    "Store above 25 °C.",
    "Store below 30 °C.",
    "If you forget a dose, take a double dose to make up for it.",
    "Call the helpline on 0800 555 0991.",
    "Take it before food.",
    "The Pro plan costs $79 per month.",
    "The Pro plan costs $29 per month.",
    "The Pro plan costs €49 per month.",
    "Basic costs $49 per month and Pro costs $29.",
    "Pro includes 5 users.",
    "Annual billing saves 25%.",
    "All plans have a 30-day free trial.",
    "A credit card is required for the trial.",
    "Basic comes with 1 TB of storage.",
    "Refunds are available within 60 days of purchase.",
    "Refunds are not available.",
    "Employees may book business class for flights under six hours.",
    "Hotels are reimbursed up to €180 per night outside capital cities.",
    "Hotels are reimbursed up to $180 per night in capital cities.",
    "Hotel stays in capital cities are reimbursed up to €120 per night.",
    "Alcohol is reimbursed.",
    "Expense reports must be submitted within 90 days of returning.",
    "The daily allowance for meals is €54.",
    "Trips over $5,000 need approval by the finance director, Anna Keller.",
    "Trips over $500 need approval by the finance director.",
    "Either party may terminate the agreement with 30 days' written notice.",
    "Either party may terminate the agreement with 90 days' verbal notice.",
    "The supplier shall deliver the goods no later than 15 May 2026.",
    "The customer shall deliver the goods no later than 15 March 2026.",
    "Late payments bear interest of 1.5% per year.",
    "Late payments bear interest of 15% per month.",
    "Liability is limited to EUR 20,000,000.",
    "Liability is unlimited.",
    "The agreement is governed by the laws of Iceland.",
    "Aveline GmbH and Borealis Ltd signed the agreement on March 3rd, 2012.",
    "Hold the reset button for 10 minutes until the light turns red.",
    "Hold the reset button for 10 seconds until the light turns green.",
    "Unplug the router during a firmware update.",
    "The default address is 192.168.0.1.",
    "The warranty lasts three years from the date of purchase.",
    "The warranty covers water damage.",
    "Version 4.1 added support for WPA3.",
    "The store closes at 6:30 PM.",
    "The store opens at 17:30.",
)

IN_NO_SOURCE = (
    "Common side effects include hair loss and insomnia.",
    "Phone support is included in Basic.",
    "You may bring your dog to the office.",
    "The company was founded in 1998.",
)


def check(
    text: str, lead_in: str = "", question: str = "", contexts: dict[str, str] | None = None
) -> Judgement:
    index = INDEX if contexts is None else index_of(contexts)
    return CHECKER.check("c", claim_of(text, lead_in), question, index)


@pytest.mark.parametrize("text", FAITHFUL)
def test_a_faithful_sentence_is_supported(text: str) -> None:
    judgement = check(text)
    assert judgement.verdict is Verdict.SUPPORTED, judgement.reasoning
    assert judgement.evidence


@pytest.mark.parametrize("text", WRONG_IN_ONE_DETAIL)
def test_one_wrong_detail_is_caught(text: str) -> None:
    judgement = check(text)
    assert judgement.verdict in (Verdict.CONTRADICTED, Verdict.UNSUPPORTED), judgement.reasoning
    assert judgement.support is not None
    assert judgement.support < 0.5


@pytest.mark.parametrize("text", IN_NO_SOURCE)
def test_what_no_source_says_is_not_supported(text: str) -> None:
    assert check(text).verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    "sentence", [s.strip() + "." for s in " ".join(CONTEXTS["pricing"].split()).split(". ")[1:-1]]
)
def test_every_sentence_of_a_source_is_supported_by_it(sentence: str) -> None:
    assert check(sentence).verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "The Pro plan costs $79 per month.",
            "The claim says '$79 per month', the source says '$49 per month'.",
        ),
        ("Store above 25 °C.", "The claim says 'over 25 °C', the source says 'under 25 °C'."),
        ("Take it before food.", "The claim says 'before', the source says 'after'."),
        ("Alcohol is reimbursed.", "The source denies what the claim says."),
        ("Refunds are not available.", "The claim denies what the source says."),
        (
            "The agreement is governed by the laws of Iceland.",
            "The claim says 'Iceland', the source says 'Ireland'.",
        ),
    ],
)
def test_the_reason_names_the_detail(text: str, reason: str) -> None:
    judgement = check(text)
    assert judgement.verdict is Verdict.CONTRADICTED
    assert judgement.reasoning == reason


def test_a_value_in_no_source_is_named() -> None:
    judgement = check("A cluster of 750 TB is sold to universities.")
    assert judgement.verdict is Verdict.UNSUPPORTED
    assert judgement.reasoning == "'750 TB' is in no source."


def test_evidence_is_verbatim_with_its_span() -> None:
    for text in (*FAITHFUL, *WRONG_IN_ONE_DETAIL):
        for quote in check(text).evidence:
            start, end = quote.span
            assert CONTEXTS[quote.context_id][start:end] == quote.quote


def test_without_contexts_nothing_is_supported() -> None:
    for contexts in ({}, {"empty": ""}):
        judgement = check("Basic costs $29 per month.", contexts=contexts)
        assert judgement.verdict is Verdict.UNSUPPORTED
        assert judgement.reasoning == "There is no context to support it."
        assert judgement.evidence == ()


def test_a_context_that_says_otherwise_is_named_beside_the_one_that_supports() -> None:
    contexts = {
        "new": "Basic costs $29 per month.",
        "old": "Basic costs $19 per month.",
        "other": "We sell shoes.",
    }
    judgement = check("Basic costs $29 per month.", contexts=contexts)
    assert judgement.verdict is Verdict.SUPPORTED
    assert [quote.context_id for quote in judgement.evidence] == ["new"]
    assert judgement.conflicting_contexts == ("old",)


def test_a_negated_twin_is_named_too() -> None:
    contexts = {"a": "Dogs are allowed in the garden.", "b": "Dogs are not allowed in the garden."}
    judgement = check("Dogs are allowed in the garden.", contexts=contexts)
    assert (judgement.verdict, judgement.conflicting_contexts) == (Verdict.SUPPORTED, ("b",))


@pytest.mark.parametrize(
    ("text", "supported"),
    [
        ("Basic costs $29 and Pro costs $49.", True),
        ("Basic costs $49 and Pro costs $29.", False),
        ("Pro costs $49.", True),
        ("Pro costs $29.", False),
        ("Basic costs $49.", False),
    ],
)
def test_values_of_one_sentence_belong_to_what_it_says_they_are_of(text: str, supported: bool) -> None:
    """The hard case: every value of the claim stands in the very sentence, by another's side."""
    for source in (
        "Basic costs $29 a month and Pro $49.",
        "Basic: $29\nPro: $49",
        "We charge $29 for Basic and $49 for Pro.",
    ):
        assert (check(text, contexts={"c": source}).verdict is Verdict.SUPPORTED) == supported, source


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("The tour comes with lunch.", Verdict.SUPPORTED),
        ("The tour comes without lunch.", Verdict.CONTRADICTED),
        (
            "Anna Berg will meet Lena Moor in Oslo before Lena Moor flies home to her family in Bergen.",
            Verdict.SUPPORTED,
        ),
        (
            "Anna Berg will meet Lena Moor in Oslo before Anna Berg flies home to her family in Bergen.",
            Verdict.CONTRADICTED,
        ),
    ],
)
def test_a_word_swapped_for_its_negation_or_a_name_for_another_of_the_sentence(
    text: str, verdict: Verdict
) -> None:
    source = "The tour comes with lunch. "
    source += "Anna Berg will meet Lena Moor in Oslo before Lena Moor flies home to her family in Bergen."
    assert check(text, contexts={"c": source}).verdict is verdict


def test_white_space_markdown_and_citation_marks_say_nothing() -> None:
    plain = check("The Pro plan costs $49 per month.")
    for text in ("The **Pro** plan costs `$49`  per month [3].", "The Pro plan\ncosts $49 per month [1, 2]."):
        judgement = check(text)
        assert judgement.verdict is plain.verdict is Verdict.SUPPORTED
    wide = {
        name: text.replace(" ", "  \n" if n % 2 else "\u00a0")
        for n, (name, text) in enumerate(CONTEXTS.items())
    }
    assert check("The Pro plan costs $49 per month.", contexts=wide).verdict is Verdict.SUPPORTED


def test_a_pronoun_is_read_with_its_lead_in() -> None:
    """Which sentence "it" is about decides whether the value is right; the lead-in says so."""
    contexts = {"c": "The Basic plan has 5 users. The Pro plan has 20 users."}
    assert (
        check("It has 20 users.", "The Pro plan is popular.", contexts=contexts).verdict is Verdict.SUPPORTED
    )
    assert (
        check("It has 20 users.", "The Basic plan is popular.", contexts=contexts).verdict
        is not Verdict.SUPPORTED
    )


@pytest.mark.parametrize(
    ("claim", "lead_in", "source"),
    [
        (
            "It is for five users.",
            "The basic plan costs $49 a month.",
            "The basic plan costs $49 a month. It is for three users.",
        ),
        ("It lasts 5 years.", "The warranty covers parts.", "The warranty covers parts. It lasts 2 years."),
    ],
)
def test_a_value_is_wrong_where_both_say_it_of_a_pronoun(claim: str, lead_in: str, source: str) -> None:
    assert check(claim, lead_in, contexts={"c": source}).verdict is Verdict.CONTRADICTED


def test_a_pronoun_of_the_source_may_stand_for_another() -> None:
    """The source's "it" is of what stands before it, not of the claim's subject."""
    contexts = {"c": "The Pro plan has everything. It is for three users."}
    judgement = check("It is for five users.", "The basic plan costs $49 a month.", contexts=contexts)
    assert judgement.verdict is not Verdict.SUPPORTED


def test_contraindicated_is_not_indicated() -> None:
    contexts = {"c": "Amoxicillin is contraindicated in patients with a penicillin allergy."}
    judgement = check("Amoxicillin is indicated in patients with a penicillin allergy.", contexts=contexts)
    assert judgement.verdict is Verdict.CONTRADICTED


def test_a_denied_condition_denies_nothing_else() -> None:
    contexts = {
        "c": "Employees who do not make a choice keep their current health plan, but contributions to the "
        "spending account are set to zero."
    }
    kept = check("If you do not make a choice, you keep your current health plan.", contexts=contexts)
    lost = check("If you do not make a choice, you do not keep your current health plan.", contexts=contexts)
    assert kept.verdict is Verdict.SUPPORTED
    assert lost.verdict is Verdict.CONTRADICTED
    contexts = {"c": "If you do not pay the deposit, you do not get a ticket for the evening."}
    got = check("If you do not pay the deposit, you get a ticket for the evening.", contexts=contexts)
    assert got.verdict is Verdict.CONTRADICTED


@pytest.mark.parametrize("sign", ["≠", "=\u0338", "!="])
def test_a_sign_that_denies_equality_denies(sign: str) -> None:
    contexts = {"c": "The limit = 5 users."}
    assert check("The limit = 5 users.", contexts=contexts).verdict is Verdict.SUPPORTED
    denied = check(f"The limit {sign} 5 users.", contexts=contexts).verdict
    assert denied in {Verdict.CONTRADICTED, Verdict.UNSUPPORTED}


def test_a_fact_at_the_end_of_a_long_context_supports() -> None:
    filler = "The committee met again and spoke of many matters of little weight to anyone outside. " * 1300
    contexts = {"long": filler + "The reactor at Kvelde was shut down for good in 1997."}
    assert (
        check("The reactor at Kvelde was shut down in 1997.", contexts=contexts).verdict is Verdict.SUPPORTED
    )
    assert (
        check("The reactor at Kvelde was shut down in 1979.", contexts=contexts).verdict
        is Verdict.CONTRADICTED
    )
