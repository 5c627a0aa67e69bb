"""Records of verdicts, made to order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from guardrail.events import (
    ClaimVerdict,
    Decision,
    Event,
    PolicyRef,
    ResponseVerdict,
    SegmentKind,
    Severity,
    Timings,
    Verdict,
)
from guardrail.scoring import count_verdicts

REF: Final = PolicyRef(name="default", version="1", digest="0" * 12)


def claim_verdict(response_id: str, index: int, **fields: Any) -> ClaimVerdict:
    """The verdict on a claim: SUPPORTED by default, of a segment of its own."""
    made: dict[str, Any] = {
        "id": f"{response_id}-{index}-verdict",
        "response_id": response_id,
        "claim_id": f"{response_id}-{index}",
        "index": index,
        "text": f"Claim {index}.",
        "span": (index, index + 1),
        "segment": index,
        "severity": Severity.NORMAL,
        "verdict": Verdict.SUPPORTED,
        "confidence": 0.9,
        "support": 0.9,
        "judge": "test",
        "latency_ms": 1.0,
        "policy": REF,
    }
    return ClaimVerdict(**made | fields)


def response_verdict(response_id: str, claims: Sequence[ClaimVerdict] = (), **fields: Any) -> ResponseVerdict:
    """The verdict on a response with these claims, released by default."""
    made: dict[str, Any] = {
        "id": f"{response_id}-verdict",
        "response_id": response_id,
        "score": None,
        "counts": count_verdicts(each.verdict for each in claims),
        "decision": Decision.RELEASE,
        "rule": "score and rules passed",
        "mode": "stream",
        "complete": True,
        "claims": tuple(claims),
        "summary": "",
        "timings": Timings(total_ms=1.0),
        "policy": REF,
    }
    return ResponseVerdict(**made | fields)


def written(path: Path, events: Iterable[Event]) -> Path:
    """A file with these, one a line."""
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    return path


def claim(verdict: Verdict = Verdict.SUPPORTED, **fields: Any) -> dict[str, Any]:
    """A claim's fields for ``recorded``: critical, surely judged, in the first segment."""
    support = 0.95 if verdict is Verdict.SUPPORTED else 0.05
    return {
        "segment": 0,
        "severity": Severity.CRITICAL,
        "verdict": verdict,
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
    made: dict[str, Any] = {
        "claims": [claim_verdict(response_id, index, **each) for index, each in enumerate(found)],
        "segment_kinds": None if kinds is None else tuple(kinds),
    }
    return response_verdict(response_id, **made | fields)
