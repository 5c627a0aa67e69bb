"""Numbers, findings and spans that judges offer: what is believed and kept of them, whatever they are."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail.claims import Claim
from guardrail.events import Finding, Severity
from guardrail.judges import Judgement, Verdict
from guardrail.verdicts import sound, spans_within
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


TEXT = "It costs $50."
CLAIM = Claim(0, 0, TEXT, 100, 100 + len(TEXT), Severity.NORMAL)
numbers = st.integers(-3, len(TEXT) + 3)


class Endless:
    """An object that would be iterated for ever."""

    def __iter__(self) -> Any:
        while True:
            yield (0, 1)


@pytest.mark.parametrize(
    ("offered", "kept"),
    [
        ((), ()),
        (((0, 2), (9, 12)), ((0, 2), (9, 12))),
        (((9, 12), (0, 2)), ((0, 2), (9, 12))),  # in the order of the text
        (((0, 4), (3, 8), (8, 9)), ((0, 9),)),  # overlapping, or touching
        (((0, 12), (3, 8)), ((0, 12),)),
        (((0, 13),), ((0, 13),)),
        (((0, 14), (3, 8)), ((3, 8),)),  # out of the claim: dropped before it could swallow another
        (((-2, 4), (100, 113), (5, 5), (8, 3)), ()),
        ([[3, 8]], ((3, 8),)),
        (((3, 8, 9), (3,), 7, None, "38", ("3", "8"), (3.0, 8.0), (False, True), (0, 10**30)), ()),
        (None, ()),
        ("0123", ()),
        (7, ()),
        (Endless(), ()),
    ],
)
def test_only_what_lies_in_the_claim_is_kept_and_never_is_the_verdict_lost(offered: Any, kept: Any) -> None:
    said = replace(judgement(verdict=Verdict.CONTRADICTED), unsupported_spans=offered)
    found = sound(said, TEXT)
    assert found == replace(said, unsupported_spans=kept)


@given(st.lists(st.tuples(numbers, numbers), max_size=8))
def test_they_are_ascending_apart_and_cover_what_the_sound_ones_cover(offered: list[tuple[int, int]]) -> None:
    kept = spans_within(TEXT, offered)
    assert all(a[1] < b[0] for a, b in pairwise(kept))
    assert all(0 <= start < end <= len(TEXT) for start, end in kept)
    within = [(start, end) for start, end in offered if 0 <= start < end <= len(TEXT)]
    assert {at for span in kept for at in range(*span)} == {at for span in within for at in range(*span)}
    assert spans_within(TEXT, kept) == kept


@pytest.mark.parametrize("verdict", Verdict)
def test_a_claim_that_is_supported_or_was_not_checked_has_none(verdict: Verdict) -> None:
    said = replace(judgement(verdict=verdict), unsupported_spans=((0, 2),))
    found = sound(said, TEXT)
    assert found is not None
    assert found.verdict is verdict
    assert bool(found.unsupported_spans) == (verdict not in (Verdict.SUPPORTED, Verdict.UNVERIFIED))
