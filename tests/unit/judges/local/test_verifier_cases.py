"""The local judge as shipped, on the self-written cases of ``tests/verifier_cases``: rates with floors."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import pytest

from guardrail.claims.severity import BuiltinSeverityRater
from guardrail.events import SegmentKind
from guardrail.judges.local import LocalJudge
from tests.verifier_cases.cases import load
from tests.verifier_cases.judging import Rate, judged, rates, sampled

CASES: Final = load()
MOST_OF_A_KIND: Final = 25

FLOORS: Final = {
    "supported": 0.84, "not supported": 0.79, "not called contradicted": 0.97, "critical figures": 0.92,
    "chat": 0.80, "combination": 0.77, "coreference": 0.81, "own-value": 0.72,
    "paraphrase": 0.80, "reported": 0.81, "verbatim": 0.96, "addition": 0.92,
    "date": 0.88, "merged": 0.79, "name": 0.87, "negation": 0.80,
    "number": 0.92, "other-value": 0.80, "overgeneralisation": 0.84, "qualifier": 0.69,
    "quoted-falsehood": 0.40, "short-addition": 0.76, "swap": 0.52, "unit": 0.95,
}  # fmt: skip
"""Least shares of a sample, in all and by kind (``judging.rates``): what the judge reaches, less a little.
``python -m tests.verifier_cases.judging`` prints those of all cases.
Whoever fits the parameters anew sets them anew."""


@pytest.fixture(scope="module")
def found() -> dict[str, Rate]:
    async def run() -> dict[str, Rate]:
        judge = LocalJudge()
        try:
            return rates(await judged(judge, sampled(CASES, MOST_OF_A_KIND)))
        finally:
            await judge.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("name", FLOORS)
def test_floor(found: dict[str, Rate], name: str) -> None:
    assert found[name].share >= FLOORS[name], found[name]


def test_every_rate_has_a_floor(found: dict[str, Rate]) -> None:
    assert found.keys() == FLOORS.keys()


def test_the_cases_are_many_and_of_every_kind_and_label() -> None:
    kinds = Counter[str](located.case.kind for located in CASES)
    labels = Counter[str](located.case.label for located in CASES)
    assert len(CASES) >= 1000
    assert min(kinds.values()) >= 15
    assert 0.45 <= labels["supported"] / len(CASES) <= 0.55
    assert len(labels) == 4


def test_no_claim_stands_twice_beside_the_same_passages() -> None:
    claims = Counter((located.case.claim, located.contexts) for located in CASES)
    assert not [claim for claim, count in claims.items() if count > 1]


def test_verbatim_cases_stand_in_their_source_and_no_other_case_does() -> None:
    """But for falsehoods, which a source may quote word for word."""
    for located in CASES:
        if located.case.kind == "quoted-falsehood":
            continue
        said = any(located.case.claim in " ".join(text.split()) for text in located.contexts)
        assert said == (located.case.kind == "verbatim"), located.case.claim


def test_severities_are_seldom_below_what_the_builtin_rules_give() -> None:
    """A person may see money or health where no rule does; the other way round the rule would be coarse."""
    rater = BuiltinSeverityRater()
    rated = [(rater.rate(at.case.claim, SegmentKind.SENTENCE)[0], at.case) for at in CASES]
    assert sum(severity.rank <= case.severity.rank for severity, case in rated) >= 0.98 * len(rated)
