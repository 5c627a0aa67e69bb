"""What looks like a wrong detail and is none, beside what looks like it and is one.

A finding of the rules outweighs everything else, so one that is wrong costs a faithful answer.
"""

from __future__ import annotations

import pytest

from guardrail.events import Verdict
from guardrail.judges.base import Judgement
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_rules_parameters
from tests.unit.judges.local.contexts import claim_of, index_of

CHECKER = ClaimChecker(LocalJudgeSettings(), load_rules_parameters())


EASY = ClaimChecker(LocalJudgeSettings(supported_at=0.05), load_rules_parameters())
"""Supports whatever nothing was found against."""


def judged(source: str, claim: str, checker: ClaimChecker = CHECKER) -> Judgement:
    return checker.check("c", claim_of(claim), "", index_of({"source": source}))


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        pytest.param(
            "Anna Berg (3 May 1871 – 9 June 1940) was a Danish painter who exhibited in Paris in 1902.",
            "Anna Berg exhibited in Paris in 1902.",
            id="the dates of a life in brackets",
        ),
        pytest.param(
            "It is unknown whether or not the tram line will be extended to the harbour.",
            "It is unknown whether the tram line will be extended to the harbour.",
            id="whether or not",
        ),
        pytest.param(
            "The older models may or may not have a drain hose.",
            "The older models may have a drain hose.",
            id="may or may not",
        ),
        pytest.param(
            "Maja: The lagoon is my no 1 beach on the island.",
            "The lagoon is Maja's favourite beach on the island.",
            id="no 1",
        ),
        pytest.param(
            "The museum is open on Mondays.",
            "However, it should be noted that the museum is open on Mondays.",
            id="noted is not not",
        ),
        pytest.param(
            "Please note that the museum is open on Mondays.",
            "The museum is open on Mondays.",
            id="note is not not",
        ),
        pytest.param(
            "The dough rested for a day, which is hard to do at home.",
            "The dough rested for a day.",
            id="hard is not hardly",
        ),
        pytest.param("Adults pay 5 euros.", "No but adults pay 5 euros.", id="no as an answer"),
        pytest.param(
            "The hotel is in Dalby, not far from the station.",
            "The hotel is in Dalby, near the station.",
            id="not far",
        ),
        pytest.param(
            "The cast stayed, except for Alma Reiss and Piet Koll, who were replaced by Ida and Ove Lund.",
            "Alma Reiss and Piet Koll were replaced by Ida and Ove Lund.",
            id="what is told of the exception",
        ),
        pytest.param(
            "Lasse Idowu is a Trinidadian-born painter.",
            "Lasse Idowu is from Trinidad.",
            id="name of a people",
        ),
        pytest.param(
            "The Chinese university of Tarn was founded in 1931.",
            "The university of Tarn in China was founded in 1931.",
            id="name of a country",
        ),
        pytest.param(
            "It is the most sparsely populated country in the European Union.",
            "It is the most sparsely populated country in the EU.",
            id="abbreviation",
        ),
        pytest.param(
            "The factory is at Trafford Park in the United Kingdom.",
            "The factory is at Trafford Park in the U.K.",
            id="abbreviation with dots",
        ),
        pytest.param(
            "The name comes from the St. Lawrence Iroquoian word for a village.",
            "The name comes from the Saint Lawrence Iroquoian word for a village.",
            id="Saint and St.",
        ),
        pytest.param(
            "Guests pay for parking with no extra fee for trailers.",
            "There is a charge for parking.",
            id="no extra fee",
        ),
        pytest.param(
            "Group plan for twenty - five dollars per person.",
            "The group plan for twenty costs five dollars per person.",
            id="a dash between two values",
        ),
        pytest.param(
            "Children and students pay no annual fee; adults pay 20 dollars.",
            "Students can join free of charge.",
            id="pay no fee",
        ),
        pytest.param(
            "You may add up to five days of holiday, provided that the company has no extra costs.",
            "You can add up to five days of holiday as long as it costs the company nothing extra.",
            id="costs nothing",
        ),
        pytest.param(
            "You pay no interest on the loan.",
            "The loan is free of interest.",
            id="pay no interest",
        ),
        pytest.param(
            "Savings accounts, which are free of charge, earn interest daily.",
            "Interest is paid daily on savings accounts.",
            id="what is paid out is no price",
        ),
        pytest.param(
            "Registration costs 18 crowns. After a second offence the drone can be taken away.",
            "The second offence may cost you your drone.",
            id="costs a thing, not money",
        ),
        pytest.param(
            "In total 10,905 Italian Americans and about 110,000 Japanese Americans were interned in camps.",
            "In total, about 110,000 Japanese Americans were interned.",
            id="several counts in one sentence",
        ),
    ],
)
def test_what_only_looks_like_a_contradiction_is_none(source: str, claim: str) -> None:
    assert judged(source, claim).verdict is not Verdict.CONTRADICTED


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The virus spreads less where people wear masks outdoors.", "COVID-19 spreads less with masks."),
        ("The virus spreads less where people wear masks outdoors.", "Masks slow the spread of COVID-19."),
        ("Tom: Shall we meet? Ina: Let's make it 7.", "Tom and Ina agree to meet at 7 pm."),
    ],
)
def test_a_name_with_a_number_and_an_hour_without_its_half_of_the_day_settle_nothing(
    source: str, claim: str
) -> None:
    assert "is in no source" not in judged(source, claim).reasoning


@pytest.mark.parametrize(
    ("source", "claim", "reason"),
    [
        (
            "The drug is given every week for 3 cycles (12 doses).",
            "The drug is given every week for 12 cycles (3 doses).",
            "The claim says '12', the source says '3'.",
        ),
        (
            "Order the filter for the pump under AB-1234.",
            "Order the filter for the pump under AB-1243.",
            "The claim says '1243', the source says '1234'.",
        ),
        (
            "The office is open from 9 in the morning.",
            "The office is open from 8 pm.",
            "'8 pm' is in no source.",
        ),
        (
            "The line will not be extended to the harbour.",
            "The line will be extended to the harbour.",
            "The source denies what the claim says.",
        ),
    ],
)
def test_its_like_is_still_found(source: str, claim: str, reason: str) -> None:
    assert judged(source, claim).reasoning == reason


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The plan has no 1-month trial.", "The plan has a 1-month trial."),
        (
            "Children are allowed to use the lift during a fire.",
            "No one is allowed to use the lift during a fire.",
        ),
        (
            "The Rivera contract (signed 3 May 2019) replaced the Tanaka contract (signed 8 July 2015).",
            "The Rivera contract was signed on 8 July 2015.",
        ),
        (
            "Sorry :( the lamp was shipped on 4 May 2020 and the chair was shipped on 9 June 2021.",
            "The chair was shipped on 4 May 2020.",
        ),
        (
            "It does not matter whether the pump is on; the filter must be changed or not used.",
            "The filter must be changed or used.",
        ),
        (
            "It is unknown whether or not the drug is safe for children.",
            "The drug is safe for children.",
        ),
        ("The older models may or may not have a drain hose.", "The older models have a drain hose."),
        (
            "The ice hockey tournament in Stockholm was won by Canada.",
            "The ice hockey tournament in Stockholm was won by the U.S.",
        ),
        ("The office hosts 8 desks. It is open every day.", "The office is open from 8 pm every day."),
        ("The sauna opens at 8 in the morning.", "The sauna opens at 8 pm."),
        (
            "Do not wash aluminium pans, wooden boards or crystal glasses in the machine.",
            "You can wash wooden boards in the machine.",
        ),
        (
            "Do not wash aluminium pans, wooden boards or crystal glasses in the machine.",
            "Crystal glasses can be washed in the machine.",
        ),
        ("Do not take ibuprofen, aspirin or naproxen with this medicine.", "You can take aspirin with it."),
        ("Users of Windows 11 get the update for free.", "Users of Windows-10 get the update for free."),
    ],
)
def test_a_wrong_detail_beside_what_settles_nothing_is_caught(source: str, claim: str) -> None:
    assert judged(source, claim).verdict is not Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        (
            "The Basic plan includes 5 users and 10 projects, the Pro plan has 10 users and 50 projects.",
            "The Pro plan has 10 users and 50 projects.",
        ),
        ("4 patients got 2 doses; 2 patients got 4 doses.", "2 patients got 4 doses."),
        ("The deadline is 12-May-2024.", "The deadline is 12 May 2024."),
        (
            "Do not immerse the base; wipe it with a damp cloth or a soft sponge.",
            "Wipe the base with a damp cloth or a soft sponge.",
        ),
        (
            "Never immerse the base; use a damp cloth or a soft sponge for the plate.",
            "Use a damp cloth or a soft sponge for the plate.",
        ),
        ("The deadline is 12 May 2024.", "The deadline is 12-May-2024."),
    ],
)
def test_what_stands_in_the_source_is_supported(source: str, claim: str) -> None:
    assert judged(source, claim).verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The hotel is in Dalby, far from the station.", "The hotel is in Dalby, near the station."),
        ("It is not true that the museum is open on Mondays.", "The museum is open on Mondays."),
        ("The door hardly closes.", "The door closes."),
        ("The cast stayed, except for Alma Reiss.", "The cast and Alma Reiss stayed."),
        (
            "Children and students pay no annual fee; adults pay 20 dollars.",
            "Adults can join free of charge.",
        ),
        ("Registration costs 18 crowns.", "Registration costs nothing."),
        (
            "In total 10,905 Italian Americans and about 110,000 Japanese Americans were interned in camps.",
            "In total, about 110,000 Italian Americans were interned.",
        ),
        ("Members can borrow up to ten books at a time.", "You can borrow six books at a time."),
        ("Stays of up to 90 days are allowed without a visa.", "A 120-day stay is allowed without a visa."),
        ("Nina Brandt won the race.", "Nina Brandan won the race."),
        ("Dr. Julian Moran performed the surgery.", "Dr. Julia Moran performed the surgery."),
        ("Prof. Nola Reed wrote the report.", "Prof. Nolan Reed wrote the report."),
        ("It was built by the Romanian parliament.", "It was built by the Roman parliament."),
        ("It is sold in France but not in Spain, where it is banned.", "It is sold in France and Spain."),
        (
            "The set contains a cable but no charger, which is sold separately.",
            "The set contains a cable and a charger.",
        ),
        ("Take it with water but not milk, which weakens it.", "Take it with water or milk."),
        (
            "The kitchen serves lunch, but no dinner, which is served in the bar.",
            "The kitchen serves lunch and dinner.",
        ),
        ("The clinic is located not far from the metro.", "The clinic is far from the metro."),
        ("The hotel is far from the airport.", "The hotel is not far from the airport."),
        ("The new model is not far more efficient.", "The new model is far more efficient."),
        ("The train leaves no later than on weekdays.", "The train leaves earlier than on weekdays."),
        ("You must arrive no earlier than 10.", "You must arrive later than 10."),
        ("Take 40 mg a day.", "Take at most 44 mg a day."),
        ("Hand luggage may weigh 10 kg.", "Hand luggage may weigh up to 11 kg."),
        ("You must be 18 to rent a car.", "You must be at least 17 to rent a car."),
        ("You need a visa for at least 12 months.", "You need a 24-month visa."),
        ("You can stay for up to 90 days.", "You can stay for twenty-five days."),
        ("The vaccine may be stored at up to 25 °C.", "The vaccine may be stored at -5 °C."),
        ("The rope must hold at least 1,900 kg.", "The rope must hold at least 1 tonne."),
        ("Late cancellation will cost you your deposit of 50 euros.", "Late cancellation is free."),
        ("Adults pay and children nothing.", "Adults pay nothing."),
        ("The engine is audible at night.", "The engine is barely audible at night."),
        (
            "The factory is at Trafford Park in the United States.",
            "The factory is at Trafford Park in the UK.",
        ),
    ],
)
def test_what_looks_the_same_and_is_one_is_not_supported(source: str, claim: str) -> None:
    assert judged(source, claim).verdict is not Verdict.SUPPORTED


WARRANTIES = "The DW-450 comes with a 3-year warranty, the DW-460 with a 5-year warranty."
HOURS = "The Aero 300 runs for 8 hours, the Aero 500 for 12 hours."
PROGRAMMES = (
    "The quick programme takes 35 minutes at 45 °C; the intensive programme takes 140 minutes at 70 °C."
)
ROOMS = "Hotel rooms are reimbursed up to 110 euros a night, or 150 euros in Zurich and London."
PLANS = "The licence is $29 per month for Basic or Starter and $49 per month for Pro."
ERRORS = "The error E45 clears after 10 seconds, the error E46 after 30 seconds."


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (WARRANTIES, "The DW-450 comes with a 3-year warranty.", "The DW-450 comes with a 5-year warranty."),
        (WARRANTIES, "The DW-460 comes with a 5-year warranty.", "The DW-460 has a 3-year warranty."),
        (HOURS, "The Aero 300 runs for 8 hours.", "The Aero 300 runs for 12 hours."),
        (HOURS, "The Aero 500 runs for 12 hours.", "The Aero 500 runs for 8 hours."),
        (PROGRAMMES, "The quick programme takes 35 minutes.", "The quick programme takes 140 minutes."),
        (ROOMS, "Rooms in Zurich are reimbursed up to 150 euros.", "Rooms in Zurich are up to 110 euros."),
        (ROOMS, "Hotel rooms are reimbursed up to 110 euros.", "In London, rooms are up to 110 euros."),
        (PLANS, "The licence is $29 per month for Starter.", "The licence is $49 per month for Starter."),
        (PLANS, "The licence is $49 per month for Pro.", "The licence is $29 per month for Pro."),
        (ERRORS, "The error E46 clears after 30 seconds.", "The error E45 clears after 30 seconds."),
    ],
)
def test_each_of_several_things_has_its_own_value(source: str, right: str, wrong: str) -> None:
    assert judged(source, right).verdict is Verdict.SUPPORTED
    assert judged(source, wrong).verdict is Verdict.CONTRADICTED


def test_numbers_of_several_things_are_not_exchanged_when_each_is_right() -> None:
    source = "Of the 30 patients, 12 women had a fever on day 3."
    assert judged(source, "12 of the patients were women.").verdict is not Verdict.CONTRADICTED


SUMMARY = (
    "The team meets on Monday to plan the launch of the new ticket machine, assigns the translation of the "
    "manual to Ines, and concludes that the price list and the signage must be reviewed by the legal "
    "department before the end of March."
)


def test_words_that_a_summary_adds_are_no_item_of_a_list() -> None:
    source = (
        "On Monday the team planned the launch of the new ticket machine. Ines will translate the manual. "
        "The price list must be reviewed by the legal department before the end of March, and the signs, too."
    )
    assert judged(source, SUMMARY, EASY).verdict is Verdict.SUPPORTED
    added = judged(source, "The price list and the brochure must be reviewed.", EASY)
    assert added.verdict is Verdict.PARTIALLY_SUPPORTED
    assert "'brochure'" in added.reasoning
    copied = (
        "The set contains the pump of the second series, the filter of brass, the hose of rubber with both "
        "clamps, and the carburettor."
    )
    source = copied.replace(", and the carburettor", "").replace("brass, the", "brass, and the")
    assert judged(source, copied, EASY).verdict is not Verdict.SUPPORTED


def test_a_refund_that_is_denied_is_not_called_free() -> None:
    judgement = judged("Refunds are paid within 14 days.", "Refunds are not paid within 14 days.")
    assert judgement.verdict is Verdict.CONTRADICTED
    assert judgement.reasoning == "The claim denies what the source says."
