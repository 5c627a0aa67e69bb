"""Sentences of contexts: the units that claims are compared with."""

from __future__ import annotations

import pytest

from guardrail.evidence import sentence_spans
from guardrail.evidence.tokens import stem, tokenize, words
from tests.support.tables import table


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in zip(*sentence_spans(text), strict=True)]


@pytest.mark.parametrize(("text", "expected"), table(__file__, "context_sentences.yaml")["cut"])
def test_cuts(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("costs", "cost"), ("stopped", "stopping"), ("studies", "study"), ("TAKEN", "take"), ("boxes", "box"),
        ("1,000", "1000"), ("2.50", "2.5"), ("two", "2"), ("quickly", "quick"), ("company's", "company"),
        ("don’t", "don't"),
    ],
)  # fmt: skip
def test_the_same_word_has_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bus", "bu"), ("5", "50"), ("news", "new"), ("1.5", "15"), ("thing", "th"), ("notes", "not"),
        ("noted", "not"), ("hardly", "hard"), ("barely", "bar"), ("none", "non"), ("themes", "them"),
        ("owned", "own"), ("here", "her"),
    ],
)  # fmt: skip
def test_other_words_keep_theirs(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_tokens_know_where_they_stand() -> None:
    text = "Take 1,000 mg — ‘twice’ a day; 日本語."
    terms, starts = tokenize(text)
    assert len(terms) == len(starts)
    assert [text[start] for start in starts] == ["T", "1", "m", "t", "a", "d", "日", "本"]


def test_citation_marks_are_no_words() -> None:
    assert [word for _, _, word in words("Safe [3] in use [1, 2].")] == ["Safe", "in", "use"]


@pytest.mark.parametrize(
    "text",
    [
        "." * 200_000,
        "\n" * 200_000,
        "a." * 100_000,
        "[1" * 100_000,
        "(" * 200_000,
        "é" * 200_000,
        '."' * 150_000,
    ],
)
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    """Quadratic work on these would run into the time limit of the test."""
    sentence_spans(text)
    words(text)
    tokenize(text)
