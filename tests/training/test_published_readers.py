"""Every published form, as its authors write it, becomes the rows that a pool would hold."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.training.made_published import BOM, SENTENCE, jsonl, nli, tsv, wice, write, write_all
from training import published_readers as readers
from training.examples import DataError
from training.published import sources
from training.published_readers import PoolRow, Reader

NLI_COLUMNS = ("sentence1", "sentence2", "gold_label")
Short = tuple[list[str], str, str]
"""Contexts, claim and label."""
SAID: Final[Short] = (['He said "no" to New York and left.'], 'He said "no" to New York', "supported")
PAGE: Final = [f"TITLE: A mill {SENTENCE}."]
WHOLE: Final = ['Berg\'s mill, "Old Tom", was built in 1871 and sold in 1990.']
EXPECTED: Final[dict[str, list[Short]]] = {
    "conjnli": [  # quotes stay, the byte order mark goes
        (['"Tide" was made in 1990 and sold.'], '"Tide" was sold.', "supported"),
        (["The mill has 4 floors and a loft."], "The mill has 5 floors and a loft.", "contradicted"),
    ],
    "counterfactual-nli": [(['A man leaves "The Mill" with a sack.'], "A man carries flour.", "unsupported")],
    "breaking-nli": [(["Six men wait."], "Seven men wait.", "contradicted")],
    "begin-cmu": [([f"{SENTENCE}, near Leeds."], "anna berg built it", "supported")],
    "begin-tc": [([f"{SENTENCE}, near Leeds."], "anna berg built it", "not_supported")],
    "summedits-scitldr": [
        ([f"{SENTENCE}."], "A mill of 1871.", "supported"),
        ([f"{SENTENCE}."], "A mill of 1971.", "not_supported"),
    ],
    "wice-claim": [(PAGE, "Berg's mill is old.", "not_supported")],
    "wice-subclaim": [
        (PAGE, "Berg built a red mill.", "partially_supported"),
        (PAGE, "Berg built a mill.", "supported"),
    ],
    "fool-me-twice": [
        ([f"{SENTENCE}."], "The mill is younger than Leeds.", "supported"),
        ([f"{SENTENCE}."], "Nobody built the mill.", "contradicted"),
    ],
    "fever": [  # written as text, without claims that have none
        (['The Mill (1871–1990) was "old".'], "The mill is old.", "supported"),
        (["The mill is new."], "The mill is old.", "contradicted"),
        (["Leeds has parks."], "The mill is old.", "unsupported"),
    ],
    "fever-symmetric": [(["The mill isn't new."], "The mill is new.", "contradicted")],
    "vitaminc-real": [(["Sold in 1990, the mill isn't new."], "The mill is new.", "contradicted")],
    "vitaminc-synthetic": [(["The mill is new and red."], "The mill is new.", "supported")],
    "wikisplit": [
        (WHOLE, 'Berg\'s mill, "Old Tom", was built in 1871.', "supported"),
        (WHOLE, "It was sold in 1990.", "supported"),
    ],
    "help": [  # both of its files
        SAID,
        (["He left"], "He left and slept.", "unsupported"),
        SAID,
        (["He left"], "He left or slept.", "unsupported"),
    ],
    "med": [  # without what it took from papers
        (["Tom wore a blue coat."], "Tom wore a coat.", "supported"),
        (["Tom wore a coat."], "Tom wore a blue coat.", "unsupported"),
    ],
    "paws": [  # both of its files
        (['Tom (then 9) sold "Old Tom" to Berg.'], 'Berg sold "Old Tom" to Tom, then 9.', "not_supported"),
        (["Tom sold it to Berg."], "It was sold to Berg by Tom.", "supported"),
    ],
    "taxinli": [(['Tom said "no" to Berg.'], "Berg said no.", "unsupported")],  # on which both agree
}


@pytest.fixture(name="rows")
def _rows(tmp_path: Path) -> dict[str, list[PoolRow]]:
    return {source.published.dataset: list(source.rows()) for source in sources(write_all(tmp_path))}


def test_every_set_is_read_as_published(rows: dict[str, list[PoolRow]]) -> None:
    assert all({row["dataset"] for row in found} == {name} for name, found in rows.items())
    found = {name: [(row["contexts"], row["claim"], row["label"]) for row in rows[name]] for name in EXPECTED}
    assert found == EXPECTED


def test_what_else_a_row_says(rows: dict[str, list[PoolRow]]) -> None:
    assert rows["begin-cmu"][0]["question"] == "who built it?"
    marked, other = rows["wice-subclaim"]
    assert marked["claim_tokens"][3] == "red"
    assert marked["non_supported_spans"] == [False, False, False, True, False, False]
    assert "claim_tokens" not in other
    # No claim is hidden behind its own evidence.
    assert [row["distractors"] for row in rows["fool-me-twice"]] == [["It is red."], []]
    # The page, whose revisions belong together.
    assert {row["source"] for part in ("real", "synthetic") for row in rows[f"vitaminc-{part}"]} == {
        "Berg 's mill"
    }


def test_quotes_are_closed_in_pairs_and_an_odd_one_stays(tmp_path: Path) -> None:
    text = "'' One '' by Berg and `` Two '' in 1990 , with '' an end ."
    path = write(tmp_path / "train.tsv", tsv((text, f"{text} <::::> It ended .")))
    first = next(readers.wikisplit("wikisplit", [path]))
    assert first["contexts"] == ['"One" by Berg and "Two" in 1990, with " an end.']


@pytest.mark.parametrize(
    ("reader", "text", "expected"),
    [
        (readers.conjnli, tsv(("Premise", "Label"), ("a", "entailment")), ("line 1", "Hypothesis")),
        (
            readers.conjnli,
            BOM + tsv(("Premise", "Hypothesis", "Label"), ("a", "b", "neutral"), ("a", "b")),
            ("line 3", "2 columns, expected 3"),
        ),
        (
            readers.counterfactual_nli,
            tsv(NLI_COLUMNS, ("a", "b", "maybe")),
            ("line 2", "'maybe'", "entailment, contradiction, neutral"),
        ),
        (readers.counterfactual_nli, tsv(NLI_COLUMNS, ('"a" b', "c", "neutral")), ("line 2", "no row")),
        (readers.breaking_nli, jsonl(nli("a", "b", "neutral")) + "{", ("line 2", "no JSON")),
        (readers.breaking_nli, "[1]\n", ("line 1", "a list, expected an object")),
        (readers.breaking_nli, jsonl({"sentence1": "a", "gold_label": "neutral"}), ("no field 'sentence2'",)),
        (readers.summedits, '{"doc": "a"}', ("an object, expected a list",)),
        (readers.summedits, '[{"doc": "a", "summary": "b", "label": true}]', ("item 1", "True")),
        (
            readers.wice,
            jsonl(wice("a", "b c", "supported", ["d"], claim_tokens=["b", "c"], non_supported_spans=[True])),
            ("line 1", "one for each"),
        ),
        (readers.wikisplit, tsv(("a b .", "a .")), ("line 1", "<::::>")),
    ],
)
def test_what_is_not_as_published_is_named_by_file_and_line(
    tmp_path: Path, reader: Reader, text: str, expected: tuple[str, ...]
) -> None:
    path = write(tmp_path / "some.file", text)
    with pytest.raises(DataError) as caught:
        list(reader("set", [path]))
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "download" in message
    for part in expected:
        assert part in message


def test_a_message_shows_little_of_a_wrong_label_and_nothing_raw(tmp_path: Path) -> None:
    path = write(tmp_path / "f.jsonl", jsonl(nli("secret premise", "b", "\x1b[31m" + "x" * 500)))
    with pytest.raises(DataError) as caught:
        list(readers.breaking_nli("set", [path]))
    message = str(caught.value)
    assert "secret" not in message
    assert "\x1b" not in message
    assert "x" * 41 not in message
