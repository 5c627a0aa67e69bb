"""Flagged cases, as a guard writes them."""

from __future__ import annotations

from typing import Any

from consumers.cases import NewCase
from guardrail.events import (
    ClaimVerdict,
    Context,
    Decision,
    Evidence,
    FlaggedCase,
    PolicyRef,
    Verdict,
)
from tests.support.records import claim_verdict

ANSWER = "Returns take 30 days. Shipping is free."
SOURCE = "Returns are accepted within 14 days. Shipping costs nothing."


def claim(index: int, text: str, start: int, verdict: Verdict, quote: str, reasoning: str) -> ClaimVerdict:
    at = SOURCE.index(quote)
    return claim_verdict(
        "r-1",
        index,
        claim_id=f"claim-{index}",
        text=text,
        span=(start, start + len(text)),
        verdict=verdict,
        support=0.9 if verdict is Verdict.SUPPORTED else 0.1,
        evidence=(Evidence(context_id="doc-1", quote=quote, span=(at, at + len(quote))),),
        reasoning=reasoning,
        policy=PolicyRef(name="default", version="1"),
    )


def flagged_case(number: int = 1, **changes: Any) -> FlaggedCase:
    values: dict[str, Any] = {
        "id": f"case-{number}",
        "response_id": f"r-{number}",
        "question": "How long do returns take?",
        "contexts": (Context(id="doc-1", text=SOURCE, source="terms.pdf"),),
        "answer": ANSWER,
        "delivered": "",
        "decision": Decision.BLOCK,
        "rule": "verdict CONTRADICTED: block",
        "score": 0.4,
        "claims": (
            claim(0, "Returns take 30 days.", 0, Verdict.CONTRADICTED, "within 14 days", "14, not 30"),
            claim(1, "Shipping is free.", 22, Verdict.SUPPORTED, "Shipping costs nothing", "it says so"),
        ),
        "deciding_claim": "claim-0",
        "route": "support",
        "policy": PolicyRef(name="default", version="1"),
    }
    return FlaggedCase(**{**values, **changes})


def new_case(number: int = 1, **changes: Any) -> NewCase:
    """Case ``number``, one second later than the one before."""
    case = flagged_case(number, **changes)
    return NewCase(case, case.to_json(), 1_700_000_000_000 + 1000 * number)
