"""Which judge gives the verdicts, and the settings of each kind."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.local.settings import LocalJudgeSettings


class JudgeSettings(BaseModel):
    """The judge. Both kinds can be set up side by side; ``kind`` says which one runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["local", "llm"] = Field(
        default="local",
        description="local: rules and a small calibrated model, in process, no key needed. "
        "llm: a language model behind an OpenAI-compatible API.",
    )
    local: LocalJudgeSettings = Field(
        default_factory=LocalJudgeSettings, description="Settings of the local judge."
    )
    llm: LlmJudgeSettings = Field(default_factory=LlmJudgeSettings, description="Settings of the LLM judge.")
