"""Judged claims of labelled sets come to the right figures, and two runs on the same claims are compared."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import offline_sets
from benchmarks.offline_report import markdown
from benchmarks.offline_sets import Judged, figures, gained
from guardrail.judges import Verdict
from tests.training.made_data import write_data

YES, PART, NO, AGAINST = (
    Verdict.SUPPORTED,
    Verdict.PARTIALLY_SUPPORTED,
    Verdict.UNSUPPORTED,
    Verdict.CONTRADICTED,
)


def judged(*claims: tuple[bool, float, Verdict]) -> list[Judged]:
    return [Judged(truth, "supported" if truth else "other", support, v) for truth, support, v in claims]


# Right in every pair but one; and the other way round.
GOOD = judged((True, 0.9, YES), (True, 0.4, AGAINST), (False, 0.5, PART), (False, 0.1, AGAINST))
BAD = judged((True, 0.1, NO), (True, 0.2, NO), (False, 0.8, YES), (False, 0.9, YES))


def test_sets_count_alike_and_claims_together() -> None:
    found = figures(
        {"long": GOOD * 3, "short": BAD}, {"number": BAD[2:], "date": GOOD[2:], "reworded": GOOD[:2]}
    )
    assert found["sets"]["long"] == {
        "claims": 12, "auroc": 0.75, "balanced_accuracy": 0.75, "calibration_error": pytest.approx(0.325),
    }  # fmt: skip
    assert found["macro"]["auroc"]["value"] == pytest.approx((0.75 + 0.0) / 2)
    assert found["macro"]["balanced_accuracy"]["value"] == pytest.approx((0.75 + 0.0) / 2)
    # The short set weighs as much as the long one, and its claims are all wrong.
    assert sum(weight for weight, _, _ in found["reliability"]) == pytest.approx(4.0)
    assert found["calibration_error_pooled"] > found["sets"]["long"]["calibration_error"]
    counts = [found[key] for key in ("supported_called_contradicted", "contradictions_of_supported")]
    assert [(each["count"], each["of"]) for each in counts] == [(3, 8), (3, 6)]
    assert found["verdicts_by_label"]["supported"] == {"SUPPORTED": 3, "CONTRADICTED": 3, "UNSUPPORTED": 2}
    assert found["changed"] == {"number": 0.0, "date": 1.0, "reworded": 0.5}
    assert (found["critical_caught"], found["false_alarms"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("now", "before", "value"),
    [({"a": GOOD * 9}, {"a": BAD * 9}, 0.75), ({"a": GOOD}, {"a": GOOD, "b": BAD}, 0.0)],
)
def test_a_gain_is_of_the_same_claims(
    now: Mapping[str, list[Judged]], before: Mapping[str, list[Judged]], value: float
) -> None:
    gain = gained(now, before, "auroc")
    assert gain.value == pytest.approx(value)
    assert gain.low <= gain.value <= gain.high


def test_a_gain_over_other_claims_is_refused() -> None:
    with pytest.raises(ValueError, match="a holds other claims"):
        gained({"a": GOOD}, {"a": GOOD[:2]}, "auroc")


def test_the_report_has_a_row_for_each_judge_and_a_dash_for_what_is_unknown() -> None:
    own, other = figures({"a": GOOD}, {"number": BAD[2:]}), figures({"a": BAD}, {"number": GOOD[2:]})
    text = markdown({"word overlap": other, "local judge": own}, "Ten claims.")
    assert "| a | 4 | 0.0 | 75.0 |" in text
    assert "| local judge | 1 of 2: 50.0 [9.5, 90.5] | 1 of 2: 50.0 [9.5, 90.5] |" in text
    assert "| number | 100.0 | 0.0 |" in text
    assert "| word overlap | 100.0 | – |" in text
    assert "| word overlap | 0 of" not in text  # it contradicts nothing


def test_the_judge_is_measured_beside_its_baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["offline_sets", "--data", write_data(tmp_path / "data"), "--rows", 6, "--pairs", 2,
             "--json", tmp_path / "told.json", "--report", tmp_path / "report", "--baselines"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    offline_sets.main()
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    judges = ["word overlap", "words and figures alone", "verifier alone"]
    assert list(told["baselines"]) == judges
    assert told["sets"].keys() == {"expertqa", "fool-me-twice", "wice-claim"}
    assert {len(each) for each in told["each"].values()} == {6}
    assert {"number", "verbatim", "written, faithful", "written, others"} <= told["changed"].keys()
    # A changed number is nothing to who counts words, and everything to who reads figures.
    changed = {name: told["baselines"][name]["changed"]["number"] for name in judges}
    assert changed["word overlap"] == 0.0
    assert changed["words and figures alone"] == 1.0
    report = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "| local judge |" in report
    assert all(f"| {name} |" in report for name in judges)


def test_one_class_alone_ranks_nothing() -> None:
    assert math.isnan(figures({"a": GOOD[:2]}, {})["macro"]["auroc"]["value"])
