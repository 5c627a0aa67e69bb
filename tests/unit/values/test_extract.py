"""What is found in running text, and what is left alone."""

from __future__ import annotations

from decimal import Decimal

import pytest

from guardrail.values import Bound, DateParts, ValueKind, extract

K = ValueKind


def found(text: str) -> list[tuple[ValueKind, str]]:
    return [(value.kind, value.text) for value in extract(text)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Take 500 mg twice daily.", [(K.QUANTITY, "500 mg"), (K.QUANTITY, "twice daily")]),
        ("It costs $49.99 a month.", [(K.MONEY, "$49.99 a month")]),
        ("Costs rose 5%, to €1.2 million.", [(K.PERCENT, "5%"), (K.MONEY, "€1.2 million")]),
        ("From 9 AM to 17:30 on Mondays.", [(K.TIME, "9 AM"), (K.TIME, "17:30"), (K.DATE, "Mondays")]),
        ("Between March 3, 2021 and 2022-01-01.", [(K.DATE, "March 3, 2021"), (K.DATE, "2022-01-01")]),
        ("He moved there in 1995, aged 300.", [(K.DATE, "1995"), (K.NUMBER, "300")]),
        (
            "Write to a.b@example.com, or see https://example.com/x?y=1.",
            [(K.EMAIL, "a.b@example.com"), (K.URL, "https://example.com/x?y=1")],
        ),
        ("Call +1 (555) 123-4567 now.", [(K.PHONE, "+1 (555) 123-4567")]),
        ("Upgrade to v2.3.1 under ISO 9001.", [(K.VERSION, "v2.3.1"), (K.IDENTIFIER, "ISO 9001")]),
        ("It was said by Dr. Marie Curie in Paris.", [(K.NAME, "Dr. Marie Curie"), (K.NAME, "Paris")]),
        (
            "The World Health Organization (WHO) agreed.",
            [(K.NAME, "World Health Organization"), (K.NAME, "WHO")],
        ),
        ("2021-03-03T15:00:00Z", [(K.DATE, "2021-03-03"), (K.TIME, "15:00:00Z")]),
        ("| Basic | $5 | 10 GB |", [(K.MONEY, "$5"), (K.QUANTITY, "10 GB")]),
        ("It grew by 5% [3], then fell [4, 12].", [(K.PERCENT, "5%")]),
        ("1. Take 2 g.\n2. Wait.", [(K.QUANTITY, "2 g")]),
        ("Open Mon-Fri, 3-4 PM.", [(K.DATE, "Mon"), (K.DATE, "Fri"), (K.TIME, "3"), (K.TIME, "4 PM")]),
        ("It ran 3-5 March 2021.", [(K.DATE, "3"), (K.DATE, "5 March 2021")]),
        ("between -10 and -5 °C", [(K.QUANTITY, "-10 and -5 °C")]),
        (
            "half an hour, or 1080p, with 5G",
            [(K.QUANTITY, "half an hour"), (K.IDENTIFIER, "1080p"), (K.IDENTIFIER, "5G")],
        ),
        ("Die Frist beträgt 14 Tage.", [(K.QUANTITY, "14 Tage")]),
        ("価格は5,000円、2021年", [(K.NUMBER, "5,000"), (K.DATE, "2021")]),
    ],
)
def test_values_of_running_text(text: str, values: list[tuple[ValueKind, str]]) -> None:
    assert found(text) == values


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Patients should rest.",
        "You may march once you are ready.",
        "One can say that this is the one.",
        "First, open the menu. Second, close it.",
        "There's nothing here. Don't worry. It's fine.",
        "Please note: However, this is not so.",
        "A man and a woman had a dog.",
        "Der Hund und die Katze sind im Haus.",
        "What To Do When Things Really Go Wrong",
    ],
)
def test_plain_words_hold_no_values(text: str) -> None:
    assert found(text) == []


def test_a_number_with_all_its_company() -> None:
    (value,) = extract("up to 1,500 mg per day")
    assert value.kind is ValueKind.QUANTITY
    assert value.readings == (Decimal(1500), Decimal("1.500"))
    assert (value.amount, value.unit, value.per, value.bound, value.approx) == (
        Decimal(1500),
        "mg",
        "day",
        Bound.AT_MOST,
        True,
    )


def test_a_range_has_two_ends_and_one_unit() -> None:
    (value,) = extract("$5-10 million")
    assert (value.kind, value.amount, value.upper) == (
        ValueKind.MONEY,
        Decimal(5_000_000),
        Decimal(10_000_000),
    )
    assert value.unit == "$"


def test_both_orders_of_a_numeric_date_are_readings() -> None:
    (value,) = extract("03/04/2021")
    assert set(value.dates) == {DateParts(2021, 3, 4), DateParts(2021, 4, 3)}


def test_an_impossible_date_is_kept_as_an_identifier() -> None:
    (value,) = extract("2021-13-45")
    assert value.kind is ValueKind.IDENTIFIER


def test_counted_nouns_and_labels_are_kept() -> None:
    values = extract("300 patients in section 5 and five American teams")
    assert [value.noun for value in values if value.kind is ValueKind.NUMBER] == [
        "patient",
        "section",
        "team",
    ]


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("about 5 kg", Bound.ABOUT),
        ("more than 5 kg", Bound.OVER),
        ("no less than 5 kg", Bound.AT_LEAST),
        ("less than 5 kg", Bound.UNDER),
        ("a maximum of 5 kg", Bound.AT_MOST),
        ("5 kg or more", Bound.AT_LEAST),
        ("höchstens 5 kg", Bound.AT_MOST),
        ("environ 5 kg", Bound.ABOUT),
        ("al menos 5 kg", Bound.AT_LEAST),
        ("just 5 kg", Bound.EXACT),
    ],
)
def test_limits_in_words(text: str, bound: Bound) -> None:
    assert [value.bound for value in extract(text)] == [bound]
