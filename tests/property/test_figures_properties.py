"""Whatever the text: spans are exact and ordered, figures agree with themselves, hostile ones are checked."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from guardrail.figures import FigureSource, SourceText, State, agrees, check_figures, find_figures

PIECES = (
    "5", "10", "1,000", "2.5", "1.500", "2021", "03/04/2021", "2021-03-03", "24.12.", "15:00", "15h30",
    "$", "€", "US$", "%", "°", "C", "mg", "km", "/", "per", "day", "a", "an", "million", "k", "M",
    "dozen", "half", "quarter", "one", "two", "twenty", "-", "–", "to", "and", "between", "in", "of",
    "out", "March", "May", "3rd", "st", "th", "Monday", "noon", "AM", "p.m.", "UTC", "about", "up",
    "at", "least", "or", "more", "+", "<", "=", ".", ",", "'s", "v2.3", "COVID-19", "24/7", "free",
    "no", "fee", "@", "example.com", "https://", "www.", "½", "²", "٣", "é", "\n", " ", " ", " ",
    "\u00a0", "(", ")", "Rule", "adults", "pay",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join),
)
HOSTILE = (
    "1", "1,", "1.", "1 000 ", "9" * 50 + " ", "a@", "a.", "A.", "Ab-", "hundred ", "two and ",
    "million ", "5/", "1/2 ", "+1 ", "0-", "$", "5-", "5 to ", "3 March ", "1, ", "24, 25 and ",
    "per day ", "°", "'s", "v1.", "5 mg/", "at least ", "half of a ", "no ", "1:00", "x.com/", "Mon, ",
    "(",
)  # fmt: skip


@given(TEXTS)
def test_spans_are_exact_ordered_and_disjoint(text: str) -> None:
    figures = find_figures(text)
    assert all(text[figure.start : figure.end] == figure.text != "" for figure in figures)
    assert all(one.end <= other.start for one, other in pairwise(figures))


@given(TEXTS)
def test_every_figure_agrees_with_itself(text: str) -> None:
    for figure in find_figures(text):
        assert agrees(figure, figure), figure


@given(TEXTS, TEXTS, TEXTS)
@example("0/0", "0", "")
def test_what_is_quoted_stands_in_its_sentence(claim: str, text: str, question: str) -> None:
    source = FigureSource([SourceText("c", 0, len(text), text), SourceText("c", 0, len(claim), "x " + claim)])
    for check in check_figures(claim, source, [0, 0, 1], question):
        assert claim[check.figure.start : check.figure.end] == check.figure.text
        assert 0.0 <= check.frame <= 1.000001
        assert check.state in (State.UNCHECKED, State.CONFLICT) or (check.sentence is None) == (
            check.state in (State.ABSENT, State.DERIVED, State.ECHOED)
        )
        if check.sentence is not None and check.source is not None:
            text = source.texts[check.sentence].text
            assert text[check.source.start : check.source.end] == check.source.text


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_are_checked(piece: str) -> None:
    """Each takes well under a second; a quadratic or exponential step would not end in the time given."""
    text = piece * ((100_000 if piece.isdecimal() else 20_000) // len(piece))
    source = FigureSource([SourceText("c", 0, len(text), text)])
    check_figures(piece * 50, source, [0])
    find_figures(text)
