from __future__ import annotations

from typing import Any

import pytest

from guardrail.claims import CitationReader
from guardrail.claims.model import claim_prose
from guardrail.events import Context
from tests.support.tables import table

TABLE: dict[str, Any] = table(__file__, "citation_cases.yaml")
CONTEXTS = [Context(id=name, text="", source=source) for name, source in TABLE["contexts"]]
CASES = [(text, marks) for kind in TABLE["citations"].values() for text, marks in kind.items()]


@pytest.mark.parametrize(("text", "marks"), CASES)
def test_citations_are_found_and_mapped(text: str, marks: dict[str, list[str]]) -> None:
    found = CitationReader(CONTEXTS).find(text)
    assert {citation.text: list(citation.context_ids) for citation in found} == marks
    assert all(text[slice(*citation.span)] == citation.text for citation in found)


TELLING = [
    "Ferries leave every [40] minutes.",
    "Ferries leave every 【40†source】 minutes.",
    "Ferries leave every ⁴⁰ minutes.",
    "A cabin costs €[95] a night.",
    "A cabin costs **[95]** € a night.",
    "Bring at most [6] bags.",
    "Bikes travel free of charge 【2†bikes are not allowed】.",
    "Bikes travel free of charge [bikes are not allowed.pdf].",
]
NAMING = [
    "Ferries leave every 40 [2] minutes.",
    "Ferries leave every forty [2] minutes.",
    "Ferries leave every 40 minutes [2].",
    "Ferries leave daily. [2] Minutes are rounded.",
    "A cabin costs €95 [1] a night 【4:0†source】.",
    "In summer [1] people wait longer.",
    "Bikes travel free of charge 【2†L3-L8】 [timetable-2025.pdf].",
    "A day [2] at sea, 10² km.",
]


@pytest.mark.parametrize(("text", "tells"), [*((t, True) for t in TELLING), *((t, False) for t in NAMING)])
def test_a_mark_tells_something_where_a_value_belongs_or_its_label_is_no_name(text: str, tells: bool) -> None:
    marks = CitationReader(CONTEXTS).find(text)
    assert any(mark.tells for mark in marks) is tells
    assert bool(claim_prose(text, marks).deceptive) is tells


def test_the_text_of_a_link_to_a_context_is_read_where_it_tells_something() -> None:
    contexts = [Context(id="t", text="", source="https://ferry.example"), Context(id="No dogs", text="")]
    for text, read in [
        ("Ferries run daily (see [the times](https://ferry.example)).", False),
        ("Ferries run daily (see [dogs are banned](https://ferry.example)).", True),
        ("According to [the times](https://ferry.example), ferries run daily.", False),
        ("According to [a page that bans dogs](https://ferry.example), ferries run.", False),
        ("According to [what says dogs are banned](https://ferry.example), ferries run.", False),
        ("According to [the list that says dogs may sail](https://ferry.example), all is fine.", True),
        ("Ferries run daily. [No dogs](https://ferry.example)", False),
    ]:
        prose = claim_prose(text, CitationReader(contexts).find(text)).text
        assert ("dogs" in prose) is read, text


def test_what_numbers_mean_depends_on_ids_first() -> None:
    reader = CitationReader([Context(id=name, text="") for name in ("7", "2", "1")])
    assert [c.context_ids for c in reader.find("a [1] b [2] c [3] d [7]")] == [("1",), ("2",), ("1",), ("7",)]


def test_a_name_that_several_files_share_names_none_of_them() -> None:
    contexts = [Context(id=str(n), text="", source=f"https://example.com/{n}/index.html") for n in range(2)]
    assert CitationReader(contexts).find("It takes an hour (index.html).") == ()
    chunks = [Context(id=f"p#{n}", text="", source="docs/prices.pdf") for n in range(3)]
    assert CitationReader(chunks).find("See (prices.pdf)")[0].context_ids == ("p#0", "p#1", "p#2")


def test_without_contexts_marks_are_citations_all_the_same() -> None:
    assert [c.text for c in CitationReader(()).find("An hour [1], (source: x.pdf), 12 (24).")] == [
        "[1]",
        "(source: x.pdf)",
    ]
