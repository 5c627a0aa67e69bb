"""Pairs made from a small pool written here: balanced, labelled, with spans, the same for the same seed."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from training import synthesise
from training.passages import claimable, detokenised, sources
from training.rows import LICENCES, Row, is_held_out

TOWNS = ("Leeds", "Paris", "Berlin", "Oslo", "Chicago", "Madrid", "Dublin", "Vienna", "Prague", "Lisbon")
TEXT = (
    "The museum in {town} was founded in 19{n} by Mary Brown and her husband. It has {n} rooms and a "
    "small garden. Some visitors come every week, and the entrance fee is $4.{n}. In 1987, the "
    "collection moved to a larger building near the station (a former mill). Anna Smith succeeded "
    "Paul Jones as director in 2004. The journey from the airport takes about {n} minutes by bus. The"
    " roof may need repairs if the winter is hard. Most of the {n} employees work part time, which is"
    " unusual in {town}. Prices are higher than in other museums because the town pays nothing."
)


def rows() -> list[Row]:
    found = [
        Row("wice-subclaim", (TEXT.format(town=town, n=12 + 7 * i),), "A claim.", "partially_supported")
        for i, town in enumerate(TOWNS)
    ]
    source = "John Miller was born in {town} in 19{n} and he later became the mayor of the city of {town}."
    for i, town in enumerate(TOWNS):
        whole = source.format(town=town, n=40 + i)
        found.append(
            Row("wikisplit", (whole,), f"John Miller was born in {town} in 19{40 + i}.", "supported")
        )
    found.append(Row("lingnli", ("A text whose licence nobody knows, " * 20,), "It is secret.", "supported"))
    return found


@pytest.fixture(scope="module")
def made() -> list[dict[str, Any]]:
    return list(synthesise.pairs(sources(rows()), 600, seed=3))


def test_half_are_supported_and_all_kinds_occur(made: list[dict[str, Any]]) -> None:
    supported = [row for row in made if row["label"] == "supported"]
    assert abs(len(supported) - len(made) / 2) <= 1
    assert len(made) > 300
    kinds = {row["kind"] for row in made}
    assert {None, "number", "date", "name", "swap", "qualifier", "overgeneralisation", "addition"} <= kinds


def test_rows_hold_what_the_contract_says(made: list[dict[str, Any]]) -> None:
    for row in made:
        assert row["licence"] == LICENCES[row["source"]]
        assert len(row["contexts"]) == 1
        assert (row["kind"] is None) == (row["label"] == "supported")
        if row["label"] == "supported":
            assert row["spans"] == []
        elif row["spans"] is not None:
            assert row["spans"]
            assert all(0 <= a < b <= len(row["claim"]) for a, b in row["spans"])
        assert len(row["contexts"][0].split()) <= 190


def test_wrong_claims_do_not_stand_in_their_passage(made: list[dict[str, Any]]) -> None:
    assert not [row for row in made if row["kind"] and row["claim"] in row["contexts"][0]]


def test_texts_without_a_licence_take_no_part(made: list[dict[str, Any]]) -> None:
    assert "licence nobody knows" not in json.dumps(made)


def test_the_sides_of_the_split_do_not_mix(made: list[dict[str, Any]]) -> None:
    texts = {town: is_held_out(TEXT.format(town=town, n=12 + 7 * i)) for i, town in enumerate(TOWNS)}
    assert set(texts.values()) == {True, False}
    for row in made:
        if row["source"] == "wice-subclaim" and "museum in" in row["contexts"][0] and not row["kind"]:
            named = {town for town in TOWNS if f"museum in {town}" in row["contexts"][0]}
            if row["made"] in ("verbatim", "two sentences") and named:
                assert {texts[town] for town in named} == {row["held_out"]}


def test_the_same_seed_makes_the_same_pairs() -> None:
    one, other, third = (list(synthesise.pairs(sources(rows()), 60, seed=seed)) for seed in (5, 5, 6))
    assert one == other
    assert one != third


def test_the_command_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = [
        {"dataset": r.dataset, "contexts": r.contexts, "claim": r.claim, "label": r.label} for r in rows()
    ]
    with gzip.open(tmp_path / "pool-train.jsonl.gz", "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in pool)
    work = tmp_path / "work"
    command = ["synthesise", "--data", str(tmp_path), "--work", str(work), "--pairs", "40", "--seed", "1"]
    monkeypatch.setattr(sys, "argv", command)
    synthesise.main()
    first = (work / "synthetic.jsonl.gz").read_bytes()
    with gzip.open(work / "synthetic.jsonl.gz", "rt", encoding="utf-8") as lines:
        written = [json.loads(line) for line in lines]
    assert len(written) == 40
    assert "40 pairs" in capsys.readouterr().out
    synthesise.main()
    assert (work / "synthetic.jsonl.gz").read_bytes() == first


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The museum was founded in 1950 by two brothers.", True),
        ("Click here to read more about our cookies.", False),
        ("and the rest of it was sold to the town.", False),
        ("Home News Sport Weather Shop Earth Travel Capital.", False),
        ("Did the museum open in 1950?", False),
        ('He called it "a great loss for the town.', False),
    ],
)
def test_only_whole_statements_become_claims(sentence: str, expected: bool) -> None:
    assert claimable(sentence) is expected


def test_tokenised_text_is_written_as_usual() -> None:
    raw = "Tolkien 's novel ( 1937 ) , \" The Hobbit \" , is n't a family - friendly film ."
    assert detokenised(raw) == "Tolkien's novel (1937), \"The Hobbit\", isn't a family-friendly film."
