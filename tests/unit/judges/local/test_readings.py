"""What is read for a claim, and how much of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Encoding

from guardrail.events import Context
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.local.candidates import find_candidates
from guardrail.judges.local.claim_view import view_of
from guardrail.judges.local.fitted import ReadingKind
from guardrail.judges.local.rarity import Rarity
from guardrail.judges.local.readings import PASSAGE_WORDS, Premise, readings_of, sentence_choices
from guardrail.judges.local.verifier import Verifier, load_verifier
from tests.unit.judges.local.contexts import claim_of
from tests.unit.judges.local.tiny_verifier import write_verifier

SENTENCES, SENTENCE, PASSAGE = ReadingKind.SENTENCES, ReadingKind.SENTENCE, ReadingKind.PASSAGE
FILLER = " ".join(f"Nothing of it stands in line {n} of this part." for n in range(30))
LONG = f"""The courier collects parcels on Mondays. {FILLER} Parcels above ten kilograms cost extra. {FILLER}
The night desk is closed and stays so until the spring. A courier brings
heavy parcels to the back door."""
CLAIM = "The courier brings parcels above ten kilograms on Mondays."


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Verifier:
    return load_verifier(write_verifier(tmp_path_factory.mktemp("verifier")))


def read(
    verifier: Verifier,
    claim: str,
    contexts: Sequence[str],
    kinds: Sequence[ReadingKind],
    *,
    room: int = 500,
    tokens: int = 5000,
) -> list[Premise]:
    index = EvidenceIndex([Context(id=f"d{n}", text=text) for n, text in enumerate(contexts)])
    view = view_of(claim_of(claim), "", Rarity({}))
    found = find_candidates(index.layout, view, 6, 3)
    if not found.sentences:
        return []
    return readings_of(view, index, found, kinds, verifier.encode, room=room, overhead=12, tokens=tokens)


def test_sentences_are_those_that_say_most_together_in_the_order_of_the_text(verifier: Verifier) -> None:
    (premise,) = read(verifier, CLAIM, [LONG], [SENTENCES])
    assert premise.text == (
        "The courier collects parcels on Mondays. Parcels above ten kilograms cost extra. "
        "A courier brings heavy parcels to the back door."
    )
    assert len(premise.sentences) == 3


def test_a_sentence_that_brings_nothing_new_of_the_claim_is_left_out(verifier: Verifier) -> None:
    again = f"The courier collects parcels on Mondays. {FILLER} Parcels go with the courier. {FILLER}"
    (premise,) = read(verifier, "The courier collects parcels on Mondays.", [again], [SENTENCES])
    assert premise.text == "The courier collects parcels on Mondays."
    assert len(premise.sentences) == 1


def test_contexts_that_are_short_are_read_whole(verifier: Verifier) -> None:
    contexts = [
        "Parcels at the front desk of the building are left\nuntil Mondays.",
        "The night desk is closed.",
    ]
    found = read(verifier, "Parcels are left until Sundays.", contexts, [SENTENCES, SENTENCE])
    assert [(premise.kind, premise.text) for premise in found] == [
        (
            SENTENCES,
            "Parcels at the front desk of the building are left until Mondays. The night desk is closed.",
        ),
        (SENTENCE, "Parcels at the front desk of the building are left until Mondays."),
    ]


CHAT = """Amira: Hi Jo, are you coming to the lake on Saturday?
Jo: I'd love to. But my tent is broken.
Amira: You can have mine. I bought a new one in May.
Jo: Really? That's so kind.
Amira: Sure. Bring the stove, please.
Jo: Will do. And Piet?
Amira: He can't make it.
Jo: A pity."""


def test_of_a_conversation_the_turns_around_a_sentence_are_read(verifier: Verifier) -> None:
    (premise,) = read(verifier, "The stove is there.", [CHAT, FILLER], [SENTENCES])
    assert premise.text == (
        "Jo: Really? That's so kind. Amira: Sure. Bring the stove, please. Jo: Will do. And Piet?"
    )
    assert len(premise.sentences) == 1


def test_without_room_the_turn_and_then_who_says_the_sentence_is_read(verifier: Verifier) -> None:
    (longer,) = read(verifier, "The stove is there.", [CHAT, FILLER], [SENTENCES])
    lengths = [len(longer.tokens.ids)]
    for expected in ("Amira: Sure. Bring the stove, please.", "Amira: Bring the stove, please."):
        (premise,) = read(
            verifier, "The stove is there.", [CHAT, FILLER], [SENTENCES], tokens=lengths[-1] + 11
        )
        assert premise.text == expected
        lengths.append(len(premise.tokens.ids))
    assert lengths == sorted(lengths, reverse=True)


def test_no_turn_is_joined_or_tokenised_that_has_no_room(verifier: Verifier) -> None:
    """A turn may be as long as a hostile context, and each claim would have it read."""
    text = f"{CHAT}\nAmira: {'So it is. ' * 20_000}The stove is green.\nJo: Well."
    index = EvidenceIndex([Context(id="a", text=text)])
    view = view_of(claim_of("The stove is green."), "", Rarity({}))
    found = find_candidates(index.layout, view, 2, 1)
    green = found.sentences[0].number
    assert [text for text, _ in sentence_choices(index, [green])] == []
    tokenised: list[str] = []

    def encode(text: str) -> Encoding:
        tokenised.append(text)
        return verifier.encode(text)

    (premise,) = readings_of(view, index, found, [SENTENCES], encode, room=60, overhead=12, tokens=5000)
    assert "Amira: The stove is green." in premise.text
    assert all(len(text.split()) <= 60 for text in tokenised)


def test_turns_that_have_no_neighbours_left_are_not_offered_twice() -> None:
    chat = "Ann: Hi. It rains.\nBo: Hi. It does.\nAnn: Well. Bye.\nBo: Bye. See you."
    index = EvidenceIndex([Context(id="a", text=chat), Context(id="b", text=FILLER)])
    texts = [text for text, _ in sentence_choices(index, [0, 2, 4, 6])]
    assert texts[0] == " ".join(chat.split())
    assert texts[1] == "Ann: Hi. Bo: Hi. Ann: Well. Bo: Bye."
    assert len(set(texts)) == len(texts)


def test_a_sentence_that_begins_with_a_pronoun_is_read_with_the_one_before(verifier: Verifier) -> None:
    text = f"{FILLER} The courier comes on Mondays. She takes heavy parcels. {FILLER}"
    (premise,) = read(verifier, "Heavy parcels are taken.", [text], [SENTENCES])
    assert premise.text == "The courier comes on Mondays. She takes heavy parcels."
    (alone,) = read(verifier, "Heavy parcels are taken.", [f"She takes heavy parcels. {FILLER}"], [SENTENCES])
    assert alone.text == "She takes heavy parcels."


def test_more_sentences_are_read_for_a_long_claim(verifier: Verifier) -> None:
    things = [f"the {word}hand stores {word}wood" for word in ("oak", "ash", "elm", "fir", "yew", "box")]
    text = f" {FILLER} ".join(f"{thing.capitalize()}." for thing in things)
    (premise,) = read(verifier, f"{', '.join(things)}.".capitalize(), [text], [SENTENCES])
    assert len(premise.sentences) == 3
    claim = f"{', and you should also know that '.join(things)}.".capitalize()
    (premise,) = read(verifier, claim, [text], [SENTENCES])
    assert len(premise.sentences) == 6


def test_pieces_of_one_sentence_are_read_as_one(verifier: Verifier) -> None:
    """A text without punctuation is cut into pieces that overlap."""
    words = [f"{a}{b}" for a in "bcdfghjkl" for b in "mnpqrstvwx"]
    words[25:25], words[75:75] = ["courier"], ["parcels"]
    text = " ".join(words)
    (premise,) = read(verifier, "The courier brings parcels.", [text], [SENTENCES])
    assert premise.text == text


def test_a_passage_is_the_sentence_with_its_neighbours(verifier: Verifier) -> None:
    (premise,) = read(verifier, "Parcels above ten kilograms cost extra.", [LONG], [PASSAGE])
    words = premise.text.split()
    assert PASSAGE_WORDS - 15 <= len(words) <= PASSAGE_WORDS + 5
    at = premise.text.index("Parcels above ten")
    assert 200 < at < len(premise.text) - 200


def test_a_passage_ends_with_its_context(verifier: Verifier) -> None:
    contexts = [f"{FILLER} Heavy parcels cost extra.", f"Light ones are free. {FILLER}"]
    (premise,) = read(verifier, "Heavy parcels cost extra.", contexts, [PASSAGE])
    assert premise.text.endswith("Heavy parcels cost extra.")


def test_tokens_bound_all_but_one_reading(verifier: Verifier) -> None:
    kinds = [SENTENCES, SENTENCE, PASSAGE]
    whole = read(verifier, CLAIM, [LONG], kinds)
    assert [premise.kind for premise in whole] == kinds
    lengths = [len(premise.tokens.ids) for premise in whole]
    without_passage = read(verifier, CLAIM, [LONG], kinds, tokens=lengths[0] + lengths[1] + 24)
    assert [premise.kind for premise in without_passage] == [SENTENCES, SENTENCE]
    (shorter,) = read(verifier, CLAIM, [LONG], [SENTENCES], tokens=lengths[0] + 11)
    assert len(shorter.sentences) == 2
    (one,) = read(verifier, CLAIM, [LONG], kinds, tokens=1)
    assert len(one.sentences) == 1


def test_nothing_is_cut_to_fit_the_window(verifier: Verifier) -> None:
    assert read(verifier, CLAIM, [LONG], [SENTENCES, SENTENCE], room=4) == []
    (premise,) = read(verifier, CLAIM, [LONG], [SENTENCES, PASSAGE], room=12)
    assert premise.text.endswith(".")


TEXTS = st.lists(
    st.sampled_from(
        [
            "courier",
            "\nJo:",
            "\nAmira: it",
            "parcels",
            "ten.",
            "Mondays",
            "[SEP]",
            "\n\n",
            "é",
            "空港",
            "",
            "x" * 200,
        ]
    ),
    max_size=80,
).map(" ".join)


@given(contexts=st.lists(TEXTS, max_size=3), room=st.integers(1, 80), tokens=st.integers(1, 200))
def test_whatever_the_contexts_what_is_read_fits(
    verifier: Verifier, contexts: list[str], room: int, tokens: int
) -> None:
    found = read(verifier, CLAIM, contexts, [SENTENCES, SENTENCE, PASSAGE], room=room, tokens=tokens)
    lengths = [len(premise.tokens.ids) for premise in found]
    assert all(length <= room for length in lengths)
    assert len(found) < 2 or sum(lengths) + 12 * len(found) <= tokens
    assert len({premise.text for premise in found}) == len(found)
    everything = " ".join(" ".join(contexts).split())
    assert all(piece in everything for premise in found for piece in premise.text.split())
