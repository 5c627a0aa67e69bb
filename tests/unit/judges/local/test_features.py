"""The numbers that the combiner looks at."""

from __future__ import annotations

import math

import pytest

from guardrail.figures import FigureSource, SourceText, check_figures
from guardrail.judges.local.combiner import (
    FEATURES,
    READ,
    WORDS,
    Read,
    best_of,
    log_odds,
    read_features,
    word_features,
)
from guardrail.judges.local.search import WindowText
from guardrail.judges.model import Reading
from tests.unit.judges.local.contexts import index_of, looked_up


def of_words(claim: str, source: str) -> dict[str, float]:
    index = index_of(source)
    view, found = looked_up(claim, index)
    figures = check_figures(claim, FigureSource([SourceText("d0", 0, len(source), source)]), [0])
    return word_features(view, found, figures)


def read(support: float, contradiction: float = 0.5, *tokens: float) -> Read:
    marked = tuple((n, n + 1, unsupported) for n, unsupported in enumerate(tokens))
    return Read(WindowText("", (0,), 0), Reading(support, contradiction, marked))


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("The garden is open.", "The garden is open.", {"share": 1, "figures_absent": 0}),
        ("The garden is big.", "The garden is open.", {"share": 0.5}),
        ("Owls hunt mice.", "The garden is open.", {"share": 0}),
        ("Entry costs $5.", "Entry costs $5.", {"figures_absent": 0, "figures_conflicting": 0}),
        ("Entry costs $9.", "Entry costs money.", {"figures_absent": 1, "figures_conflicting": 0}),
        ("Entry for adults costs $9.", "Entry for adults costs $5.", {"figures_conflicting": 1}),
    ],
)
def test_words_and_figures(claim: str, source: str, expected: dict[str, float]) -> None:
    found = of_words(claim, source)
    assert found.keys() == set(WORDS)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_what_is_read() -> None:
    found = read_features([read(0.2, 0.9, 0.1), read(0.8, 0.3, 0.6, 0.2)])
    assert found == pytest.approx(
        {
            "support": log_odds(0.8),
            "support_mean": (log_odds(0.2) + log_odds(0.8)) / 2,
            "contradiction": log_odds(0.9),
            "unsupported_most": 0.6,
            "unsupported_mean": 0.4,
        }
    )
    assert found.keys() == set(READ)
    assert set(FEATURES) == {*READ, *WORDS}


def test_a_claim_without_a_token_has_no_mark() -> None:
    found = read_features([read(0.5)])
    assert (found["unsupported_most"], found["unsupported_mean"]) == (0.0, 0.0)


def test_the_best_window_supports_most_and_the_first_of_equals() -> None:
    reads = [read(0.4), read(0.7), read(0.7)]
    assert best_of(reads) is reads[1]


@pytest.mark.parametrize(("p", "expected"), [(0.5, 0.0), (1.0, math.log(999)), (0.0, -math.log(999))])
def test_log_odds_have_bounds(p: float, expected: float) -> None:
    assert log_odds(p) == pytest.approx(expected)
