"""Answers of a few words are read behind what was asked: "€14" is right of one ticket only."""

from __future__ import annotations

from typing import Final

import pytest

from guardrail.events import Verdict
from guardrail.judges.local.check import build_checker
from guardrail.judges.local.reader import reworded
from guardrail.judges.local.settings import LocalJudgeSettings
from tests.support.tables import table
from tests.unit.judges.local.contexts import claim_of, index_of

CORPUS: Final = table(__file__, "short_answers.yaml")
RIGHT_AT_LEAST: Final = 0.9
WRONG_AT_MOST: Final = 0.85


def test_what_is_asked_decides_over_short_answers() -> None:
    checker = build_checker(LocalJudgeSettings())

    def supported(which: str) -> float:
        verdicts = [
            checker.check("c", claim_of(each[which]), each["question"], index_of(source["context"])).verdict
            for source in CORPUS
            for each in source["asked"]
        ]
        return verdicts.count(Verdict.SUPPORTED) / len(verdicts)

    right, wrong = supported("right"), supported("wrong")
    assert right >= RIGHT_AT_LEAST, right
    assert wrong <= WRONG_AT_MOST, wrong


@pytest.mark.parametrize(
    ("question", "answer", "lead_in", "read"),
    [
        ("What is the fee?", "$20", "", "What is the fee: $20"),
        ("What is the fee?", "It is $20.", "", "It is $20."),
        ("Tell me the fee.", "$20", "", "$20"),
        ("What is the fee?", "$20", "The fee for adults:", "The fee for adults $20"),
        ("What is the fee?", "$20", "There are fees.", "$20"),
        ("?" * 1000, "$20", "", "$20"),
    ],
)
def test_a_question_leads_in_to_few_words_alone(question: str, answer: str, lead_in: str, read: str) -> None:
    found = reworded(answer, [], lead_in, question)
    assert found.text == read
    assert found.in_claim(len(read) - len(answer), len(read)) == (0, len(answer))
