"""What the four-verdict prompt returns, made of a verdict: claims with verdict, evidence and reasoning,
``faithfulness_score``, ``hallucinated_claims`` and ``overall_assessment``; its binary and batch variants too.

The format is that of the "RAG Faithfulness Evaluation Prompt" (2026-02-25), mended in three places. The score
is calculated here and not by a model. Missing evidence is null and not the text "null". The prompt knows no
verdict for a claim that could not be checked: such claims stand in ``unverified_claims``, and
``faithfulness_score`` is always that of the claims in ``claims``. What the prompt's severity variant asks for
stands beside it: the ``severity`` of each claim, and the ``severity_weighted_score``.

Every model has its JSON Schema: ``FourVerdicts.model_json_schema()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from guardrail.evals.explanation import explain
from guardrail.evals.results import EvaluationResult
from guardrail.evals.scores import MEANING, statements, strict_score
from guardrail.events import ResponseVerdict, Severity, Verdict

_Share = Annotated[float, Field(ge=0.0, le=1.0)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FourVerdictClaim(_Model):
    """A claim of the answer."""

    claim: str = Field(description="A statement: a part of a claim that has any, else the claim as written.")
    verdict: Literal["SUPPORTED", "PARTIALLY_SUPPORTED", "UNSUPPORTED", "CONTRADICTED"]
    evidence: str | None = Field(
        description="Quotes from the contexts, verbatim, one a line; null if there are none."
    )
    reasoning: str
    severity: Severity = Field(description="How much it costs if the claim is wrong.")


class BinaryClaim(FourVerdictClaim):
    """A claim of the answer, supported or not."""

    verdict: Literal["SUPPORTED", "UNSUPPORTED"]


class FourVerdicts(_Model):
    """One answer."""

    claims: tuple[FourVerdictClaim, ...]
    faithfulness_score: _Share | None = Field(
        description="SUPPORTED / number of claims; null if there are none."
    )
    hallucinated_claims: tuple[str, ...] = Field(description="Those UNSUPPORTED or CONTRADICTED.")
    overall_assessment: str
    unverified_claims: tuple[str, ...] = Field(description="Claims that could not be checked.")
    severity_weighted_score: _Share | None = Field(
        description="The policy's score: graver claims weigh more."
    )


class BinaryVerdicts(FourVerdicts):
    """One answer, with two verdicts."""

    claims: tuple[BinaryClaim, ...]


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
    """The prompt's output; without ``explanation`` that by template. Raises ValueError without claims."""
    return FourVerdicts.model_validate(_output(verdict, explanation, {each: each.value for each in Verdict}))


def binary_verdicts(verdict: ResponseVerdict, explanation: str | None = None) -> BinaryVerdicts:
    """The same in two verdicts: whatever is not SUPPORTED is UNSUPPORTED, and hallucinated."""
    said = {each: "SUPPORTED" if MEANING[each].binary else "UNSUPPORTED" for each in Verdict}
    return BinaryVerdicts.model_validate(_output(verdict, explanation, said))


def four_verdicts_batch(results: Iterable[EvaluationResult]) -> VerdictsBatch[FourVerdicts]:
    """The output of the batch variant. A result without a verdict is an entry with its error."""
    return VerdictsBatch[FourVerdicts].model_validate(_batch(results, four_verdicts))


def binary_verdicts_batch(results: Iterable[EvaluationResult]) -> VerdictsBatch[BinaryVerdicts]:
    """The output of the variant that is both binary and batch."""
    return VerdictsBatch[BinaryVerdicts].model_validate(_batch(results, binary_verdicts))


def _output(verdict: ResponseVerdict, explanation: str | None, said: Mapping[Verdict, str]) -> dict[str, Any]:
    if not verdict.claims and "claims" in verdict.omitted:
        raise ValueError(
            f"verdict of {verdict.response_id!r}: it was stored without its claims; evaluate the answer again"
        )
    told = statements(verdict)
    checked = [each for each in told if each.verdict is not Verdict.UNVERIFIED]
    strict = strict_score([each.verdict for each in checked])
    if explanation is None or explanation == explain(verdict):
        # It speaks of the score beside it, where the template would of the policy's score.
        explanation = explain(verdict.model_copy(update={"score": strict}))
    return {
        "claims": [
            {
                "claim": each.text,
                "verdict": said[each.verdict],
                "evidence": "\n".join(evidence.quote for evidence in each.claim.evidence) or None,
                "reasoning": each.reasoning,
                "severity": each.claim.severity,
            }
            for each in checked
        ],
        "faithfulness_score": strict,
        "hallucinated_claims": [
            each.text for each in checked if said[each.verdict] in {Verdict.UNSUPPORTED, Verdict.CONTRADICTED}
        ],
        "overall_assessment": explanation,
        "unverified_claims": [each.text for each in told if each.verdict is Verdict.UNVERIFIED],
        "severity_weighted_score": verdict.score,
    }


def _batch(
    results: Iterable[EvaluationResult],
    make: Callable[[ResponseVerdict, str | None], FourVerdicts | BinaryVerdicts],
) -> dict[str, Any]:
    entries, scores = [], []
    for result in results:
        response, verdict = result.response, result.verdict
        evaluation = None if verdict is None else make(verdict, result.explanation)
        if evaluation is not None and evaluation.faithfulness_score is not None:
            scores.append(evaluation.faithfulness_score)
        entries.append(
            {
                "id": response.response_id if response is not None else result.place,
                "question": response.question if response is not None else "",
                "evaluation": evaluation,
                "error": result.error or ("there is no verdict" if verdict is None else None),
            }
        )
    return {
        "evaluations": entries,
        "mean_faithfulness_score": sum(scores) / len(scores) if scores else None,
        "evaluated": len(scores),
        "failed": sum(each["evaluation"] is None for each in entries),
    }
