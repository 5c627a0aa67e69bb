"""Records of verdicts, made to order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from guardrail.events import (
    ClaimVerdict,
    Decision,
    PolicyRef,
    ResponseVerdict,
    SegmentKind,
    Severity,
    Timings,
    Verdict,
    VerdictCounts,
)

REF: Final = PolicyRef(name="default", version="1", digest="0" * 12)


def claim(verdict: Verdict = Verdict.SUPPORTED, **fields: Any) -> dict[str, Any]:
    """A claim's fields for ``recorded``: critical, surely judged, in the first segment."""
    support = 0.95 if verdict is Verdict.SUPPORTED else 0.05
    return {
        "segment": 0,
        "severity": Severity.CRITICAL,
        "verdict": verdict,
        "confidence": 0.9,
        "support": None if verdict is Verdict.UNVERIFIED else support,
        **fields,
    }


def recorded(
    response_id: str,
    found: Sequence[dict[str, Any]],
    kinds: Sequence[SegmentKind] | None = None,
    **fields: Any,
) -> ResponseVerdict:
    """The record of a response with these claims, released unless ``fields`` say otherwise."""
    told: dict[str, Any] = {
        "id": f"{response_id}-verdict",
        "response_id": response_id,
        "score": None,
        "counts": VerdictCounts(),
        "decision": Decision.RELEASE,
        "rule": "score and rules passed",
        "mode": "stream",
        "complete": True,
        "summary": "",
        "timings": Timings(total_ms=0.0),
        "policy": REF,
        "segment_kinds": None if kinds is None else tuple(kinds),
        "claims": tuple(
            ClaimVerdict(
                **{
                    "id": f"{response_id}-{index}-verdict",
                    "response_id": response_id,
                    "claim_id": f"{response_id}-{index}",
                    "index": index,
                    "text": f"Claim {index}.",
                    "span": (index, index + 1),
                    "judge": "test",
                    "latency_ms": 0.0,
                    "policy": REF,
                    **each,
                }
            )
            for index, each in enumerate(found)
        ),
    }
    return ResponseVerdict(**told | fields)
