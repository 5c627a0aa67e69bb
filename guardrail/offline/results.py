"""What an offline evaluation says of each answer: one result a line of its file.

Everything after the judging works on results alone, in memory or read back from a file: scores, agreement
with labels, the report, replay under another policy, tuning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from guardrail.events import Event, Label, Response, ResponseVerdict, WireModel


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer to evaluate, whatever format it came in. ``labels`` are what people said of it there."""

    response: Response
    labels: tuple[Label, ...] = ()
    place: str = ""
    """Where it stands, for messages: "line 7", "row 3", "partition 0, offset 12"."""


class ScoreValue(WireModel):
    """One published score of one answer. Undefined is null with a reason, never NaN."""

    value: float | None = Field(description="On the scale of its definition; null if it is undefined.")
    passed: bool | None = Field(default=None, description="Of scores that pass or fail; null for others.")
    reason: str | None = Field(default=None, description="Why there is no value, or what it leaves out.")


class TraceStep(WireModel):
    """A step on the way to the verdicts: what was asked, and what came back, as it is."""

    step: str = Field(
        description="statements: the claims as judges read them, one a line. call: a prompt to a judge "
        "and its reply. reading: what a local judge read for a claim, and what it made of it. verdicts: "
        "what the guard took in."
    )
    claim_ids: tuple[str, ...] = Field(default=(), description="The claims that it was about.")
    prompt: str | None = Field(default=None, description="What was sent, every message of it.")
    reply: str | None = Field(default=None, description="What came back, unread.")
    latency_ms: float | None = None
    judge: str | None = Field(default=None, description="Who was asked.")
    error: str | None = Field(default=None, description="Why there is no reply, or not all of it.")


class EvaluationResult(Event):
    """What became of one sample. An error is a result without verdict and scores; it never counts as one."""

    type: Literal["evaluation.result"] = "evaluation.result"
    place: str = Field(default="", description="Where the sample stands in its source.")
    response: Response | None = Field(
        default=None, description="What was judged; null if it could not be read."
    )
    verdict: ResponseVerdict | None = Field(default=None, description="null if there was an error.")
    scores: Mapping[str, ScoreValue] = Field(default_factory=dict, description="By name of the score.")
    labels: tuple[Label, ...] = Field(default=(), description="What people say of the answer.")
    explanation: str | None = Field(
        default=None, description="The reason of the result in words, if asked for."
    )
    trace: tuple[TraceStep, ...] = Field(default=(), description="The steps to the verdicts, if asked for.")
    error: str | None = Field(default=None, description="Why there is no verdict.")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of one run, in the order of its source, and what made them."""

    results: tuple[EvaluationResult, ...]
    name: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What a reader of the report wants to know of the run: judge, model, policy, source, time."""
