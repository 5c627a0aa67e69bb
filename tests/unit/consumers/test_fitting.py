from __future__ import annotations

import pytest

from consumers.guard import value_within
from guardrail.events import (
    ClaimVerdict,
    Context,
    Decision,
    FlaggedCase,
    ResponseVerdict,
    parse_output,
)
from guardrail.judges import Evidence, Verdict
from tests.support.cases import flagged_case
from tests.support.records import claim_verdict, response_verdict


def claim(index: int, quote_chars: int = 1_000) -> ClaimVerdict:
    quote = Evidence(context_id="c", quote="q" * quote_chars, span=(0, quote_chars))
    said = {"verdict": Verdict.UNSUPPORTED, "support": 0.0, "evidence": (quote,)}
    return claim_verdict("r", index, text="A claim.", span=(0, 8), **said)


def case(contexts: int = 2, claims: int = 2) -> FlaggedCase:
    return flagged_case(
        contexts=tuple(Context(id=f"c{n}", text="x" * 50_000) for n in range(contexts)),
        answer="An answer. " * 100,
        claims=tuple(claim(n) for n in range(claims)),
        metadata={"huge": "y" * 5_000},
    )


def verdict(claims: int) -> ResponseVerdict:
    of = [claim(n) for n in range(claims)]
    return response_verdict("r", of, decision=Decision.FLAG, hallucinated_claims=("A claim.",) * claims)


def test_what_fits_is_untouched() -> None:
    assert value_within(case(), 10_000_000) == (case().to_json(), ())


@pytest.mark.parametrize(
    ("limit", "omitted"),
    [
        (20_000, ("contexts",)),
        (9_000, ("contexts", "claims.evidence")),
        (6_900, ("contexts", "claims.evidence", "claims")),
        (1_700, ("contexts", "claims.evidence", "claims", "metadata")),
    ],
)
def test_a_case_loses_what_is_easiest_to_find_elsewhere_first(limit: int, omitted: tuple[str, ...]) -> None:
    value, left_out = value_within(case(), limit)
    assert len(value) <= limit
    assert left_out == omitted
    found = parse_output(value)
    assert isinstance(found, FlaggedCase)
    assert found.omitted == omitted
    assert found.answer == case().answer


def test_a_verdict_keeps_its_counts_whatever_it_loses() -> None:
    value, left_out = value_within(verdict(500), 5_000)
    found = parse_output(value)
    assert isinstance(found, ResponseVerdict)
    assert found.counts.unsupported == 500
    assert left_out == ("claims.evidence", "claims", "hallucinated_claims")


def test_a_claim_keeps_its_verdict() -> None:
    value, left_out = value_within(claim(0, 100_000), 2_000)
    assert len(value) <= 2_000
    assert left_out == ("evidence",)
