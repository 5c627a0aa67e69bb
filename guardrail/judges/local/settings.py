"""The settings of the local judge."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class LocalJudgeSettings(BaseModel):
    """How the local judge works and where it draws its lines. The defaults suit most deployments."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Threads that judge. Judging is pure Python and holds the interpreter's lock, so more "
        "threads share the time more evenly between responses but do not add up.",
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
        description="A file written by training/fit_local_judge.py; unset: the packaged one.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = self.partially_supported_at, self.supported_at
        if low is not None and high is not None and low > high:
            raise ValueError(f"partially_supported_at ({low}) must not be above supported_at ({high})")
        return self
