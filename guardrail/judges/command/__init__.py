"""Judges of the operator's own: a program on this machine or an HTTP endpoint, by a JSON protocol.

``CommandJudge`` is imported when it is first asked for: the settings need no HTTP client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guardrail.judges.command.settings import CommandJudgeSettings

if TYPE_CHECKING:
    from guardrail.judges.command.judge import CommandJudge

__all__ = ["CommandJudge", "CommandJudgeSettings"]


def __getattr__(name: str) -> Any:
    if name == "CommandJudge":
        from guardrail.judges.command.judge import CommandJudge

        return CommandJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
