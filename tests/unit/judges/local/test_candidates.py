"""Which sentences of the contexts a claim is compared with."""

from __future__ import annotations

from tests.unit.judges.local.contexts import index_of, looked_up

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
