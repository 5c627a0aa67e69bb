"""Which sentences of the contexts a claim is compared with, and what of them is read for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.evidence.shown import ShownText
from guardrail.judges.local.search import (
    MOST_WINDOWS,
    SHORT_WORDS,
    TOGETHER_WORDS,
    WINDOW_WORDS,
    WindowText,
    windows_of,
)
from tests.unit.judges.local.contexts import FILLER, index_of, looked_up

LONG = (
    f"The courier collects parcels on Mondays. {FILLER} Parcels above ten kilograms cost extra. {FILLER} "
    "The night desk is closed. A courier brings heavy parcels to the back door."
)
CLAIM = "The courier brings parcels above ten kilograms on Mondays."
CHAT = """Amira: Hi Jo, are you coming to the lake on Saturday?
Jo: I'd love to. But my tent is broken.
Amira: You can have mine. I bought a new one in May.
Jo: Really? That's so kind.
Amira: Sure. Bring the stove, please.
Jo: Will do. And Piet?"""


def windows(claim: str, *contexts: str, question: str = "") -> list[WindowText]:
    index = index_of(*contexts)
    view, found = looked_up(claim, index, question)
    return list(windows_of(view, index, found.sentences)) if found.sentences else []


def test_short_contexts_are_one_window_with_white_space_folded() -> None:
    (window,) = windows("Parcels are left.", "Parcels at the  desk are left.", "The night  desk is closed.")
    assert window.text == "Parcels at the desk are left. The night desk is closed."
    assert (window.sentences, window.best) == ((0, 1), 0)


@pytest.mark.parametrize(
    ("claim", "text", "first"),
    [
        (
            CLAIM,
            LONG,
            "The courier collects parcels on Mondays. Parcels above ten kilograms cost extra. "
            "A courier brings heavy parcels to the back door.",
        ),
        # what brings nothing more of the claim is left out
        (
            "The courier collects parcels on Mondays.",
            f"The courier collects parcels on Mondays. {FILLER} Parcels go with the courier. {FILLER}",
            "The courier collects parcels on Mondays.",
        ),
        # a pronoun's sentence comes with the one before it, another context's last one never
        (
            "Heavy parcels are taken.",
            f"{FILLER} The courier comes on Mondays. She takes heavy parcels. {FILLER}",
            "The courier comes on Mondays. She takes heavy parcels.",
        ),
        ("Heavy parcels are taken.", f"She takes heavy parcels. {FILLER}", "She takes heavy parcels."),
        # and so does what takes a sentence back
        (
            "The well is poisoned.",
            f"{FILLER} Neighbours always say that the well is poisoned. That is not true. {FILLER}",
            "Neighbours always say that the well is poisoned. That is not true.",
        ),
    ],
)
def test_the_first_window_holds_most_of_the_claim(claim: str, text: str, first: str) -> None:
    assert windows(claim, FILLER, text)[0].text == first


def test_a_long_claim_has_more_sentences_read_together() -> None:
    things = [f"the {word}hand stores {word}wood" for word in ("oak", "ash", "elm", "fir", "yew", "box")]
    text = f" {FILLER} ".join(f"{thing.capitalize()}." for thing in things)
    claim = f"{', and you should also know that '.join(things)}.".capitalize()
    assert len(windows(f"{', '.join(things)}.".capitalize(), text)[0].sentences) == 3
    assert len(windows(claim, text)[0].sentences) == 6


def test_the_second_window_has_more_of_what_holds_the_claim() -> None:
    things = [f"the {word}hand stores {word}wood" for word in ("oak", "ash", "elm")]
    text = f" {FILLER} ".join(f"{' '.join(['Very'] * 35)} {thing}." for thing in things)
    first, second, *_ = windows(f"{', '.join(things)}.".capitalize(), text)
    assert set(first.sentences) < set(second.sentences)
    for window, most in zip((first, second), TOGETHER_WORDS, strict=True):
        assert len(window.text.split()) <= most


def test_the_last_window_is_the_best_sentence_with_its_neighbours_of_the_same_context() -> None:
    *_, around = windows(CLAIM, LONG, f"A parcel is heavy. {FILLER}")
    assert WINDOW_WORDS - 15 <= len(around.text.split()) <= WINDOW_WORDS
    assert around.best in around.sentences
    assert not ("A parcel" in around.text and "back door" in around.text)


def test_what_is_read_of_a_conversation_says_who_speaks() -> None:
    first, *around = windows("The stove is there.", CHAT, FILLER)
    assert first.text == "Amira: Bring the stove, please."
    assert any("Amira: Sure. Bring the stove, please. Jo: Will do." in window.text for window in around)


def test_pieces_of_one_long_sentence_are_joined_without_overlap() -> None:
    words = [f"{a}{b}{c}" for a in "bcdf" for b in "mnpqr" for c in "stvwx"]
    words[25:25], words[75:75] = ["courier"], ["parcels"]
    text = " ".join(words)
    assert len(words) > SHORT_WORDS
    assert windows("The courier brings parcels.", text)[0].text in text


OFFICE = (
    "Our office opens at nine and closes at five. Visitors sign in at the front desk and receive a badge. "
    "Parking is available behind the house. Please call ahead to arrange a tour. Lunch is served in the "
    "canteen, where guests are welcome. Employees must wear helmets on the construction site."
)
HARD_HATS = "Staff need hard hats at building works."
ASKED = "What do I have to wear on the construction site?"


def numbers(claim: str, *contexts: str, question: str = ASKED, most: int = 12, cited: int = -1) -> list[int]:
    chosen = frozenset([cited]) - {-1}
    _, found = looked_up(claim, index_of(*contexts), question, cited=chosen, most=most)
    return [match.number for match in found.sentences]


def test_without_a_word_in_common_the_questions_sentence_comes_first_then_the_opening_ones() -> None:
    assert numbers(HARD_HATS, OFFICE) == [5, 0, 1]
    _, found = looked_up(HARD_HATS, index_of(OFFICE), ASKED)
    assert (found.shared, found.present) == (False, frozenset())


def test_few_sentences_with_a_word_get_the_company_of_the_questions() -> None:
    assert numbers("Guests need hard hats.", OFFICE) == [4, 5]


def test_never_more_sentences_than_asked_for() -> None:
    assert numbers(HARD_HATS, OFFICE, most=1) == [5]
    assert numbers("Guests need hard hats.", OFFICE, most=1) == [4]


def test_cited_contexts_come_first_where_they_hold_about_as_much() -> None:
    contexts = ["Lunch is served at noon.", "Lunch is served at noon in the hall.", "Owls hunt mice."]
    assert numbers("Lunch is served at noon.", *contexts) == [0, 1]
    assert numbers("Lunch is served at noon.", *contexts, cited=1) == [1, 0]
    assert numbers("Lunch is served at noon.", *contexts, cited=2)[0] == 0


def test_without_a_context_there_is_nothing_to_read() -> None:
    assert numbers(HARD_HATS) == []


PIECES = [
    "courier",
    "\nJo:",
    "\nAmira:\tit",
    "parcels",
    "ten.",
    "Mondays",
    "[SEP]",
    "\n\n",
    "é",
    "空港",
    "x" * 200,
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=200).map(" ".join)


@given(contexts=st.lists(TEXTS, max_size=3))
def test_whatever_the_contexts_windows_are_theirs_and_none_comes_twice(contexts: list[str]) -> None:
    found = windows(CLAIM, *contexts)
    assert len(found) <= MOST_WINDOWS
    assert len({window.sentences for window in found}) == len(found)
    everything = " ".join(" ".join(ShownText(context).text for context in contexts).split())
    assert all(piece in everything for window in found for piece in window.text.split())
