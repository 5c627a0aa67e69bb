"""Judges of the operator's own: a program on this machine or an HTTP endpoint, by a JSON protocol.

The names are imported when they are first asked for: the settings need no HTTP client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.judges.command.judge import CommandJudge
    from guardrail.judges.command.settings import CommandJudgeSettings

__all__ = [
    "CommandJudge",
    "CommandJudgeSettings",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.judges.command.judge": ("CommandJudge",),
            "guardrail.judges.command.settings": ("CommandJudgeSettings",),
        },
    )
