"""Verdicts on whole answers, from what is said of each claim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail.events import ClaimVerdict, ResponseVerdict, Severity, Verdict
from guardrail.scoring import ScoreKeeper
from tests.support import records

SUPPORT = dict(zip(Verdict, (0.9, 0.5, 0.2, 0.05, None), strict=True))
WIDTH = 20
"""Of a claim and the blank behind it."""


def claim_verdict(
    index: int, verdict: Verdict, severity: Severity = Severity.NORMAL, **changes: Any
) -> ClaimVerdict:
    """Claim ``index`` of an answer, on its code points ``[20 * index, 20 * index + 19)``."""
    made = {
        "claim_id": f"c{index}",
        "text": f"Claim {index} says it all."[: WIDTH - 1],
        "span": (WIDTH * index, WIDTH * index + WIDTH - 1),
        "severity": severity,
        "verdict": verdict,
        "support": SUPPORT[verdict],
    }
    return records.claim_verdict("r1", index, **made | changes)


def response_verdict(claims: Sequence[ClaimVerdict], **changes: Any) -> ResponseVerdict:
    """The verdict on an answer of these claims, with the default policy's score."""
    keeper = ScoreKeeper()
    for claim in claims:
        keeper.add(claim.severity, claim.verdict, claim.support)
    made = {"response_id": "r1", "score": keeper.score, "rule": "", "mode": "observe"} | changes
    return records.response_verdict(made.pop("response_id"), claims, **made)


def of(*verdicts: Verdict, **changes: Any) -> ResponseVerdict:
    """The verdict on an answer with these verdicts on its claims."""
    return response_verdict([claim_verdict(n, verdict) for n, verdict in enumerate(verdicts)], **changes)
