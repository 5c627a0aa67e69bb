"""``training.prepare`` on a pool, on published sets, and on both."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.made_published import jsonl, write, write_all
from training.examples import DataError, read_examples
from training.prepare import VALIDATION, main, read_data, read_pool, source_rows
from training.published import PUBLISHED
from training.rows import is_held_out, pool

POOL = "pool-train.jsonl.gz"
ROW = {"claim": "Leeds is old .", "evidence": "Leeds is an old town .", "label": "SUPPORTS"}


def pool_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number in range(60):
        text = f"Mill {number} was built in {1800 + number} by Anna Berg of Leeds."
        for dataset, label in (("conjnli", "supported"), ("rte", "supported"), ("wikisplit", "supported")):
            rows.append({"dataset": dataset, "contexts": [text], "claim": text[:-9] + ".", "label": label})
        rows.append(
            {
                "dataset": "fool-me-twice",
                "contexts": [text, f"It has {number} floors."],
                "claim": f"Berg's mill has {number + 1} floors.",
                "label": "contradicted",
                "distractors": [f"It was sold in {1900 + number}."],
            }
        )
        rows.append(
            {
                "dataset": "wice-subclaim",
                "contexts": [" ".join([text] * 12)],
                "claim": "Berg built a red mill.",
                "label": "partially_supported",
                "claim_tokens": ["Berg", "built", "a", "red", "mill", "."],
                "non_supported_spans": [False, False, False, True, False, False],
            }
        )
    return rows


def write_pool(data: Path, rows: list[dict[str, Any]]) -> Path:
    data.mkdir(parents=True, exist_ok=True)
    with gzip.open(data / POOL, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    return data


def run(monkeypatch: pytest.MonkeyPatch, data: Path, work: Path, facts: Path | None = None) -> bytes:
    """The rows that the command writes: no relations, and facts only where a folder has some."""
    if facts is None:
        facts = work.parent / "no-facts"
        facts.mkdir(parents=True, exist_ok=True)
    words = ("--data", data, "--work", work, "--facts", facts, "--relations", 0)
    monkeypatch.setattr(sys, "argv", ["prepare", *map(str, words)])
    main()
    return gzip.decompress((work / "prepared.jsonl.gz").read_bytes())


def test_a_pool_alone_gives_what_it_gave_before_published_sets_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # WikiSplit apart: what is made of it is also a matter of training.perturb.
    rows = [row for row in pool_rows() if row["dataset"] != "wikisplit"]
    written = run(monkeypatch, write_pool(tmp_path / "data", rows), tmp_path / "work")
    # Rows have a twin, or none, since then.
    assert hashlib.sha256(written.replace(b', "twin": null', b"")).hexdigest() == (
        "58cc12b458a0aa5a7a10dcef5aa396b1dad64f0b36e959fa2ebdcbeb1f4ab392"
    )


def test_a_pool_alone_is_read_as_a_pool(tmp_path: Path) -> None:
    data = write_pool(tmp_path, pool_rows())
    for experimental in (False, True):
        alone = list(read_pool(data / POOL, experimental=experimental))
        assert list(read_data(data, experimental=experimental)) == alone
        assert len(alone) == (300 if experimental else 240)


def test_published_sets_alone_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, write_all(tmp_path / "data"), tmp_path / "work")
    made = list(read_examples(tmp_path / "work/prepared.jsonl.gz"))
    names = Counter(example.dataset for example in made)
    assert {published.dataset for published in PUBLISHED} <= set(names)
    assert all(example.licence != "not stated" for example in made)
    (marked,) = (e for e in made if e.dataset == "wice-subclaim" and e.spans is not None)
    assert marked.spans is not None
    assert [marked.claim[a:b] for a, b in marked.spans] == ["red"]
    assert {e.question for e in made if e.dataset == "begin-cmu"} == {"who built it?"}


def test_written_facts_are_added_with_as_many_right_claims_as_wrong_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, facts = write_pool(tmp_path / "data", pool_rows()), tmp_path / "facts"
    facts.mkdir()
    entries = "".join(
        f"- source: 'Baths in district {n} shut at noon.'\n  says: ['At noon, baths in district {n} shut.']\n"
        f"  wrong: [[contradicted, 'Baths in district {n} shut at nine.']]\n"
        for n in range(60)
    )
    (facts / "baths.yaml").write_text(entries, encoding="utf-8")
    alone = run(monkeypatch, data, tmp_path / "alone" / "work")
    both = run(monkeypatch, data, tmp_path / "work", facts)
    assert both.startswith(alone)
    added = [json.loads(line) for line in both[len(alone) :].splitlines()]
    assert {(row["dataset"], row["licence"]) for row in added} == {("written-baths", "Apache-2.0")}
    assert Counter(row["label"] == "supported" for row in added)[True] == len(added) / 2 > 10


def test_what_is_retrieved_but_decides_nothing_is_handed_on(tmp_path: Path) -> None:
    write_all(tmp_path)
    found = [others for row, others in read_data(tmp_path, experimental=False) if row.dataset[:4] == "fool"]
    assert found == [("It is red.",), ()]


def test_revisions_of_a_page_are_held_out_together(tmp_path: Path) -> None:
    pages = [f"Mill {n}" for n in range(40)]
    rows = [
        {"claim": f"{page} is old.", "evidence": text, "page": page, "label": "SUPPORTS"}
        for page in pages
        for text in (f"{page} is old and red.", f"{page} is old and has {len(page)} floors.")
    ]
    write(tmp_path / "vitaminc/vitaminc_real/test.jsonl", jsonl(*rows))
    write(tmp_path / "vitaminc/vitaminc_synthetic/test.jsonl", jsonl(rows[0]))
    read = [row for row, _ in read_data(tmp_path, experimental=False) if row.dataset == "vitaminc-real"]
    by_page = {page: {row.held_out for row in read if row.claim == f"{page} is old."} for page in pages}
    assert by_page == {page: {is_held_out(page)} for page in pages}
    assert {True, False} == {held for (held,) in by_page.values()}


def test_a_text_that_another_set_has_on_the_other_side_is_left_out(tmp_path: Path) -> None:
    pages = [f"Mill {n}" for n in range(40)]
    texts = {page: f"{page} is old and red." for page in pages}
    fever = ({"query": "It is old.", "context": text, "label": "SUPPORTS"} for text in texts.values())
    write(tmp_path / "fever/train_fitems.jsonl", jsonl(*fever))
    rows = (
        {"claim": "It is red .", "evidence": f"{page} is old and red .", "page": page, "label": "SUPPORTS"}
        for page in pages
    )
    for part in ("real", "synthetic"):
        write(tmp_path / f"vitaminc/vitaminc_{part}/test.jsonl", jsonl(*rows, {**ROW, "page": part}))
    read = [row for row, _ in read_data(tmp_path, experimental=False) if row.claim == "It is red."]
    agreed = [page for page, text in texts.items() if is_held_out(page) == is_held_out(text)]
    assert [row.contexts for row in read] == [(texts[page],) for page in agreed]
    assert 0 < len(agreed) < len(pages)


def test_what_is_measured_on_is_left_out_of_what_is_read(tmp_path: Path) -> None:
    whole = [row.claim for row, _ in read_data(write_all(tmp_path), experimental=False)]
    assert "The mill is younger than Leeds." in whole
    claim = "the mill is younger than Leeds"
    measured = {"dataset": "x", "claim": claim, "contexts": ["."], "label": "supported"}
    with gzip.open(tmp_path / VALIDATION, "wt", encoding="utf-8") as lines:
        lines.write(json.dumps(measured) + "\n")
    left = [row.claim for row, _ in read_data(tmp_path, experimental=False)]
    assert left == [claim for claim in whole if claim != "The mill is younger than Leeds."]


def test_a_set_of_the_pool_is_not_read_again_from_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_all(write_pool(tmp_path, pool_rows()))
    found = [row for row, _ in read_data(data, experimental=False)]
    first = [row for row, _ in read_pool(data / POOL, experimental=False)]
    assert found[: len(first)] == first
    others = {published.dataset for published in PUBLISHED} - {row.dataset for row in first}
    assert {row.dataset for row in found[len(first) :]} == others
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4
    assert said[0] == f"conjnli is in {data / POOL}: {data / 'conjnli'} is not read for it"


def test_later_steps_get_the_rows_that_a_pool_gives(tmp_path: Path) -> None:
    data = write_pool(tmp_path, pool_rows())
    assert list(source_rows(data)) == [
        replace(row, held_out=row.is_held_out) for row in pool(data / POOL) if row.dataset != "rte"
    ]


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_with_neither_says_what_is_looked_for(tmp_path: Path, there: bool) -> None:
    data = tmp_path / "data"
    if there:
        write(data / "ConjNLI/notes.txt", "a folder of another name")
    with pytest.raises(DataError) as caught:
        list(read_data(data, experimental=False))
    for part in (str(data), POOL, "conjnli", "counterfactual-nli", "wikisplit", "--data"):
        assert part in str(caught.value)


def test_a_row_with_a_sentence_that_is_measured_on_is_left_out(tmp_path: Path) -> None:
    shared = "The trial of the new pump ended early because the river had run dry."
    measured = {**pool_rows()[0], "contexts": [f"Another thing. {shared}"]}
    (tmp_path / VALIDATION).write_bytes(gzip.compress(json.dumps(measured).encode()))
    write(
        tmp_path / "check-covid/Check-COVID/corpus.json",
        jsonl(
            {"cord_id": "a", "abstract": ["It is so.", shared]},
            {"cord_id": "b", "abstract": ["It is so.", "The pump ran."]},
        ),
    )
    row = {"claim": "So it is.", "label": "SUPPORT", "evidence_set": [{"sent_index": 0}]}
    write(
        tmp_path / "check-covid/train/covidCheck_train_composed+extracted.json",
        jsonl({**row, "cord_id": "a"}, {**row, "cord_id": "b"}),
    )
    assert [distractors for _, distractors in read_data(tmp_path, experimental=False)] == [("The pump ran.",)]


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(b'{"dataset": "x"}\n', mtime=0)], ids=["no gzip", "no label"]
)
def test_damaged_rows_to_measure_on_are_told(tmp_path: Path, content: bytes) -> None:
    (write_all(tmp_path) / VALIDATION).write_bytes(content)
    with pytest.raises(DataError, match=r"pool-val\.jsonl\.gz: no rows to measure on"):
        list(read_data(tmp_path, experimental=False))
