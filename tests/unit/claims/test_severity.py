"""What a claim is about decides how grave it is; operators add to it and take from it."""

from __future__ import annotations

import pytest

from guardrail.claims.severity import SEVERITY_REASONS, BuiltinSeverityRater
from guardrail.claims.severity_rules import SeverityPattern, SeverityRules
from guardrail.events import SegmentKind, Severity
from guardrail.values import ValueKind, extract
from guardrail.values.units import CENTS, CURRENCY_WORDS, UNITS

SENTENCE = SegmentKind.SENTENCE
C, M, N, L = Severity.CRITICAL, Severity.MAJOR, Severity.NORMAL, Severity.MINOR

EXAMPLES = [
    # what costs money or health
    ("Take 500 mg every 8 hours with food.", C, "dosage"),
    ("The usual dose is two tablets.", C, "dosage"),
    ("Do not take ibuprofen if you are allergic to it.", C, "clinical_direction"),
    ("This medicine must not be taken during pregnancy.", C, "clinical_direction"),
    ("Patients should avoid alcohol during the treatment.", C, "clinical_direction"),
    ("Nehmen Sie die Tablette nach dem Essen ein.", C, "clinical_direction"),
    ("Ce médicament est contre-indiqué.", C, "clinical_direction"),
    ("It costs $50.", C, "price"),
    ("Yes. $5,000.", C, "price"),
    ("Der Tarif kostet 20 €.", C, "price"),
    ("El precio es de 30 euros.", C, "price"),
    ("The deposit is not returned.", C, "price"),
    ("Applications must arrive by 31 March.", C, "deadline"),
    ("You can cancel within 30 days.", C, "deadline"),
    ("The voucher expires on 1 May 2026.", C, "deadline"),
    ("Returns are possible until Friday.", C, "deadline"),
    ("Die Frist endet am 3. Mai.", C, "deadline"),
    ("The meeting is on 3 March 2026.", C, "date"),
    ("We are closed on Mondays.", C, "date"),
    ("The shop opens at 9 AM.", C, "date"),
    ("Store it below 25 °C.", C, "quantity"),
    ("The cable is 5 metres long.", C, "quantity"),
    ("Up to 3 bags are allowed.", C, "limit"),
    ("The maximum is 10 users.", C, "limit"),
    ("You must be at least 18.", C, "limit"),
    ("The tenant is liable for damage.", C, "legal"),
    ("Subletting is prohibited.", C, "legal"),
    ("Employees must sign the contract.", C, "legal"),
    ("Do not mix bleach and ammonia.", C, "safety_warning"),
    ("Risk of electric shock.", C, "safety_warning"),
    ("You can use the heater in bathrooms where it may be splashed with water.", C, "safety_warning"),
    ("Guests may use the pool, but not in rain.", C, "safety_warning"),
    ("Call +1 555 123 4567.", C, "contact"),
    ("Write to help@example.com.", C, "contact"),
    ("The form is at www.example.com/form.", C, "url"),
    # details that matter less
    ("The war ended in 1945.", M, "period"),
    ("It was founded 20 years ago.", M, "period"),
    ("He was born before 1900.", M, "period"),
    ("About 60% of users agree.", M, "percentage"),
    ("One in four readers agrees.", M, "percentage"),
    ("The museum has 300 paintings.", M, "number"),
    ("Version 2.3.1 brings it.", M, "identifier"),
    ("It was painted by Frida Kahlo.", M, "named_entity"),
    ("You can use the card in all shops.", M, "permission"),
    ("The plan does not include roaming.", M, "negation"),
    ("It is the largest lake.", M, "superlative"),
    ("Income tax is a topic of its own.", M, "legal"),
    # the rest
    ("Photosynthesis turns light into chemical energy.", N, None),
    ("Water boils when it is heated.", N, None),
    ("You may take a taxi.", N, None),
    ("I think it is a lovely place to visit.", L, None),
    ("It depends on various factors.", L, None),
    ("Hope this helps!", L, None),
]


#: What stands at a number, a month or a number word: exactly these reasons.
DETAILS = [
    ("It costs US$5 million.", ["price"]),
    ("It costs 5 million dollars.", ["price"]),
    ("It costs Rs. 500.", ["price"]),
    ("It was 50p each.", ["price"]),
    ("Es kostet 5.000,00 Euro.", ["price"]),
    ("It takes 5 to 10 mg.", ["dosage"]),
    ("It takes 500mg/day.", ["dosage"]),
    ("Das Medikament wird 3 mal täglich genommen.", ["dosage"]),
    ("Between 5 and 10 km.", ["quantity"]),
    ("It needs 1/2 cup of sugar.", ["quantity"]),
    ("Half an hour is enough.", ["quantity"]),
    ("A five-day trial is included.", ["quantity"]),
    ("About 20 business days later.", ["quantity"]),
    ("It runs at 5GHz on 5G.", ["quantity", "identifier"]),
    ("Reports are due within a week.", ["deadline"]),
    ("Die Frist beträgt 14 Tage.", ["deadline"]),
    ("Due 2021-03-03.", ["deadline"]),
    ("It opens on the 3rd of March.", ["date"]),
    ("It opened on March 3rd, 2021.", ["date"]),
    ("Open Mon–Fri.", ["date"]),
    ("We open at 3.30 p.m. on weekdays.", ["date"]),
    ("From 9:00-17:00 on workdays.", ["date"]),
    ("We open at noon.", ["date"]),
    ("High Noon is a film.", ["named_entity"]),
    ("It was in the 1990s.", ["period"]),
    ("He lived in 300 BC.", ["period"]),
    ("The 19th century was long.", ["period"]),
    ("It rose from 2010-2015.", ["period"]),
    ("The 20-year-old won.", ["period"]),
    ("It came in the third quarter of 2021.", ["period"]),
    ("Two-thirds agreed.", ["percentage"]),
    ("It is ½ full.", ["percentage"]),
    ("It is 5 per cent of it.", ["percentage"]),
    ("It grew by 3 percentage points.", ["percentage"]),
    ("It has 10 000 000 users.", ["number"]),
    ("Half a million came.", ["number"]),
    ("Twenty-five people came.", ["number"]),
    ("Rotate by 90 degrees.", ["number"]),
    ("Take it twice a day.", ["number"]),
    ("Millions of people came.", []),
    ("It is a one-way street.", []),
    ("1. Plug it in.", []),
    ("The group ends in [1, 2-4].", []),
    ("Version 2 is out.", ["identifier"]),
    ("See ISO 9001.", ["identifier"]),
    ("COVID-19 spreads.", ["identifier"]),
    ("Call (555) 123-4567 now.", ["contact"]),
    ("Call 020 7946 0958 for help.", ["contact"]),
    ("Ring 555-123-4567.", ["contact"]),
    ("See example.com/terms/2 for it.", ["url"]),
]


@pytest.mark.parametrize(("text", "reasons"), DETAILS)
def test_details_are_told_by_their_neighbours(text: str, reasons: list[str]) -> None:
    assert list(BuiltinSeverityRater().rate(text, SENTENCE)[1]) == reasons


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The U.S. Congress met.", True),
        ("J. Smith wrote it.", True),
        ("Dr. Smith wrote it.", True),
        ("Charles II was king.", True),
        ("Charles II's reign was long.", True),
        ("Vitamin C helps.", True),
        ("Most of the X-Men are known.", True),
        ("Kellogg’s products are known.", True),
        ("We met O'Neal there.", True),
        ("The Swiss-based firm is old.", True),
        ("The WHO says so.", False),
        ("AI-based tools are known.", False),
        ("However, people like it.", False),
        ("Die Stadt liegt am Fluss.", False),
        ("Die Stadt von Rosa Luxemburg.", True),
        ("Blood Pressure Drugs Lower Stroke Mortality Rates.", False),
    ],
)
def test_names_are_told_by_their_capitals(text: str, named: bool) -> None:
    assert ("named_entity" in BuiltinSeverityRater().rate(text, SENTENCE)[1]) is named


@pytest.mark.parametrize("spelling", [*UNITS, *CURRENCY_WORDS, *CENTS, "%", "percent", "€", "USD"])
def test_units_are_told_as_the_precise_reader_tells_them(spelling: str) -> None:
    text = f"it had 37 {spelling} then"
    told = set(BuiltinSeverityRater().rate(text, SENTENCE)[1])
    kind = extract(text)[0].kind
    if kind is ValueKind.MONEY:
        assert told == {"price"}
    elif kind is ValueKind.PERCENT:
        assert told == {"percentage"}
    else:  # a measure; or a count or share, as times, degrees and points are
        assert told <= {"dosage", "quantity", "period", "number", "percentage"}
        assert told or kind is ValueKind.NUMBER


@pytest.mark.parametrize(
    "text", ["", " ", "\n", ",", "’", "İ 5", "5" * 5000, "٣ kg", "²", "1/" * 99, "+" * 9 + "1"]
)
def test_odd_texts_are_rated_too(text: str) -> None:
    severity, reasons = BuiltinSeverityRater().rate(text, SENTENCE)
    assert severity in Severity
    assert set(reasons) <= SEVERITY_REASONS.keys()


@pytest.mark.parametrize(("text", "severity", "reason"), EXAMPLES)
def test_severity_follows_from_content(text: str, severity: Severity, reason: str | None) -> None:
    rated, reasons = BuiltinSeverityRater().rate(text, SENTENCE)
    assert rated is severity, reasons
    assert reasons == () if reason is None else reason in reasons


def test_every_built_in_reason_has_an_example() -> None:
    assert {reason for _, _, reason in EXAMPLES if reason} == SEVERITY_REASONS.keys()


def test_list_items_and_table_rows_are_rated_like_sentences() -> None:
    rater = BuiltinSeverityRater()
    for kind in (SegmentKind.LIST_ITEM, SegmentKind.TABLE_ROW):
        assert rater.rate("| Basic | $5 |", kind) == (C, ("price",))


@pytest.mark.parametrize("kind", [SegmentKind.HEADING, SegmentKind.CODE, SegmentKind.BLANK])
def test_what_holds_no_claims_is_minor(kind: SegmentKind) -> None:
    assert BuiltinSeverityRater().rate("It costs $50.", kind) == (L, ())


def test_the_gravest_reason_comes_first() -> None:
    _, reasons = BuiltinSeverityRater().rate("Marie Curie paid $50, not less, in 1903.", SENTENCE)
    assert reasons == ("price", "period", "named_entity", "negation")


def test_citation_markers_are_no_numbers() -> None:
    assert BuiltinSeverityRater().rate("Light becomes chemical energy [3].", SENTENCE) == (N, ())


def test_a_mention_of_a_topic_is_less_than_a_direction() -> None:
    rater = BuiltinSeverityRater()
    assert rater.rate("There is a fee.", SENTENCE) == (M, ("price",))
    assert rater.rate("A fee is required.", SENTENCE) == (C, ("price",))


def test_a_bullet_does_not_hide_a_direction() -> None:
    rated, _ = BuiltinSeverityRater().rate("- Monitor expiration dates.", SegmentKind.LIST_ITEM)
    assert rated is C


def rules(*patterns: SeverityPattern, disabled: frozenset[str] = frozenset()) -> BuiltinSeverityRater:
    return BuiltinSeverityRater(SeverityRules(patterns=patterns, disabled_reasons=disabled))


def test_operators_patterns_set_at_least_their_severity() -> None:
    rater = rules(SeverityPattern(reason="part_number", severity=M, pattern=r"\bpn-?\d+"))
    assert rater.rate("Order pn77 for it.", SENTENCE)[0] is M
    assert "part_number" in rater.rate("Order PN77 for it.", SENTENCE)[1]
    assert rater.rate("PN77 costs $5.", SENTENCE)[0] is C


def test_operators_keywords_are_whole_words_in_any_case() -> None:
    rater = rules(SeverityPattern(reason="recall_notice", severity=C, keywords=("batch x", "c++")))
    rated, reasons = rater.rate("The Batch\n X is bad.", SENTENCE)
    assert (rated, reasons[0]) == (C, "recall_notice")
    assert rater.rate("It is written in C++ today.", SENTENCE)[1][0] == "recall_notice"
    assert "recall_notice" not in rater.rate("The batch xy is fine.", SENTENCE)[1]


def test_operators_rules_reach_code_too() -> None:
    rater = rules(SeverityPattern(reason="secret", severity=C, keywords=("rm -rf",)))
    assert rater.rate("rm -rf /", SegmentKind.CODE) == (C, ("secret",))


def test_one_reason_from_two_patterns_is_reported_once_and_the_gravest_counts() -> None:
    rater = rules(
        SeverityPattern(reason="own", severity=L, keywords=("light",)),
        SeverityPattern(reason="own", severity=C, pattern="energy"),
    )
    assert rater.rate("Light is energy of a sort.", SENTENCE) == (C, ("own",))


def test_disabled_reasons_no_longer_raise() -> None:
    rater = rules(disabled=frozenset({"price", "negation"}))
    assert rater.rate("It costs $50.", SENTENCE) == (N, ())
    assert rater.rate("It does not rain.", SENTENCE) == (N, ())


def test_an_operators_reason_survives_the_built_in_of_that_name_being_disabled() -> None:
    own = SeverityPattern(reason="price", severity=M, keywords=("fee",))
    rater = rules(own, disabled=frozenset({"price"}))
    assert rater.rate("There is a fee.", SENTENCE) == (M, ("price",))


def test_reasons_are_documented() -> None:
    for name, reason in SEVERITY_REASONS.items():
        assert name == name.lower()
        assert reason.description
