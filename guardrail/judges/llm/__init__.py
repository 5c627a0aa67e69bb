"""The LLM judge: any model behind an OpenAI-compatible chat-completions API.

The names are imported on first use: a guard that runs the local judge reads only the settings, and does not
load the API client (some 30 MB and half a second).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.judges.llm.chat import OutputMode as OutputMode
    from guardrail.judges.llm.judge import ExplainingJudge as ExplainingJudge
    from guardrail.judges.llm.judge import LlmExplainer as LlmExplainer
    from guardrail.judges.llm.judge import LlmJudge as LlmJudge
    from guardrail.judges.llm.prompt import Fence as Fence
    from guardrail.judges.llm.reply import ReplyForm as ReplyForm
    from guardrail.judges.llm.reply import read_reply as read_reply
    from guardrail.judges.llm.settings import LlmJudgeSettings as LlmJudgeSettings

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
