"""How sentences are cut into statements, beside what a reader names; the figures on unseen ones are measured
by benchmarks.statements."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.statements import pairing, shared
from guardrail.judges.clauses import statements_in

SENTENCES: dict[str, list[str]] = yaml.safe_load(
    Path(__file__).with_name("statements.yaml").read_text(encoding="utf-8")
)
WORDS = (
    "the a firm which who, that ; ( ) – and but is was built in 1931 of X $5 costs making it , May so because"
    " before not only including or : by on Friday"
)


@pytest.mark.parametrize("kind", SENTENCES)
def test_sentences_are_cut_as_a_reader_cuts_them(kind: str) -> None:
    misses = []
    for each in SENTENCES[kind]:
        sentence, *statements = each.split(" | ")
        found = statements_in(sentence)
        if pairing(found, statements or [sentence]) is None:
            misses.append((sentence, found))
    assert misses == []


@pytest.mark.parametrize(
    ("sentence", "statements"),
    [
        (
            "The hall, which was built in 1931, seats 900 people and has no lift.",
            ["The hall seats 900 people.", "The hall has no lift.", "The hall was built in 1931."],
        ),
        (
            "The dam broke in 1963, leaving 900 people homeless.",
            ["The dam broke in 1963.", "The dam left 900 people homeless."],
        ),
        (
            "The plant runs all year, supplying 30,000 homes.",
            ["The plant runs all year.", "The plant supplies 30,000 homes."],
        ),
        (
            "The plants run all year, supplying 30,000 homes.",
            ["The plants run all year.", "The plants supply 30,000 homes."],
        ),
        (
            "A day pass costs 9 euros and a week pass 32 euros.",
            ["A day pass costs 9 euros.", "A week pass costs 32 euros."],
        ),
        (
            "Das Haus wurde 1931 gebaut und hat keinen Aufzug.",
            ["Das Haus wurde 1931 gebaut und hat keinen Aufzug."],
        ),
        ("Was it built in 1931 and sold in 1950?", ["Was it built in 1931 and sold in 1950?"]),
        ("1931", ["1931"]),
        ("It is old. " * 200, ["It is old. " * 200]),
        ("a." * 100_000, ["a." * 100_000]),
        ("", [""]),
    ],
)
def test_statements_are_sentences_with_their_subject(sentence: str, statements: list[str]) -> None:
    assert statements_in(sentence) == statements


@given(st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join) | st.text(max_size=80))
def test_any_text_is_cut_or_left_alone(text: str) -> None:
    found = statements_in(text)
    assert found == [text] or (len(found) > 1 and all(each.endswith((".", "!")) for each in found))


def test_a_pair_is_two_statements_that_say_the_same() -> None:
    assert shared("The hall seats 900 people.", "It seats 900 people") > 0.7
    assert pairing(["It has a lift.", "It is old."], ["It is old", "It has a lift"]) == (1, 0)
    assert pairing(["The hall has a lift."], ["The hall has a bar."]) is None
    assert pairing(["It has a lift."], ["It has a lift.", "It is old."]) is None
