"""Results, verdicts and labels are read and joined; labels of claims and responses become one truth."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from guardrail.errors import DecodeError
from guardrail.evals.records import read_labelled
from guardrail.evals.results import Evaluation, EvaluationResult
from guardrail.events import ClaimVerdict, Severity, Verdict
from tests.support.records import written
from tests.unit.evals.tuning_cases import claim, judged, label

S, P, U, C, N = Verdict


def two_claims(response_id: str = "a") -> tuple[ClaimVerdict, ClaimVerdict]:
    return claim(response_id, 0, S, 0.9), claim(response_id, 1, U, 0.2, severity=Severity.CRITICAL)


def test_results_verdicts_and_labels_beside_them_are_joined_by_response(tmp_path: Path) -> None:
    a, b = judged("a", two_claims("a")), judged("b", two_claims("b"))
    inside = label("a", S)
    result = EvaluationResult(verdict=a.verdict, labels=(inside,))
    records = written(tmp_path / "records.jsonl", [result, b.verdict, b.claims[0]])
    with records.open("a", encoding="utf-8") as more:
        more.write('{"type": "evaluation.completed"}\n')  # the last line of a results file
    beside, stray = label(b.claims[1], U), label("nobody", U)
    found = read_labelled([records], [written(tmp_path / "labels.jsonl", [beside, stray])])
    assert [(each.response_id, each.labels) for each in found.responses] == [
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
    assert [each.response_id for each in found.responses] == ["a", "c"]
    assert (found.cut_short, found.failed, found.repeated) == (2, 1, 1)


def test_compressed_files_and_stdin_are_read_as_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = judged("a", two_claims("a"), [label("a", S)])
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
    path.write_bytes(label("a", S).to_json() + b"\n" + data + b"\n")
    with pytest.raises(DecodeError, match=told) as caught:
        read_labelled([path])
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)
