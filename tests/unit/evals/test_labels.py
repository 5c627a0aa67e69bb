"""Labels in the forms of other tools.

The forms were checked against ragas 0.4.3 (``MetricAnnotation``, and the models of Faithfulness' prompt),
langfuse 5.0.4 (``CreateScoreRequest``) and arize-phoenix-client 3.5.0 (``SpanAnnotationData``,
``TraceAnnotationData``).
"""

from __future__ import annotations

import json
from typing import Any

from guardrail.evals.labels import TraceOf, to_langfuse, to_openinference, to_ragas
from guardrail.evals.results import EvaluationResult
from guardrail.events import Context, Label, LabelSource, Response, Verdict
from tests.support.records import claim, recorded

VERDICT = recorded("r1", [claim(reasoning="It says so."), claim(), claim(Verdict.UNVERIFIED)])
RESULT = EvaluationResult(
    response=Response(
        response_id="r1", question="Why?", contexts=(Context(id="a", text="Because."),), answer="Claim 0."
    ),
    verdict=VERDICT,
)
TRACES = {"r1": TraceOf(response_id="r1", trace_id="t1", span_id="s1")}


def label(**fields: Any) -> Label:
    told: dict[str, Any] = {"response_id": "r1", "verdict": Verdict.UNSUPPORTED, "claim_id": "r1-1"}
    return Label(**told | fields)


FULL = label(
    id="l1",
    span=(0, 3),
    category="price",
    correction="It costs $50.",
    reviewer="ada",
    time="2026-03-01T12:00:00Z",
)


def test_langfuse_gets_a_categorical_score() -> None:
    (score,) = to_langfuse([FULL], TRACES)
    assert score == {
        "id": "l1",
        "traceId": "t1",
        "observationId": "s1",
        "name": "faithfulness",
        "value": "UNSUPPORTED",
        "dataType": "CATEGORICAL",
        "comment": "price; should say: It costs $50.",
        "timestamp": "2026-03-01T12:00:00+00:00",
        "metadata": {
            "response_id": "r1",
            "claim_id": "r1-1",
            "span": [0, 3],
            "category": "price",
            "reviewer": "ada",
            "source": "human",
        },
    }


def test_langfuse_takes_annotations_only_with_a_configuration() -> None:
    (plain,), (annotation,) = to_langfuse([FULL]), to_langfuse([FULL], config_id="c1")
    assert "source" not in plain
    assert (annotation["source"], annotation["configId"]) == ("ANNOTATION", "c1")


def test_openinference_gets_annotations_by_people_of_spans_or_traces() -> None:
    (of_span,), (of_trace,) = to_openinference([FULL], TRACES), to_openinference([FULL])
    assert of_span["span_id"] == "s1"
    assert "trace_id" not in of_span
    assert of_trace["trace_id"] == "r1", "without a mapping the response's id"
    assert of_span["annotator_kind"] == "HUMAN"
    assert of_span["result"] == {
        "label": "UNSUPPORTED",
        "score": 0.0,
        "explanation": "price; should say: It costs $50.",
    }
    (from_set,) = to_openinference([label(source=LabelSource.DATASET, verdict=Verdict.UNVERIFIED)])
    assert from_set["annotator_kind"] == "CODE"
    assert from_set["result"] == {"label": "UNVERIFIED"}, "no score of what nobody could tell"


def test_a_label_without_an_id_gets_the_same_one_each_time_and_another_than_its_neighbours() -> None:
    ids = [score["id"] for score in to_langfuse([label(), label(claim_id="r1-0"), label(reviewer="bob")])]
    assert len(set(ids)) == 3
    assert ids == [
        score["id"] for score in to_langfuse([label(), label(claim_id="r1-0"), label(reviewer="bob")])
    ]


def test_ragas_gets_the_statements_as_judged_and_as_people_correct_them() -> None:
    annotation = to_ragas([FULL], [RESULT])
    (sample,) = annotation["faithfulness"]
    assert sample["metric_input"] == {
        "user_input": "Why?",
        "response": "Claim 0.",
        "retrieved_contexts": ["Because."],
    }
    prompt = sample["prompts"]["n_l_i_statement_prompt"]
    assert prompt["prompt_input"]["statements"] == ["Claim 0.", "Claim 1."], (
        "but for what could not be checked"
    )
    assert prompt["prompt_output"]["statements"][0] == {
        "statement": "Claim 0.",
        "reason": "It says so.",
        "verdict": 1,
    }
    assert [each["verdict"] for each in prompt["edited_output"]["statements"]] == [1, 0]
    assert (sample["metric_output"], sample["is_accepted"]) == (1.0, False)
    assert "target" not in sample, "not all claims are labelled"
    json.dumps(annotation, allow_nan=False)


def test_ragas_learns_that_people_agree() -> None:
    agreed = [label(claim_id=f"r1-{number}", verdict=Verdict.SUPPORTED) for number in (0, 1)]
    (sample,) = to_ragas(agreed, [RESULT])["faithfulness"]
    assert (sample["is_accepted"], sample["target"]) == (True, 1.0)
    assert sample["prompts"]["n_l_i_statement_prompt"]["edited_output"] is None


def test_ragas_gets_nothing_of_answers_that_labels_say_nothing_about() -> None:
    unsaid = label(verdict=Verdict.UNVERIFIED)
    assert to_ragas([unsaid, label(claim_id=None)], [RESULT]) == {"faithfulness": []}
    assert to_ragas([FULL], [EvaluationResult(error="no judge")]) == {"faithfulness": []}
