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
