"""Requests for classifier judges."""

from __future__ import annotations

import time
from collections.abc import Sequence

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import JudgeRequest


def claim(text: str, lead_in: str = "", index: int = 0) -> Claim:
    return Claim(index, index, text, 0, len(text), Severity.NORMAL, (), lead_in)


def request(
    claims: Sequence[str | Claim], contexts: Sequence[str], *, seconds: float = 60.0, response_id: str = "r"
) -> JudgeRequest:
    """Claims ``c0``, ``c1`` … against contexts ``d0``, ``d1`` …"""
    return JudgeRequest(
        response_id=response_id,
        question="Which colour is the sky?",
        claims={
            f"c{number}": item if isinstance(item, Claim) else claim(item, index=number)
            for number, item in enumerate(claims)
        },
        evidence=EvidenceIndex([Context(id=f"d{number}", text=text) for number, text in enumerate(contexts)]),
        deadline=time.monotonic() + seconds,
    )
