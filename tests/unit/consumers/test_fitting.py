from __future__ import annotations

import pytest

from consumers.guard import value_within
from guardrail.events import (
    ClaimVerdict,
    Context,
    Decision,
    FlaggedCase,
    PolicyRef,
    ResponseVerdict,
    Severity,
    Timings,
    VerdictCounts,
    parse_output,
)
from guardrail.judges import Evidence, Verdict

POLICY = PolicyRef(name="p", version="1")


def claim(index: int, quote_chars: int = 1_000) -> ClaimVerdict:
    return ClaimVerdict(
        id=f"v{index}",
        response_id="r",
        claim_id=f"c{index}",
        index=index,
        text="A claim.",
        span=(0, 8),
        segment=index,
        severity=Severity.NORMAL,
        verdict=Verdict.UNSUPPORTED,
        confidence=1.0,
        support=0.0,
        judge="j",
        latency_ms=1.0,
        evidence=(Evidence(context_id="c", quote="q" * quote_chars, span=(0, quote_chars)),),
        policy=POLICY,
    )


def case(contexts: int = 2, claims: int = 2) -> FlaggedCase:
    return FlaggedCase(
        id="f",
        response_id="r",
        question="?",
        answer="An answer. " * 100,
        delivered="",
        decision=Decision.BLOCK,
        contexts=tuple(Context(id=f"c{n}", text="x" * 50_000) for n in range(contexts)),
        rule="rule",
        score=0.0,
        claims=tuple(claim(n) for n in range(claims)),
        policy=POLICY,
        metadata={"huge": "y" * 5_000},
    )


def verdict(claims: int) -> ResponseVerdict:
    return ResponseVerdict(
        id="v",
        response_id="r",
        score=0.0,
        counts=VerdictCounts(unsupported=claims),
        decision=Decision.FLAG,
        rule="r",
        mode="hold",
        complete=True,
        claims=tuple(claim(n) for n in range(claims)),
        summary="s",
        hallucinated_claims=("A claim.",) * claims,
        timings=Timings(total_ms=1.0),
        policy=POLICY,
    )


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
