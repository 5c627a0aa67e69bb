"""Numbers and findings that judges offer: what is believed of them, whatever they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from guardrail.events import Finding
from guardrail.judges import Judgement, Verdict
from guardrail.verdicts import sound
from tests.unit.judges.doubles import judgement

CONFLICT, ABSENT = Finding.FIGURE_CONFLICT, Finding.FIGURE_ABSENT


def offering(**changes: Any) -> Judgement | None:
    return sound(replace(judgement(verdict=Verdict.CONTRADICTED), **changes), "It costs $50.")


@pytest.mark.parametrize("name", ["confidence", "support", "contradiction"])
@pytest.mark.parametrize(("offered", "kept"), [(0.0, 0.0), (0.7, 0.7), (1.01, 1.0), (-0.01, 0.0)])
def test_a_probability_that_is_off_by_rounding_is_put_right(name: str, offered: float, kept: float) -> None:
    assert getattr(offering(**{name: offered}), name) == kept


@pytest.mark.parametrize("name", ["confidence", "support", "contradiction"])
@pytest.mark.parametrize("offered", [1.5, -0.2, float("nan"), float("inf"), "0.5", ()])
def test_what_is_no_probability_makes_the_verdict_unusable(name: str, offered: Any) -> None:
    assert offering(**{name: offered}) is None


@pytest.mark.parametrize(
    ("offered", "kept"), [((), ()), ((CONFLICT, ABSENT, CONFLICT), (CONFLICT, ABSENT)), ([ABSENT], (ABSENT,))]
)
def test_each_finding_is_kept_once(offered: Any, kept: tuple[Finding, ...]) -> None:
    said = offering(findings=offered)
    assert said is not None
    assert said.findings == kept


@pytest.mark.parametrize("offered", [("figure_conflict",), (CONFLICT, None), None, 7])
def test_an_unknown_finding_makes_the_verdict_unusable(offered: Any) -> None:
    assert offering(findings=offered) is None
