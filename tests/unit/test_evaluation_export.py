"""Results of evaluations as OpenTelemetry's events and OpenInference's spans, on a real OTLP receiver."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.sdk.resources import Resource
from typer.testing import CliRunner, Result

from guardrail import Guard, Response
from guardrail.cli import app
from guardrail.evals.formats import read_samples
from guardrail.evals.results import EvaluationResult, Sample, ScoreValue
from guardrail.evaluation_export import (
    Exported,
    Feedback,
    Target,
    annotator_kind,
    export_events,
    export_spans,
    feedback_of,
    target_of,
)
from guardrail.tracing import EVALUATION, openinference
from tests.support.judges import WordJudge


class OtlpReceiver:
    """What came. ``status`` is what it answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.status = 200
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.logs: list[Any] = []
        self.spans: list[Any] = []

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.requests.append((path, headers))
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if path == "/v1/logs":
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                for scope in resource.scope_logs:
                    self.logs.extend(scope.log_records)
        elif path == "/v1/traces":
            for each in ExportTraceServiceRequest.FromString(body).resource_spans:
                for spans in each.scope_spans:
                    self.spans.extend(spans.spans)
        else:
            raise AssertionError(f"nothing is sent to {path}")


def attributes_of(pairs: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {pair.key: _plain(pair.value) for pair in pairs if isinstance(pair, KeyValue)}


def _plain(value: AnyValue) -> Any:
    return getattr(value, value.WhichOneof("value") or "string_value")


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    """Listens on 127.0.0.1 until the test ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            found.take(self.path, headers, body)
            self.send_response(found.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = OtlpReceiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACED = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
RIGHT = "Paris is in France."
WRONG = "It costs wrong $79."
RESOURCE = Resource.create({"service.name": "test"})
NOW = 1_700_000_000_000_000_000


async def result_of(answer: str, response_id: str = "r1", **changes: Any) -> EvaluationResult:
    metadata = changes.pop("metadata", TRACED)
    response = Response(
        response_id=response_id,
        question="?",
        contexts=({"id": "c1", "text": "Paris is in France."},),
        answer=answer,
        metadata=metadata,
    )
    async with Guard(WordJudge()) as guard:
        verdict = await guard.check_event(response)
    return EvaluationResult(place="line 1", response=response, verdict=verdict, **changes)


def failed() -> EvaluationResult:
    response = Response(response_id="r9", answer=RIGHT)
    return EvaluationResult(place="line 9", response=response, error="the judge can't be reached")


def logs_to(receiver: OtlpReceiver) -> OTLPLogExporter:
    return OTLPLogExporter(f"{receiver.url}/v1/logs")


def spans_to(receiver: OtlpReceiver) -> OTLPSpanExporter:
    return OTLPSpanExporter(f"{receiver.url}/v1/traces")


# ---------------------------------------------------------------------------------------- OpenTelemetry


async def test_a_verdict_and_each_score_are_events_of_the_span_that_was_evaluated(
    receiver: OtlpReceiver,
) -> None:
    own = (await result_of(f"{RIGHT} {WRONG}")).verdict
    assert own is not None
    scores = {
        "severity_weighted": ScoreValue(value=own.score),
        "strict": ScoreValue(value=0.5),
        "llama_index": ScoreValue(value=0.0, passed=False),
        "ragas": ScoreValue(value=None, reason="no statements"),
    }
    result = await result_of(f"{RIGHT} {WRONG}", scores=scores)
    told = export_events([result], logs_to(receiver), RESOURCE, wall_ns=lambda: NOW)
    assert told == Exported(sent=1)
    assert {record.event_name for record in receiver.logs} == {EVALUATION}
    assert {(record.trace_id.hex(), record.span_id.hex()) for record in receiver.logs} == {(TRACE, SPAN)}
    assert {record.time_unix_nano for record in receiver.logs} == {NOW}
    found = {each["gen_ai.evaluation.name"]: each for each in map(attributes_of_record, receiver.logs)}
    assert list(found) == [
        "faithfulness",
        "faithfulness.strict",
        "faithfulness.llama_index",
        "faithfulness.ragas",
    ]
    assert result.verdict is not None
    first = found["faithfulness"]
    assert first["gen_ai.evaluation.score.value"] == pytest.approx(result.verdict.score)
    assert first["gen_ai.evaluation.score.label"] == "block"
    assert first["gen_ai.response.id"] == "r1"
    assert first["guardrail.judge"] == "test"
    assert found["faithfulness.llama_index"]["gen_ai.evaluation.score.label"] == "fail"
    assert "gen_ai.evaluation.score.value" not in found["faithfulness.ragas"]
    assert found["faithfulness.ragas"]["gen_ai.evaluation.explanation"] == "no statements"


def attributes_of_record(record: Any) -> dict[str, Any]:
    return attributes_of(record.attributes)


async def test_what_could_not_be_judged_is_an_event_with_an_error_and_no_score(
    receiver: OtlpReceiver,
) -> None:
    unread = EvaluationResult(place="line 2", error="not valid JSON")
    told = export_events([failed(), unread], logs_to(receiver), RESOURCE)
    assert told == Exported(sent=1, unjudged=1)
    (record,) = receiver.logs
    assert attributes_of(record.attributes) == {
        "gen_ai.evaluation.name": "faithfulness",
        "error.type": "evaluation_failed",
        "gen_ai.response.id": "r9",
    }
    assert record.trace_id == b""


async def test_no_text_of_an_answer_is_sent_unless_it_is_asked_for(receiver: OtlpReceiver) -> None:
    result = await result_of(f"{RIGHT} {WRONG}", explanation=None)
    export_events([result], logs_to(receiver), RESOURCE)
    export_spans([result], spans_to(receiver), RESOURCE)
    assert "Paris" not in f"{receiver.logs}{receiver.spans}"
    assert "$79" not in f"{receiver.logs}{receiver.spans}"
    export_events([result], logs_to(receiver), RESOURCE, texts=True)
    assert (
        f"CONTRADICTED: {WRONG}"
        in attributes_of(receiver.logs[-1].attributes)["gen_ai.evaluation.explanation"]
    )


async def test_an_explanation_that_the_evaluation_made_comes_first() -> None:
    result = await result_of(WRONG, explanation="The price is wrong.")
    assert feedback_of(result, texts=True)[0].explanation == "The price is wrong."
    assert feedback_of(result)[0].explanation != "The price is wrong."


async def test_an_answer_whose_claims_nobody_could_verify_is_told_as_such() -> None:
    result = await result_of(RIGHT)
    assert result.verdict is not None
    counts = result.verdict.counts.model_copy(update={"supported": 0, "unverified": 1})
    verdict = result.verdict.model_copy(update={"score": None, "counts": counts})
    found = feedback_of(result.model_copy(update={"verdict": verdict}))
    assert found == [Feedback("faithfulness", None, "release", verdict.summary, "unverified")]


async def test_many_results_go_in_several_requests(receiver: OtlpReceiver) -> None:
    result = await result_of(RIGHT)
    told = export_events((result for _ in range(450)), logs_to(receiver), RESOURCE)
    assert told == Exported(sent=450)
    assert len(receiver.requests) == 3
    assert len(receiver.logs) == 450


async def test_what_the_receiver_does_not_take_is_counted(receiver: OtlpReceiver) -> None:
    receiver.status = 400
    result = await result_of(RIGHT)
    assert export_events([result], logs_to(receiver), RESOURCE) == Exported(refused=1)
    assert export_spans([result], spans_to(receiver), RESOURCE) == Exported(refused=1)


# ----------------------------------------------------------------------------------------- OpenInference


async def test_a_result_is_a_span_with_its_evaluations_and_one_link_to_what_was_evaluated(
    receiver: OtlpReceiver,
) -> None:
    result = await result_of(
        f"{RIGHT} {WRONG}",
        metadata={"trace_id": TRACE, "span_id": SPAN},
        scores={"strict": ScoreValue(value=0.5)},
    )
    assert result.verdict is not None
    assert export_spans([result], spans_to(receiver), RESOURCE, wall_ns=lambda: NOW) == Exported(sent=1)
    (span,) = receiver.spans
    (link,) = span.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (TRACE, SPAN)
    assert span.trace_id.hex() != TRACE
    assert span.end_time_unix_nano == NOW
    found = attributes_of(span.attributes)
    assert found["openinference.span.kind"] == "EVALUATOR"
    assert found["evaluations.0.evaluation.name"] == "faithfulness"
    assert found["evaluations.0.evaluation.label"] == "block"
    assert found["evaluations.0.evaluation.score"] == pytest.approx(result.verdict.score)
    assert found["evaluations.0.evaluation.annotator_kind"] == "CODE"
    assert json.loads(found["evaluations.0.evaluation.metadata"])["guardrail.claims"] == 2
    assert found["evaluations.1.evaluation.name"] == "faithfulness.strict"
    assert found["evaluations.1.evaluation.score"] == 0.5
    names = {name.rpartition(".")[2] for name in found if name.startswith("evaluations.")}
    assert names <= {"name", "score", "label", "explanation", "annotator_kind", "identifier", "metadata"}


async def test_exporting_again_gives_the_same_ids_and_another_policy_gives_others(
    receiver: OtlpReceiver,
) -> None:
    result = await result_of(RIGHT)
    assert result.verdict is not None
    policy = result.verdict.policy.model_copy(update={"digest": "another"})
    other = result.model_copy(update={"verdict": result.verdict.model_copy(update={"policy": policy})})
    for each in (result, result, other):
        export_spans([each], spans_to(receiver), RESOURCE)
    first, again, another = ((span.trace_id, span.span_id) for span in receiver.spans)
    assert first == again
    assert first != another


async def test_results_that_name_no_span_and_errors_are_counted_and_not_sent(receiver: OtlpReceiver) -> None:
    lost = await result_of(RIGHT, metadata={})
    told = export_spans([lost, failed(), await result_of(RIGHT)], spans_to(receiver), RESOURCE)
    assert told == Exported(sent=1, unjudged=1, without_target=1)


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"traceparent": "00-xyz"},
        {"traceparent": f"00-{'0' * 32}-{SPAN}-01"},
        {"traceparent": 7},
        {"trace_id": TRACE},
        {"trace_id": TRACE, "span_id": f"{SPAN}0"},
        {"trace_id": TRACE, "span_id": "+0f067aa0ba902b7"},
    ],
)
async def test_what_names_no_span_is_none(metadata: dict[str, Any]) -> None:
    assert target_of(await result_of(RIGHT, metadata=metadata)) is None


def test_a_trace_that_was_evaluated_has_its_results_linked_to_its_root(tmp_path: Path) -> None:
    spans = [
        {
            "context.trace_id": TRACE,
            "context.span_id": "00000000000000aa",
            "parent_id": SPAN,
            "openinference.span.kind": "RETRIEVER",
            "retrieval.documents.0.document.content": "Paris is in France.",
        },
        {
            "context.trace_id": TRACE,
            "context.span_id": SPAN,
            "openinference.span.kind": "CHAIN",
            "input.value": "Where is Paris?",
            "output.value": RIGHT,
        },
    ]
    (tmp_path / "spans.jsonl").write_text("\n".join(map(json.dumps, spans)))
    (sample,) = read_samples(tmp_path / "spans.jsonl")
    assert isinstance(sample, Sample)
    found = target_of(EvaluationResult(response=sample.response))
    assert found == Target(int(TRACE, 16), int(SPAN, 16))


async def test_a_language_models_judgement_is_told_from_codes() -> None:
    verdict = (await result_of(RIGHT)).verdict
    assert verdict is not None
    assert annotator_kind(verdict) == "CODE"
    claim = verdict.claims[0].model_copy(update={"judge": "llm:some-model"})
    assert annotator_kind(verdict.model_copy(update={"claims": (claim,)})) == "LLM"


def test_the_names_are_those_of_openinferences_package() -> None:
    from openinference.semconv import trace

    for field in ("name", "score", "label", "explanation", "annotator_kind", "identifier", "metadata"):
        known = getattr(trace.EvaluationAttributes, f"EVALUATION_{field.upper()}")
        assert openinference(3, field) == f"{trace.SpanAttributes.EVALUATIONS}.3.{known}"


# ------------------------------------------------------------------------------------------- the command


def report(file: str, kind: str, receiver: OtlpReceiver) -> Result:
    return CliRunner().invoke(app, ["report", file, "--otlp", kind, "--endpoint", receiver.url])


def written(path: Path, *results: EvaluationResult) -> str:
    path.write_bytes(b"\n".join(each.to_json() for each in results) + b"\n")
    return str(path)


async def test_the_command_sends_a_file_and_says_how_much(receiver: OtlpReceiver, tmp_path: Path) -> None:
    file = written(tmp_path / "results.jsonl", await result_of(RIGHT), failed())
    done = CliRunner().invoke(app, ["report", file, "--otlp", "events", "--endpoint", f"{receiver.url}/"])
    assert done.exit_code == 0, done.output
    assert len(receiver.logs) == 2
    done = report(file, "openinference", receiver)
    assert done.exit_code == 0, done.output
    assert len(receiver.spans) == 1
    assert "have no verdict: 1" in done.output
    assert {path for path, _ in receiver.requests} == {"/v1/logs", "/v1/traces"}


async def test_keys_and_endpoint_come_from_opentelemetrys_variables(
    receiver: OtlpReceiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc")
    file = written(tmp_path / "results.jsonl", await result_of(RIGHT))
    assert CliRunner().invoke(app, ["report", file, "--otlp", "events"]).exit_code == 0
    assert receiver.requests[0][1]["authorization"] == "Basic abc"


async def test_the_command_fails_if_nothing_was_taken(receiver: OtlpReceiver, tmp_path: Path) -> None:
    receiver.status = 403
    file = written(tmp_path / "results.jsonl", await result_of(RIGHT))
    done = report(file, "events", receiver)
    assert done.exit_code == 1
    assert "did not take 1 of the results" in done.output
    lost = written(tmp_path / "lost.jsonl", await result_of(RIGHT, metadata={}))
    done = report(lost, "openinference", receiver)
    assert done.exit_code == 1
    assert "name no span" in done.output
    assert "traceparent" in done.output
