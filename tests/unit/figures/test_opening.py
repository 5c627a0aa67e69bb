"""Days and opening hours of a claim are looked up day by day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from guardrail.figures import FigureSource, SourceText, State, check_figures

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "opening.yaml").read_text("utf-8"))
AGREED = [(case["sources"], claim) for case in CASES for claim in case["agreed"]]
OTHERWISE = [(case["sources"], each["claim"], each["source"]) for case in CASES for each in case["otherwise"]]
NEITHER = [(case["sources"], claim) for case in CASES for claim in case.get("neither", ())]
UNBACKED = [(case["sources"], claim) for case in CASES for claim in case.get("unbacked", ())]


def checked(claim: str, sources: list[str]) -> list[tuple[State, str]]:
    source = FigureSource([SourceText("hours", 0, 0, text) for text in sources])
    checks = check_figures(claim, source, range(len(sources)))
    return [(check.state, check.source.text if check.source else "") for check in checks]


@pytest.mark.parametrize(("sources", "claim"), AGREED, ids=lambda each: each if isinstance(each, str) else "")
def test_days_that_are_so_are_backed(sources: list[str], claim: str) -> None:
    assert {state for state, _ in checked(claim, sources)} <= {State.FOUND, State.DERIVED}


@pytest.mark.parametrize(("sources", "claim", "says"), OTHERWISE)
def test_days_that_are_otherwise_are_in_conflict(sources: list[str], claim: str, says: str) -> None:
    assert (State.CONFLICT, says) in checked(claim, sources)


@pytest.mark.parametrize(("sources", "claim"), NEITHER)
def test_of_other_things_nothing_is_told(sources: list[str], claim: str) -> None:
    assert State.CONFLICT not in {state for state, _ in checked(claim, sources)}


@pytest.mark.parametrize(("sources", "claim"), UNBACKED)
def test_a_time_that_the_sources_give_for_the_other_end_backs_nothing(sources: list[str], claim: str) -> None:
    assert {state for state, _ in checked(claim, sources)} & {State.ABSENT, State.CONFLICT}
