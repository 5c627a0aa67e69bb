"""One response: a state machine, its effects, its outputs, and its stored form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.session.effects import AskJudge, Cancel, Channel, CutOn, Effect, Emit
    from guardrail.session.machine import Session
    from guardrail.session.stored import StoredSession

__all__ = [
    "AskJudge",
    "Cancel",
    "Channel",
    "CutOn",
    "Effect",
    "Emit",
    "Session",
    "StoredSession",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.session.effects": ("AskJudge", "Cancel", "Channel", "CutOn", "Effect", "Emit"),
            "guardrail.session.machine": ("Session",),
            "guardrail.session.stored": ("StoredSession",),
        },
    )
