"""Labels are mapped to claims, and saved verdicts are decided again."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import real_answers
from benchmarks.labelled_answers import labelled_answer, read_answers
from guardrail.judges import Judgement, JudgeRequest, Verdict

PRICES = "The Pro plan costs $49 per month. Support answers within a day."
WRONG = "The Pro plan costs $99 per month. Support answers within a day."


def event(labels: list[dict[str, Any]], answer: str = PRICES, response_id: str = "r") -> dict[str, Any]:
    return {
        "type": "response",
        "response_id": response_id,
        "question": "What is offered?",
        "contexts": [{"id": "c1", "text": PRICES}],
        "answer": answer,
        "metadata": {"labels": labels},
    }


def by_vote(*labels: str) -> list[dict[str, Any]]:
    return [{"span": span, "label": label} for span, label in zip(([0, 33], [34, 63]), labels, strict=True)]


def by_expert(*labels: tuple[str, str | None]) -> list[dict[str, Any]]:
    return [{"text": text, "support": support} for text, support in labels]


class _Judge:
    """Knows the wrong price."""

    name = "stub"
    calls = 0

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        self.calls += 1
        for claim_id, claim in request.claims.items():
            if "$99" in claim.text:
                yield Judgement(claim_id, Verdict.CONTRADICTED, 0.9, 0.1, self.name)
            else:
                yield Judgement(claim_id, Verdict.SUPPORTED, 0.9, 0.9, self.name)

    async def aclose(self) -> None:
        """Nothing is held."""


@pytest.mark.parametrize(
    ("labels", "share", "group"),
    [
        (by_vote("supported", "supported"), 1.0, "all supported"),
        (by_vote("supported", "partially_supported"), 0.5, "others"),
        (by_vote("not_supported", "partially_supported"), 0.0, "less than half"),
        (by_expert(("The Pro plan", "Complete"), ("Support", "N/A")), 1.0, "all supported"),
        (by_expert(("The Pro plan", "Missing"), ("stands nowhere", "Complete")), 0.5, "others"),
        (by_expert(("The Pro plan", None)), None, "others"),
        ([], None, "others"),
    ],
)
def test_an_answer_is_supported_as_far_as_its_rated_sentences_are(
    labels: list[dict[str, Any]], share: float | None, group: str
) -> None:
    answer = labelled_answer(event(labels))
    assert (answer.share, answer.group) == (share, group)


@pytest.mark.parametrize(
    ("labels", "span", "label"),
    [
        (by_vote("supported", "not_supported"), (0, 33), "supported"),
        (by_vote("supported", "not_supported"), (30, 63), "not_supported"),
        (by_vote("supported", "not_supported"), (33, 34), None),
        (by_expert(("Support answers  within a\nday.", "Partial")), (34, 63), "Partial"),
        (by_expert(("Support", "N/A")), (34, 63), None),
        (by_expert(("stands nowhere", "Complete"), ("", "Complete")), (0, 63), None),
        # The second of two texts that are alike stands behind the first.
        (by_expert(("an", "Missing"), ("an", "Complete")), (41, 45), "Complete"),
    ],
)
def test_a_claim_has_the_label_of_the_sentence_it_mostly_stands_in(
    labels: list[dict[str, Any]], span: tuple[int, int], label: str | None
) -> None:
    assert labelled_answer(event(labels)).label_of(span) == label


def test_what_has_no_labels_is_named() -> None:
    with pytest.raises(ValueError, match="'r' has no list"):
        labelled_answer(event([]) | {"metadata": {}})


def test_saved_verdicts_are_decided_by_another_policy_without_judging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, kept, told = tmp_path / "answers.jsonl.gz", tmp_path / "kept.jsonl", tmp_path / "told.json"
    rows = [
        event(by_vote("supported", "supported"), response_id="right"),
        event(by_vote("not_supported", "not_supported"), answer=WRONG, response_id="wrong"),
    ]
    with gzip.open(answers, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    asked = _Judge()
    monkeypatch.setattr(real_answers, "build_judge", lambda _: asked)
    config = tmp_path / "guardrail.yaml"

    def decisions(rule: str, *words: str) -> dict[str, str]:
        policy = {"rules": [rule], "flag_below": 0, "block_below": 0}
        config.write_text(json.dumps({"policies": {"default": policy}}), encoding="utf-8")
        command = ["real_answers", str(answers), "--json", str(told), "--config", str(config), *words]
        monkeypatch.setattr(sys, "argv", command)
        real_answers.main()
        found = json.loads(told.read_text(encoding="utf-8"))[answers.name]
        return {each["response_id"]: each["decision"] for each in found["each"]}

    judged = decisions("verdict CONTRADICTED: block", "--save", str(kept))
    assert judged == {"right": "release", "wrong": "block"}
    results = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    labels = [[label["verdict"] for label in result["labels"]] for result in results]
    assert labels == [["SUPPORTED", "SUPPORTED"], ["UNSUPPORTED", "UNSUPPORTED"]]
    calls = asked.calls
    again = decisions("support < 0.2: flag", "--decide-only", str(kept))
    assert (again, asked.calls) == ({"right": "release", "wrong": "flag"}, calls)


def test_a_sample_keeps_the_order(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    rows = [event([], response_id=str(n)) for n in range(9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    drawn = [int(answer.response.response_id) for answer in read_answers(path, 4)]
    assert len(drawn) == 4
    assert drawn == sorted(drawn)


def test_answers_are_streamed_at_a_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answers.jsonl"
    rows = [event([], response_id="right"), event([], answer=WRONG, response_id="wrong")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setattr(real_answers, "build_judge", lambda _: _Judge())
    words = ["real_answers", str(path), "--streamed", "--tokens-per-second", "1000"]
    monkeypatch.setattr(sys, "argv", words)
    real_answers.main()
    told = capsys.readouterr().out
    assert "2 answers, 3 claims judged" in told or "2 answers, 4 claims judged" in told
