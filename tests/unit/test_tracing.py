"""Spans and evaluation events of responses."""

from __future__ import annotations

import json

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from guardrail import Guard
from guardrail.events import OutputEvent
from guardrail.tracing import EVALUATION, MOST_RESPONSES, Traces, trace_id
from tests.support.judges import WordJudge

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SAMPLED = (("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01".encode()),)
NOT_SAMPLED = (("traceparent", f"00-{TRACE}-00f067aa0ba902b7-00".encode()),)


class Exported:
    def __init__(self) -> None:
        self.spans, self.logs = InMemorySpanExporter(), InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        tracers, loggers = TracerProvider(), LoggerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        self.traces = Traces(tracers, loggers)


async def answered(text: str) -> list[OutputEvent]:
    async with Guard(WordJudge()) as guard:
        return [event async for event in guard.stream("?", ["Paris is in France."], [text])]


async def test_a_response_has_a_span_in_its_producers_trace_and_one_for_each_verdict() -> None:
    exported = Exported()
    for event in await answered("Paris is in France. It costs wrong $79. "):
        exported.traces.on_event(event, SAMPLED)
    spans = {span.name: span for span in exported.spans.get_finished_spans()}
    response, claim = spans["guard response"], spans["judge claim"]
    assert response.context is not None
    assert claim.parent is not None
    assert format(response.context.trace_id, "032x") == TRACE
    assert claim.parent.span_id == response.context.span_id
    assert response.attributes is not None
    assert response.attributes["guardrail.decision"] == "block"
    assert response.start_time is not None
    assert claim.start_time is not None
    assert response.start_time <= claim.start_time
    assert claim.end_time is not None
    assert response.end_time is not None
    assert claim.end_time <= response.end_time


async def test_an_evaluation_is_an_event_of_the_conventions_and_quotes_no_text() -> None:
    exported = Exported()
    for event in await answered("Paris is in France. "):
        exported.traces.on_event(event, SAMPLED)
    (record,) = exported.logs.get_finished_logs()
    assert record.log_record.event_name == EVALUATION
    attributes = record.log_record.attributes
    assert attributes is not None
    assert attributes["gen_ai.evaluation.name"] == "faithfulness"
    assert attributes["gen_ai.evaluation.score.label"] == "release"
    assert attributes["gen_ai.evaluation.score.value"] == 0.95
    assert format(record.log_record.trace_id or 0, "032x") == TRACE
    spans = [dict(span.attributes or {}) for span in exported.spans.get_finished_spans()]
    told = json.dumps([dict(attributes), *spans])
    assert "Paris" not in told


async def test_a_producer_that_did_not_sample_its_trace_gets_no_spans() -> None:
    exported = Exported()
    for event in await answered("Paris is in France. "):
        exported.traces.on_event(event, NOT_SAMPLED)
    assert exported.spans.get_finished_spans() == ()


async def test_verdicts_of_responses_that_are_never_decided_are_forgotten() -> None:
    exported = Exported()
    verdict = (await answered("Paris is in France. "))[0]
    for number in range(MOST_RESPONSES + 5):
        exported.traces.on_event(verdict.model_copy(update={"response_id": str(number)}), ())
    assert len(exported.traces._verdicts) == MOST_RESPONSES


def test_the_trace_of_a_log_line_is_that_of_the_traceparent() -> None:
    assert trace_id(SAMPLED) == TRACE
    assert trace_id((("TraceParent", SAMPLED[0][1]),)) == TRACE
    assert trace_id(()) is None
    assert trace_id((("traceparent", b"nonsense"),)) is None
    assert trace_id((("traceparent", b"00-\xff" + b"0" * 31 + b"-1-1"),)) is None
