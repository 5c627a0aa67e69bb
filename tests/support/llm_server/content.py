"""What a model writes when it is asked for verdicts."""

from __future__ import annotations

import json
from typing import Any

from tests.support.llm_server.calls import Recorded


def member(label: str, verdict: str = "SUPPORTED", **changes: Any) -> dict[str, Any]:
    """One verdict of a reply, as a model that keeps to the schema would write it."""
    return {
        "id": label,
        "evidence": [],
        "verdict": verdict,
        "confidence": 0.9,
        "against": [],
        "reasoning": "",
    } | changes


def verdicts(*members: dict[str, Any]) -> str:
    return json.dumps({"verdicts": list(members)})


def obliging(call: Recorded) -> str:
    """SUPPORTED for every claim asked for."""
    return verdicts(*(member(label) for label in call.asked))


def missing(call: Recorded) -> str:
    """All but the last."""
    return verdicts(*(member(label) for label in call.asked[:-1]))
