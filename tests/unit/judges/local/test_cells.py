"""Claims about tables, compared with the cells that they name."""

from __future__ import annotations

import pytest

from guardrail.events import Context
from guardrail.evidence import EvidenceIndex
from guardrail.judges.local.cells import CellFindings, check_cells
from guardrail.judges.local.records import Tables
from tests.support.tables import table

CASES = table(__file__, "cells.yaml")

BOATS = """Our boats for hire:

| Boat | Half day | Whole day | Seats | Mooring | Skipper needed |
|---|---|---|---|---|---|
| Sea Otter | €95 | €160 | 4 | Quay 2 | no |
| Kingfisher | €120 | €210 | 6 | Old Harbour | yes |
| Little Auk | €70 | €110 | 3 | Old Harbour | no |
| Little Auk II | €85 | €130 | 5 | Mill Pond | no |
"""
OVENS = """[{"name": "Brick", "heat_minutes": 90, "price": 640},
{"name": "Dome", "heat_minutes": 45, "price": 910}]"""


def found(claim: str, text: str = BOATS, question: str = "", lead_in: str = "") -> CellFindings:
    return check_cells(claim, Tables(EvidenceIndex([Context(id="c", text=text)])), lead_in, question)


def odd(
    claim: str, text: str = BOATS, question: str = "", lead_in: str = ""
) -> list[tuple[str, str, str, bool]]:
    """``(record, value it has, whose value the claim gives, sure)``."""
    otherwise = found(claim, text, question, lead_in).otherwise
    return [(each.row, each.cell.text, each.owner, each.sure) for each in otherwise]


@pytest.mark.parametrize("claim", CASES["as the cells say"])
def test_what_the_cells_say_is_not_at_odds_with_them(claim: str) -> None:
    assert odd(claim) == []


@pytest.mark.parametrize(("claim", "record", "value", "owner"), CASES["otherwise"])
def test_a_value_of_another_cell_is_at_odds_with_the_one_named(
    claim: str, record: str, value: str, owner: str
) -> None:
    assert odd(claim)[0] == (record, value, owner, True)


def test_a_record_may_be_named_by_the_question_the_heading_or_a_value_and_is_then_doubt() -> None:
    assert odd("It costs €95 for half a day.", question="What is the Kingfisher?") == [
        ("Kingfisher", "€120", "Sea Otter", False)
    ]
    assert odd("Half day: €95", lead_in="Kingfisher") == [("Kingfisher", "€120", "Sea Otter", False)]
    assert odd("The boat on Quay 2 costs €70 for half a day.")[0][:3] == ("Sea Otter", "€95", "Little Auk")
    assert odd("An engineer built the cheapest boat, which has 6 seats.")[0][:3] == (
        "Little Auk",
        "3",
        "Kingfisher",
    )


def test_a_bare_number_is_of_the_unit_that_the_claim_gives_it() -> None:
    assert odd("The brick oven takes 90 minutes to heat and costs $640.", OVENS) == []
    assert {cell.header for cell in found("The Brick costs $640.", OVENS).agreed.values() if cell} == {
        "price"
    }
    assert odd("The Dome costs $640.", OVENS) == [("Dome", "910", "Brick", True)]


def test_what_was_worked_out_is_told() -> None:
    assert found("The Little Auk is the cheapest boat for a whole day.").told == (
        "Little Auk has the cheapest Whole day of all: €110."
    )
    assert found("Two boats are moored in the Old Harbour.").told == (
        "Two of 4, Mooring: Kingfisher, Little Auk."
    )


def test_a_table_that_agrees_outweighs_one_that_does_not() -> None:
    old = BOATS.replace("Our boats", "Last year's boats").replace("€120", "€99")
    assert odd("The Kingfisher costs €120 for half a day.", f"{old}\n\nNow:\n\n{BOATS}") == []


def test_huge_tables_and_repetitive_claims_end() -> None:
    rows = "\n".join(f"| Boat {n} | €{n} | {n % 7} |" for n in range(30_000))
    found("Boat 7 costs €8. " * 200, f"| Boat | Price | Seats |\n|---|---|---|\n{rows}")
    small = "\n".join(f"| boat boat {n} | €{n} | {n % 7} |" for n in range(600))
    found("boat " * 2_000, f"| Boat | Price | Seats |\n|---|---|---|\n{small}")


WOOL = """<table><tr><th>Yarn</th><th>Weight</th><th>Plain</th><th>Dyed</th></tr>
<tr><td rowspan="2">Merino</td><td>50 g</td><td>£6.20</td><td>£7.10</td></tr>
<tr><td>100 g</td><td>£11.40</td><td>on order</td></tr>
<tr><td rowspan="2">Alpaca</td><td>50 g</td><td>£8.90</td><td>£9.60</td></tr>
<tr><td>100 g</td><td>£16.30</td><td>£17.80</td></tr></table>"""
DESK = """| Doctor | Tuesday | Thursday |
|---|---|---|
| Lund | 8-11 a.m. | closed |
| Maro | closed | 2-6 p.m. |
"""


def test_a_second_column_that_comes_again_labels_a_record_too() -> None:
    assert odd("100 g of plain alpaca yarn cost £16.30.", WOOL) == []
    assert odd("100 g of plain alpaca yarn cost £8.90.", WOOL)[0][:3] == (
        "Alpaca, 100 g",
        "£16.30",
        "Alpaca, 50 g",
    )


def test_words_of_another_column_are_at_odds_with_the_one_named() -> None:
    assert odd("Dyed merino of 100 g is on order.", WOOL) == []
    assert odd("Plain merino of 100 g is on order.", WOOL)[0][:3] == ("Merino, 100 g", "£11.40", "Dyed")


@pytest.mark.parametrize(("claim", "cells"), CASES["hours"])
def test_hours_and_closed_say_who_is_there(claim: str, cells: list[str]) -> None:
    assert [value for _, value, _, _ in odd(claim, DESK)] == cells


def test_a_number_that_happens_to_be_that_of_the_rows_is_not_found() -> None:
    assert not found("The Little Auk has 4 masts.").agreed
    assert not found("The Little Auk takes groups of 4 masts.").agreed
    assert found("All 4 boats have seats.").agreed.keys() == {4}


CLUBS = """| Club | Yearly fee | Pitches | Coaches |
|---|---|---|---|
| Northfield | £60 | 1 | 2 |
| Harbour Rovers | £85 | 2 | 5 |
| Old Mill | £110 | 3 | 1 |
"""


@pytest.mark.parametrize(
    "claim",
    [
        "Old Mill costs £110 and lets you train for two weeks without paying.",
        "Your second visit to Northfield is when the £60 is due.",
        "Harbour Rovers asks for £85, and one parent has to sign.",
        "Old Mill answers letters within 2 days.",
    ],
)
def test_a_small_number_said_in_passing_is_not_that_of_another_record(claim: str) -> None:
    assert odd(claim, CLUBS) == []


@pytest.mark.parametrize(
    ("claim", "value"), [("Old Mill has two pitches.", "3"), ("Northfield has 5 coaches.", "2")]
)
def test_a_number_beside_its_header_still_is(claim: str, value: str) -> None:
    assert [each[1] for each in odd(claim, CLUBS)] == [value]


PUMPS = """[{"pump": "Osprey", "litres_h": 900, "built": 1998},
{"pump": "Curlew", "litres_h": 1950, "built": 2011}]"""


def test_a_number_like_a_year_is_one_where_the_others_of_its_column_are_numbers() -> None:
    assert odd("The Curlew was built in 2011 and moves 1,950 litres in an hour.", PUMPS) == []
    assert [each[1] for each in odd("The Osprey moves 1,950 litres_h.", PUMPS)] == ["900"]
    assert [each[1] for each in odd("The Osprey was built in 2011.", PUMPS)] == ["1998"]


SHEDS = """[{"shed": "Alma", "in_use": false, "lease_months": 36, "m2": 14},
{"shed": "Bree", "in_use": true, "lease_months": 24, "m2": 22}]"""


def test_what_counts_other_records_is_at_odds_with_no_cell() -> None:
    assert odd("The Sea Otter seats four; the other three seat up to six.") == []


@pytest.mark.parametrize(
    ("claim", "question"),
    [
        ("With €300 you can take the Kingfisher for a whole day.", "I have €300 to spend."),
        ("For your 9 guests take the Kingfisher, which has six seats.", "We are 9 guests."),
    ],
)
def test_a_figure_that_is_the_questions_is_no_sure_conflict(claim: str, question: str) -> None:
    assert not any(sure for *_, sure in odd(claim, question=question))


def test_a_figure_of_the_question_that_is_another_records_is_still_at_odds() -> None:
    claim = "For €120 you get the Sea Otter for half a day."
    assert odd(claim, question="Is there one for €120?")[0] == ("Sea Otter", "€95", "Kingfisher", True)


def test_a_number_is_of_the_unit_that_its_header_ends_with() -> None:
    assert odd("Alma has a lease of three years.", SHEDS) == []
    assert odd("Alma has a lease of two years.", SHEDS)[0] == ("Alma", "36", "Bree", True)


@pytest.mark.parametrize(
    ("claim", "so"),
    [
        ("Bree is in use.", True),
        ("Bree is out of use.", False),
        ("Alma is out of use.", True),
        ("Alma is in use.", False),
        ("Bree is in use, but has no window.", True),
        ("If Alma were in use, it would be heated.", True),
    ],
)
def test_yes_and_no_are_compared_within_their_clause(claim: str, so: bool) -> None:
    assert (odd(claim, SHEDS) == []) is so
    alone = SHEDS.split("\n")["Bree" in claim].strip("[],")
    assert (odd(claim, alone) == []) is so


def test_values_of_a_list_are_those_of_the_records_beside_them() -> None:
    lamps = "| Lamp | Price |\n|---|---|\n| Alba | $40 |\n| Brio | $55 |\n| Como | $70 |"
    assert odd("The Alba costs $40, the Brio $55 and the Como $70.", lamps) == []
    assert odd("The Alba and the Brio cost $40 and $55.", lamps) == []
    assert odd("The Alba is bright, and at $40 is cheaper than the Brio.", lamps) == []
    exchanged = [("Brio", "$55", "Como", True), ("Como", "$70", "Brio", True)]
    assert odd("The Alba costs $40, the Brio $70 and the Como $55.", lamps) == exchanged


def test_a_price_is_not_what_another_column_counts() -> None:
    rooms = "| Room | Price | Square metres |\n|---|---|---|\n| Alder | €80 | 45 |\n| Birch | €95 | 60 |"
    assert odd("Two nights in Alder come to €60 less.", rooms) == [("Alder", "€80", "", True)]  # not Birch's
