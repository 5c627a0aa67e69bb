"""Made verdicts and labels, whose best thresholds are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail.evals.records import Judged
from guardrail.events import ClaimVerdict, Label, Verdict, VerdictCounts
from tests.support.records import claim_verdict, response_verdict


def claim(
    response_id: str, index: int, verdict: Verdict, support: float | None, **fields: Any
) -> ClaimVerdict:
    made = {"text": "A claim.", "span": (10 * index, 10 * index + 8), "judge": "local"}
    return claim_verdict(response_id, index, verdict=verdict, support=support, **made | fields)


def label(about: ClaimVerdict | str, verdict: Verdict, **fields: Any) -> Label:
    if isinstance(about, str):
        return Label(response_id=about, verdict=verdict, **fields)
    return Label(response_id=about.response_id, claim_id=about.claim_id, verdict=verdict, **fields)


def judged(
    response_id: str, claims: Sequence[ClaimVerdict], labels: Sequence[Label] = (), **fields: Any
) -> Judged:
    made: dict[str, Any] = {"counts": VerdictCounts(), "rule": "none", "mode": "observe"}
    return Judged(response_verdict(response_id, claims, **made | fields), tuple(labels))
