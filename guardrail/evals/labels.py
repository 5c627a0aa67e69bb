"""Labels in the forms that other tools read: Ragas, Langfuse, OpenInference."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import Field

from guardrail.evals.results import EvaluationResult
from guardrail.evals.truths import claim_named, latest
from guardrail.events import ClaimVerdict, Label, LabelSource, Response, Verdict, WireModel
from guardrail.scoring import DEFAULT_CREDITS

NAME: Final = "faithfulness"
"""Of the scores and annotations; they say how an answer keeps to its documents."""
_NLI: Final = "n_l_i_statement_prompt"
"""What Ragas' Faithfulness calls the prompt that judges statements."""


class TraceOf(WireModel):
    """Which trace, and which span of it, a response is elsewhere."""

    response_id: str = Field(min_length=1)
    trace_id: str | None = None
    span_id: str | None = None


def to_langfuse(
    labels: Iterable[Label], traces: Mapping[str, TraceOf] | None = None, *, config_id: str | None = None
) -> list[dict[str, Any]]:
    """Bodies for Langfuse's ``POST /api/public/scores``, one a label.

    Categorical, with our verdicts as categories. A trace's id is that in ``traces``, else the response's. A
    score that is sent again with the same time replaces itself. With ``config_id``, that of a score
    configuration, its source is ANNOTATION, which Langfuse refuses without.
    """
    found = []
    for label in latest(labels):
        trace_id, span_id = _place(label, traces)
        score: dict[str, Any] = {
            "id": identifier(label),
            "traceId": trace_id,
            "name": NAME,
            "value": label.verdict.value,
            "dataType": "CATEGORICAL",
            "metadata": _about(label),
            "observationId": span_id,
            "comment": _explanation(label),
            "timestamp": None if label.time is None else label.time.isoformat(),
            "source": None if config_id is None else "ANNOTATION",
            "configId": config_id,
        }
        found.append({key: value for key, value in score.items() if value is not None})
    return found


def to_openinference(
    labels: Iterable[Label], traces: Mapping[str, TraceOf] | None = None
) -> list[dict[str, Any]]:
    """Annotations as OpenInference has them, of spans where ``traces`` names one, else of traces.

    The members of ``data`` for Phoenix's ``POST /v1/span_annotations`` and ``/v1/trace_annotations``.
    """
    found = []
    for label in latest(labels):
        trace_id, span_id = _place(label, traces)
        result = {
            "label": label.verdict.value,
            "score": DEFAULT_CREDITS.get(label.verdict),
            "explanation": _explanation(label),
        }
        annotation = {
            **({"trace_id": trace_id} if span_id is None else {"span_id": span_id}),
            "name": NAME,
            "annotator_kind": "HUMAN" if label.source is LabelSource.HUMAN else "CODE",
            "identifier": identifier(label),
            "result": {key: value for key, value in result.items() if value is not None},
            "metadata": _about(label),
        }
        found.append(annotation)
    return found


def _place(label: Label, traces: Mapping[str, TraceOf] | None) -> tuple[str, str | None]:
    """The trace, and the span of it, that the label is about elsewhere."""
    known = (traces or {}).get(label.response_id) or TraceOf(response_id=label.response_id)
    return known.trace_id or label.response_id, known.span_id


def to_ragas(labels: Iterable[Label], results: Iterable[EvaluationResult]) -> dict[str, list[dict[str, Any]]]:
    """A ``MetricAnnotation`` of Ragas: for each labelled result its statements, judged, and as people say.

    ``metric_output`` is Ragas' score by the guard's verdicts: the share of claims that are supported, of
    those that could be checked. ``target`` is the same by the labels, left out where not all have one.
    Results without response or verdict, or whose labels name none of these claims, are left out.
    """
    of_answers: dict[str, list[Label]] = {}
    for label in latest(labels):
        if label.claim_id is not None and label.verdict is not Verdict.UNVERIFIED:
            of_answers.setdefault(label.response_id, []).append(label)
    samples = []
    for result in results:
        if result.response is None or result.verdict is None:
            continue
        said = {
            name: label
            for label in of_answers.get(result.response.response_id, ())
            if (name := claim_named(result.verdict.claims, label)) is not None
        }
        checked = [claim for claim in result.verdict.claims if claim.verdict is not Verdict.UNVERIFIED]
        if any(claim.claim_id in said for claim in checked):
            samples.append(_to_ragas(result.response, checked, said))
    return {NAME: samples}


def _to_ragas(
    response: Response, claims: Sequence[ClaimVerdict], said: Mapping[str, Label]
) -> dict[str, Any]:
    contexts = [context.text for context in response.contexts]
    judged = [_statement(claim.text, claim.reasoning, claim.verdict) for claim in claims]
    corrected = [
        statement
        if (label := said.get(claim.claim_id)) is None
        else _statement(claim.text, _explanation(label) or statement["reason"], label.verdict)
        for claim, statement in zip(claims, judged, strict=True)
    ]
    sample: dict[str, Any] = {
        "metric_input": {
            "user_input": response.question,
            "response": response.answer,
            "retrieved_contexts": contexts,
        },
        "metric_output": _share(judged),
        "prompts": {
            _NLI: {
                "prompt_input": {
                    "context": "\n".join(contexts),
                    "statements": [claim.text for claim in claims],
                },
                "prompt_output": {"statements": judged},
                "edited_output": None if corrected == judged else {"statements": corrected},
            }
        },
        "is_accepted": [each["verdict"] for each in corrected] == [each["verdict"] for each in judged],
    }
    if all(claim.claim_id in said for claim in claims):
        sample["target"] = _share(corrected)
    return sample


def _statement(text: str, reason: str, verdict: Verdict) -> dict[str, Any]:
    """Ragas knows 1, which follows from the contexts, and 0."""
    return {"statement": text, "reason": reason, "verdict": int(verdict is Verdict.SUPPORTED)}


def _share(statements: Sequence[Mapping[str, Any]]) -> float:
    return float(sum(each["verdict"] for each in statements)) / len(statements)


def identifier(label: Label) -> str:
    """The label's id, or one made of what it is about and who says it: the same for the same."""
    if label.id:
        return label.id
    about = (label.response_id, label.claim_id, label.span, label.reviewer, label.source.value)
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:streaming-guardrail:label:{about!r}"))


def _about(label: Label) -> dict[str, Any]:
    """What other tools have no field for."""
    return label.model_dump(
        mode="json",
        include={"response_id", "claim_id", "span", "severity", "category", "reviewer", "source", "policy"},
        exclude_none=True,
    )


def _explanation(label: Label) -> str | None:
    parts = [label.category, None if label.correction is None else f"should say: {label.correction}"]
    return "; ".join(part for part in parts if part) or None
