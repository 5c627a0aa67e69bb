"""Numbers and findings that judges offer: what is believed of them, whatever they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from guardrail.claims.model import Claim
from guardrail.events import Finding, Severity, Verdict
from guardrail.judges.base import Judgement, JudgeReply, reconcile
from tests.unit.judges.doubles import judgement

TEXT = "It costs $50."
CLAIM = Claim(0, 0, TEXT, 0, len(TEXT), Severity.NORMAL)
CONFLICT, ABSENT = Finding.FIGURE_CONFLICT, Finding.FIGURE_ABSENT


def reconciled(**changes: Any) -> Judgement:
    said = replace(judgement(verdict=Verdict.CONTRADICTED), **changes)
    return reconcile({"k0": CLAIM}, JudgeReply((said,)), "j")["k0"]


@pytest.mark.parametrize("name", ["confidence", "support", "contradiction"])
@pytest.mark.parametrize(("offered", "kept"), [(0.0, 0.0), (0.7, 0.7), (1.01, 1.0), (-0.01, 0.0)])
def test_a_probability_that_is_off_by_rounding_is_put_right(name: str, offered: float, kept: float) -> None:
    assert getattr(reconciled(**{name: offered}), name) == kept


@pytest.mark.parametrize("name", ["confidence", "support", "contradiction"])
@pytest.mark.parametrize("offered", [1.5, -0.2, float("nan"), float("inf"), "0.5", ()])
def test_what_is_no_probability_makes_the_verdict_unusable(name: str, offered: Any) -> None:
    assert reconciled(**{name: offered}).verdict is Verdict.UNVERIFIED


@pytest.mark.parametrize(
    ("offered", "kept"), [((), ()), ((CONFLICT, ABSENT, CONFLICT), (CONFLICT, ABSENT)), ([ABSENT], (ABSENT,))]
)
def test_each_finding_is_kept_once(offered: Any, kept: tuple[Finding, ...]) -> None:
    assert reconciled(findings=offered).findings == kept


@pytest.mark.parametrize("offered", [("figure_conflict",), (CONFLICT, None), None, 7])
def test_an_unknown_finding_makes_the_verdict_unusable(offered: Any) -> None:
    assert reconciled(findings=offered).verdict is Verdict.UNVERIFIED
