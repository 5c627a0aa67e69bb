"""Where the files of published sets are looked for, and which of them are read."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from tests.training.made_published import jsonl, nli, tsv, write, write_all
from training.examples import DataError
from training.published import PUBLISHED, Published, Source, sources
from training.published_files import json_lines, table
from training.published_readers import wikisplit
from training.rows import LICENCES

ROWS = jsonl(*(nli(f"{count} men wait.", "Men wait.", "entailment") for count in range(200)))


def test_every_set_may_train_a_shipped_model() -> None:
    names = [each.dataset for each in PUBLISHED]
    assert set(names) <= set(LICENCES)
    assert len(set(names)) == len(names)


def test_folders_that_are_there_are_found_and_others_are_none(tmp_path: Path) -> None:
    assert sources(tmp_path) == []
    assert sources(tmp_path / "absent") == []
    write(tmp_path / "breaking-nli/data/dataset.jsonl", ROWS)
    write(tmp_path / "unknown/data/dataset.jsonl", ROWS)
    assert [source.published.dataset for source in sources(tmp_path)] == ["breaking-nli"]


def test_no_part_is_read_that_is_for_measuring(tmp_path: Path) -> None:
    read = {path.relative_to(tmp_path) for source in sources(write_all(tmp_path)) for path in source.paths}
    there = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.name for path in there - read} == {
        "train.tsv",  # of another task, sentiment
        "begin_test_cmu.tsv",
        "begin_test_tc.tsv",
        "begin_test_wow.tsv",
        "begin_dev_wow.tsv",
        "summedits_samsum.json",
        "test.jsonl",
        "fever_symmetric_test.jsonl",
        "covidCheck_dev_composed+extracted.json",
    }


def test_a_file_may_be_compressed(tmp_path: Path) -> None:
    plain = list(sources(write_all(tmp_path / "plain"))[0].rows())
    packed = tmp_path / "packed/conjnli/adversarial_train_15k.tsv.gz"
    packed.parent.mkdir(parents=True)
    with sources(tmp_path / "plain")[0].paths[0].open("rb") as raw, gzip.open(packed, "wb") as out:
        shutil.copyfileobj(raw, out)
    (found,) = sources(tmp_path / "packed")
    assert found.paths == (packed,)
    assert list(found.rows()) == plain


def test_a_folder_without_its_file_says_which_and_where_it_is_published(tmp_path: Path) -> None:
    write(tmp_path / "wikisplit/train.tsv.zip", "packed")
    with pytest.raises(DataError) as caught:
        sources(tmp_path)
    for part in (
        str(tmp_path / "wikisplit"),
        "no train.tsv ",
        "google-research-datasets/wiki-split",
        "unpack",
    ):
        assert part in str(caught.value)


def test_the_same_file_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "breaking-nli/data/dataset.jsonl", ROWS)
    write(tmp_path / "breaking-nli/copy/data/dataset.jsonl.gz", ROWS)
    with pytest.raises(DataError, match=r"2 times \(.*copy.*\); leave one"):
        sources(tmp_path)


def test_a_file_without_rows_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "conjnli/adversarial_train_15k.tsv", tsv(("Premise", "Hypothesis", "Label")))
    (source,) = sources(tmp_path)
    with pytest.raises(DataError, match="no row of conjnli"):
        list(source.rows())


def test_of_a_large_set_some_rows_are_drawn_the_same_every_time(tmp_path: Path) -> None:
    text = tsv(*((f"Mill {n} .", f"Mill {n} . <::::> It stands .") for n in range(500)))
    path = write(tmp_path / "train.tsv", text)
    source = Source(Published("wikisplit", "wikisplit", ("train.tsv",), "", wikisplit, most=100), (path,))
    drawn = list(source.rows())
    assert len(drawn) == 100
    assert drawn == list(source.rows())
    places = [int(row["contexts"][0].split()[1].strip(".")) for row in drawn]
    assert min(places) < 50
    assert max(places) >= 450  # not the first hundred
    assert 200 < sum(places) / 100 < 300


@pytest.mark.parametrize("cut", [40, 5])
def test_a_file_that_breaks_off_is_named(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(ROWS.encode())[:cut])
    with pytest.raises(DataError, match=r"a\.jsonl\.gz: can't be read"):
        list(json_lines(path))


@pytest.mark.parametrize("data", [b"\xff\xfe a\tb\n", b"Premise\tb\n\xff\t1\n"])
def test_bytes_that_are_no_text_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"a\.tsv: can't be read \(UnicodeDecodeError\)"):
        list(table(path, ("Premise", "b"), quoted=False))
