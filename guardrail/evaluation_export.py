"""Results of an evaluation as telemetry: events of OpenTelemetry, or evaluations of OpenInference.

Needs the extra ``otel``. A result becomes one ``gen_ai.evaluation.result`` event for its verdict and one for
each of its scores, or one span with all of them, which links to the span that was evaluated. The response's
``metadata`` names that span: in ``traceparent``, as W3C writes it, or in ``trace_id`` and ``span_id``. No
text of a response is in them unless ``texts`` is set.

Ids are made of the response and the policy, so that exporting a result again replaces what was exported.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from guardrail.evals.results import EvaluationResult, ScoreValue
from guardrail.events import ClaimVerdict, ResponseVerdict, Verdict
from guardrail.tracing import (
    EVALUATION,
    EVALUATOR,
    FAITHFULNESS,
    RESPONSE_ID,
    SPAN_KIND,
    evaluation,
    openinference,
)

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

SCOPE: Final = "guardrail"
LLM: Final = "LLM"
CODE: Final = "CODE"
_BATCH: Final = 200
_FAILED: Final = "evaluation_failed"
_UNVERIFIED: Final = "unverified"
_OWN_SCORE: Final = "severity_weighted"
"""The score that the verdict has too."""
_PASSED: Final = {True: "pass", False: "fail"}


@dataclass(frozen=True, slots=True)
class Feedback:
    """One statement about an answer. Of ``score``, ``label`` and ``explanation`` at least one is there."""

    name: str
    score: float | None = None
    label: str | None = None
    explanation: str | None = None
    error: str | None = None
    """Why there is no score, as a word of few."""


@dataclass(frozen=True, slots=True)
class Target:
    """The span that wrote an answer."""

    trace_id: int
    span_id: int


@dataclass(frozen=True, slots=True)
class Exported:
    """How many results were sent, and how many were not: because nothing can be said of them, because they
    name no span, or because the receiver did not take them.
    """

    sent: int = 0
    unjudged: int = 0
    without_target: int = 0
    refused: int = 0


def feedback_of(result: EvaluationResult, *, texts: bool = False) -> list[Feedback]:
    """What a result says: its verdict first, then its scores by name. An error says that there is none."""
    verdict = result.verdict
    if verdict is None:
        return [Feedback(FAITHFULNESS, error=_FAILED)]
    unverified = verdict.score is None and verdict.counts.unverified
    first = Feedback(
        FAITHFULNESS,
        verdict.score,
        verdict.decision.value,
        _in_words(result, verdict) if texts else verdict.summary,
        _UNVERIFIED if unverified else None,
    )
    others = {
        name: score
        for name, score in result.scores.items()
        if not (name == _OWN_SCORE and score.value == verdict.score)
    }
    return [first, *(_of_score(name, score) for name, score in others.items())]


def target_of(result: EvaluationResult) -> Target | None:
    """The span that the response's metadata names; None if it names none, or not as W3C has it."""
    metadata: Mapping[str, Any] = result.response.metadata if result.response is not None else {}
    named = metadata.get("traceparent")
    if isinstance(named, str):
        ids: list[Any] = [*named.split("-"), "", "", ""][1:3]
    else:
        ids = [metadata.get("trace_id"), metadata.get("span_id")]
    trace_id, span_id = _hex(ids[0], 32), _hex(ids[1], 16)
    return Target(trace_id, span_id) if trace_id and span_id else None


def annotator_kind(verdict: ResponseVerdict) -> str:
    """``LLM`` if a language model judged a claim of it, else ``CODE``."""
    return LLM if any(claim.judge.startswith("llm:") for claim in verdict.claims) else CODE


def export_events(
    results: Iterable[EvaluationResult],
    exporter: LogRecordExporter,
    resource: Resource,
    *,
    texts: bool = False,
    wall_ns: Callable[[], int] = time.time_ns,
) -> Exported:
    """Send events of the name ``gen_ai.evaluation.result``: of each result one for its verdict, and one for
    each score.

    They belong to the span that was evaluated, if the result names it; all bear the response's id. A sample
    that could not be judged has an event with ``error.type``, if it could be read. ``wall_ns`` is Unix time.
    """
    from opentelemetry.sdk._logs.export import LogRecordExportResult

    def made(result: EvaluationResult) -> Iterable[ReadableLogRecord] | str:
        return "unjudged" if result.response is None else _records(result, resource, texts, wall_ns())

    return _sent(results, exporter.export, LogRecordExportResult.SUCCESS, made)


def export_spans(
    results: Iterable[EvaluationResult],
    exporter: SpanExporter,
    resource: Resource,
    *,
    texts: bool = False,
    wall_ns: Callable[[], int] = time.time_ns,
) -> Exported:
    """Send a span of the kind ``EVALUATOR`` for each result, with its evaluations as OpenInference has them
    and one link: to the span that was evaluated.

    Results without a verdict, and those that name no span, are counted and not sent. ``wall_ns`` is Unix
    time.
    """
    from opentelemetry.sdk.trace.export import SpanExportResult

    def made(result: EvaluationResult) -> Iterable[ReadableSpan] | str:
        if result.verdict is None:
            return "unjudged"
        target = target_of(result)
        return (
            "without_target"
            if target is None
            else [_span(result, result.verdict, target, resource, texts, wall_ns())]
        )

    return _sent(results, exporter.export, SpanExportResult.SUCCESS, made)


# --------------------------------------------------------------------------------------------------- inside


def _sent(
    results: Iterable[EvaluationResult],
    export: Callable[[list[Any]], object],
    success: object,
    made: Callable[[EvaluationResult], Iterable[Any] | str],
) -> Exported:
    """Export what is ``made`` of each result, or count why there is nothing, as ``Exported`` names it."""
    counts: Counter[str] = Counter()
    remaining = iter(results)
    while batch := list(islice(remaining, _BATCH)):
        found = [made(result) for result in batch]
        counts.update(why for why in found if isinstance(why, str))
        items = [list(each) for each in found if not isinstance(each, str)]
        together = [*chain.from_iterable(items)]
        taken = not together or export(together) is success
        counts["sent" if taken else "refused"] += len(items)
    return Exported(**counts)


def _records(
    result: EvaluationResult, resource: Resource, texts: bool, now: int
) -> Iterator[ReadableLogRecord]:
    from opentelemetry._logs import LogRecord
    from opentelemetry.sdk._logs import ReadableLogRecord
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    assert result.response is not None  # noqa: S101 - those without are not exported
    target = target_of(result)
    inside = None if target is None else set_span_in_context(NonRecordingSpan(_context(target)))
    about = {RESPONSE_ID: result.response.response_id, **_about(result.verdict)}
    for each in feedback_of(result, texts=texts):
        told = evaluation(each.name, each.score, each.label, each.explanation, each.error)
        record = LogRecord(
            timestamp=now,
            observed_timestamp=now,
            event_name=EVALUATION,
            attributes=told | about,
            context=inside,
        )
        yield ReadableLogRecord(record, resource, InstrumentationScope(SCOPE))


def _span(
    result: EvaluationResult,
    verdict: ResponseVerdict,
    target: Target,
    resource: Resource,
    texts: bool,
    now: int,
) -> ReadableSpan:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link, SpanKind

    identifier = f"{verdict.policy.name}:{verdict.policy.digest}"
    seed = "\0".join((identifier, verdict.response_id, result.place, f"{target.trace_id}:{target.span_id}"))
    own = blake2b(seed.encode("utf-8", "replace"), digest_size=24).digest()
    metadata = {"response_id": verdict.response_id, **_about(verdict)}
    attributes: dict[str, Any] = {SPAN_KIND: EVALUATOR}
    for index, each in enumerate(feedback_of(result, texts=texts)):
        fields = {
            "name": each.name,
            "score": each.score,
            "label": each.label,
            "explanation": each.explanation,
            "annotator_kind": annotator_kind(verdict),
            "identifier": identifier,
            "metadata": json.dumps(metadata, ensure_ascii=False),
        }
        attributes.update(
            {openinference(index, name): value for name, value in fields.items() if value is not None}
        )
    return ReadableSpan(
        name=f"{FAITHFULNESS} evaluation",
        context=_context(Target(int.from_bytes(own[:16], "big"), int.from_bytes(own[16:], "big"))),
        resource=resource,
        attributes=attributes,
        links=[Link(_context(target))],
        kind=SpanKind.INTERNAL,
        start_time=now - int(verdict.timings.total_ms * 1_000_000),
        end_time=now,
        instrumentation_scope=InstrumentationScope(SCOPE),
    )


def _context(target: Target) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(target.trace_id, target.span_id, True, TraceFlags(TraceFlags.SAMPLED))


def _about(verdict: ResponseVerdict | None) -> dict[str, Any]:
    """Whence an evaluation comes."""
    if verdict is None:
        return {}
    return {
        "guardrail.decision": verdict.decision.value,
        "guardrail.rule": verdict.rule,
        "guardrail.policy.name": verdict.policy.name,
        "guardrail.policy.version": verdict.policy.version,
        "guardrail.judge": ", ".join(sorted({claim.judge for claim in verdict.claims})),
        "guardrail.claims": len(verdict.claims),
    }


def _of_score(name: str, score: ScoreValue) -> Feedback:
    label = None if score.passed is None else _PASSED[score.passed]
    explanation = score.reason
    if score.value is None and label is None and explanation is None:
        explanation = "undefined"
    return Feedback(f"{FAITHFULNESS}.{name}", score.value, label, explanation)


def _in_words(result: EvaluationResult, verdict: ResponseVerdict) -> str:
    if result.explanation:
        return result.explanation
    wrong = [claim for claim in verdict.claims if claim.verdict is not Verdict.SUPPORTED]
    return "\n".join([verdict.summary, *map(_claim_in_words, wrong)])


def _claim_in_words(claim: ClaimVerdict) -> str:
    told = f"{claim.verdict}: {claim.text}"
    return f"{told} ({claim.reasoning})" if claim.reasoning else told


def _hex(value: Any, digits: int) -> int:
    """The number of an id of ``digits`` hex digits; 0, which names nothing, for everything else."""
    if not isinstance(value, str) or len(value) != digits or value.strip("0123456789abcdefABCDEF"):
        return 0
    return int(value, 16)
