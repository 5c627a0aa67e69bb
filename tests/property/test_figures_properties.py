"""Whatever the text: spans are exact and ordered, figures agree with themselves, the work is linear."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from guardrail.claims import severity, severity_figures, severity_lexicon
from guardrail.claims.severity import SEVERITY_REASONS, BuiltinSeverityRater
from guardrail.events import SegmentKind, Severity
from guardrail.figures import FigureSource, SourceText, State, calendar, check_figures, find_figures, tokens
from guardrail.figures.agreement import agrees, compatible
from guardrail.figures.tokens import Token

PIECES = (
    "5", "10", "1,000", "2.5", "1.500", "2021", "03/04/2021", "2021-03-03", "15:00", "$", "€", "US$", "%",
    "°", "C", "mg", "km", "/", "per", "day", "a", "an", "million", "k", "M", "dozen", "half", "quarter",
    "one", "two", "twenty", "-", "–", "to", "and", "between", "in", "of", "out", "March", "May", "3rd",
    "st", "th", "Monday", "noon", "AM", "p.m.", "UTC", "about", "up", "at", "least", "or", "more", "+", "<",
    "=", ".", ",", "'s", "v2.3", "ISO", "9001", "COVID-19", "Dr.", "Curie", "World", "Health", "WHO", "@",
    "example.com", "https://", "www.", "½", "²", "٣", "é", "\n", " ", " ", " ", "\u00a0", "(", ")",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join),
)
HOSTILE = (
    "1", "1,", "1 000 ", "a@", "a.", "A.", "Ab ", "Ab-", "The ", "of ", "Of of ", "hundred ", "two and ",
    "5/", "+1 ", "0-", "$", "5-", "5 to ", "3 March ", "per day ", "°", "'s", "((", "v1.", "5 mg/",
    "\ufffc", "half of a ",
)  # fmt: skip


@given(TEXTS)
def test_spans_are_exact_ordered_and_disjoint(text: str) -> None:
    figures = find_figures(text)
    for figure in figures:
        assert text[figure.start : figure.end] == figure.text
        assert figure.text
    assert all(a.end <= b.start for a, b in pairwise(figures))


@example("HTTP://:")
@given(TEXTS)
def test_every_figure_agrees_with_itself(text: str) -> None:
    for figure in find_figures(text):
        assert agrees(figure, figure), figure


@given(TEXTS, TEXTS)
def test_comparing_never_raises(claim: str, source: str) -> None:
    for figure in find_figures(claim):
        for other in find_figures(source):
            agrees(figure, other)
            compatible(figure, other)


@given(TEXTS)
def test_a_text_that_says_the_same_conflicts_with_no_figure(text: str) -> None:
    source = FigureSource([SourceText("c", 0, len(text), text)])
    checks = check_figures(text, source, [0])
    assert [check.figure.text for check in checks] == [figure.text for figure in find_figures(text)]
    assert State.CONFLICT not in {check.state for check in checks}


@given(TEXTS, st.sampled_from(SegmentKind))
def test_rating_never_raises_and_gives_known_reasons(text: str, kind: SegmentKind) -> None:
    rated, reasons = BuiltinSeverityRater().rate(text, kind)
    assert rated in Severity
    assert set(reasons) <= SEVERITY_REASONS.keys()
    assert len(set(reasons)) == len(reasons)


class CountingTokens(list[Token]):
    """A list that counts how often it is looked into."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        type(self).looks += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_scan_looks_at_each_token_a_bounded_number_of_times(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tokens.tokenize
    monkeypatch.setattr("guardrail.figures.reading.tokenize", lambda text: CountingTokens(plain(text)))
    text = piece * 2000
    CountingTokens.looks = 0
    find_figures(text)
    assert 0 < CountingTokens.looks <= 150 * len(plain(text))


def _open_repeats(pattern: Any) -> int:
    """How many unbounded repeats of a parsed expression may give back what they took."""
    parser: Any = re._parser  # type: ignore[attr-defined]
    count = 0
    for op, argument in pattern:
        name = str(op)
        if name in {"MAX_REPEAT", "MIN_REPEAT"} and argument[1] == parser.MAXREPEAT:
            count += 1
        for part in argument if isinstance(argument, (tuple, list)) else [argument]:
            if isinstance(part, parser.SubPattern):
                count += _open_repeats(part)
            elif isinstance(part, list):
                count += sum(_open_repeats(p) for p in part if isinstance(p, parser.SubPattern))
    return count


@pytest.mark.parametrize("module", [tokens, calendar, severity, severity_figures, severity_lexicon])
def test_no_expression_can_backtrack_without_bound(module: Any) -> None:
    """Every unbounded repeat is possessive, so that matching is linear on any text."""
    expressions = [value for value in vars(module).values() if isinstance(value, re.Pattern)]
    assert expressions
    for expression in expressions:
        parsed = re._parser.parse(expression.pattern, expression.flags)  # type: ignore[attr-defined]
        assert _open_repeats(parsed) == 0, expression.pattern


def test_the_check_of_expressions_sees_a_bad_one() -> None:
    assert _open_repeats(re._parser.parse(r"(?:a+)+b|x{2,}")) == 3  # type: ignore[attr-defined]
