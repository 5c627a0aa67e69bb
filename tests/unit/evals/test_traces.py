"""Traces of OpenInference and Langfuse: spans that are apart, joined to answers with their documents."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from guardrail.evals import BadSample, Sample, read_samples
from guardrail.evals.formats import samples_in
from guardrail.events import Verdict
from tests.unit.evals.samples import lines, only, samples


def told(sample: Sample) -> tuple[str, list[tuple[str, str]], str]:
    response = sample.response
    return response.question, [(each.id, each.text) for each in response.contexts], response.answer


# ------------------------------------------------------------------------------------- OpenInference

# Attributes as instrumentation of OpenInference sets them; the frame as span.to_json() of OpenTelemetry's SDK
# 1.45 and as Phoenix's get_spans() give it.
RETRIEVER = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": "price?",
    "retrieval.documents.0.document.id": "price",
    "retrieval.documents.0.document.content": "It costs 49 euros.",
    "retrieval.documents.0.document.score": 0.9,
    "retrieval.documents.1.document.content": "Monthly.",
}
LLM = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-5-mini",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "How much?",
    "llm.output_messages.0.message.content": "It costs 49 euros.",
}
CHAIN = {
    "openinference.span.kind": "CHAIN",
    "input.value": "How much?",
    "output.value": "It costs 49 euros.",
    "session.id": "s",
}
DOCUMENTS = [("price", "It costs 49 euros."), ("c2", "Monthly.")]


def span(attributes: Mapping[str, Any], parent: str | None = "p", trace: str = "t") -> dict[str, Any]:
    context = {"trace_id": trace, "span_id": "s"}
    return {"name": "x", "context": context, "parent_id": parent, "attributes": attributes}


def test_the_spans_of_a_trace_are_one_answer_in_whatever_order_they_come() -> None:
    spans = [span(RETRIEVER), span(LLM), span(CHAIN, None)]
    for given in (spans, spans[::-1]):
        found = only(lines(*given))
        assert told(found) == ("How much?", DOCUMENTS, "It costs 49 euros.")
        assert (found.response.response_id, found.response.generator_model) == ("t", "gpt-5-mini")
        assert found.response.contexts[0].score == 0.9
        assert found.response.metadata == {"trace_id": "t", "session_id": "s", "span_id": "s"}


def test_without_a_root_the_model_says_question_and_answer() -> None:
    assert told(only(lines(span(RETRIEVER), span(LLM)))) == ("price?", DOCUMENTS, "It costs 49 euros.")


def test_inputs_and_outputs_that_are_json_are_opened() -> None:
    chain = {
        **CHAIN,
        "input.value": json.dumps({"messages": [{"role": "user", "content": "How much?"}]}),
        "output.value": json.dumps({"answer": "It costs 49 euros.", "sources": []}),
    }
    assert told(only(lines(span(chain, None), span(RETRIEVER))))[::2] == ("How much?", "It costs 49 euros.")


def test_what_a_reranker_chose_goes_before_what_was_retrieved() -> None:
    reranker = {
        "openinference.span.kind": "RERANKER",
        "reranker.output_documents.0.document.content": "It costs 49 euros.",
    }
    found = only(lines(span(RETRIEVER), span(reranker), span(CHAIN, None)))
    assert [each.text for each in found.response.contexts] == ["It costs 49 euros."]


def test_a_data_frame_of_phoenix_as_csv(tmp_path: Path) -> None:
    """As ``client.spans.get_spans_dataframe().to_csv()`` writes it, which begins with the newest span."""
    documents = [
        {"document.id": "price", "document.content": "It costs 49 euros.", "document.score": 1.0},
        {"document.content": 'It\'s paid "monthly".'},
    ]
    messages = [{"message.content": "How much?", "message.role": "user"}]
    replies = [{"message.content": "It costs 49 euros.", "message.role": "assistant"}]
    frame = pd.DataFrame(
        [
            {"span_kind": "LLM", "attributes.llm.output_messages": replies, "end_time": "2026-01-01 10:00:09"}
            | {"attributes.llm.input_messages": messages, "attributes.output.value": "{}"},
            {"span_kind": "LLM", "attributes.llm.output_messages": [{"message.content": "Not yet."}]}
            | {"attributes.llm.input_messages": messages, "end_time": "2026-01-01 10:00:05.5"},
            # Haystack's PromptBuilder, whose output is a prompt
            {"span_kind": "LLM", "attributes.output.value": "Answer!", "end_time": "2026-01-01 10:00:09.9"},
            {"span_kind": "RETRIEVER", "attributes.retrieval.documents": documents},
        ]
    ).assign(**{"context.trace_id": "t", "parent_id": "p"})
    frame.to_csv(tmp_path / "spans.csv")
    frame.to_json(tmp_path / "spans.json")
    for name in ("spans.csv", "spans.json"):
        (found,) = read_samples(tmp_path / name)
        assert isinstance(found, Sample)
        texts = [("price", "It costs 49 euros."), ("c2", 'It\'s paid "monthly".')]
        assert told(found) == ("How much?", texts, "It costs 49 euros.")
    torn = [documents[0], "…"]
    frame = pd.concat([frame, frame.tail(1)], ignore_index=True)
    frame.loc[4, "attributes.retrieval.documents"] = f"{torn}"[:-5]
    frame.to_csv(tmp_path / "spans.csv")
    span, trace = read_samples(tmp_path / "spans.csv")
    assert isinstance(span, BadSample)
    assert span.error.startswith("attributes.retrieval.documents: a text; give a list as JSON or as Python")
    assert isinstance(trace, BadSample)  # and not judged by the other retriever's documents alone
    assert "a span of the trace can't be read" in trace.error


def test_nested_attributes_and_the_columns_of_a_data_frame(tmp_path: Path) -> None:
    documents = [
        {"document.id": "price", "document.content": "It costs 49 euros."},
        {"document.content": "Monthly."},
    ]
    frame = pd.DataFrame(
        [
            {
                "context.trace_id": "t",
                "span_kind": "RETRIEVER",
                "parent_id": "p",
                "attributes.retrieval.documents": documents,
            },
            {
                "context.trace_id": "t",
                "span_kind": "CHAIN",
                "parent_id": None,
                "attributes.input.value": "How much?",
                "attributes.output.value": "It costs 49 euros.",
            },
        ]
    )
    frame.to_parquet(tmp_path / "spans.parquet")
    (found,) = read_samples(tmp_path / "spans.parquet")
    assert isinstance(found, Sample)
    nested = {
        "openinference": {"span": {"kind": "RETRIEVER"}},
        "retrieval": {"documents": [{"document": {"id": "price", "content": "It costs 49 euros."}}]},
    }
    assert told(found) == ("How much?", DOCUMENTS, "It costs 49 euros.")
    assert told(only(lines(span(nested), span(CHAIN, None))))[1] == DOCUMENTS[:1]


def test_spans_as_a_collector_writes_them() -> None:
    def otlp(attributes: Mapping[str, Any], parent: str) -> dict[str, Any]:
        values = [
            {"key": key, "value": {"doubleValue" if isinstance(value, float) else "stringValue": value}}
            for key, value in attributes.items()
        ]
        return {"traceId": "5wmP", "spanId": "x", "parentSpanId": parent, "name": "x", "attributes": values}

    scope = {"scope": {"name": "x"}, "spans": [otlp(RETRIEVER, "p"), otlp(CHAIN, "")]}
    row = {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}
    assert told(only(lines(row))) == ("How much?", DOCUMENTS, "It costs 49 euros.")


def test_what_people_annotated_about_faithfulness_is_a_label() -> None:
    annotations = [
        {
            "annotation.name": "Hallucination",
            "annotation.label": "hallucinated",
            "annotation.annotator_kind": "HUMAN",
        },
        {"annotation.name": "helpful", "annotation.label": "yes", "annotation.annotator_kind": "HUMAN"},
        {"annotation.name": "faithfulness", "annotation.label": "yes", "annotation.annotator_kind": "LLM"},
        {"annotation.name": "grounded", "annotation.score": 1, "annotation.annotator_kind": "HUMAN"},
    ]
    found = only(lines(span(RETRIEVER), span({**CHAIN, "annotations": annotations}, None)))
    assert [each.verdict for each in found.labels] == [Verdict.UNSUPPORTED, Verdict.SUPPORTED]


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ([span(CHAIN, None)], "contexts: missing; no span of the trace has documents"),
        ([span(RETRIEVER)], "answer: missing; no span of the trace has an output"),
        ([{"attributes": CHAIN}], "trace id: missing"),
    ],
)
def test_a_trace_that_is_no_answer_is_an_error_with_what_it_lacks(spans: list[Any], words: str) -> None:
    good = [span(RETRIEVER, trace="good"), span(CHAIN, None, trace="good")]
    found = samples(lines(*spans, *good))
    assert [words in each.error for each in found if isinstance(each, BadSample)] == [True]
    assert [each.response.response_id for each in found if isinstance(each, Sample)] == ["good"]


# ------------------------------------------------------------------------------------------ Langfuse

# Fields as Langfuse's export to blob stores names them; input and output are texts that may hold JSON.
GENERATION: dict[str, Any] = {
    "id": "g",
    "trace_id": "t",
    "type": "GENERATION",
    "parent_observation_id": "root",
    "provided_model_name": "gpt-5-mini",
    "input": json.dumps(
        [{"role": "system", "content": "It costs 49 euros."}, {"role": "user", "content": "How much?"}]
    ),
    "output": json.dumps({"role": "assistant", "content": "It costs 49 euros."}),
    "metadata": {},
}
FOUND: dict[str, Any] = {
    "id": "r",
    "trace_id": "t",
    "type": "RETRIEVER",
    "parent_observation_id": "root",
    "input": "price?",
    "output": json.dumps([{"id": "price", "page_content": "It costs 49 euros."}, "Monthly."]),
}
ROOT: dict[str, Any] = {
    "id": "root",
    "trace_id": "t",
    "type": "SPAN",
    "parent_observation_id": None,
    "input": json.dumps({"question": "How much?"}),
    "output": json.dumps({"answer": "It costs 49 euros."}),
}


def test_observations_of_a_trace_are_one_answer() -> None:
    for given in ([FOUND, GENERATION, ROOT], [ROOT, GENERATION, FOUND]):
        found = only(lines(*given))
        assert told(found) == ("How much?", DOCUMENTS, "It costs 49 euros.")
        assert found.response.generator_model == "gpt-5-mini"


def test_a_trace_with_its_observations_as_the_api_gives_it() -> None:
    def camel(fields: Mapping[str, Any]) -> dict[str, Any]:
        names = {"trace_id": "traceId", "parent_observation_id": "parentObservationId"}
        return {names.get(key, key): value for key, value in fields.items()}

    trace = {
        "id": "t",
        "input": {"question": "How much?"},
        "output": "It costs 49 euros.",
        "sessionId": "s",
        "observations": [camel(FOUND), camel(GENERATION)],
        "scores": [
            {
                "name": "faithful",
                "source": "ANNOTATION",
                "value": 0,
                "stringValue": "False",
                "comment": "wrong",
            },
            {"name": "faithful", "source": "EVAL", "value": 1},
            {"name": "tone", "source": "ANNOTATION", "value": 1},
        ],
    }
    for text in (
        lines(trace),
        json.dumps(trace, indent=1),
        json.dumps([trace]),
        json.dumps({"data": [trace]}),
    ):
        found = only(text)
        assert told(found) == ("How much?", DOCUMENTS, "It costs 49 euros.")
        assert [(each.verdict, each.category) for each in found.labels] == [(Verdict.UNSUPPORTED, "wrong")]


def test_contexts_handed_over_in_input_or_metadata_go_before_what_was_retrieved() -> None:
    for given in (
        {**ROOT, "input": json.dumps({"question": "How much?", "contexts": ["It costs 49 euros."]})},
        {**ROOT, "metadata": {"contexts": [{"id": "c1", "text": "It costs 49 euros."}]}},
    ):
        found = only(lines(FOUND, given))
        assert told(found)[1] == [("c1", "It costs 49 euros.")]


def test_without_any_documents_the_messages_of_the_prompt_are_the_context() -> None:
    found = only(lines(GENERATION))
    assert told(found) == (
        "How much?",
        [("c1", "It costs 49 euros."), ("c2", "How much?")],
        "It costs 49 euros.",
    )


def test_a_table_of_observations_holds_objects_as_texts() -> None:
    table = io.StringIO()
    pd.DataFrame([{**FOUND, "metadata": "{}"}, {**ROOT, "metadata": "{}"}]).to_csv(table, index=False)
    (found,) = samples_in(io.BytesIO(gzip.compress(table.getvalue().encode())), Path("observations.csv.gz"))
    assert isinstance(found, Sample)
    assert told(found) == ("How much?", DOCUMENTS, "It costs 49 euros.")


def test_a_trace_of_langfuse_without_answer_says_what_to_export() -> None:
    (found,) = samples(lines(FOUND))
    assert isinstance(found, BadSample)
    assert "answer: missing" in found.error
