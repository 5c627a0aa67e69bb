"""Bounds on what one engine holds at a time, and on what judging one response may consume."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positive = Annotated[int, Field(gt=0)]


class ResponseBudget(BaseModel):
    """What the judging of one response may consume."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: Positive | None = Field(default=None, description="Input (cached ones too) and output tokens.")
    usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="US dollars, by judge.prices."
    )


class Limits(BaseModel):
    """Past a bound the engine is saturated: its consumer pauses reading until it is below ``resume_at``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_sessions: Positive = Field(default=10_000, description="Responses in flight at once.")
    max_bytes: Positive = Field(
        default=256 * 1024 * 1024,
        description="Characters of questions, contexts and answers in flight, all responses together.",
    )
    max_pending_claims: Positive = Field(
        default=5_000, description="Claims waiting for a verdict, all responses together."
    )
    max_concurrent_judgements: Positive = Field(default=64, description="Calls of the judge at once.")
    max_claims_per_call: Positive = Field(
        default=16, description="Claims of one response put to the judge in one call."
    )
    max_context_chars: Positive = Field(
        default=2_000_000,
        description="Question, contexts and metadata of one response; a larger one is bad input.",
    )
    max_answer_chars: Positive = Field(
        default=100_000, description="Text of one response; a longer one ends as incomplete."
    )
    resume_at: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.8, description="Share of a bound under which a saturated engine takes responses again."
    )
    overload_grace_ms: Positive = Field(
        default=5_000,
        description="How long reading may be paused with nothing under way that could end the pause; after "
        "that, new responses are turned away under their policy's on_unverified until there is room.",
    )
    finished_responses_remembered: Positive = Field(
        default=20_000,
        description="Ids of finished responses kept for each partition, so that a late event is told from an "
        "unknown one.",
    )
    finished_response_ttl_ms: Positive = Field(default=900_000, description="How long such an id is kept.")
    bad_record_share: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.5,
        description="When more than this share of the last records could not be decoded, the guard stops; 1 "
        "switches this off.",
    )
    bad_record_window: Positive = Field(
        default=1_000, description="How many of the last records that share is taken of."
    )
    bad_record_min: Positive = Field(
        default=100, description="Records taken before the share counts; at most the window."
    )

    @model_validator(mode="after")
    def _window_is_filled(self) -> Limits:
        if self.bad_record_min > self.bad_record_window:
            raise ValueError(
                f"bad_record_min {self.bad_record_min} is more than bad_record_window "
                f"{self.bad_record_window}, so the share would never count; lower the first or raise the "
                "second"
            )
        return self
