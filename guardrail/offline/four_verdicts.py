"""What the four-verdict prompt returns, made of a verdict: claims with verdict, evidence and reasoning,
``faithfulness_score``, ``hallucinated_claims`` and ``overall_assessment``; its binary and batch variants too.

The format is that of the "RAG Faithfulness Evaluation Prompt" (2026-02-25), mended in three places. The score
is reckoned here and not by a model. Missing evidence is null and not the text "null". The prompt knows no
verdict for a claim that could not be checked: such claims stand in ``unverified_claims``, and
``faithfulness_score`` is always that of the claims in ``claims``.

Every model has its JSON Schema: ``FourVerdicts.model_json_schema()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from guardrail.events import ClaimVerdict, ResponseVerdict, Verdict
from guardrail.offline.explanation import explain
from guardrail.offline.results import EvaluationResult
from guardrail.offline.scores import MEANING, strict_score

_Share = Annotated[float, Field(ge=0.0, le=1.0)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FourVerdictClaim(_Model):
    """A claim of the answer."""

    claim: str = Field(description="The claim as it is written in the answer.")
    verdict: Literal["SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED"]
    evidence: str | None = Field(
        description="Quotes from the contexts, verbatim, one a line; null if there are none."
    )
    reasoning: str


class FourVerdicts(_Model):
    """One answer."""

    claims: tuple[FourVerdictClaim, ...]
    faithfulness_score: _Share | None = Field(
        description="SUPPORTED / number of claims; null if there are none."
    )
    hallucinated_claims: tuple[str, ...] = Field(description="Those UNSUPPORTED or CONTRADICTED.")
    overall_assessment: str
    unverified_claims: tuple[str, ...] = Field(description="Claims that could not be checked.")


class BinaryClaim(_Model):
    """A claim of the answer, supported or not."""

    claim: str = Field(description="The claim as it is written in the answer.")
    verdict: Literal["SUPPORTED", "UNSUPPORTED"]
    evidence: str | None = Field(
        description="Quotes from the contexts, verbatim, one a line; null if there are none."
    )
    reasoning: str


class BinaryVerdicts(_Model):
    """One answer, with two verdicts."""

    claims: tuple[BinaryClaim, ...]
    faithfulness_score: _Share | None = Field(
        description="SUPPORTED / number of claims; null if there are none."
    )
    hallucinated_claims: tuple[str, ...] = Field(description="Those UNSUPPORTED.")
    overall_assessment: str
    unverified_claims: tuple[str, ...] = Field(description="Claims that could not be checked.")


Output = TypeVar("Output", FourVerdicts, BinaryVerdicts)


class VerdictsEntry(_Model, Generic[Output]):
    """One question with its contexts and answer."""

    id: str = Field(description="The response's id, else the sample's place.")
    question: str
    evaluation: Output | None = Field(description="null if there was an error.")
    error: str | None = None


class VerdictsBatch(_Model, Generic[Output]):
    """Many answers, in the order of their source."""

    evaluations: tuple[VerdictsEntry[Output], ...]
    mean_faithfulness_score: _Share | None = Field(
        description="Over the answers that have a score; null if none has."
    )
    evaluated: int = Field(description="Answers with a score.")
    failed: int = Field(description="Answers with an error; they count in no mean.")


def four_verdicts(verdict: ResponseVerdict, explanation: str | None = None) -> FourVerdicts:
    """The prompt's output. ``explanation`` is the overall assessment, by default the one by template.

    Raises ValueError if the verdict was stored without its claims.
    """
    claims = _checked(verdict)
    return FourVerdicts(
        claims=tuple(
            FourVerdictClaim.model_validate(
                {
                    "claim": claim.text,
                    "verdict": claim.verdict.value,
                    "evidence": _evidence(claim),
                    "reasoning": claim.reasoning,
                }
            )
            for claim in claims
        ),
        faithfulness_score=strict_score([claim.verdict for claim in claims]),
        hallucinated_claims=tuple(
            claim.text for claim in claims if claim.verdict in {Verdict.UNSUPPORTED, Verdict.CONTRADICTED}
        ),
        overall_assessment=_assessment(verdict, claims, explanation),
        unverified_claims=_unverified(verdict),
    )


def binary_verdicts(verdict: ResponseVerdict, explanation: str | None = None) -> BinaryVerdicts:
    """The output of the binary variant: whatever is not SUPPORTED is UNSUPPORTED, and hallucinated.

    Raises ValueError if the verdict was stored without its claims.
    """
    claims = _checked(verdict)
    return BinaryVerdicts(
        claims=tuple(
            BinaryClaim(
                claim=claim.text,
                verdict="SUPPORTED" if MEANING[claim.verdict].binary else "UNSUPPORTED",
                evidence=_evidence(claim),
                reasoning=claim.reasoning,
            )
            for claim in claims
        ),
        faithfulness_score=strict_score([claim.verdict for claim in claims]),
        hallucinated_claims=tuple(claim.text for claim in claims if not MEANING[claim.verdict].binary),
        overall_assessment=_assessment(verdict, claims, explanation),
        unverified_claims=_unverified(verdict),
    )


def four_verdicts_batch(results: Iterable[EvaluationResult]) -> VerdictsBatch[FourVerdicts]:
    """The output of the batch variant. A result without a verdict is an entry with its error."""
    return _batch(VerdictsBatch[FourVerdicts], VerdictsEntry[FourVerdicts], results, four_verdicts)


def binary_verdicts_batch(results: Iterable[EvaluationResult]) -> VerdictsBatch[BinaryVerdicts]:
    """The output of the variant that is both binary and batch."""
    return _batch(VerdictsBatch[BinaryVerdicts], VerdictsEntry[BinaryVerdicts], results, binary_verdicts)


def _batch(
    batch: type[VerdictsBatch[Output]],
    entry: type[VerdictsEntry[Output]],
    results: Iterable[EvaluationResult],
    make: Callable[[ResponseVerdict, str | None], Output],
) -> VerdictsBatch[Output]:
    entries: list[VerdictsEntry[Output]] = []
    for result in results:
        response, verdict = result.response, result.verdict
        entries.append(
            entry(
                id=response.response_id if response is not None else result.place,
                question=response.question if response is not None else "",
                evaluation=None if verdict is None else make(verdict, result.explanation),
                error=result.error or ("there is no verdict" if verdict is None else None),
            )
        )
    scores = [
        each.evaluation.faithfulness_score
        for each in entries
        if each.evaluation is not None and each.evaluation.faithfulness_score is not None
    ]
    return batch(
        evaluations=tuple(entries),
        mean_faithfulness_score=sum(scores) / len(scores) if scores else None,
        evaluated=len(scores),
        failed=sum(each.evaluation is None for each in entries),
    )


def _checked(verdict: ResponseVerdict) -> Sequence[ClaimVerdict]:
    if not verdict.claims and "claims" in verdict.omitted:
        raise ValueError(
            f"verdict of {verdict.response_id!r}: it was stored without its claims; evaluate the answer again"
        )
    return [claim for claim in verdict.claims if claim.verdict is not Verdict.UNVERIFIED]


def _assessment(verdict: ResponseVerdict, claims: Sequence[ClaimVerdict], explanation: str | None) -> str:
    """It speaks of the ``faithfulness_score`` beside it, where the template would of the policy's score."""
    if explanation is not None and explanation != explain(verdict):
        return explanation
    strict = strict_score([claim.verdict for claim in claims])
    return explain(verdict.model_copy(update={"score": strict}))


def _unverified(verdict: ResponseVerdict) -> tuple[str, ...]:
    return tuple(claim.text for claim in verdict.claims if claim.verdict is Verdict.UNVERIFIED)


def _evidence(claim: ClaimVerdict) -> str | None:
    return "\n".join(evidence.quote for evidence in claim.evidence) or None
