"""The corpus itself: broad enough, and every text in it fit for use."""

from __future__ import annotations

import unicodedata
from collections import Counter

from tests.injection.corpus import FILE, fill, load
from tests.injection.sent import letters

CORPUS = load()
PLACES = {"context", "question", "answer", "reply"}


def test_there_are_attacks_of_many_kinds_in_every_place_and_in_several_languages() -> None:
    places = Counter(place for attack in CORPUS for place in attack.where)
    assert len(CORPUS) >= 60
    assert len({attack.id for attack in CORPUS}) == len(CORPUS)
    assert set(places) == PLACES
    assert min(places.values()) >= 50
    assert len({attack.kind for attack in CORPUS}) >= 15
    assert len({attack.language for attack in CORPUS}) >= 12


def test_every_attack_says_what_must_hold_and_attacks_with_something() -> None:
    for attack in CORPUS:
        in_replies = attack.where == ("reply",)
        assert in_replies is ("verdicts" in attack.holds), attack.id
        assert in_replies or set(attack.holds) <= {"gone", "readable"}, attack.id
        filled = fill(attack.text)
        assert filled, attack.id
        assert "⟦" not in filled, attack.id
        for text in (*attack.gone, *attack.readable):
            assert fill(text) in filled, f"{attack.id}: {text!r} is not part of the text"


def test_hidden_characters_are_in_the_file_as_escapes_only() -> None:
    """Nobody can review what no editor shows."""
    for number, line in enumerate(FILE.read_text(encoding="utf-8").splitlines(), 1):
        hidden = {letter for letter in line if unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Co", "Cn"}}
        assert not hidden, f"line {number}: {[f'U+{ord(letter):04X}' for letter in hidden]}"


def test_letters_sees_a_change_of_any_word() -> None:
    assert letters("The [1] <b>dose</b> is 5", "0") == "The1bdosebis5"
    assert letters("५ mg über", "0") == "५mgüber"
