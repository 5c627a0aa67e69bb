"""Reading records: what is used, what is passed over, and that nothing is lost or guessed."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from guardrail.errors import DecodeError
from guardrail.evals.formats import labels_in
from guardrail.evals.records import RecordReader, read_labelled, values_of
from guardrail.evals.results import Evaluation, EvaluationResult
from guardrail.events import ClaimVerdict, Label, Response, ResponseVerdict, SegmentKind, Severity, Verdict
from tests.support.records import claim, recorded, written
from tests.unit.evals.tuning_cases import claim as tuning_claim
from tests.unit.evals.tuning_cases import judged
from tests.unit.evals.tuning_cases import label as label_of

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


# ----------------------------------------------------------------------------- files with what people said

S, U = Verdict.SUPPORTED, Verdict.UNSUPPORTED


def two_claims(response_id: str = "a") -> tuple[ClaimVerdict, ClaimVerdict]:
    return tuning_claim(response_id, 0, S, 0.9), tuning_claim(
        response_id, 1, U, 0.2, severity=Severity.CRITICAL
    )


def test_results_verdicts_and_labels_beside_them_are_joined_by_response(tmp_path: Path) -> None:
    a, b = judged("a", two_claims("a")), judged("b", two_claims("b"))
    inside = label_of("a", S)
    result = EvaluationResult(verdict=a.verdict, labels=(inside,))
    records = written(tmp_path / "records.jsonl", [result, b.verdict, b.claims[0]])
    with records.open("a", encoding="utf-8") as more:
        more.write('{"type": "evaluation.completed"}\n')  # the last line of a results file
    beside, stray = label_of(b.claims[1], U), label_of("nobody", U)
    found = read_labelled([records], [written(tmp_path / "labels.jsonl", [beside, stray])])
    assert [(each.verdict.response_id, each.labels) for each in found.responses] == [
        ("a", (inside,)),
        ("b", (beside,)),
    ]
    assert [len(each.claims) for each in found.responses] == [2, 2]
    assert (found.stray, found.claims()) == (1, 4)


def test_what_was_not_judged_to_its_end_is_left_out_and_counted(tmp_path: Path) -> None:
    whole, cut = judged("a", two_claims("a")), judged("b", two_claims("b"))
    aborted = judged("c", two_claims("c"), complete=False, judged_to_end=True)  # all that arrived was judged
    events = [
        whole.verdict,
        cut.verdict.model_copy(update={"complete": False}),
        cut.verdict.model_copy(update={"judged_to_end": False}),
        aborted.verdict,
        EvaluationResult(error="no contexts"),
        whole.verdict,
    ]
    found = read_labelled([written(tmp_path / "records.jsonl", events)])
    assert [each.verdict.response_id for each in found.responses] == ["a", "c"]
    assert (found.cut_short, found.failed, found.repeated) == (2, 1, 1)


def test_compressed_files_and_stdin_are_read_as_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = judged("a", two_claims("a"), [label_of("a", S)])
    result = EvaluationResult(verdict=one.verdict, labels=one.labels)
    packed = tmp_path / "results.jsonl.gz"
    Evaluation((result,)).write(packed)
    assert read_labelled([packed]).responses == [one]
    with packed.open("rb") as raw:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw.read())))
    assert read_labelled([Path("-")]).responses == [one]
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(DecodeError, match=r"results\.jsonl\.gz: the compressed file is cut short"):
        read_labelled([packed])


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "line 2: not valid JSON"),
        (b'{"type": "response"}', "line 2: neither a result, a verdict nor a label"),
        (b'{"type": "label", "response_id": "secret"}', "line 2: verdict: Field required"),
        (b'{"type": "verdict.response"}', "line 2: id: Field required"),
        (b"[]", "line 2: neither"),
        (b'{"type": ["verdict.claim"]}', "line 2: neither"),
        (b'{"type": "case.flagged", "claims": [{"type": "verdict.claim"}]}', "line 2: neither"),
        (b'{"type": "response", "metadata": {"of": "evaluation.started"}}', "line 2: neither"),
        (b'{"type": "verdict.claim", "id"', "line 2: not valid JSON"),
        (b'{"type": "evaluation.completed", "res', "line 2: not valid JSON"),
    ],
)
def test_a_bad_line_is_named_and_not_quoted(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(label_of("a", S).to_json() + b"\n" + data + b"\n")
    with pytest.raises(DecodeError, match=told) as caught:
        read_labelled([path])
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)
