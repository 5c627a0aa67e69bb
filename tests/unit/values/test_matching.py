"""A claim's value is found, contradicted or absent among a source's."""

from __future__ import annotations

import pytest

from guardrail.values import MatchState, ValueSet, extract, match
from tests.unit.values.pairs import AGREE, DISAGREE

SOURCE = (
    "The Basic plan costs $10 a month, the Team plan $25. Steve: it began on 3 March 2021 with 300 users. "
    "Store it below 25 °C; take 5 to 10 mg. Reach WHO at help@example.com."
)


@pytest.mark.parametrize(
    ("claim", "state", "source"),
    [
        ("It costs $10.", MatchState.FOUND, "$10 a month"),
        ("It costs $24.", MatchState.CONFLICT, "$25"),
        ("It costs €10.", MatchState.ABSENT, None),
        ("since March 2021", MatchState.FOUND, "3 March 2021"),
        ("since March 2020", MatchState.CONFLICT, "3 March 2021"),
        ("on Wednesday", MatchState.FOUND, "3 March 2021"),
        ("with 200 users", MatchState.CONFLICT, "300 users"),
        ("with 200 offices", MatchState.ABSENT, None),
        ("below 77 °F", MatchState.FOUND, "25 °C"),
        ("below 30 °C", MatchState.CONFLICT, "25 °C"),
        ("up to 40 mg", MatchState.CONFLICT, "5 to 10 mg"),
        ("over $5", MatchState.ABSENT, None),
        ("over $50", MatchState.CONFLICT, "$25"),
        ("take 10 mg", MatchState.FOUND, "5 to 10 mg"),
        ("take 50 mg", MatchState.CONFLICT, "5 to 10 mg"),
        ("ask at sales@example.com", MatchState.CONFLICT, "help@example.com"),
        ("by the World Health Organization", MatchState.FOUND, "WHO"),
        ("in Berlin", MatchState.ABSENT, None),
    ],
)
def test_states(claim: str, state: MatchState, source: str | None) -> None:
    (value,) = extract(claim)
    found = ValueSet.of(SOURCE).match(value)
    assert found.state is state
    if source is None:
        assert found.source is None
    else:
        assert found.source is not None
        assert found.source.text in source or source in found.source.text


def test_a_name_may_stand_anywhere_in_the_text() -> None:
    """ "Steve:" begins a sentence, so it is no value of the source; it still backs a claim about Steve."""
    (value,) = extract("It was said by Steve")
    assert ValueSet.of(SOURCE).match(value).state is MatchState.FOUND
    assert match(value, extract(SOURCE)).state is MatchState.ABSENT


@pytest.mark.parametrize(("claim", "source"), AGREE)
def test_the_filter_loses_no_agreement(claim: str, source: str) -> None:
    assert match(extract(claim)[0], extract(source)).state is MatchState.FOUND


@pytest.mark.parametrize(("claim", "source"), DISAGREE)
def test_the_filter_invents_no_agreement(claim: str, source: str) -> None:
    assert match(extract(claim)[0], extract(source)).state is not MatchState.FOUND
