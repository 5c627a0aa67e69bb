"""Sentences in other words say nothing else."""

from __future__ import annotations

import random

import pytest

from training.paraphrase import KEEPING, SHORTENING, joined, left_out, running_on

STEPS = {**KEEPING, **SHORTENING}


def outcomes(step: str, sentence: str) -> set[str | None]:
    return {STEPS[step](sentence, random.Random(seed)) for seed in range(20)}


@pytest.mark.parametrize(
    ("step", "sentence", "expected"),
    [
        ("active", "The film was directed by Maria Lopez in 1999.", "Maria Lopez directed the film in 1999."),
        ("active", "It was written by him.", "He wrote it."),
        ("passive", "Maria Lopez wrote the book in 1999.", "The book was written by Maria Lopez in 1999."),
        ("to the back", "In 1990, the club won the cup.", "The club won the cup in 1990."),
        ("to the front", "The club won the cup in 1990.", "In 1990, the club won the cup."),
        ("possessive", "Lyon is not the capital of France.", "Lyon is not France's capital."),
        ("numerals", "She has three sisters and a dog.", "She has 3 sisters and a dog."),
        ("numerals", "It cost 1,500 euros.", "It cost 1500 euros."),
        ("numerals", "They lost 50 percent of the votes.", "They lost half of the votes."),
        ("contraction", "The shop does not sell shoes.", "The shop doesn't sell shoes."),
        ("parenthesis", "Ada Smith (1920–1999) was a painter.", "Ada Smith was a painter."),
        ("relative clause", "He wrote a book, which sold very well.", "He wrote a book."),
        ("first clause", "The club won the cup in May, and it was promoted.", "The club won the cup in May."),
    ],
)
def test_steps(step: str, sentence: str, expected: str) -> None:
    assert expected in outcomes(step, sentence)
    assert outcomes(step, sentence) <= {expected, None, sentence}


def test_dates_are_the_same_day_in_every_form() -> None:
    assert outcomes("dates", "He was born on March 5, 1960.") == {
        "He was born on 5 March 1960.",
        "He was born on Mar 5, 1960.",
        "He was born on the 5th of March 1960.",
        "He was born on 1960-03-05.",
    }


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ("adverbial", "In some cases, the drug helps adults."),
        ("adverbial", "In theory, the 1990 law is still valid."),
        ("to the back", "In 1990, the club won the cup, but it lost the league."),
        ("first clause", "If it rains in May, and it is cold, they stay at home."),
        ("first clause", "He said that the club won the cup, and he was proud."),
        ("active", "The house that was bought by the town was sold by Ms Hill and others."),
        ("passive", "Maria Lopez founded the club and the school."),
        ("possessive", "He met the president of Chile and Peru."),
        ("numerals", "Apollo 8 landed."),
    ],
)
def test_where_the_meaning_could_change_nothing_is_done(step: str, sentence: str) -> None:
    assert outcomes(step, sentence) <= {None, sentence}


def test_two_sentences_become_one_only_where_the_second_can_run_on() -> None:
    one = "The shop opened in May."
    assert joined(one, "The cafe followed in June.", random.Random(0)) in (
        "The shop opened in May, and the cafe followed in June.",
        "The shop opened in May; the cafe followed in June.",
    )
    assert joined(one, "However, it closed again.", random.Random(0)) is None
    assert running_on("Rome has many churches.") == "Rome has many churches."
    assert running_on("Trees grow there.") is None  # a name or not: unknown


@pytest.mark.parametrize(
    ("whole", "part", "expected"),
    [
        ("Ada (1920) was a painter.", "Ada was a painter.", "(1920)"),
        ("He wrote a book, which sold well.", "He wrote a book.", "which sold well"),
        ("In 1990, the club won.", "The club won.", "In 1990"),
        ("The club won.", "The team won.", None),
    ],
)
def test_what_a_part_lacks(whole: str, part: str, expected: str | None) -> None:
    span = left_out(whole, part)
    assert (None if span is None else whole[slice(*span)].strip(" ,")) == expected
