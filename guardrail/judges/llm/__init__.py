"""The LLM judge: any model behind an OpenAI-compatible chat-completions API.

The names are imported on first use: a guard that runs the local judge reads only the settings, and does not
load the API client (some 30 MB and half a second).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.judges.llm.endpoint import OutputMode
    from guardrail.judges.llm.explain import LlmExplainer
    from guardrail.judges.llm.judge import LlmJudge
    from guardrail.judges.llm.prompt import Fence
    from guardrail.judges.llm.reply import ReplyForm, read_reply
    from guardrail.judges.llm.settings import LlmJudgeSettings

__all__ = [
    "Fence",
    "LlmExplainer",
    "LlmJudge",
    "LlmJudgeSettings",
    "OutputMode",
    "ReplyForm",
    "read_reply",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.judges.llm.endpoint": ("OutputMode",),
            "guardrail.judges.llm.explain": ("LlmExplainer",),
            "guardrail.judges.llm.judge": ("LlmJudge",),
            "guardrail.judges.llm.prompt": ("Fence",),
            "guardrail.judges.llm.reply": ("ReplyForm", "read_reply"),
            "guardrail.judges.llm.settings": ("LlmJudgeSettings",),
        },
    )
