"""Pairs hold what the judge reads, and say for which readings the label holds."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import packaged_folder
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.model import load_verifier
from tests.training.made_data import document, fact
from training import pairs
from training.calibrate import unfitted
from training.examples import Example
from training.pairs import TrainingPair, pair_of, training_pairs
from training.rows import Row


@pytest.fixture(autouse=True)
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """No claim in the words of a chat."""
    monkeypatch.setattr(pairs, "_CHAT", 0.0)


def example(*contexts: str, claim: str = "The otter of Oslo weighs 412 kilograms.", **rest: Any) -> Example:
    return Example("conjnli", "MIT", claim, contexts, **{"label": "supported", **rest})


def made(one: Example, seed: int = 1) -> dict[str, Any]:
    row = pair_of(one, random.Random(seed))
    assert row is not None
    return row


def texts(row: dict[str, Any]) -> list[str]:
    return [" ".join(row["premise"][start:end] for start, end in pieces) for pieces in row["readings"]]


def conversation(random_: random.Random, turns: int) -> str:
    return "\n".join(f"{('Anna', 'Ben')[turn % 2]}: {document(random_, 3)}" for turn in range(turns))


@pytest.mark.parametrize("text", [document, conversation])
def test_readings_are_the_windows_of_the_judge(text: Callable[[random.Random, int], str]) -> None:
    random_ = random.Random(4)
    sentence, claims = fact(random_)
    contexts = tuple(f"{text(random_, 20)} {middle}\n{text(random_, 20)}" for middle in ("", sentence, ""))
    row = made(example(*contexts, claim=claims["supported"]))
    verifier = load_verifier(packaged_folder() or Path())
    checker = ClaimChecker(LocalJudgeSettings(), unfitted(verifier.fitted()), verifier)
    asked = Row("", contexts, claims["supported"], "supported")
    examined = checker.examine(asked.as_claim(), "", asked.index())
    assert examined is not None
    read = [each.window.text for each in examined.read]
    assert texts(row) == [text for text in read if text in texts(row)]  # the best first, in the same order
    assert len(texts(row)) >= 2
    assert row["settled"][0]
    assert all(sentence in text for text, settled in zip(texts(row), row["settled"], strict=True) if settled)


def test_a_reading_that_lacks_words_of_the_claim_is_not_settled() -> None:
    random_ = random.Random(5)
    who = "The otter of Oslo came by boat. " + document(random_, 14)
    how = f"{document(random_, 7)} By now it weighs 412 kilograms. {document(random_, 7)}"
    row = made(example(who, how))
    for text, settled in zip(texts(row), row["settled"], strict=True):
        assert settled == ("otter of Oslo" in text and "412" in text)
    assert any(row["settled"])
    assert not all(row["settled"])


def test_labels_and_spans_go_with_the_row_and_are_empty_where_all_is_supported() -> None:
    wrong = example("An otter.", label="unsupported", spans=((0, 3),), held_out=True)
    row = made(wrong)
    assert (row["supported"], row["contradicted"], row["held_out"]) == (False, False, True)
    assert row["spans"] == ((0, 3),)
    assert made(example("An otter."))["spans"] == ()
    assert made(example("An otter.", label="not_supported"))["contradicted"] is None
    assert pair_of(example("", " \n"), random.Random(1)) is None


def test_spans_stay_on_their_words_when_a_claim_is_worded_as_in_a_chat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pairs, "_CHAT", 1.0)
    claim = "The otter of Oslo weighs 412 kilograms."
    start = claim.index("412")
    one = example("The otter of Oslo.", label="unsupported", spans=((start, start + 3),))
    worded = 0
    for seed in range(30):
        row = made(one, seed)
        worded += row["claim"] != claim
        assert row["spans"] is None or [row["claim"][a:b] for a, b in row["spans"]] == ["412"]
    assert worded


def written(path: Path, *rows: dict[str, Any]) -> Path:
    with gzip.open(path, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def test_one_reading_of_each_row_is_drawn_and_held_out_rows_are_not(tmp_path: Path) -> None:
    two = {
        "dataset": "d", "licence": "MIT", "claim": "c", "premise": "One. Two.", "spans": [[0, 1]],
        "readings": [[[0, 4]], [[5, 9]]], "settled": [False, True], "contradicted": True, "held_out": False,
        "twin": None,
    }  # fmt: skip
    path = written(
        tmp_path / "pairs.jsonl.gz",
        *[two | {"supported": True, "spans": [], "contradicted": False}] * 20,
        *[two | {"supported": False}] * 200,
        two | {"supported": True, "held_out": True, "claim": "held out"},
    )
    drawn = training_pairs(path, pairs=None, seed=1)
    assert drawn == training_pairs(path, pairs=None, seed=1)
    assert len(drawn) == 220
    assert {pair.claim for pair in drawn} == {"c"}
    # What supports a claim is read where the label holds; nobody knows which words another reading lacks.
    assert {pair.premise for pair in drawn if pair.supported} == {"Two."}
    others = {(pair.premise, pair.contradicted, pair.spans) for pair in drawn if not pair.supported}
    assert others == {("Two.", True, ((0, 1),)), ("One.", None, None)}


def test_brief_premises_are_at_most_a_quarter_where_there_are_enough_others(tmp_path: Path) -> None:
    long = "word " * 50
    row = {"dataset": "d", "licence": "MIT", "claim": "c", "spans": None, "settled": [True],
           "supported": True, "contradicted": False, "held_out": False, "twin": None}  # fmt: skip
    path = written(
        tmp_path / "pairs.jsonl.gz",
        *[row | {"premise": "Brief.", "readings": [[[0, 6]]]}] * 90,
        *[row | {"premise": long, "readings": [[[0, len(long)]]]}] * 90,
    )

    def brief(drawn: list[TrainingPair]) -> int:
        return sum(pair.premise == "Brief." for pair in drawn)

    assert brief(training_pairs(path, pairs=40, seed=1)) == 10
    assert brief(training_pairs(path, pairs=160, seed=1)) == 70


def test_twins_keep_their_words_and_are_drawn_one_behind_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "_CHAT", 1.0)
    right = example("The otter beat the heron at home.", claim="The otter beat the heron.", twin=7)
    wrong = replace(right, claim="The heron beat the otter.", label="contradicted")
    assert (made(right)["claim"], made(right)["twin"]) == ("The otter beat the heron.", 7)
    several = [made(one, 1) | {"twin": number} for number in range(30) for one in (right, wrong)]
    drawn = training_pairs(written(tmp_path / "pairs.jsonl.gz", *several), pairs=None, seed=1)
    twins = [pair.twin for pair in drawn if pair.twin is not None]
    assert twins[::2] == twins[1::2]
    assert twins[::2] != sorted(twins[::2])
    assert all(a.supported != b.supported for a, b in zip(drawn[::2], drawn[1::2], strict=True))

    longer = [row | {"premise": "word " * 50, "readings": [[[0, 250]]], "twin": None} for row in several]
    file = written(tmp_path / "both.jsonl.gz", *several, *longer)
    some = training_pairs(file, pairs=40, seed=1, twins=0.5)
    assert (len(some), sum(pair.twin is not None for pair in some)) == (40, 20)
