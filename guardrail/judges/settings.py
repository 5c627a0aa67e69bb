"""Which judge gives the verdicts, and the settings of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, LiteralString

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from guardrail.judges.cache import CacheSettings
from guardrail.judges.cascade import CascadeSettings
from guardrail.judges.command.settings import CommandJudgeSettings
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.model import ClassifierSettings
from guardrail.judges.self_judging import ModelIdentity, SelfJudgingSettings
from guardrail.judges.spending import BudgetSettings, ModelPrice

# Credentials: never sent to a server other than the one they were configured for.
_CREDENTIALS: Final = ("api_key", "extra_headers")


class JudgeSettings(BaseModel):
    """The judge. All kinds can be configured side by side; ``kind`` says which one runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["local", "llm", "hhem", "classifier", "command", "cascade"] = Field(
        default="local",
        description="local: rules and a small calibrated model, in process, no key needed. llm: a "
        "language model behind an OpenAI-compatible API. classifier: any Hugging Face "
        "sentence-pair classifier, in process. hhem: a classifier with the preset hhem, "
        "Vectara's HHEM-2.1-Open. command: your own program or HTTP endpoint. cascade: a "
        "first judge for every claim, and a second for what it can't settle.",
    )
    local: LocalJudgeSettings = Field(
        default_factory=LocalJudgeSettings, description="Settings of the local judge."
    )
    llm: LlmJudgeSettings = Field(default_factory=LlmJudgeSettings, description="Settings of the LLM judge.")
    classifier: ClassifierSettings = Field(
        default_factory=ClassifierSettings,
        description="Settings of the classifier judge, also for kind hhem.",
    )
    command: CommandJudgeSettings = Field(
        default_factory=CommandJudgeSettings, description="Settings of your own judge."
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
        """The judges that run, by the names of their sections: that of ``kind``, or both of the cascade."""
        named = {self.cascade.first, self.cascade.second} if self.kind == "cascade" else {self.kind}
        return frozenset("classifier" if kind == "hhem" else kind for kind in named)

    def alternative_llm(self) -> LlmJudgeSettings | None:
        """The settings of the judge that answers in place of one that would judge itself; None without."""
        changes = self.self_judging.alternative
        if changes is None:
            return None
        values: dict[str, Any] = {name: getattr(self.llm, name) for name in self.llm.model_fields_set}
        values.pop("fallbacks", None)  # which may include the very model that is to be avoided
        if "base_url" in changes or any(name in changes for name in _CREDENTIALS):
            for name in _CREDENTIALS:
                values.pop(name, None)
        return LlmJudgeSettings.model_validate(values | changes)

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

    @model_validator(mode="after")
    def _alternative_is_right(self) -> JudgeSettings:
        try:
            alternative = self.alternative_llm()
        except ValidationError as error:
            raise _of_the_alternative(error) from None
        identity = ModelIdentity(self.self_judging.aliases)
        for number, each in enumerate(() if alternative is None else alternative.models()):
            if identity.same(each.model, self.llm.model):
                # It would be asked if judge.llm.model wrote the answer, only to find that it wrote the answer
                # itself.
                path = ("fallbacks", number - 1, "model") if number else ("model",)
                raise _problem(
                    path, each.model, "the alternative is the model of judge.llm itself; name another model"
                )
        return self


def _given(section: Any) -> Mapping[str, Any]:
    """The values set in a section, which may be plain values or a settings object."""
    if isinstance(section, BaseModel):
        return {name: getattr(section, name) for name in section.model_fields_set}
    return section if isinstance(section, Mapping) else {}


def _of_the_alternative(error: ValidationError) -> PydanticCustomError:
    """The first error of the alternative's settings, at its place in the file."""
    details = error.errors(include_url=False)[0]
    wrong, value = details["msg"].removeprefix("Value error, "), details["input"]
    if details["type"] == "extra_forbidden":
        wrong = f"judge.llm has no setting {str(details['loc'][-1])!r}; correct it or take it out"
        value = {}  # its content is unknown and may be a key
        return _problem(details["loc"], value, wrong, kind="extra_forbidden")
    return _problem(details["loc"], value, wrong)


def _problem(
    path: tuple[int | str, ...], value: Any, wrong: str, kind: LiteralString = "alternative_judge"
) -> PydanticCustomError:
    whole = ("judge", "self_judging", "alternative", *path)
    return PydanticCustomError(kind, "{wrong}", {"wrong": wrong, "path": whole, "value": value})
