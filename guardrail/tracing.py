"""OpenTelemetry: a span for each response and each verdict, and an evaluation event for each response.

Needs the extra ``otel``; OpenTelemetry's own variables configure the exporters
(``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_SERVICE_NAME``, ``OTEL_TRACES_SAMPLER``). Spans belong to the trace
that the response's producer started, if its events carry a ``traceparent``; the producer then also decides
whether it is sampled.

Spans are made when a response is decided, with the actual times. Nothing is therefore open while a response
is in flight, and a response that another guard resumes has one span, from the guard that decided it. Spans
contain no text of a response.

The event ``gen_ai.evaluation.result`` and its attributes follow OpenTelemetry's conventions for generative
AI, which are in development and live in a repository of their own
(open-telemetry/semantic-conventions-genai, events). Names of OpenInference are of its specification of
annotations and evaluations.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Final

from guardrail.errors import ConfigError, install_hint
from guardrail.events import ClaimVerdict, OutputEvent, ResponseVerdict

EVALUATION: Final = "gen_ai.evaluation.result"
"""The event."""
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"
RESPONSE_ID: Final = "gen_ai.response.id"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
ERROR_TYPE: Final = "error.type"

SPAN_KIND: Final = "openinference.span.kind"
EVALUATOR: Final = "EVALUATOR"
"""The kind of a span that carries evaluations of another span, which it links to."""

FAITHFULNESS: Final = "faithfulness"
"""What our evaluations are called; a published score beside it is ``faithfulness.NAME``."""

MOST_RESPONSES: Final = 10_000
"""Whose verdicts are kept until they are decided; the oldest go first."""
_SCOPE: Final = "guardrail"

Headers = Iterable[tuple[str, bytes]]

TRACE: Final[ContextVar[tuple[tuple[str, bytes], ...]]] = ContextVar("guardrail_trace", default=())
"""The W3C trace context, as headers, to which answers belong whose judging begins here."""


class Traces:
    """Makes spans from published events; ``from_environment`` sets OpenTelemetry up from its variables."""

    def __init__(self, tracer_provider: Any, logger_provider: Any) -> None:
        """``tracer_provider`` and ``logger_provider`` come from opentelemetry-sdk."""
        from opentelemetry import trace
        from opentelemetry._logs import LogRecord
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._trace = trace
        self._log_record = LogRecord
        self._propagator = TraceContextTextMapPropagator()
        self._providers = (tracer_provider, logger_provider)
        self._tracer = tracer_provider.get_tracer(_SCOPE)
        self._logger = logger_provider.get_logger(_SCOPE)
        self._verdicts: OrderedDict[str, list[tuple[int, ClaimVerdict]]] = OrderedDict()

    @classmethod
    def from_environment(cls) -> Traces:
        """Export over OTLP as OpenTelemetry's variables say. Raises ConfigError without the extra."""
        try:
            from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk._logs import LoggerProvider
            from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            raise ConfigError(
                f"ops.traces is on, and OpenTelemetry is not installed; {install_hint('otel')}, "
                "or set ops.traces: false"
            ) from None
        resource = Resource.create({"service.name": "guardrail"}).merge(OTELResourceDetector().detect())
        spans = TracerProvider(resource=resource)
        spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        logs = LoggerProvider(resource=resource)
        logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        return cls(spans, logs)

    def on_event(self, event: OutputEvent, headers: Headers) -> None:
        """An event of a response was published; ``headers`` came with the response's start."""
        if isinstance(event, ClaimVerdict):
            self._verdicts.setdefault(event.response_id, []).append((time.time_ns(), event))
            while len(self._verdicts) > MOST_RESPONSES:
                self._verdicts.popitem(last=False)
        elif isinstance(event, ResponseVerdict):
            self._decided(event, self._verdicts.pop(event.response_id, []), headers)

    def request(
        self, endpoint: str, method: str, path: str, headers: Headers
    ) -> tuple[tuple[tuple[str, bytes], ...], Callable[[int], None]]:
        """Begins the span of a request, in the trace that ``headers`` name. Returns the trace context of what
        belongs to it, and what ends it with the status of the answer.
        """
        attributes = {"http.request.method": method, "http.route": path, "guardrail.endpoint": endpoint}
        parent = self._propagator.extract({name: value.decode("ascii", "replace") for name, value in headers})
        span = self._tracer.start_span(
            f"{method} {path}", parent, self._trace.SpanKind.SERVER, attributes, start_time=time.time_ns()
        )
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, self._trace.set_span_in_context(span))

        def end(status: int) -> None:
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_attribute(ERROR_TYPE, str(status))
                span.set_status(self._trace.StatusCode.ERROR)
            span.end(time.time_ns())

        return tuple((name, value.encode("ascii")) for name, value in carrier.items()), end

    def close(self) -> None:
        """Export the rest. Waits for the exporter."""
        for provider in self._providers:
            provider.shutdown()

    def _decided(
        self, event: ResponseVerdict, verdicts: list[tuple[int, ClaimVerdict]], headers: Headers
    ) -> None:
        now = time.time_ns()
        carrier = {name.lower(): value.decode("ascii", "replace") for name, value in headers}
        span = self._tracer.start_span(
            "guard response",
            self._propagator.extract(carrier),
            self._trace.SpanKind.CONSUMER,
            {
                "guardrail.response.id": event.response_id,
                "guardrail.decision": event.decision.value,
                "guardrail.rule": event.rule,
                "guardrail.policy.name": event.policy.name,
                "guardrail.policy.version": event.policy.version,
                "guardrail.mode": event.mode,
                "guardrail.complete": event.complete,
                "guardrail.claims": len(event.claims),
                INPUT_TOKENS: event.usage.input_tokens,
                OUTPUT_TOKENS: event.usage.output_tokens,
                **({} if event.score is None else {"guardrail.score": event.score}),
            },
            start_time=now - _ns(event.timings.total_ms),
        )
        inside = self._trace.set_span_in_context(span)
        for at, verdict in verdicts:
            self._judged(verdict, at, inside)
        self._evaluated(event, now, inside)
        span.end(now)

    def _judged(self, verdict: ClaimVerdict, at: int, inside: Any) -> None:
        child = self._tracer.start_span(
            "judge claim",
            inside,
            self._trace.SpanKind.INTERNAL,
            {
                "guardrail.claim.id": verdict.claim_id,
                "guardrail.claim.index": verdict.index,
                "guardrail.verdict": verdict.verdict.value,
                "guardrail.severity": verdict.severity.value,
                "guardrail.judge": verdict.judge,
                "guardrail.degraded": bool(verdict.degraded_from),
            },
            start_time=at - _ns(verdict.latency_ms),
        )
        if verdict.unanswered:
            child.set_status(self._trace.StatusCode.ERROR)
        child.end(at)

    def _evaluated(self, event: ResponseVerdict, now: int, inside: Any) -> None:
        error = "unverified" if event.score is None and event.counts.unverified else None
        told = evaluation(FAITHFULNESS, event.score, event.decision.value, event.summary, error)
        attributes = told | {RESPONSE_ID: event.response_id}
        self._logger.emit(
            self._log_record(timestamp=now, event_name=EVALUATION, attributes=attributes, context=inside)
        )


def _ns(ms: float) -> int:
    return int(ms * 1_000_000)


def trace_id(headers: Headers) -> str | None:
    """The trace that a ``traceparent`` names, as logs show it; None if there is none."""
    for name, value in headers:
        if name.lower() == "traceparent":
            parts = value.decode("ascii", "replace").split("-")
            if len(parts) >= 4 and len(parts[1]) == 32 and parts[1].strip("0123456789abcdef") == "":
                return parts[1]
    return None


def openinference(index: int, field: str) -> str:
    """The attribute of a span for one field of its evaluation number ``index``, from 0: name, score, label,
    explanation, annotator_kind, identifier, metadata (JSON as text).
    """
    return f"evaluations.{index}.evaluation.{field}"


def evaluation(
    name: str, score: float | None, label: str | None, explanation: str | None, error: str | None
) -> dict[str, Any]:
    """The attributes of an evaluation's event, but for those that there are not."""
    told = {
        EVALUATION_NAME: name,
        SCORE_VALUE: score,
        SCORE_LABEL: label,
        EXPLANATION: explanation,
        ERROR_TYPE: error,
    }
    return {attribute: value for attribute, value in told.items() if value is not None}
