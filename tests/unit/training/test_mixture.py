"""What of the examples is trained on."""

from __future__ import annotations

import pytest

from guardrail.judges.local.combiner import load_parameters
from guardrail.judges.local.rarity import Rarity
from training.examples import Example
from training.mixture import REPEATED, TrainingPair, readings, training_pairs

FILLER = (
    "Nobody in the valley remembers another summer with as many wasps, storms and late trains as that. " * 5
)
TOLD = "The ferry to Bute leaves at noon."
ALSO = "The ferry to Bute carries forty cars."


@pytest.fixture(scope="module")
def rarity() -> Rarity:
    return Rarity(load_parameters(None).rarity)


def made(examples: list[Example], rarity: Rarity, *, pairs: int | None = None) -> list[TrainingPair]:
    return training_pairs(examples, rarity, pairs=pairs, seed=3)


def test_held_out_examples_are_not_trained_on(rarity: Rarity) -> None:
    held = Example("x", "MIT", "A held claim.", (TOLD,), "supported", held_out=True)
    kept = Example("x", "MIT", "The ferry leaves.", (TOLD,), "supported")
    assert {pair.premise for pair in made([held, kept], rarity)} == {TOLD}
    assert len(made([held, kept], rarity)) == 1


def test_every_set_is_cut_in_proportion_and_some_are_read_several_times(rarity: Rarity) -> None:
    often, times = next(iter(REPEATED.items()))
    examples = [Example(name, "MIT", TOLD, (TOLD,), "supported") for name in ("x",) * 40 + (often,) * 20]
    names = [pair.dataset for pair in made(examples, rarity, pairs=(40 + 20 * times) // 2)]
    assert (names.count("x"), names.count(often)) == (20, 10 * times)


def test_marked_words_are_marked_in_chat_words_too(rarity: Rarity) -> None:
    claim = "Customers can take forty cars."
    spans = ((19, 24),)
    example = Example("x", "MIT", claim, (TOLD,), "contradicted", spans=spans)
    found = made([example] * 200, rarity)
    worded = [pair for pair in found if pair.claim != claim]
    assert 10 < len(worded) < 90
    marked = {pair.claim[start:end] for pair in found for start, end in pair.spans or ()}
    assert marked == {"forty"}
    assert any(pair.spans for pair in worded)
    assert not any(pair.spans for pair in made([Example("x", "MIT", claim, (TOLD,), "supported")], rarity))


def test_short_contexts_are_read_as_they_are(rarity: Rarity) -> None:
    example = Example("x", "MIT", "Boats.", (TOLD, ALSO), "unsupported")
    assert readings(example, rarity) == [f"{TOLD} {ALSO}"]


def test_a_sentence_is_read_alone_where_it_has_all_that_several_have(rarity: Rarity) -> None:
    both = Example("x", "MIT", "The ferry to Bute leaves at noon and carries forty cars.",
                   (f"{FILLER}{TOLD} {FILLER}{ALSO}",), "supported")  # fmt: skip
    (together,) = readings(both, rarity)
    assert TOLD in together
    assert ALSO in together
    one = Example("x", "MIT", TOLD, both.contexts, "supported")
    assert readings(one, rarity) == [TOLD]
    told = "The ferry to Skye leaves at noon."
    reworded = Example("x", "MIT", "Midday sees the Skye ferry off, weather permitting.",
                       (f"{FILLER}{told} {FILLER}The ferry is blue.",), "supported")  # fmt: skip
    assert readings(reworded, rarity) == [f"{told} The ferry is blue.", told]
