from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from guardrail.claims import CitationReader
from guardrail.claims.patterns import compile_pattern
from guardrail.events import Context

TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("citation_cases.yaml").read_text("utf-8"))
CONTEXTS = [Context(id=name, text="", source=source) for name, source in TABLE["contexts"]]
CASES = [(text, marks) for kind in TABLE["citations"].values() for text, marks in kind.items()]


@pytest.mark.parametrize(("text", "marks"), CASES)
def test_citations_are_found_and_mapped(text: str, marks: dict[str, list[str]]) -> None:
    found = CitationReader(CONTEXTS).find(text)
    assert {citation.text: list(citation.context_ids) for citation in found} == marks
    assert all(text[slice(*citation.span)] == citation.text for citation in found)


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


def test_the_operators_pattern_is_read_first() -> None:
    reader = CitationReader(CONTEXTS, r"\$\$ref:([^$]+)\$\$")
    found = reader.find("An hour $$ref:c3$$, or two $$ref:[1]$$, or $$REF:nothing$$ [2].")
    assert [(c.text, c.context_ids) for c in found] == [
        ("$$ref:c3$$", ("c3",)),
        ("$$ref:[1]$$", ("kb-2214",)),
        ("$$REF:nothing$$", ()),
        ("[2]", ("pricing.pdf",)),
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        r"\{([^{}]+)\}",
        r"(?:ref|cite):([\w.-]{1,40}?)\b",
        r"#(\d+)#",
        r"\[ ?(?:ref|cite|kb): ?(\w+)\]",
        r"\[\s*+(\w++)\s*+\]",
    ],
)
def test_patterns_that_are_allowed(pattern: str) -> None:
    assert compile_pattern(pattern).groups == 1


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "no regular expression"),
        ("ref", "has 0 groups"),
        ("(a)(b)", "has 2 groups"),
        ("(a*)", "matches the empty text"),
        ("(a+)+b", "repeats a group"),
        ("(?:a|aa){2,9}(b)", "repeats a group"),
        (r"([a\]]+)+b", "repeats a group"),
        ("x(?=a)(b)", "begins with"),
        ("(?P<a>x)(?(a)y|z)", "begins with"),
        (r"(a)\1", "refers to a group"),
        ("(a*a*a*b)", "16777216 ways"),
        (r"(\w+)\w*z", "65536 ways"),
        (r"(\w{1,40})\w{1,40}z", "1600 ways"),
        (f"({'a?' * 11}b)", "2048 ways"),
        (f"({'(?:a|a)' * 11}b)", "2048 ways"),
        (f"({'a' * 200})", "more than 200 characters"),
    ],
)
def test_patterns_that_could_take_long_are_refused(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        compile_pattern(pattern)
