"""Verdicts on whole answers, from what is said of each claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail.events import (
    ClaimVerdict,
    Decision,
    PolicyRef,
    ResponseVerdict,
    Severity,
    Timings,
    Verdict,
)
from guardrail.scoring import ScoreKeeper, count_verdicts

POLICY = PolicyRef(name="default", version="1")
SUPPORT = {
    Verdict.SUPPORTED: 0.9,
    Verdict.PARTIALLY_SUPPORTED: 0.5,
    Verdict.UNSUPPORTED: 0.2,
    Verdict.CONTRADICTED: 0.05,
    Verdict.UNVERIFIED: None,
}
WIDTH = 20
"""Of a claim and the blank behind it."""


def claim_verdict(
    index: int, verdict: Verdict, severity: Severity = Severity.NORMAL, **changes: Any
) -> ClaimVerdict:
    """Claim ``index`` of an answer, on its code points ``[20 * index, 20 * index + 19)``."""
    values: dict[str, Any] = {
        "id": f"v{index}",
        "response_id": "r1",
        "claim_id": f"c{index}",
        "index": index,
        "text": f"Claim {index} says it all."[: WIDTH - 1],
        "span": (WIDTH * index, WIDTH * index + WIDTH - 1),
        "segment": index,
        "severity": severity,
        "verdict": verdict,
        "confidence": 0.9,
        "support": SUPPORT[verdict],
        "judge": "scripted",
        "latency_ms": 1.0,
        "policy": POLICY,
    }
    return ClaimVerdict(**{**values, **changes})


def response_verdict(claims: Sequence[ClaimVerdict], **changes: Any) -> ResponseVerdict:
    """The verdict on an answer of these claims, with the default policy's score."""
    keeper = ScoreKeeper()
    for claim in claims:
        keeper.add(claim.severity, claim.verdict, claim.support)
    values: dict[str, Any] = {
        "id": "v",
        "response_id": "r1",
        "score": keeper.score,
        "counts": count_verdicts(claim.verdict for claim in claims),
        "decision": Decision.RELEASE,
        "rule": "",
        "mode": "observe",
        "complete": True,
        "claims": tuple(claims),
        "summary": "",
        "timings": Timings(total_ms=1.0),
        "policy": POLICY,
    }
    return ResponseVerdict(**{**values, **changes})


def of(*verdicts: Verdict, **changes: Any) -> ResponseVerdict:
    """The verdict on an answer with these verdicts on its claims."""
    return response_verdict([claim_verdict(n, verdict) for n, verdict in enumerate(verdicts)], **changes)
