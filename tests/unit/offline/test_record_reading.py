"""Reading records: what is used, what is passed over, and that nothing is lost or guessed."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from guardrail.errors import DecodeError
from guardrail.events import Label, Response, ResponseVerdict, SegmentKind, Verdict
from guardrail.offline.formats import labels_in
from guardrail.offline.record_reading import RecordReader, incomplete, read_records, record_batches
from guardrail.offline.records import Records
from guardrail.offline.results import EvaluationResult
from tests.support.records import claim, recorded

SENTENCE = SegmentKind.SENTENCE
SUPPORTED = recorded("r1", [claim(), claim(segment=1)], [SENTENCE, SENTENCE], judged_to_end=True)
WRONG = recorded("r2", [claim(Verdict.CONTRADICTED)], [SENTENCE], judged_to_end=False, route="sales")


def read(*values: bytes) -> tuple[Records, RecordReader]:
    reader = RecordReader()
    (batch,) = record_batches(io.BytesIO(b"\n".join(values)), reader)
    return batch.records, reader


def columns(records: Records) -> dict[str, Any]:
    return {
        name: value if isinstance(value, list | tuple) else value.tolist()
        for name in Records.__dataclass_fields__
        for value in [getattr(records, name)]
    }


def test_what_is_read_is_what_was_written() -> None:
    records, reader = read(SUPPORTED.to_json(), WRONG.to_json())
    assert str(columns(records)) == str(columns(Records.of([SUPPORTED, WRONG])))
    assert (reader.passed.unreadable, reader.passed.others) == (0, 0)


@pytest.mark.parametrize("packed", [False, True])
def test_files_are_read_whether_packed_or_not(tmp_path: Path, packed: bool) -> None:
    value = SUPPORTED.to_json() + b"\n\n" + WRONG.to_json() + b"\n"
    path = tmp_path / "records"
    path.write_bytes(gzip.compress(value) if packed else value)
    assert read_records(path).ids == ["r1", "r2"]


def test_a_packed_file_that_is_cut_short_is_an_error_and_no_end(tmp_path: Path) -> None:
    path = tmp_path / "records.gz"
    path.write_bytes(gzip.compress(SUPPORTED.to_json() * 100)[:-9])
    with pytest.raises(DecodeError, match="cut short or damaged"):
        read_records(path)


def test_verdicts_on_claims_and_other_events_are_passed_over_and_counted() -> None:
    other = b'{"type": "delivery.completed", "response_id": "r1"}'
    named = b'{"type": "response", "question": "what is \\"verdict.response\\"?"}'
    records, reader = read(WRONG.claims[0].to_json(), WRONG.to_json(), other, named)
    assert records.ids == ["r2"]
    assert reader.passed.others == 3


def test_proofs_of_the_doctor_are_left_out_and_counted_and_their_route_alone_makes_none() -> None:
    proof = recorded("p1", [claim(text="The standard plan costs $95 per month.")], route="guardrail-doctor")
    posing = recorded("p2", [claim(text="The tariff is $95.")], route="guardrail-doctor")
    records, reader = read(proof.to_json(), posing.to_json(), SUPPORTED.to_json())
    assert records.ids == ["p2", "r1"]
    assert reader.passed.proofs == 1


def test_a_record_that_comes_twice_counts_once() -> None:
    records, reader = read(WRONG.to_json(), SUPPORTED.to_json(), WRONG.to_json())
    assert records.ids == ["r2", "r1"]
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
    assert records.ids == ["r2", "r2"], "the same answer may be evaluated twice"
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
        (broken(score=1.5), "score"),
        (broken(decision="perhaps"), "decision"),
        (broken(schema=2), "this program reads version 1 only"),
        (broken(segment_kinds=["poem"]), "segment_kinds.0"),
        (broken(ended_early={"rule": "aborted", "after": 2**40}), "ended_early.after"),
        (broken(claims=[{"verdict": "SUPPORTED"}]), "claims.0.segment"),
        (broken(claims=[json.loads(WRONG.claims[0].to_json()) | {"support": float("nan")}]), "support"),
    ],
)
def test_what_can_not_be_read_is_named_by_place_and_field_and_the_rest_counts(
    value: bytes, problem: str
) -> None:
    records, reader = read(SUPPORTED.to_json(), value, WRONG.to_json())
    assert records.ids == ["r1", "r2"]
    assert reader.passed.unreadable == 1
    ((place, said),) = reader.passed.problems
    assert place == "line 2"
    assert problem in said
    assert "Claim 0." not in said, "texts are not quoted"


def test_what_records_lack_is_counted() -> None:
    old = json.loads(WRONG.to_json())
    for name in ("route", "tenant", "generator_model", "segment_kinds", "judged_to_end"):
        del old[name]
    large = SUPPORTED.model_copy(update={"id": "large", "claims": (), "omitted": ("claims",)})
    records, _ = read(json.dumps(old | {"complete": False}).encode(), large.to_json(), SUPPORTED.to_json())
    assert incomplete(records) == {
        "claims omitted": 1,
        "judging ended by a block": 1,
        "kinds of segments unknown": 1,
        "route, tenant and model unknown": 1,
    }


def test_batches_hold_all_records_in_order() -> None:
    verdicts = [
        recorded(f"r{number}", [claim() for _ in range(300)], [SENTENCE], judged_to_end=True)
        for number in range(100)
    ]
    lines = io.BytesIO(b"\n".join(verdict.to_json() for verdict in verdicts))
    batches = list(record_batches(lines, RecordReader(), "f"))
    assert len(batches) > 1
    assert [name for batch in batches for name in batch.records.ids] == [
        each.response_id for each in verdicts
    ]
    assert batches[-1].places[-1] == "f line 100"
    assert ResponseVerdict.model_validate_json(batches[-1].values[-1]) == verdicts[-1]
