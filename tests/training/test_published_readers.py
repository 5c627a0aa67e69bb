"""Every published form, as its authors write it, becomes the rows that a pool would hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.made_published import BOM, SENTENCE, fool_me, jsonl, nli, tsv, wice, write, write_all
from training import published_readers as readers
from training.examples import DataError
from training.published import sources
from training.published_readers import PoolRow, Reader

NLI_COLUMNS = ("sentence1", "sentence2", "gold_label")


@pytest.fixture(name="rows")
def _rows(tmp_path: Path) -> dict[str, list[PoolRow]]:
    return {source.published.dataset: list(source.rows()) for source in sources(write_all(tmp_path))}


def short(rows: list[PoolRow]) -> list[tuple[list[str], str, str]]:
    return [(row["contexts"], row["claim"], row["label"]) for row in rows]


def test_every_row_bears_the_name_of_its_set(rows: dict[str, list[PoolRow]]) -> None:
    assert {row["dataset"] for found in rows.values() for row in found} == set(rows)
    assert all({row["dataset"] for row in found} == {name} for name, found in rows.items())


def test_conjnli_keeps_quotes_and_loses_the_byte_order_mark(rows: dict[str, list[PoolRow]]) -> None:
    assert short(rows["conjnli"]) == [
        (['"Tide" was made in 1990 and sold.'], '"Tide" was sold.', "supported"),
        (["The mill has 4 floors and a loft."], "The mill has 5 floors and a loft.", "contradicted"),
    ]


def test_counterfactual_nli_unfolds_doubled_quotes(rows: dict[str, list[PoolRow]]) -> None:
    assert short(rows["counterfactual-nli"]) == [
        (['A man leaves "The Mill" with a sack.'], "A man carries flour.", "unsupported")
    ]


def test_breaking_nli(rows: dict[str, list[PoolRow]]) -> None:
    assert short(rows["breaking-nli"]) == [(["Six men wait."], "Seven men wait.", "contradicted")]


@pytest.mark.parametrize(("name", "label"), [("begin-cmu", "supported"), ("begin-tc", "not_supported")])
def test_begin_takes_the_message_for_the_question(
    rows: dict[str, list[PoolRow]], name: str, label: str
) -> None:
    assert short(rows[name]) == [([f"{SENTENCE}, near Leeds."], "anna berg built it", label)]
    assert rows[name][0]["question"] == "who built it?"


def test_summedits(rows: dict[str, list[PoolRow]]) -> None:
    assert short(rows["summedits-scitldr"]) == [
        ([f"{SENTENCE}."], "A mill of 1871.", "supported"),
        ([f"{SENTENCE}."], "A mill of 1971.", "not_supported"),
    ]


def test_wice_joins_its_sentences_and_marks_tokens_where_they_are_marked(
    rows: dict[str, list[PoolRow]],
) -> None:
    page = [f"TITLE: A mill {SENTENCE}."]
    assert short(rows["wice-claim"]) == [(page, "Berg's mill is old.", "not_supported")]
    assert short(rows["wice-subclaim"]) == [
        (page, "Berg built a red mill.", "partially_supported"),
        (page, "Berg built a mill.", "supported"),
    ]
    marked, other = rows["wice-subclaim"]
    assert marked["claim_tokens"][3] == "red"
    assert marked["non_supported_spans"] == [False, False, False, True, False, False]
    assert "claim_tokens" not in other


def test_fool_me_twice_hides_no_claim_behind_its_own_evidence(rows: dict[str, list[PoolRow]]) -> None:
    assert short(rows["fool-me-twice"]) == [
        ([f"{SENTENCE}."], "The mill is younger than Leeds.", "supported"),
        ([f"{SENTENCE}."], "Nobody built the mill.", "contradicted"),
    ]
    assert [row["distractors"] for row in rows["fool-me-twice"]] == [["It is red."], []]


def test_fever_is_written_as_text_and_leaves_out_claims_without_any(rows: dict[str, list[PoolRow]]) -> None:
    assert short(rows["fever"]) == [
        (['The Mill (1871–1990) was "old".'], "The mill is old.", "supported"),
        (["The mill is new."], "The mill is old.", "contradicted"),
        (["Leeds has parks."], "The mill is old.", "unsupported"),
    ]


def test_fever_symmetric(rows: dict[str, list[PoolRow]]) -> None:
    assert short(rows["fever-symmetric"]) == [
        (["The mill isn't new."], "The mill is new.", "contradicted"),
    ]


def test_vitaminc_keeps_the_page_whose_revisions_belong_together(rows: dict[str, list[PoolRow]]) -> None:
    assert short(rows["vitaminc-real"]) == [
        (["Sold in 1990, the mill isn't new."], "The mill is new.", "contradicted"),
    ]
    assert short(rows["vitaminc-synthetic"]) == [
        (["The mill is new and red."], "The mill is new.", "supported"),
    ]
    assert {row["source"] for part in ("real", "synthetic") for row in rows[f"vitaminc-{part}"]} == {
        "Berg 's mill"
    }


def test_wikisplit_makes_a_claim_of_each_part(rows: dict[str, list[PoolRow]]) -> None:
    whole = ['Berg\'s mill, "Old Tom", was built in 1871 and sold in 1990.']
    assert short(rows["wikisplit"]) == [
        (whole, 'Berg\'s mill, "Old Tom", was built in 1871.', "supported"),
        (whole, "It was sold in 1990.", "supported"),
    ]


def test_help_reads_both_of_its_files(rows: dict[str, list[PoolRow]]) -> None:
    said = (['He said "no" to New York and left.'], 'He said "no" to New York', "supported")
    assert short(rows["help"]) == [
        said,
        (["He left"], "He left and slept.", "unsupported"),
        said,
        (["He left"], "He left or slept.", "unsupported"),
    ]


def test_med_leaves_out_what_it_took_from_papers(rows: dict[str, list[PoolRow]]) -> None:
    assert short(rows["med"]) == [
        (["Tom wore a blue coat."], "Tom wore a coat.", "supported"),
        (["Tom wore a coat."], "Tom wore a blue coat.", "unsupported"),
    ]


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
        (
            readers.breaking_nli,
            jsonl(nli("a", "b", "neutral") | {"sentence1": 5}),
            ("'sentence1' is a number",),
        ),
        (readers.begin, tsv(("knowledge", "response", "begin_label")), ("line 1", "message")),
        (readers.summedits, '{"doc": "a"}', ("an object, expected a list",)),
        (readers.summedits, '[{"doc": "a", "summary": "b", "label": 2}]', ("item 1", "'label' is 2", "1, 0")),
        (readers.summedits, '[{"doc": "a", "summary": "b", "label": true}]', ("item 1", "True")),
        (readers.wice, jsonl(wice("a", "b", "supported", ["c"]) | {"meta": []}), ("'meta' is a list",)),
        (readers.wice, jsonl(wice("a", "b", "supported", ["c"]) | {"evidence": "c"}), ("expected a list",)),
        (
            readers.wice,
            jsonl(wice("a", "b c", "supported", ["d"], claim_tokens=["b", "c"], non_supported_spans=[True])),
            ("line 1", "one for each"),
        ),
        (
            readers.fool_me_twice,
            jsonl(fool_me("a", "SUPPORTS", ["b"], []) | {"gold_evidence": ["b"]}),
            ("an item of field 'gold_evidence' is a text",),
        ),
        (
            readers.nli_fever,
            jsonl({"query": "a", "context": "b", "label": "hidden"}),
            ("'hidden'", "SUPPORTS"),
        ),
        (readers.fever_symmetric, jsonl({"claim": "a", "label": "REFUTES"}), ("no field 'evidence'",)),
        (
            readers.vitaminc,
            jsonl({"claim": "a", "evidence": "b", "label": "SUPPORTS"}),
            ("line 1", "no field 'page'"),
        ),
        (readers.wikisplit, tsv(("a b .", "a .")), ("line 1", "<::::>")),
        (readers.wikisplit, tsv(("a .",)), ("line 1", "1 columns, expected 2")),
        (readers.help_nli, tsv(NLI_COLUMNS), ("line 1", "ori_sentence")),
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
