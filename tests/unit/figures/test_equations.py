"""Equations of a claim are worked out."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.figures import State, check_figures
from guardrail.figures.equations import shown
from guardrail.figures.source import Sentence
from tests.support.tables import table
from tests.unit.figures.sources import source_of

CASES: dict[str, Any] = table(__file__, "equations.yaml")


@pytest.mark.parametrize("text", CASES["right"])
def test_what_follows_or_can_not_be_told_is_no_mistake(text: str) -> None:
    assert not Sentence(text).written.wrong


@pytest.mark.parametrize("case", CASES["wrong"], ids=lambda case: str(case["text"]))
def test_what_does_not_follow_is_told_with_what_does(case: dict[str, str]) -> None:
    ((figure, right),) = Sentence(case["text"]).written.wrong
    assert shown(figure, right) == case["is"]
    assert right.text in case["text"]


def test_a_wrong_result_is_a_conflict_although_a_source_has_that_figure() -> None:
    source = source_of("A locker is €4 a day.", "At most €28.", context="c")
    asked = "We need three lockers for two days."
    checks = check_figures("Three lockers for two days: 3 × 2 × €4 = €28.", source, [0, 1], asked)
    assert State.UNCHECKED not in [check.state for check in checks]
    assert [check.state for check in checks][-2:] == [State.FOUND, State.CONFLICT]


def test_a_right_result_is_reckoned_in_whatever_unit_the_factors_were_left() -> None:
    source = source_of("A locker is €4 a day.")
    checks = check_figures("That comes to 3 × 4 = 12 euros.", source, [0], "What do 3 days cost?")
    assert [check.state for check in checks] == [State.DERIVED, State.FOUND, State.DERIVED]


def test_a_factor_that_nobody_gave_leaves_the_result_open() -> None:
    source = source_of("A strip has 8 pills.")
    checks = check_figures("The box has 4 strips, so 4 × 8 = 32 pills.", source, [0])
    assert {check.state for check in checks if check.figure.text != "8"} == {State.UNCHECKED}
    spelled = check_figures("A year's supply is 12 × 8 = 96 pills.", source, [0])
    assert spelled[-1].state is State.DERIVED
