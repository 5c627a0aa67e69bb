"""The settings of the local judge."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from guardrail.judges.local.fitted import ReadingKind


class VerifierSettings(BaseModel):
    """The embedded verifier, a small model that reads claims beside what the rules found."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Whether it is used, where the parameters were fitted with one. false: rules alone, by "
        "the parameters that the package has for that.",
    )
    path: Path | None = Field(
        default=None,
        description="The folder of another verifier, with model.onnx, tokenizer.json and manifest.json; "
        "parameters_path must name parameters that were fitted with it. Unset: the packaged one.",
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Threads of one run of the model; unset: 2, or 1 where only one processor may be "
        "used, by affinity or a container's quota.",
    )
    batch_size: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Pairs that the model is given at once. More is no faster on processors, and lets an "
        "int8 model's scores depend on what else is in the batch.",
    )
    readings: tuple[ReadingKind, ...] | None = Field(
        default=None,
        min_length=1,
        description="What is read for a claim, in this order, as far as tokens_per_claim allows: sentences "
        "(the best ones together), sentence (the best alone), passage (150 words around it). Unset: as "
        "fitted.",
    )
    tokens_per_claim: int | None = Field(
        default=None,
        ge=32,
        le=65_536,
        description="Most tokens that are read for a claim, its own counted with each reading; one reading "
        "there always is. Time is proportional to it. Unset: as fitted, and a long claim may have three "
        "times its own.",
    )


class LocalJudgeSettings(BaseModel):
    """How the local judge works and where it draws its lines. The defaults suit most deployments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Threads that judge. The rules are pure Python and hold the interpreter's lock, so more "
        "threads share their time more evenly between responses but do not add up; the verifier doesn't "
        "hold it, and more threads add up as far as processors are idle.",
    )
    sentences_per_claim: int = Field(
        default=4, ge=1, le=32, description="Best sentences of the contexts that a claim is compared with."
    )
    passages_per_claim: int = Field(
        default=3, ge=1, le=32, description="Best passages of the contexts that a claim is compared with."
    )
    supported_at: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="Least probability of support that is called SUPPORTED; unset: the fitted one.",
    )
    partially_supported_at: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="Least probability that is called PARTIALLY_SUPPORTED; unset: the fitted one.",
    )
    parameters_path: Path | None = Field(
        default=None,
        description="A file that training.calibrate wrote; unset: the packaged one.",
    )
    verifier: VerifierSettings = Field(
        default_factory=VerifierSettings, description="The small model that reads claims beside the rules."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = self.partially_supported_at, self.supported_at
        if low is not None and high is not None and low > high:
            raise ValueError(f"partially_supported_at ({low}) must not be above supported_at ({high})")
        return self
