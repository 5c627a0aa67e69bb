"""Examples about roles and reported clauses, made by rule."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from training.balance import shared_words
from training.examples import DataError, Example
from training.relations import Grammar, read_grammar, relation_examples

NAMES = {
    "company": ["Tornello", "Kestrup", "Brixa", "Vellmer", "Omberg", "Lurian", "Quillon", "Nimbu"],
    "person": ["Ann", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal"],
}
BOUGHT: dict[str, Any] = {
    "relation": "bought",
    "kinds": ["company", "company"],
    "reverse": "contradicted",
    "forms": ["{a} bought {b}", "{b} was sold to {a}", "it was {a} that took over {b}"],
    "more": ["without a public offer"],
}
LEADS = {
    "relation": "leads",
    "kinds": ["person", "company"],
    "reverse": "unsupported",
    "forms": ["{a} leads {b}", "{b} is led by {a}", "at the head of {b} is {a}"],
}
MYTH = {"frame": "It is a myth that {s}", "label": "contradicted", "says": ["It is wrong to say that {s}"]}
FACT = {"frame": "Records prove that {s}", "label": "supported"}


def grammar(**changes: object) -> Grammar:
    raw = {"names": NAMES, "frames": [MYTH, FACT], "relations": [BOUGHT, LEADS]} | changes
    return Grammar.model_validate(raw)


def made(count: int = 400, **changes: object) -> list[Example]:
    return list(relation_examples(grammar(**changes), count=count, seed=1))


def bought(text: str) -> set[tuple[str, str]]:
    """Who bought whom, by the text itself."""
    pairs = {(a, b) for a, b in re.findall(r"(\w+) bought (\w+)", text)}
    pairs |= {(a, b) for b, a in re.findall(r"(\w+) was sold to (\w+)", text)}
    return pairs | {(a, b) for a, b in re.findall(r"(?i)it was (\w+) that took over (\w+)", text)}


def test_the_same_seed_makes_the_same_examples() -> None:
    assert made() == made()
    assert made() != list(relation_examples(grammar(), count=400, seed=2))


def test_half_are_supported_and_two_share_a_passage() -> None:
    found = made()
    assert Counter(example.supported for example in found) == {True: len(found) // 2, False: len(found) // 2}
    by_passage: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for example in found:
        by_passage[example.contexts].append(example.supported)
    assert all(rights.count(True) == rights.count(False) for rights in by_passage.values())


def test_what_is_said_plainly_is_supported_and_the_reverse_is_not() -> None:
    plain = [e for e in made(frames=[FACT]) if bought(e.claim)]
    assert len(plain) > 100
    for example in plain:
        (claimed,) = bought(example.claim)
        said = bought(example.contexts[0])
        assert example.supported == (claimed in said), example
        if not example.supported and claimed[::-1] in said:
            assert (example.label, example.kind) == ("contradicted", "swap")


def test_the_words_that_a_claim_shares_do_not_tell_its_label() -> None:
    shared: dict[bool, list[float]] = {True: [], False: []}
    for example in made(2000, frames=[FACT]):
        if example.kind != "name":
            shared[example.supported].append(shared_words(example.claim, example.contexts))
    means = [sum(values) / len(values) for values in shared.values()]
    assert abs(means[0] - means[1]) < 0.05


def test_what_is_denied_is_contradicted_but_that_it_is_denied_is_said() -> None:
    framed = [e for e in made(frames=[MYTH]) if "myth" in e.contexts[0]]
    assert len(framed) > 50
    for example in framed:
        assert example.supported == example.claim.startswith("It is wrong to say that ")
    assert {e.label for e in framed} == {"supported", "contradicted", "unsupported"}


def test_a_relation_is_on_one_side_of_the_split_as_a_whole() -> None:
    names = [{**BOUGHT, "relation": f"bought {n}"} for n in range(20)]
    sides = {relation.held_out for relation in grammar(relations=names).relations}
    assert sides == {True, False}
    assert {example.held_out for example in made(relations=names)} == {True, False}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"relations": [{**BOUGHT, "forms": ["{a} bought {a}", *BOUGHT["forms"][1:]]}, LEADS]}, "once each"),
        ({"relations": [{**BOUGHT, "kinds": ["company", "ship"]}, LEADS]}, "ship is none"),
        ({"frames": [{**MYTH, "says": ["It is wrong"]}]}, "must have {s} once"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    path = tmp_path / "relations.yaml"
    raw = {"names": NAMES, "frames": [MYTH, FACT], "relations": [BOUGHT, LEADS]} | changes
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_grammar(tmp_path)


def test_the_projects_own_files_are_sound() -> None:
    found = read_grammar()
    assert len(found.relations) >= 80
    assert len({relation.relation for relation in found.relations}) == len(found.relations)
    assert {frame.label for frame in found.frames} == {"supported", "unsupported", "contradicted"}
    examples = list(relation_examples(found, count=2000, seed=3))
    assert len(examples) > 1800
    assert 0.1 < sum(example.held_out for example in examples) / len(examples) < 0.3
    assert not [example for example in examples if re.search(r"[{}]", example.claim + example.contexts[0])]
