"""Judged claims of labelled sets come to the right figures, and two runs on the same claims are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from benchmarks.offline_sets import Judged, figures, gained
from guardrail.events import Verdict

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
    assert found["sets"]["long"] == {"claims": 12, "auroc": 0.75, "balanced_accuracy": 0.75}
    assert found["macro"]["auroc"]["value"] == pytest.approx((0.75 + 0.0) / 2)
    assert found["macro"]["balanced_accuracy"]["value"] == pytest.approx((0.75 + 0.0) / 2)
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


def test_one_class_alone_ranks_nothing() -> None:
    assert math.isnan(figures({"a": GOOD[:2]}, {})["macro"]["auroc"]["value"])
