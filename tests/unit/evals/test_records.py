"""Reading records: what is used, what is passed over, and that nothing is lost or guessed."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from guardrail.evals.formats import labels_in
from guardrail.evals.records import RecordReader, values_of
from guardrail.evals.results import EvaluationResult
from guardrail.events import Label, Response, ResponseVerdict, SegmentKind, Verdict
from tests.support.records import claim, recorded

SENTENCE = SegmentKind.SENTENCE
SUPPORTED = recorded("r1", [claim(), claim(segment=1)], [SENTENCE, SENTENCE], judged_to_end=True)
WRONG = recorded("r2", [claim(Verdict.CONTRADICTED)], [SENTENCE], judged_to_end=False, route="sales")


def read(*values: bytes) -> tuple[list[ResponseVerdict], RecordReader]:
    reader = RecordReader()
    lines = values_of(io.BytesIO(b"\n".join(values)), "", reader)
    found = [reader.read(value, place) for value, place in lines]
    return [verdict for verdict in found if verdict is not None], reader


def ids(verdicts: list[ResponseVerdict]) -> list[str]:
    return [verdict.response_id for verdict in verdicts]


def test_verdicts_on_claims_and_other_events_are_passed_over_and_counted() -> None:
    other = b'{"type": "delivery.completed", "response_id": "r1"}'
    named = b'{"type": "response", "question": "what is \\"verdict.response\\"?"}'
    naming = b'{"type": "response", "metadata": {"of": "evaluation.completed"}}'
    end = b'{"type": "evaluation.completed"}'
    records, reader = read(WRONG.claims[0].to_json(), WRONG.to_json(), other, named, naming, end)
    assert ids(records) == ["r2"]
    assert reader.passed.others == 4


def test_proofs_of_the_doctor_are_left_out_and_counted_and_their_route_alone_makes_none() -> None:
    proof = recorded("p1", [claim(text="The standard plan costs $95 per month.")], route="guardrail-doctor")
    posing = recorded("p2", [claim(text="The tariff is $95.")], route="guardrail-doctor")
    records, reader = read(proof.to_json(), posing.to_json(), SUPPORTED.to_json())
    assert ids(records) == ["p2", "r1"]
    assert reader.passed.proofs == 1


def test_a_record_that_comes_twice_counts_once() -> None:
    records, reader = read(WRONG.to_json(), SUPPORTED.to_json(), WRONG.to_json())
    assert ids(records) == ["r2", "r1"]
    assert reader.passed.repeated == 1


def test_results_give_verdicts_and_labels_and_their_errors_are_counted() -> None:
    label = Label(response_id="r2", verdict=Verdict.UNSUPPORTED)
    response = Response(response_id="r2", answer="Claim 0.")
    results = [
        EvaluationResult(response=response, verdict=WRONG, labels=(label,)),
        EvaluationResult(response=response, verdict=WRONG),
        EvaluationResult(error="no judge"),
    ]
    records, reader = read(*(result.to_json() for result in results))
    assert ids(records) == ["r2", "r2"], "the same answer may be evaluated twice"
    assert reader.labels == [label]
    assert labels_in(results[0].to_json()) == (label,)
    assert reader.passed.failed == 1


def broken(**fields: Any) -> bytes:
    return json.dumps(json.loads(WRONG.to_json()) | fields).encode()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b'{"type": "verdict.response"', "not valid JSON"),
        (b"no JSON", "not valid JSON"),
        (b'{"type": "evaluation.completed", "res', "not valid JSON"),
        (broken(score=1.5), "score"),
        (broken(decision="perhaps"), "decision"),
        (broken(schema=2), "this program reads version 1 only"),
        (broken(segment_kinds=["poem"]), "segment_kinds.0"),
        (broken(claims=[{"verdict": "SUPPORTED"}]), "claims.0.id"),
        (broken(claims=[json.loads(WRONG.claims[0].to_json()) | {"support": float("nan")}]), "support"),
    ],
)
def test_what_can_not_be_read_is_named_by_place_and_field_and_the_rest_counts(
    value: bytes, problem: str
) -> None:
    records, reader = read(SUPPORTED.to_json(), value, WRONG.to_json())
    assert ids(records) == ["r1", "r2"]
    assert reader.passed.unreadable == 1
    ((place, said),) = reader.passed.problems
    assert place == "line 2"
    assert problem in said
    assert "Claim 0." not in said, "texts are not quoted"


def test_the_ends_of_a_results_file_are_not_counted_and_results_of_another_schema_are_refused() -> None:
    reader = RecordReader()
    reader.read(b'{"schema": 99, "type": "evaluation.result", "verdict": null}', "a:1")
    reader.read(b'{"schema": 1, "type": "evaluation.started"}', "a:2")
    reader.read(b'{"schema": 1, "type": "evaluation.completed"}', "a:3")
    assert (reader.passed.unreadable, reader.passed.others, reader.passed.failed) == (1, 0, 0)
    assert "schema" in reader.passed.problems[0][1]
