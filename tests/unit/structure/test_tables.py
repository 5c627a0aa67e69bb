"""Tables, records and lists in all their forms, as records with labels and headers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.structure import Table, read_tables

Told = dict[str, dict[str, str]]


def told(text: str) -> list[Told]:
    """The tables of a text, by label and header."""

    def said(cells: tuple[tuple[int, int], ...]) -> str:
        return " / ".join(text[slice(*cell)] for cell in cells)

    def of(table: Table) -> Told:
        return {
            said(record.label): {said(field.header): text[slice(*field.value)] for field in record.fields}
            for record in table.records
        }

    return [of(table) for table in read_tables(text)]


HUTS: Told = {"Alder Hut": {"Beds": "12", "Warden": "Ilse"}, "Birch Hut": {"Beds": "8", "Warden": "nobody"}}
WAYS = {
    "Markdown": "| Hut | Beds | Warden |\n|:--|--:|---|\n| Alder Hut | 12 | Ilse |\n"
    "| Birch Hut | 8 | nobody |",
    "Markdown without outer pipes": "Hut | Beds | Warden\n--- | --- | ---\nAlder Hut | 12 | Ilse\n"
    "Birch Hut | 8 | nobody",
    "a drawn table": "+----+---+---+\n| Hut | Beds | Warden |\n+----+---+---+\n"
    "| Alder Hut | 12 | Ilse |\n"
    "| Birch Hut | 8 | nobody |\n+----+---+---+",
    "CSV": 'Hut,Beds,Warden\n"Alder Hut",12,Ilse\nBirch Hut,8,nobody',
    "semicolons": "Hut;Beds;Warden\nAlder Hut;12;Ilse\nBirch Hut;8;nobody",
    "TSV": "Hut\tBeds\tWarden\nAlder Hut\t12\tIlse\nBirch Hut\t8\tnobody",
    "aligned": "Hut          Beds   Warden\n---------    ----   ------\nAlder Hut      12   Ilse\n"
    "Birch Hut       8   nobody",
    "HTML": "<table><tr><th>Hut<th>Beds<th>Warden<tr><td>Alder Hut<td>12<td>Ilse"
    "<tr><td>Birch Hut<td>8<td>nobody</table>",
    "records in columns": "| | Alder Hut | Birch Hut |\n|---|---|---|\n| Beds | 12 | 8 |\n"
    "| Warden | Ilse | nobody |",
    "blocks": "Hut: Alder Hut\nBeds: 12\nWarden: Ilse\n\nHut: Birch Hut\nBeds: 8\nWarden: nobody",
    "headed blocks": "## Alder Hut\nBeds: 12\nWarden: Ilse\n\n## Birch Hut\nBeds: 8\nWarden: nobody",
    "nested list": "- Alder Hut\n  - Beds: 12\n  - Warden: Ilse\n- Birch Hut\n  - Beds: 8\n"
    "  - Warden: nobody",
    "JSON list": json.dumps([{"name": name, **fields} for name, fields in HUTS.items()]),
    "JSON object": json.dumps({"huts": HUTS}, indent=2),
    "JSON lines": "\n".join(json.dumps({"Hut": name, **fields}) for name, fields in HUTS.items()),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("around", ["{}", "Where to sleep on the ridge.\n\n{}\n\nBring your own sheets."])
def test_one_table_in_every_form(way: str, around: str) -> None:
    found = told(around.format(WAYS[way]))
    assert [{label.removeprefix("huts / "): fields for label, fields in each.items()} for each in found] == [
        HUTS
    ]


def test_spans_of_rows_and_columns_reach_into_every_cell_that_they_cover() -> None:
    text = """<table>
      <thead><tr><th rowspan="2">Zone</th><th colspan="2">Letter</th></tr>
      <tr><th>Stamp</th><th>Days</th></tr></thead>
      <tr><td>Near</td><td><b>90</b> ct</td><td rowspan=2>2</td></tr><tr><td>Far<td>1.40</td></tr></table>"""
    assert told(text) == [
        {
            "Near": {"Letter / Stamp": "90</b> ct", "Letter / Days": "2"},
            "Far": {"Letter / Stamp": "1.40", "Letter / Days": "2"},
        }
    ]


def test_as_many_columns_label_a_record_as_it_takes_to_tell_it_apart() -> None:
    text = "Court,Time of day,Fee\nIndoor,morning,9\nIndoor,evening,14\nOutdoor,morning,5\nOutdoor,evening,7"
    assert list(told(text)[0]) == [
        "Indoor / morning",
        "Indoor / evening",
        "Outdoor / morning",
        "Outdoor / evening",
    ]


def test_a_row_of_one_cell_heads_those_below_it() -> None:
    text = "| Dish | Price | Size |\n|---|---|---|\n| Soups | | |\n| Leek | 4 | cup |\n| Bean | 5 | bowl |"
    assert list(told(text)[0]) == ["Soups / Leek", "Soups / Bean"]


@pytest.mark.parametrize(
    "text",
    [
        "We met Ann, Bob, and Cy. It rained.\nThen we left, tired, for home.\nAnd so on, and so forth.",
        "Ann: Hello there!\nBob: Hi, how are you?\nAnn: Fine, thanks.\nBob: Good.",
        "- Pack a coat.\n- Bring water.\n- Leave early.",
        "1. Rest: lie down for an hour.\n2. Drink: water is best.\n3. Call us: we are open.",
        "Use a | b to choose.",
        '{"not": json',
        "Time: noon",
        "",
    ],
)
def test_what_is_no_table_stays_text(text: str) -> None:
    assert told(text) == []


@given(
    st.text(st.sampled_from('|-:,;\t\n {}[]"<>/*atblerhd1$'))
    | st.sampled_from(sorted(WAYS.values())).map(lambda t: t[3:])
)
def test_spans_lie_within_the_text_and_tables_apart(text: str) -> None:
    at = 0
    for table in read_tables(text):
        assert at <= table.start < table.end <= len(text)
        at = table.end
        for record in table.records:
            assert record.fields
            for start, end in (*record.label, *(field.value for field in record.fields)):
                assert table.start <= start < end <= table.end
                assert text[start:end].strip() == text[start:end]


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "|",
            "| a ",
            "<table>",
            "<td>",
            "<table><tr><td>",
            "{",
            "[[",
            '{"a":',
            "a: b\n",
            "a,b,c\n",
            "a  b\n",
        ),
        *("- a\n  ", "#", "---", " ", "\t", '"'),
    ],
)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    read_tables(piece * (200_000 // len(piece)))  # the limit of a test would end anything else
