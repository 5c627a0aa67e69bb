"""Bounds on what one engine holds at a time, and on what judging one response may consume.

Values that nobody needs to set are constants of the class; a test or a benchmark that needs another value
makes a subclass.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from guardrail.frozen import Frozen

Positive = Annotated[int, Field(gt=0)]


class ResponseBudget(Frozen):
    """What the judging of one response may consume."""

    tokens: Positive | None = Field(default=None, description="Input (including cached) and output tokens.")
    usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="US dollars, at judge.prices."
    )


class Limits(Frozen):
    """Past a bound the engine is saturated: its consumer pauses reading until the load is below
    ``resume_at``.
    """

    max_sessions: ClassVar[int] = 10_000
    """Responses in flight at once: some 100 MB beside the texts, which ``max_bytes`` bounds."""
    max_pending_claims: ClassVar[int] = 5_000
    """Claims that wait for a verdict, all responses together; past that, reading waits for the judge."""
    max_claims_per_call: ClassVar[int] = 16
    """Claims of one response put to the judge in one call, so that a language model's reply ends in time."""
    resume_at: ClassVar[float] = 0.8
    """Share of a bound under which a saturated engine takes responses again: far enough below that reading
    doesn't start and stop with every response."""
    overload_grace_ms: ClassVar[int] = 5_000
    """How long reading may be paused with nothing under way that could end the pause; after that, new
    responses are turned away under their policy's ``on_unverified`` until there is room."""
    finished_responses_remembered: ClassVar[int] = 20_000
    """Ids of finished responses kept for each partition, so that a late event is told from an unknown one."""
    finished_response_ttl_ms: ClassVar[int] = 900_000
    """How long such an id is kept; producers give up sending a record much sooner."""
    bad_record_share: ClassVar[float] = 0.5
    """If more than this share of the latest records of a partition can't be decoded, the guard reads on in it
    slowly, an undecodable record a second."""
    bad_record_window: ClassVar[int] = 1_000
    """Of how many of the last records ``bad_record_share`` is taken."""
    bad_record_min: ClassVar[int] = 100
    """Records taken before the share counts."""
    max_answer_chars: ClassVar[int] = 100_000
    """Text of one response; a longer response ends as incomplete. It is some fifty pages: a model that writes
    as much repeats itself without end."""

    max_bytes: Positive = Field(
        default=256 * 1024 * 1024,
        description="Characters of questions, contexts and answers in flight, over all responses.",
        json_schema_extra={"unit": "characters"},
    )
    max_concurrent_judgements: Positive = Field(default=64, description="Concurrent calls of the judge.")
    max_context_chars: Positive = Field(
        default=2_000_000,
        description="Question, contexts and metadata of one response; a larger response is bad input.",
    )
