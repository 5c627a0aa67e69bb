"""What a model writes when it is asked for verdicts, and the ways in which models get it wrong.

All but ``member``, ``verdicts`` and ``fenced`` are contents for a ``Reply``: they are given the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
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


def extra(call: Recorded) -> str:
    """All, and verdicts on claims that were not asked for."""
    return verdicts(*(member(label) for label in [*call.asked, "c9999", "", "claim"]))


def swapped(call: Recorded) -> str:
    """In the reverse order; the first claim asked for is CONTRADICTED, which is said last."""
    first, *others = call.asked
    return verdicts(*(member(label) for label in reversed(others)), member(first, "CONTRADICTED"))


def wrong_enum(call: Recorded) -> str:
    """The first verdict is none of the four."""
    first, *others = call.asked
    return verdicts(member(first, "MOSTLY_TRUE"), *(member(label) for label in others))


def fenced(content: Callable[[Recorded], str] = obliging) -> Callable[[Recorded], str]:
    """In a Markdown fence, with talk around it."""
    return lambda call: f"Here you are:\n```json\n{content(call)}\n```\nAnything else?"
