"""Which judge gives the verdicts, and the settings of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from guardrail.frozen import Frozen
from guardrail.judges.cache import CacheSettings
from guardrail.judges.cascade import CascadeSettings
from guardrail.judges.decisions import DecisionsSettings
from guardrail.judges.http import HttpJudgeSettings
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.model import ClassifierSettings
from guardrail.judges.spending import BudgetSettings, ModelPrice
from guardrail.judges.streams import SelfJudgingSettings
from guardrail.policy import JudgeKind


class JudgeSettings(Frozen):
    """The judge. All kinds can be configured side by side; ``kind`` says which one runs."""

    kind: JudgeKind = Field(
        default="local",
        description="local: rules and a small calibrated model, in process, no key needed. llm: a "
        "language model behind an OpenAI-compatible API. decisions: a model that answers each claim with "
        "probabilities. classifier: any Hugging Face "
        "sentence-pair classifier, in process. hhem: a classifier with the preset hhem, "
        "Vectara's HHEM-2.1-Open. custom: a judge of your own, which factory makes. http: an "
        "HTTP endpoint of your own. cascade: a first judge for every claim, and a second for what it can't "
        "settle.",
    )
    local: LocalJudgeSettings = Field(
        default_factory=LocalJudgeSettings, description="Settings of the local judge."
    )
    llm: LlmJudgeSettings = Field(default_factory=LlmJudgeSettings, description="Settings of the LLM judge.")
    decisions: DecisionsSettings = Field(
        default_factory=DecisionsSettings, description="Settings of the decisions judge."
    )
    classifier: ClassifierSettings = Field(
        default_factory=ClassifierSettings,
        description="Settings of the classifier judge, also for kind hhem.",
    )
    factory: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")] | None = Field(
        default=None,
        description="The function that makes the judge of kind custom, as package.module:make; it is called "
        "without arguments and returns a guardrail.judges.Judge.",
    )
    http: HttpJudgeSettings = Field(
        default_factory=HttpJudgeSettings, description="Settings of the judge of kind http."
    )
    prices: dict[str, ModelPrice] = Field(
        default_factory=dict,
        description="What models cost, by name: {MODEL: {input, cached_input, output}}, in USD per "
        "million tokens. Names may omit the provider's prefix and the model's date.",
    )
    cascade: CascadeSettings = Field(
        default_factory=CascadeSettings,
        description="Which judge is first, which is second, and which claims go on.",
    )
    max_wait_ms: Annotated[int, Field(ge=0, le=600_000)] | None = Field(
        default=None,
        description="How long, while the answer is being written, a claim may wait for others, so that they "
        "share a call to the LLM judge, or to a cascade's second judge. It bounds what this adds to the "
        "delay of text while it streams: at most a quarter of claim_timeout_ms, and in a guard that is short "
        "of processor time so many times as long as everything takes there. Four claims, and those that look "
        "wrong, wait for no more, and none waits once the answer has ended. 0: none. null: 1,000, or 1,500 "
        "in a cascade.",
    )
    budgets: BudgetSettings = Field(
        default_factory=BudgetSettings, description="Limits on what the LLM judge consumes, per process."
    )
    cache: CacheSettings = Field(
        default_factory=CacheSettings,
        description="Cached verdicts, for all judges except the local one.",
    )
    calibration: Path | None = Field(
        default=None,
        description="A file with calibrations by judge, which guardrail tune --calibration wrote. They apply "
        "to the probabilities of support and contradiction in all verdicts; what judges cache, "
        "and the cascade's bands, are before them. null: none.",
    )
    self_judging: SelfJudgingSettings = Field(
        default_factory=SelfJudgingSettings,
        description="What happens if the judge's model also wrote the answer.",
    )

    def kinds(self) -> frozenset[str]:
        """The judges that run, by the names of their sections: that of ``kind``, or both of the cascade, and
        the fallback of the decisions judge, and the LLM judge where its model gives reasons.
        """
        named = {self.cascade.first, self.cascade.second} if self.kind == "cascade" else {self.kind}
        if "decisions" in named and self.decisions.fallback != "none":
            named.add(self.decisions.fallback)
        if "decisions" in named and self.decisions.reasoning != "none":
            named.add("llm")
        return frozenset("classifier" if kind == "hhem" else kind for kind in named)

    @model_validator(mode="after")
    def _decisions_second(self) -> Self:
        """Whoever configures a decision model, and names no second judge for the cascade, means this one."""
        if "decisions" not in self.model_fields_set or "second" in self.cascade.model_fields_set:
            return self
        object.__setattr__(self, "cascade", self.cascade.model_copy(update={"second": "decisions"}))
        return self

    @model_validator(mode="before")
    @classmethod
    def _hhem_is_a_preset(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        kinds = {"kind": data.get("kind")}
        if kinds["kind"] == "cascade":
            cascade = _given(data.get("cascade"))
            kinds = {f"cascade.{place}": cascade.get(place) for place in ("first", "second")}
        place = next((place for place, kind in kinds.items() if kind == "hhem"), None)
        if place is None:
            return data
        if "classifier" in kinds.values():
            raise ValueError(f"{place}: hhem is the classifier, with a preset; name two different judges")
        classifier = _given(data.get("classifier"))
        preset = classifier.get("preset") or "hhem"
        if preset != "hhem":
            raise ValueError(f"{place} is hhem, but classifier.preset {preset}; write classifier for hhem")
        return {**data, "classifier": {**classifier, "preset": preset}}


def _given(section: Any) -> Mapping[str, Any]:
    """The values set in a section, which may be plain values or a settings object."""
    if isinstance(section, BaseModel):
        return {name: getattr(section, name) for name in section.model_fields_set}
    return section if isinstance(section, Mapping) else {}
