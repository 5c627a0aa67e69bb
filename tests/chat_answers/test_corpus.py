"""The answers of chat models are a sound corpus, and the guard does as well on them as it did."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from benchmarks.chat_answers import CHAT, Outcome, judged, rates
from benchmarks.chat_answers import load as load_cases
from guardrail.config import load_settings
from tests.chat_answers import Answer, Part, load

# Least rates with the default policy and the default judge; where less is better, the negative of the most.
RATES = {
    "measured": {
        "right withheld": -0.05,
        "right untouched": 0.72,
        "wrong untouched": -0.22,
        "wrong withheld": 0.14,
    },
    "reckoning": {"right withheld": -0.1, "wrong untouched": -0.05},
}

ANSWER = {
    "kind": "plain",
    "right": "It costs $49 a month. Setup is free.",
    "wrong_kind": "price",
    "severity_hint": "critical",
}


def test_the_parts_are_large_enough_and_share_nothing() -> None:
    measured, development = load("measured"), load("development")
    assert len(measured) >= 200
    assert 0.2 <= len(development) / (len(measured) + len(development)) <= 0.35
    ids = [case.id for case in (*measured, *development)]
    assert len(set(ids)) == len(ids)
    assert not {c.contexts[0].text for c in measured} & {c.contexts[0].text for c in development}


@pytest.mark.parametrize("part", get_args(Part))
def test_no_answer_comes_twice(part: Part) -> None:
    texts = [
        (case.contexts[0].text, text)
        for case in load(part)
        for text in (case.answer.right, case.answer.wrong)
    ]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"$49": "$59"}, "It costs $59 a month. Setup is free."),
        ({"$49": "$0", "free": "$49"}, "It costs $0 a month. Setup is $49."),
        ("It costs $59.", "It costs $59."),
    ],
)
def test_a_twin_is_given_whole_or_by_what_is_changed(wrong: object, text: str) -> None:
    assert Answer.model_validate({**ANSWER, "wrong": wrong}).wrong == text


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"wrong": {"$39": "$59"}}, "stands 0 times"),
        ({"wrong": {" ": "  "}}, "stands 7 times"),
        ({"wrong": "It costs $49  a month.\nSetup is free."}, "change a fact"),
        ({"wrong": "It costs $59.", "wrong_kind": "typo"}, "wrong_kind"),
        ({"wrong": "It costs $59.", "note": ""}, "note"),
    ],
)
def test_a_pair_that_measures_nothing_is_refused(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Answer.model_validate({**ANSWER, **fields})


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", RATES)
async def test_rates(part: str) -> None:
    """Over the derived statements, most of which the judge can't work out, right ones are doubted, too."""
    found, bounds = await judged(load_cases(CHAT, part), load_settings()), RATES[part]
    right, wrong = rates(found, "right"), rates(found, "wrong")
    assert right[Outcome.UNVERIFIED].count == wrong[Outcome.UNVERIFIED].count == 0
    shares = {
        "right withheld": -right[Outcome.WITHHELD].estimate().value,
        "right untouched": right[Outcome.UNTOUCHED].estimate().value,
        "wrong untouched": -wrong[Outcome.UNTOUCHED].estimate().value,
        "wrong withheld": wrong[Outcome.WITHHELD].estimate().value,
    }
    assert {name: share for name, share in shares.items() if share < bounds.get(name, -1.0)} == {}
