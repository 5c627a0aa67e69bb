"""The LLM judge: any model behind an OpenAI-compatible chat-completions API.

``LlmJudge`` is imported when it is first asked for: a guard that runs on the local judge reads only the
settings, and does not load the API client (some 30 MB and half a second).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guardrail.judges.llm.settings import LlmJudgeSettings

if TYPE_CHECKING:
    from guardrail.judges.llm.judge import LlmJudge

__all__ = ["LlmJudge", "LlmJudgeSettings"]


def __getattr__(name: str) -> Any:
    if name == "LlmJudge":
        from guardrail.judges.llm.judge import LlmJudge

        return LlmJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
