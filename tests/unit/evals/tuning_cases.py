"""Made verdicts and labels, whose best thresholds are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail.evals.records import Judged
from guardrail.events import (
    ClaimVerdict,
    Decision,
    Label,
    PolicyRef,
    ResponseVerdict,
    Severity,
    Timings,
    Verdict,
    VerdictCounts,
)

POLICY = PolicyRef(name="default", version="1", digest="0" * 12)


def claim(
    response_id: str, index: int, verdict: Verdict, support: float | None, **fields: Any
) -> ClaimVerdict:
    given: dict[str, Any] = {
        "severity": Severity.NORMAL,
        "segment": index,
        "confidence": 0.9,
        "judge": "local",
        "latency_ms": 1.0,
    }
    return ClaimVerdict(
        id=f"{response_id}-{index}-verdict",
        response_id=response_id,
        claim_id=f"{response_id}-{index}",
        index=index,
        text="A claim.",
        span=(10 * index, 10 * index + 8),
        verdict=verdict,
        support=support,
        policy=POLICY,
        **(given | fields),
    )


def label(about: ClaimVerdict | str, verdict: Verdict, **fields: Any) -> Label:
    if isinstance(about, str):
        return Label(response_id=about, verdict=verdict, **fields)
    return Label(response_id=about.response_id, claim_id=about.claim_id, verdict=verdict, **fields)


def judged(
    response_id: str, claims: Sequence[ClaimVerdict], labels: Sequence[Label] = (), **fields: Any
) -> Judged:
    given: dict[str, Any] = {"complete": True, "decision": Decision.RELEASE, "mode": "observe"}
    verdict = ResponseVerdict(
        id=f"{response_id}-verdict",
        response_id=response_id,
        score=None,
        counts=VerdictCounts(),
        rule="none",
        claims=tuple(claims),
        summary="",
        timings=Timings(total_ms=1.0),
        policy=POLICY,
        **(given | fields),
    )
    return Judged(verdict, tuple(labels))
