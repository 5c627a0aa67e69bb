"""Claims in a chat assistant's words."""

from __future__ import annotations

import random

import pytest

from training.chat_wording import chat_worded, spans_in


def words(claim: str) -> set[str]:
    return {chat_worded(claim, random.Random(seed)) for seed in range(3000)}


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("Customers can return their shoes within a week.", "You can return your shoes within a week."),
        ("The tablets must be stored in the fridge.", "You must store the tablets in the fridge."),
        ("It requires approximately two hours.", "It needs about two hours."),
        ("The pool is closed in May.", "Keep in mind that the pool is closed in May."),
        ("The pool is closed in May.", "The pool is closed in May, according to the document."),
    ],
)
def test_it_is_said_in_other_words(claim: str, said: str) -> None:
    assert said in words(claim)


def test_a_prohibition_stays_one() -> None:
    for said in words("The lid may not be opened."):
        assert "may not" in said


def test_nothing_fits_an_empty_claim() -> None:
    assert chat_worded("", random.Random(1)) == ""


@pytest.mark.parametrize(
    ("after", "spans", "expected"),
    [
        ("So the shop opens at nine.", ((14, 22),), ((17, 25),)),
        ("So the shop opens at nine.", ((0, 23),), ((0, 26),)),
        ("So the shop opens at nine.", (), ()),
        ("So the shop opens at nine.", None, None),
        ("So the shop shuts at nine.", ((9, 14),), None),
    ],
)
def test_marked_words_are_found_again(
    after: str, spans: tuple[tuple[int, int], ...] | None, expected: tuple[tuple[int, int], ...] | None
) -> None:
    assert spans_in("The shop opens at nine.", after, spans) == expected
