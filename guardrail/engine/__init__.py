"""Runs many responses against one judge: tasks, deadlines, bounds, and the state of each response to
store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.engine.engine import MAX_SEQ, OVERLOADED, Engine
    from guardrail.engine.runs import (
        Captured,
        Change,
        ClosedResponse,
        FinishedResponses,
        Headers,
        Output,
        digest,
    )

__all__ = [
    "MAX_SEQ",
    "OVERLOADED",
    "Captured",
    "Change",
    "ClosedResponse",
    "Engine",
    "FinishedResponses",
    "Headers",
    "Output",
    "digest",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.engine.engine": ("MAX_SEQ", "OVERLOADED", "Engine"),
            "guardrail.engine.runs": (
                "Captured",
                "Change",
                "ClosedResponse",
                "FinishedResponses",
                "Headers",
                "Output",
                "digest",
            ),
        },
    )
