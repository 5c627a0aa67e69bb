"""Benchmarks on labelled claims say which file they miss, and run on what they are given."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cascade_share, offline_sets
from benchmarks.cascade_share import Judged, fitted
from benchmarks.labelled_sets import CRITICAL, changed_sentences, labelled_sets
from benchmarks.offline_report import report
from benchmarks.offline_sets import Judged as Claim
from benchmarks.offline_sets import figures, gained
from guardrail.events import Severity
from guardrail.judges import Judgement, Verdict
from tests.training.made_data import write_data

YES, PART, NO, AGAINST = (
    Verdict.SUPPORTED,
    Verdict.PARTIALLY_SUPPORTED,
    Verdict.UNSUPPORTED,
    Verdict.CONTRADICTED,
)
# Right in every pair but one; and the other way round.
GOOD = [Claim(True, 0.9, YES), Claim(True, 0.4, AGAINST), Claim(False, 0.5, PART), Claim(False, 0.1, AGAINST)]
BAD = [Claim(True, 0.1, NO), Claim(True, 0.2, NO), Claim(False, 0.8, YES), Claim(False, 0.9, YES)]


def run(monkeypatch: pytest.MonkeyPatch, benchmark: object, words: Sequence[object]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", *map(str, words)])
    getattr(benchmark, "main")()  # noqa: B009


@pytest.mark.parametrize("benchmark", [cascade_share, offline_sets])
def test_a_missing_file_is_named(
    benchmark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pool-val.jsonl.gz").touch()
    with pytest.raises(SystemExit) as left:
        run(monkeypatch, benchmark, ["--data", tmp_path])
    assert left.value.code == 2
    assert f"{tmp_path} has no expertqa-val.jsonl" in capsys.readouterr().err


def test_the_share_of_a_cascade_is_measured_with_bands_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, lfqa = write_data(tmp_path / "data"), tmp_path / "lfqa.jsonl"
    labels = [{"span": [0, 9], "label": "supported"}, {"span": [10, 19], "label": "unsupported"}]
    answer: dict[str, Any] = {
        "type": "response",
        "response_id": "r",
        "contexts": [{"id": "c", "text": "It rains."}],
    }
    answer |= {"answer": "It rains. It snows. Well.", "metadata": {"labels": labels}}
    lfqa.write_text(json.dumps(answer) + "\n", encoding="utf-8")
    run(monkeypatch, cascade_share, ["--data", data, "--limit", 2, "--lfqa", lfqa, "--fit"])
    told = capsys.readouterr().out
    assert "| lfqa | 2 | 100.0 |" in told
    assert "critical: accept_support=1.00" in told  # too few claims to be sure of anything


def test_bands_settle_as_much_as_is_right() -> None:
    def judged(verdict: Verdict, support: float, right: int, wrong: int) -> list[Judged]:
        accepted, judgement = verdict is YES, Judgement("c", verdict, 0.9, support, "local")
        one = {truth: Judged(truth, Severity.MAJOR, judgement) for truth in (True, False)}
        return [one[accepted]] * right + [one[not accepted]] * wrong

    claims = [
        *judged(YES, 0.97, 150, 1),
        *judged(YES, 0.83, 60, 1),  # 210 of 212 together
        *judged(YES, 0.62, 60, 20),
        *judged(NO, 0.22, 40, 10),
    ]
    band = fitted(claims, 0.99)
    assert 0.62 < band.accept_support <= 0.83
    # Fewer than thirty claims settle nothing, however right they are.
    assert fitted(judged(YES, 0.97, 29, 0), 0.99).accept_support == 1.0


def test_sets_are_sampled_the_same_each_time_and_sentences_come_from_their_documents(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    sets = labelled_sets(data, 3, seed=1)
    assert sets == labelled_sets(data, 3, seed=1)
    assert {name: len(rows) for name, rows in sets.items()} == dict.fromkeys(
        ("expertqa", "fool-me-twice", "wice-claim"), 3
    )
    changed = changed_sentences(data, 5, seed=1)
    assert all(len(rows) <= 5 for rows in changed.values())
    assert changed.keys() & CRITICAL
    texts = " ".join(text for row in labelled_sets(data, 1000, 1)["wice-claim"] for text in row.contexts)
    assert all(row.claim in texts and row.supported for row in changed["verbatim"])


def test_sets_count_alike_and_claims_together() -> None:
    changed = {"number": BAD[2:], "date": GOOD[2:], "reworded": GOOD[:2]}
    found = figures({"long": GOOD * 3, "short": BAD}, changed)
    assert found["sets"]["long"] == {
        "claims": 12, "auroc": 0.75, "balanced_accuracy": 0.75, "calibration_error": pytest.approx(0.325),
    }  # fmt: skip
    assert found["macro"]["auroc"].value == pytest.approx((0.75 + 0.0) / 2)
    counts = [found[key] for key in ("supported_called_contradicted", "contradictions_of_supported")]
    assert [(each.count, each.total) for each in counts] == [(3, 8), (3, 6)]
    assert found["changed"] == {"number": 0.0, "date": 1.0, "reworded": 0.5}
    assert (found["critical_caught"], found["false_alarms"]) == (0.5, 0.5)
    text = report({"other judge": figures({"long": BAD, "short": BAD}, {}), "local judge": found}, "Head.")
    assert "| long | 4 | 0.0 | 75.0 |" in text
    assert "| local judge | 3 of 6: 50.0 [18.8, 81.2] | 3 of 8: 37.5 [13.7, 69.4] |" in text
    assert "| other judge | 0 of" not in text  # it contradicts nothing


@pytest.mark.parametrize(("before", "value"), [(BAD * 9, 0.75), (GOOD * 9, 0.0)])
def test_a_gain_is_of_the_same_claims(before: list[Claim], value: float) -> None:
    gain = gained({"a": GOOD * 9}, {"a": before}, "auroc")
    assert gain.value == pytest.approx(value)
    assert gain.low <= gain.value <= gain.high
    with pytest.raises(ValueError, match="a holds other claims"):
        gained({"a": GOOD}, {"a": before}, "auroc")


def test_a_judge_is_measured_and_compared_with_what_it_said_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, kept = write_data(tmp_path / "data"), tmp_path / "before.json"
    config = tmp_path / "words.yaml"
    config.write_text("judge: {local: {verifier: {enabled: false}}}\n", encoding="utf-8")
    words = ["--data", data, "--config", config, "--rows", 8, "--pairs", 2]
    run(monkeypatch, offline_sets, [*words, "--json", kept, "--report", tmp_path])
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# How well claims are told apart")
    run(monkeypatch, offline_sets, [*words, "--against", kept])
    assert "other verdicts: 0 of 24" in capsys.readouterr().out
