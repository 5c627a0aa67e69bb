"""Which judge gives the verdicts, and the settings of each kind."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from guardrail.judges.classifier.settings import ClassifierSettings, HhemSettings
from guardrail.judges.command.settings import CommandJudgeSettings
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.pricing import ModelPrice


class JudgeSettings(BaseModel):
    """The judge. All kinds can be set up side by side; ``kind`` says which one runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["local", "llm", "hhem", "classifier", "command"] = Field(
        default="local",
        description="local: rules and a small calibrated model, in process, no key needed. "
        "llm: a language model behind an OpenAI-compatible API. hhem: Vectara's HHEM-2.1-Open, in process. "
        "classifier: any Hugging Face classifier of pairs, in process. command: a program or an HTTP "
        "endpoint of your own.",
    )
    local: LocalJudgeSettings = Field(
        default_factory=LocalJudgeSettings, description="Settings of the local judge."
    )
    llm: LlmJudgeSettings = Field(default_factory=LlmJudgeSettings, description="Settings of the LLM judge.")
    hhem: HhemSettings = Field(default_factory=HhemSettings, description="Settings of the HHEM judge.")
    classifier: ClassifierSettings = Field(
        default_factory=ClassifierSettings, description="Settings of the classifier judge."
    )
    command: CommandJudgeSettings = Field(
        default_factory=CommandJudgeSettings, description="Settings of a judge of your own."
    )
    prices: dict[str, ModelPrice] = Field(
        default_factory=dict,
        description="What models cost, by name: {MODEL: {input, cached_input, output}}, in USD per million "
        "tokens. Providers' prefixes and dates of models need not be repeated.",
    )
