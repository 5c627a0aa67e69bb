"""Calibration and evaluation from end to end, with a verifier made for the test; no torch."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sklearn", reason="the extra 'training' is not installed")

from guardrail.judges.local.combiner import load_parameters
from guardrail.judges.local.verifier_files import Manifest
from tests.training.made_data import write_data, write_work
from tests.training.tiny_base import write_tokenizer
from tests.unit.judges.local.tiny_verifier import write_verifier
from training import calibrate, evaluate
from training.evaluation_data import CRITICAL, labelled, made, passages_of_150_words, validation
from training.measuring import ALONE, OVERLAP, RULES, WHOLE
from training.report import percent


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("pool") / "data")


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that knows the words of the data: it leaves claims of other words to the rules."""
    folder = write_verifier(tmp_path_factory.mktemp("verifier"))
    write_tokenizer(folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["sha256"]["tokenizer.json"] = hashlib.sha256(
        (folder / "tokenizer.json").read_bytes()
    ).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def parameters(data: Path, verifier: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = write_work(tmp_path_factory.mktemp("work"))
    out = work / "parameters.json"
    run(calibrate, "--data", data, "--work", work, "--verifier", verifier, "--out", out, "--rows", 150)
    return out


def run(step: Any, *words: object) -> None:
    before, sys.argv = sys.argv, ["step", *(str(word) for word in words)]
    try:
        step.main()
    finally:
        sys.argv = before


def test_parameters_name_their_verifier_and_their_data(parameters: Path, verifier: Path) -> None:
    found = load_parameters(parameters)
    manifest = Manifest.model_validate_json((verifier / "manifest.json").read_text(encoding="utf-8"))
    assert found.verifier is not None
    assert (found.verifier.name, found.verifier.sha256) == ("tiny", manifest.checksum)
    assert found.provenance["licences"] == {"conjnli": "MIT"}
    assert found.partially_supported_at <= found.supported_at == 0.5
    assert isinstance(found.provenance["calibration_error_known_sets_held_out"], float)


def test_evaluation_reports_every_judge_on_every_set(
    data: Path, verifier: Path, parameters: Path, tmp_path: Path
) -> None:
    run(
        evaluate, "--data", data, "--verifier", verifier, "--parameters", parameters, "--out", tmp_path,
        "--pairs", 8, "--timed", 2, "--written", 8,
    )  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["judges"] == [OVERLAP, RULES, ALONE, WHOLE]
    assert report["verifier"] == "tiny"
    assert set(report["sets"]) == {"expertqa", "fool-me-twice", "wice-claim"}
    assert report["claims"] == sum(entry["claims"] for entry in report["sets"].values())
    for judge in report["judges"]:
        auroc = [entry[judge]["auroc"] for entry in report["sets"].values()]
        assert report["macro"][judge]["auroc"] == pytest.approx(sum(auroc) / len(auroc))
        assert all(0.0 <= value <= 1.0 for value in auroc)
    # A changed number is what the rules are for: whoever only counts words can't see it.
    assert report["pairs"]["number"][RULES]["not_supported"] == 1.0
    assert report["milliseconds"][WHOLE]["p50"] > 0.0
    assert sum(entry["claims"] for entry in report["severity"].values()) == report["claims"]
    for entry in report["severity"].values():
        assert all(entry[judge].keys() == report["macro"][judge].keys() for judge in report["judges"])
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    name, entry = next(iter(report["severity"].items()))
    shown = ("auroc", "balanced_accuracy", "f1", "precision_at_recall", "calibration_error")
    cells = (name, f"{entry['claims']:,}", WHOLE, *(percent(entry[WHOLE][key]) for key in shown))
    assert f"| {' | '.join(cells)} |" in text
    assert "| fool-me-twice | 40 |" in text
    assert "critical changes caught" in text
    assert "8 claims in the words of chat assistants" in text


def test_without_a_verifier_overlap_and_rules_are_compared(data: Path, tmp_path: Path) -> None:
    run(evaluate, "--data", data, "--verifier", "none", "--out", tmp_path, "--pairs", 2, "--timed", 0,
        "--written", 1)  # fmt: skip
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["judges"] == [OVERLAP, RULES]
    assert report["verifier"] is None


def test_what_thresholds_come_from_is_not_what_is_measured(data: Path) -> None:
    measured = {row.claim for rows in labelled(data, limit=1000, seed=1).values() for row in rows}
    held_out = validation(data, limit=1000, seed=1)
    assert held_out
    assert {row.dataset for row in held_out} <= {"conjnli", "wice-claim", "conjnli-stranger"}
    texts = {
        text for rows in labelled(data, limit=1000, seed=1).values() for row in rows for text in row.contexts
    }
    assert not texts & {text for row in held_out for text in row.contexts}
    assert measured


def test_made_claims_come_from_validation_documents_and_are_bounded(data: Path) -> None:
    found = made(data, limit=5, seed=1)
    assert all(len(rows) <= 5 for rows in found.values())
    assert found.keys() & CRITICAL
    assert {row.supported for row in found["verbatim"]} == {True}
    timed = list(passages_of_150_words(found["verbatim"], count=3))
    assert timed
    for row in timed:
        assert [150 <= text.count(" ") + 1 < 200 for text in row.contexts] == [True, True, True]


def test_without_training_data_there_are_no_thresholds(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pool-val.jsonl.gz", "expertqa-val.jsonl"):
        (tmp_path / name).write_bytes((data / name).read_bytes())
    with pytest.raises(SystemExit) as left:
        run(evaluate, "--data", tmp_path, "--verifier", "none", "--out", tmp_path / "out")
    assert left.value.code == 1
    assert "pool-train.jsonl.gz" in capsys.readouterr().err


def test_calibration_with_a_verifier_needs_its_work_folder(
    data: Path, verifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run(calibrate, "--data", data, "--verifier", verifier, "--out", tmp_path / "p.json")
    assert left.value.code == 1
    assert "--work is needed" in capsys.readouterr().err
