"""Settings of the classifier judge."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from guardrail.judges.classifier.presets import PRESETS, PresetName

# Fewer tokens than these for the premise hold no sentence to judge by.
MIN_PREMISE_TOKENS: Final = 32


class Outcome(StrEnum):
    """What a label of the model says of a claim. ``neutral`` counts as not supported."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    NEUTRAL = "neutral"


class ClassifierSettings(BaseModel):
    """Which model, how pairs are put to it, and what its labels mean."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    preset: PresetName | None = Field(
        default=None,
        description="A published model whose prompt, labels and layout are known; what is set beside it "
        "wins.",
    )
    model: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="Id on the Hugging Face hub, or a folder with the model's files."
    )
    revision: str | None = Field(
        default=None,
        description="Commit of the model on the hub, 40 hexadecimal digits; anything else can be changed "
        "under you.",
    )
    tokenizer: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="Where tokenizer.json is, if not with the model: an id on the hub or a folder.",
    )
    tokenizer_revision: str | None = Field(default=None, description="Commit of the tokenizer on the hub.")
    unpinned: Literal["warn", "refuse", "allow"] = Field(
        default="warn", description="What to do when something comes from the hub without a pinned commit."
    )
    allow_remote_code: bool = Field(
        default=False,
        description="Run Python code that comes with the model; it can do whatever the guard can. Needs a "
        "pinned revision.",
    )
    offline: bool = Field(default=False, description="Use what the cache has; never ask the hub.")
    cache_dir: Path | None = Field(
        default=None, description="Where what comes from the hub is kept; unset: the hub client's own place."
    )

    backend: Literal["auto", "onnx", "torch"] = Field(
        default="auto",
        description="auto: ONNX where the model has such a file and onnxruntime is installed, else torch.",
    )
    onnx_file: str | None = Field(
        default=None, description="Path in the model's folder; unset: onnx/model.onnx, then model.onnx."
    )
    architecture: Literal["sequence", "seq2seq", "hhem"] = Field(
        default="sequence",
        description="sequence: a classification head. seq2seq: the first token written is the label, and "
        "labels are token ids. hhem: T5 encoder, the first token's logits.",
    )
    device: str = Field(
        default="auto",
        pattern=r"^(auto|cpu|mps|cuda(:\d{1,2})?)$",
        description="auto: a GPU if there is one; cpu, cuda, cuda:1, mps.",
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="Processor threads for the model; unset: the runtime's choice.",
    )
    batch_size: int = Field(
        default=16, ge=1, le=1024, description="Most pairs that go through the model together."
    )
    max_queued_pairs: int = Field(
        default=20_000,
        ge=1,
        description="Pairs that may wait for the model; claims beyond that are not taken, and "
        "become UNVERIFIED.",
    )

    max_length: int = Field(
        default=512, ge=64, le=131_072, description="Most tokens of a pair, special ones included."
    )
    overlap_tokens: int = Field(
        default=64, ge=0, description="Tokens that neighbouring windows of a long context share."
    )
    max_windows_per_claim: int | None = Field(
        default=None,
        ge=1,
        description="Judge by the windows that share most words with the claim, and say so; unset: by all.",
    )
    template: str | None = Field(
        default=None,
        description="A text with {premise} and {hypothesis}; unset: the pair form of the model's tokenizer.",
    )
    order: Literal["premise_first", "hypothesis_first"] = Field(
        default="premise_first", description="Which of the two is first in the pair form; not for templates."
    )
    labels: dict[str, Outcome] = Field(
        default_factory=dict,
        description="What each label of the model means, by name or index; unset: known names such as "
        "entailment.",
    )
    supported_at: float = Field(
        default=0.5, ge=0.0, le=1.0, description="Least probability of support that is called SUPPORTED."
    )
    partially_supported_at: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="Least probability that is called PARTIALLY_SUPPORTED; unset: never.",
    )
    contradicted_at: float = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="Least probability of contradiction, also above that of support, that is called "
        "CONTRADICTED.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        preset = data.get("preset", cls.model_fields["preset"].default)
        values = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
        return {**values, **data}

    @field_validator("template")
    @classmethod
    def _both_places(cls, template: str | None) -> str | None:
        if template is not None:
            for place in ("{premise}", "{hypothesis}"):
                if template.count(place) != 1:
                    raise ValueError(f"must hold {place} once, not {template.count(place)} times")
        return template

    @field_validator("labels")
    @classmethod
    def _some_support(cls, labels: dict[str, Outcome]) -> dict[str, Outcome]:
        if labels and Outcome.SUPPORTED not in labels.values():
            raise ValueError("names no label that means supported; add the one that does")
        return labels

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        low = self.partially_supported_at
        if low is not None and low > self.supported_at:
            raise ValueError(
                f"partially_supported_at ({low:g}) is above supported_at ({self.supported_at:g}); lower the "
                "first or raise the second"
            )
        if self.allow_remote_code and self.backend == "onnx":
            raise ValueError("allow_remote_code has no meaning for backend onnx; leave it out")
        return self


class HhemSettings(ClassifierSettings):
    """Vectara's HHEM-2.1-Open, or a model that was trained further from it."""

    preset: PresetName | None = Field(default="hhem", description="HHEM-2.1-Open's own values.")
