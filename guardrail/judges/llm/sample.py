"""A small request, to show the prompts with."""

from __future__ import annotations

import math
from typing import Final

from guardrail.claims.model import Claim
from guardrail.events import Context, Severity
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import JudgeRequest
from guardrail.judges.llm.fence import Fence

_MARKER: Final = "m012345678901234567"
_CONTEXTS: Final = (
    "The basic plan costs $49 a month. Refunds are paid within 14 days of the cancellation.",
    "| Plan | Users |\n|------|-------|\n| Basic | 3 |",
)
_CLAIMS: Final = (("The basic plan costs $49 a month.", ""), ("It includes 5 users.", "The basic plan:"))


def sample() -> tuple[JudgeRequest, Fence]:
    """Two claims on two contexts, and a fence whose marker is always the same: never to be asked for real."""
    claims = {
        f"claim-{number}": Claim(number, number, text, 0, len(text), Severity.NORMAL, lead_in=lead_in)
        for number, (text, lead_in) in enumerate(_CLAIMS)
    }
    contexts = [Context(id=f"context-{number}", text=text) for number, text in enumerate(_CONTEXTS)]
    request = JudgeRequest("sample", "What is in the basic plan?", claims, EvidenceIndex(contexts), math.inf)
    return request, Fence(_MARKER)
