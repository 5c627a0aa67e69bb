"""Of several values of a sentence, each belongs to what the sentence says it of: by rules alone."""

from __future__ import annotations

import pytest

from guardrail.events import Context, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_rules_parameters
from tests.unit.judges.local.contexts import claim_of

OTHERS = "Claims are handed in within a week. {} The office is on the second floor."
SUPPORTED = {
    "Adults take 20 mg a day and children 5 mg.": (
        "Children take 5 mg a day.",
        "Adults take 20 mg a day.",
        "Children take 5 mg.",
    ),
    "The Pro plan costs 49 euros a month, the Basic plan 29 euros.": (
        "The Basic plan costs 29 euros a month.",
    ),
    "Adults take 20 mg a day; one tablet has 10 mg.": (
        "One tablet has 10 mg.",
        "Adults take 20 mg a day.",
    ),
    "Aasim first began rapping at the age of 12, and signed his record deal with Loud Records at 17.": (
        "Aasim first began rapping at the age of 12, and signed a record deal with Loud Records at 17.",
        "Aasim began rapping at 12.",
    ),
    "Revisions are kept for 60 days in the free edition and for two years in the team edition.": (
        "Revisions are kept for 60 days in the free edition and for two years in the team edition.",
        "In the team edition revisions are kept for two years, in the free edition for 60 days.",
        "Revisions are kept for two years in the team edition.",
        "Revisions are kept for 60 days in the free edition.",
    ),
    "In 2019 sales were 5 million euros and in 2020 6 million euros.": (
        "Sales were 6 million euros in 2020.",
    ),
    "The museum opened in 1871 and moved to Leeds in 1902.": ("The museum has been in Leeds since 1902.",),
    "The pool is 25 m long and 10 m wide.": (
        "The pool is 10 m wide.",
        "The pool measures 25 m by 10 m.",
    ),
    "Delivery takes two to three days within Germany and up to two weeks abroad.": (
        "Delivery within Germany takes two to three days.",
        "Delivery abroad takes up to two weeks.",
        "It takes up to two weeks to deliver abroad.",
    ),
    "The library opens at 9 on weekdays and at 11 on Sundays.": (
        "The library opens at 11 on Sundays.",
        "On Sundays, the library opens at 11.",
        "On weekdays the library opens at 9.",
    ),
    "The ferry sails four times a day in summer and twice a day in winter.": (
        "In summer the ferry sails four times a day.",
        "In winter, the ferry sails twice a day.",
    ),
    "The stew serves four and keeps for three days in the fridge.": (
        "The stew serves four and keeps for three days in the fridge.",
        "The stew serves four.",
    ),
    "The trial phase lasts two weeks; the notice period is one month.": (
        "The trial phase lasts two weeks.",
        "The notice period is one month.",
    ),
    "The battery lasts 10 hours on one charge and charges in 45 minutes.": (
        "The battery charges in 45 minutes.",
        "It charges in 45 minutes and lasts 10 hours.",
    ),
    "Students pay 12 euros a month, others 20 euros.": (
        "Students pay 12 euros a month.",
        "Others pay 20 euros a month.",
    ),
    "The course takes 6 months full-time or two years part-time.": (
        "Part-time, the course takes two years.",
        "Full-time, it takes 6 months.",
    ),
    "The warranty is 36 hours of use, spread over four days.": (
        "The warranty is 36 hours of use over four days.",
    ),
    "In the first year he wrote two books, and within ten days he sold the third.": (
        "He wrote two books in the first year.",
        "He sold the third within ten days.",
    ),
    "Frozen soup keeps three months; chilled soup keeps two days.": (
        "Chilled soup keeps two days.",
        "Frozen soup keeps for three months.",
    ),
}
NOT_SUPPORTED = {
    "Adults take 20 mg a day and children 5 mg.": (
        "Adults take 5 mg a day.",
        "Children take 20 mg a day.",
    ),
    "The Pro plan costs 49 euros a month, the Basic plan 29 euros.": (
        "The Basic plan costs 49 euros a month.",
        "The Pro plan costs 29 euros a month.",
    ),
    "Adults take 20 mg a day; one tablet has 10 mg.": ("Adults take 10 mg a day.",),
    "Aasim first began rapping at the age of 12, and signed his record deal with Loud Records at 17.": (
        "Aasim signed his record deal at 12.",
        "Aasim first began rapping at the age of 17.",
    ),
    "Revisions are kept for 60 days in the free edition and for two years in the team edition.": (
        "Revisions are kept for two years in the free edition and for 60 days in the team edition.",
        "Revisions are kept for two years in the free edition.",
        "Revisions are kept for 60 days in the team edition.",
    ),
    "In 2019 sales were 5 million euros and in 2020 6 million euros.": (
        "In 2020 sales were 5 million euros.",
        "In 2019 sales were 6 million euros.",
    ),
    "Adults take 20 mg a day, children over 12 and frail adults 10 mg.": (
        "Adults take 10 mg a day.",
        "Children over 12 take 20 mg a day.",
    ),
    "The museum opened in 1871 and moved to Leeds in 1902.": (
        "The museum opened in 1902.",
        "The museum moved to Leeds in 1871.",
    ),
    "The pool is 25 m long and 10 m wide.": (
        "The pool is 10 m long.",
        "The pool is 25 m wide.",
    ),
    "Delivery takes two to three days within Germany and up to two weeks abroad.": (
        "Delivery within Germany takes up to two weeks.",
        "Delivery abroad takes two to three days.",
    ),
    "The library opens at 9 on weekdays and at 11 on Sundays.": (
        "The library opens at 11 on weekdays.",
        "On Sundays the library opens at 9.",
        "On weekdays the library opens at 11.",
    ),
    "The ferry sails four times a day in summer and twice a day in winter.": (
        "In winter the ferry sails four times a day.",
        "The ferry sails twice a day in summer.",
    ),
    "The stew serves four and keeps for three days in the fridge.": (
        "The stew serves six and keeps for three days in the fridge.",
        "The stew serves six.",
    ),
    "The trial phase lasts two weeks; the notice period is one month.": (
        "The trial phase lasts one month.",
        "The notice period is two weeks.",
    ),
    "The course takes 6 months full-time or two years part-time.": (
        "The course takes two years full-time.",
        "The course takes 6 months part-time.",
    ),
    "Frozen soup keeps three months; chilled soup keeps two days.": (
        "Frozen soup keeps two days.",
        "Chilled soup keeps three months.",
    ),
}


FREELY_WORDED = (
    # true, or said of something else: nothing that a value of another part contradicts
    (
        "Under the new contract, the trial phase lasts two weeks; the notice period is one month.",
        "The trial phase lasts two weeks, and there is a notice period.",
    ),
    ("Sales rose by 5% in Europe and fell by 3% in Asia.", "They rose by 5% in Europe but fell in Asia."),
    ("Revenue rose by 5% in 2019 and fell by 3% in 2020.", "It rose by 5% in 2019 and fell in 2020."),
    (
        "The ship left Lisbon on 3 May 1990 with mail and reached Boston on 20 May 1990.",
        "It left Lisbon on 3 May 1990 and later reached Boston.",
    ),
    (
        "The ship left Lisbon on 3 May 1990 with mail and reached Boston on 20 May 1990.",
        "The ship left on 3 May 1990 and reached Boston.",
    ),
    (
        "In the museum the fee is 10 euros for members and 20 euros for guests.",
        "Members pay 10 euros and guests more.",
    ),
    (
        "In the museum the fee is 10 euros for members and 20 euros for guests.",
        "Guests pay more than members, who pay 10 euros.",
    ),
    (
        "Tom joined the firm in 2010 as a clerk and left in 2015 as director.",
        "Tom joined the firm in 2010 and left as director.",
    ),
    ("Shipping takes 3 days to France and 5 days to Spain.", "To France it takes 3 days, to Spain more."),
    ("Basic: $29; Pro: $49.", "Pro costs $49."),
    (
        "Interest rates: savings account: 2%, current account: 5%.",
        "The interest rate of the savings account is 2%.",
    ),
    ("Weight limits – cabin bag – 8 kg, checked bag – 23 kg.", "The weight limit of a cabin bag is 8 kg."),
    ("Adults take, on average, 20 mg and children, on average, 5 mg.", "Adults take 20 mg."),
    ("The stew serves four.", "The stew does not serve six."),
    ("The stew serves four to six.", "The stew serves five."),
    (
        "The film is rated 12 in Germany. Elsewhere the film is rated 16.",
        "Outside Germany, the film is rated 16.",
    ),
    ("Entry is 20 euros for an adult and 10 euros a child.", "A child gets in for 10 euros."),
    (
        "It is 110 euros for a bare room and 150 euros for a room with breakfast and dinner.",
        "Without breakfast you pay 110 euros.",
    ),
    ("Basic is 20 euros, paid yearly 15 euros.", "Basic costs 15 euros, if paid yearly."),
    ("Each ticket costs 20 euros, online 15 euros.", "The ticket costs 15 euros and is sold online."),
    ("The museum opens at 9, in winter at 10.", "The museum opens at 10 and only in winter."),
    ("The pool opens at 9, on Sundays at 11.", "The pool opens at 11, but only on Sundays."),
    ("The fee is 3%, for members 2%.", "The fee is 2%, but for members only."),
    ("Delivery takes 5 days, with express 2 days.", "Delivery takes 2 days, if you choose express."),
    ("Entry costs 12 euros, and 6 euros for children.", "Entry costs 6 euros, if you are a child."),
    ("Highway 5 is closed for repairs.", "Highway 6 is closed for repairs."),
)
GIVEN_TO_THE_FIRST = (
    # lists whose parts are hard to tell
    ("Basic: $29; Pro: $49.", "Pro costs $29."),
    (
        "Interest rates: savings account: 2%, current account: 5%.",
        "The interest rate of the current account is 2%.",
    ),
    ("Weight limits – cabin bag – 8 kg, checked bag – 23 kg.", "The weight limit of a checked bag is 8 kg."),
    ("Adults take, on average, 20 mg and children, on average, 5 mg.", "Children take 20 mg."),
    ("Entry is 20 euros for an adult and 10 euros a child.", "A child gets in for 20 euros."),
    ("Entry is 12 euros for adults, 6 euros for children.", "Entry is 12 euros, even for children."),
    (
        "Entry is 12 euros for adults and 6 euros for children.",
        "Entry costs 12 euros, and children pay it, too.",
    ),
    ("The dose is 20 mg for adults and 5 mg for children.", "The dose is 20 mg, including for children."),
    (
        "The tablets are taken for 5 days by adults and for 3 days by children.",
        "The tablets are taken for 5 days, by children too.",
    ),
    ("Revenue rose 5% in Europe and 8% in Asia.", "Revenue rose 5%, and this was in Asia."),
)


@pytest.fixture(scope="module", name="rules")
def _rules() -> ClaimChecker:
    return ClaimChecker(LocalJudgeSettings(), load_rules_parameters())


@pytest.mark.parametrize("around", ["{}", OTHERS], ids=["alone", "among others"])
@pytest.mark.parametrize(
    ("source", "claim", "supported"),
    [
        (source, claim, supported)
        for cases, supported in ((SUPPORTED, True), (NOT_SUPPORTED, False))
        for source, claims in cases.items()
        for claim in claims
    ],
)
def test_a_value_belongs_to_what_the_sentence_says_it_of(
    rules: ClaimChecker, around: str, source: str, claim: str, supported: bool
) -> None:
    evidence = EvidenceIndex([Context(id="c1", text=around.format(source))])
    judged = rules.check("r:0", claim_of(claim), "", evidence)
    assert (judged.verdict is Verdict.SUPPORTED) == supported, judged.reasoning


def test_the_reason_names_both_values(rules: ClaimChecker) -> None:
    source = "Revisions are kept for 60 days in the free edition and for two years in the team edition."
    evidence = EvidenceIndex([Context(id="c1", text=source)])
    judged = rules.check(
        "r:0", claim_of("Revisions are kept for two years in the free edition."), "", evidence
    )
    assert judged.verdict is Verdict.CONTRADICTED
    assert "two years" in judged.reasoning
    assert "60 days" in judged.reasoning


def judged(rules: ClaimChecker, source: str, claim: str) -> Verdict:
    return rules.check("r:0", claim_of(claim), "", EvidenceIndex([Context(id="c1", text=source)])).verdict


@pytest.mark.parametrize(("source", "claim"), FREELY_WORDED)
def test_who_leaves_out_the_other_value_is_not_contradicted(
    rules: ClaimChecker, source: str, claim: str
) -> None:
    assert judged(rules, source, claim) is not Verdict.CONTRADICTED


@pytest.mark.parametrize(("source", "claim"), GIVEN_TO_THE_FIRST)
def test_the_first_value_is_not_what_the_second_thing_has(
    rules: ClaimChecker, source: str, claim: str
) -> None:
    assert judged(rules, source, claim) is not Verdict.SUPPORTED


def test_blanks_between_values_are_read_in_linear_time(rules: ClaimChecker) -> None:
    """It took hours for a context of the most characters when it was not."""
    source = "Adults take 20 mg" + " " * 300_000 + "x children 5 mg."
    assert judged(rules, source, "Adults take 20 mg.") is not Verdict.CONTRADICTED
