"""Benchmarks on labelled claims say which file they miss, and run on what they are given."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from benchmarks import cascade_share, offline_sets
from benchmarks.cascade_share import Judged, fitted
from benchmarks.labelled_sets import CRITICAL, EXPERTQA, POOL, changed_sentences, labelled_sets
from guardrail.events import Severity
from guardrail.judges import Judgement, Verdict
from tests.training.made_data import write_data


@pytest.mark.parametrize("benchmark", [cascade_share, offline_sets])
def test_a_missing_file_is_named(
    benchmark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main = getattr(benchmark, "main")  # noqa: B009
    monkeypatch.setattr(sys, "argv", ["benchmark", "--data", str(tmp_path)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    told = capsys.readouterr().err
    assert f"{tmp_path} has no pool-val.jsonl.gz and no expertqa-val.jsonl" in told
    (tmp_path / "pool-val.jsonl.gz").touch()
    with pytest.raises(SystemExit):
        main()
    assert "has no expertqa-val.jsonl" in capsys.readouterr().err


def write_sets(folder: Path) -> None:
    rows = [{"dataset": f"set-{n % 2}", "contexts": ["c"], "claim": str(n), "label": "x"} for n in range(20)]
    with gzip.open(folder / POOL, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    labels = [{"text": "One.", "support": "N/A"}, {"text": "Two.", "support": "Complete"}]
    answer = {"question": "q", "contexts": [{"text": "c"}], "metadata": {"labels": labels}}
    (folder / EXPERTQA).write_text(json.dumps(answer) + "\n", encoding="utf-8")


@pytest.mark.parametrize("more", [[], ["--words"], ["--lfqa", "lfqa.jsonl", "--fit"]])
def test_the_share_of_a_cascade_is_measured(
    more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sets(tmp_path)
    monkeypatch.chdir(tmp_path)
    answer = {
        "type": "response",
        "response_id": "r",
        "question": "q",
        "contexts": [{"id": "c", "text": "It rains."}],
        "answer": "It rains. It snows. Well.",
        "metadata": {
            "labels": [
                {"span": [0, 9], "label": "supported"},
                {"span": [10, 19], "label": "unsupported"},
            ]
        },
    }
    Path("lfqa.jsonl").write_text(json.dumps(answer) + "\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["cascade_share", "--data", ".", "--json", "told.json", *more])
    cascade_share.main()
    told = json.loads(Path("told.json").read_text(encoding="utf-8"))
    assert told["sets"]["all"]["claims"] == 21 + 2 * ("--fit" in more)
    assert ("lfqa" in told) == ("--fit" in more)
    if more[-1:] == ["--fit"]:  # too few claims to be sure of anything
        assert set(map(tuple, map(dict.values, told["bands"].values()))) == {(1.0, 0.0)}


def judgements(verdict: Verdict, support: float, right: int, wrong: int) -> list[Judged]:
    accepted = verdict is Verdict.SUPPORTED
    judgement = Judgement("c", verdict, 0.9, support, "local")
    return [Judged(accepted, Severity.MAJOR, judgement)] * right + [
        Judged(not accepted, Severity.MAJOR, judgement)
    ] * wrong


def test_bands_settle_as_much_as_is_right() -> None:
    claims = [
        *judgements(Verdict.SUPPORTED, 0.97, 150, 1),
        *judgements(Verdict.SUPPORTED, 0.83, 60, 1),  # 210 of 212 together
        *judgements(Verdict.SUPPORTED, 0.62, 60, 20),
        *judgements(Verdict.CONTRADICTED, 0.04, 99, 1),
        *judgements(Verdict.UNSUPPORTED, 0.22, 40, 10),
    ]
    band = fitted(claims, 0.99)
    assert 0.62 < band.accept_support <= 0.83
    assert 0.04 <= band.reject_support < 0.22
    assert fitted(claims, 0.5).accept_support <= 0.62
    # Fewer than thirty claims settle nothing, however right they are.
    assert fitted(judgements(Verdict.SUPPORTED, 0.97, 29, 0), 0.99).accept_support == 1.0


def test_the_sets_are_read_by_name_and_sampled_the_same_each_time(tmp_path: Path) -> None:
    write_sets(tmp_path)
    found = labelled_sets(tmp_path, 3, seed=1)
    assert {name: len(claims) for name, claims in found.items()} == {"expertqa": 1, "set-0": 3, "set-1": 3}
    assert [(row.claim, row.lead_in, row.supported) for row in found["expertqa"]] == [("Two.", "One.", True)]
    assert labelled_sets(tmp_path, 3, seed=1) == found


def test_changed_sentences_come_from_validation_documents_and_are_bounded(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    found = changed_sentences(data, 5, seed=1)
    assert all(len(rows) <= 5 for rows in found.values())
    assert found.keys() & CRITICAL
    assert {row.supported for row in found["verbatim"]} == {True}
    texts = " ".join(text for row in labelled_sets(data, 1000, 1)["wice-claim"] for text in row.contexts)
    assert all(row.claim in texts for row in found["verbatim"])
