"""Facts written for training: what is read, refused and made of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from training.balance import shared_words
from training.examples import DataError, Example
from training.rows import is_held_out
from training.written import FOLDER, MEASURED, measured_rows, read_facts, twin_examples, written_examples

FACTS = """
- source: "Lockers at the {town} baths are emptied after {n} days."
  slots: {n: [2, 5, 9], town: ["Leeds", "Oslo"]}
  says:
    ["The baths in {town} empty their lockers once {n} days have passed.", "No locker stays full."]
  wrong:
    - [contradicted, "Lockers at the {town} baths are emptied after {n!} days."]
    - [partially_supported, "The {town} baths empty lockers after {n} days and keep the things in an office."]
- source: "Season tickets cannot be passed on to other people."
  says: ["You can't give your season ticket to someone else."]
  wrong:
    - [contradicted, "Season tickets can be passed on to relatives."]
    - [unsupported, "Tickets cost 40 euros."]
- source: "The sauna opens at noon on Mondays."
  says: ["On Mondays, the sauna opens at noon."]
  wrong: [[contradicted, "The sauna opens at noon on Tuesdays."]]
- source: "Swimming caps are sold at the till."
  says: ["You can buy a cap where you pay."]
  wrong: [[contradicted, "Swimming caps are given away at the till."]]
- source: "Dogs must wait outside the baths."
  says: ["You can't take your dog in."]
  wrong: [[contradicted, "Dogs may come into the baths."]]
- source: "The slide is closed in winter."
  says: ["There's no sliding in winter."]
  wrong: [[contradicted, "The slide is closed in summer."]]
"""


def made(folder: Path, *, seed: int = 1) -> list[Example]:
    return list(written_examples(read_facts(folder), seed=seed))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "baths.yaml").write_text(FACTS, encoding="utf-8")
    return tmp_path


def test_claims_stand_beside_their_source_with_the_same_values(folder: Path) -> None:
    found = [e for seed in range(20) for e in made(folder, seed=seed)]
    upheld = [e for e in found if e.supported and "empty their lockers" in e.claim and e.kind is None]
    assert upheld
    for example in upheld:
        days = next(n for n in "259" if f"{n} days" in example.claim)
        assert f"emptied after {days} days" in " ".join(example.contexts)
    denied = [e for e in found if e.claim.startswith("Lockers at the") and e.label == "contradicted"]
    assert denied
    for example in denied:
        days = next(n for n in "259" if f"{n} days" in example.claim)
        assert f"emptied after {days} days" not in " ".join(example.contexts)
    assert {example.dataset for example in found} == {"written-baths"}
    assert not any("{" in text for e in found for text in (e.claim, *e.contexts))


def test_claims_without_their_source_are_unsupported(folder: Path) -> None:
    absent = [e for seed in range(40) for e in made(folder, seed=seed) if e.kind == "absent"]
    assert absent
    for example in absent:
        assert example.label == "unsupported"
        assert example.spans == ((0, len(example.claim)),)


def test_no_fact_is_on_two_sides_of_the_split_or_measured_on_and_fitted_on() -> None:
    facts = read_facts(FOLDER)["health"]
    sides: dict[str, set[tuple[bool, str]]] = {fact.source: set() for fact in facts if not fact.slots}
    for example in written_examples({"health": facts}, seed=1):
        text = " ".join(example.contexts)
        for source, found in sides.items():
            if source in text:
                found.add((example.held_out, example.source))
    assert all(len(found) == 1 for found in sides.values())
    assert all(held_out == is_held_out(source) for source, ((held_out, _),) in sides.items())
    assert set.union(*sides.values()) == {(False, "written"), (True, "written"), (True, MEASURED)}


def test_rows_to_measure_on_are_not_told_apart_by_the_words_they_share() -> None:
    facts = {"law": read_facts(FOLDER)["law"]}
    alike: Counter[tuple[int, bool]] = Counter()
    for row in measured_rows(facts, limit=10**6, seed=1):
        alike[round(10 * shared_words(row.claim, row.contexts)), row.supported] += 1
    assert len(alike) > 4
    assert all(count == alike[step, not supported] for (step, supported), count in alike.items())


def test_the_same_seed_makes_the_same(folder: Path) -> None:
    assert made(folder) == made(folder)
    assert made(folder) != made(folder, seed=2)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ('"Too few keys.", says: ["A claim."]', "wrong"),
        ('"It takes {n} days.", says: ["A claim."], wrong: [[unsupported, "Another."]]', "none of the slots"),
        ('"A source.", says: ["A claim."], wrong: [[supported, "Another."]]', "labelled supported"),
        ('"A source.", says: ["A claim."], wrong: [[unsupported, "A claim."]]', "stands in says"),
        (
            '"A {n}.", slots: {n: [1, 2]}, says: ["A {n!}."], wrong: [[unsupported, "Another."]]',
            "wrong claims",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_file_and_entry(tmp_path: Path, rest: str, said: str) -> None:
    (tmp_path / "odd.yaml").write_text(f"- {{source: {rest}}}", encoding="utf-8")
    with pytest.raises(DataError, match=r"odd\.yaml, entry 1") as caught:
        read_facts(tmp_path)
    assert said in str(caught.value)


def test_the_projects_own_facts_are_in_order() -> None:
    facts = read_facts(FOLDER)
    assert sum(map(len, facts.values())) > 1000
    sources = [fact.source for every in facts.values() for fact in every]
    assert len(set(sources)) == len(sources)


TWINS = """
- source: "{a} sued {b} over a wall in {y}. {b} won, and {a} paid the costs."
  slots: {a: ["Odal", "Brix"], b: ["Henn", "Sorb"], y: [1999, 2004]}
  says: ["It was {a} that went to court against {b}.", "The costs were paid by {a}."]
  wrong:
    - [contradicted, "It was {b} that went to court against {a}."]
    - [contradicted, "The costs were paid by {b}."]
"""


def test_a_right_claim_and_its_wrong_twin_share_a_passage_and_a_number(tmp_path: Path) -> None:
    (tmp_path / "twins").mkdir()
    (tmp_path / "twins" / "roles.yaml").write_text(TWINS, encoding="utf-8")
    (tmp_path / "baths.yaml").write_text(FACTS, encoding="utf-8")
    facts = read_facts(tmp_path)
    found = list(twin_examples(facts, seed=3))
    assert {e.dataset for e in found} == {"written-twins-roles"}
    assert all(e.twin is None and "twins" not in e.dataset for e in written_examples(facts, seed=3))
    for right, wrong in zip(found[::2], found[1::2], strict=True):
        assert (right.label, wrong.label, right.twin) == ("supported", "contradicted", wrong.twin)
        assert sorted(right.contexts) == sorted(wrong.contexts)
        assert right.claim != wrong.claim
        assert sorted(right.claim) == sorted(wrong.claim) or "costs" in right.claim
    assert len({e.twin for e in found}) == len(found) // 2


def test_a_fact_of_twins_gives_each_right_claim_its_twin(tmp_path: Path) -> None:
    (tmp_path / "twins").mkdir()
    lacking = TWINS.replace('    - [contradicted, "The costs were paid by {b}."]\n', "")
    (tmp_path / "twins" / "roles.yaml").write_text(lacking, encoding="utf-8")
    with pytest.raises(
        DataError, match=r"roles\.yaml, entry 1: 2 of says and 1 of wrong; give each its twin"
    ):
        read_facts(tmp_path)
