"""The answers about exact values can be read, and are what they say."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.exact_answers import Part, Set, load_exact

LEAST = {"formulas": 40, "support": 50}


@pytest.mark.parametrize("part", get_args(Part))
@pytest.mark.parametrize("name", get_args(Set))
def test_every_case_has_documents_a_label_and_an_answer_of_its_own(name: Set, part: Part) -> None:
    cases = load_exact(name, part)
    assert (
        len({case.id for case in cases})
        == len({case.answer for case in cases})
        == len(cases)
        > LEAST.get(name, 100)
    )
    assert {case.label for case in cases} <= {"right", "wrong", "conflict"}
    assert all(case.contexts and case.question for case in cases)


@pytest.mark.parametrize("name", get_args(Set))
def test_nothing_that_is_measured_was_there_to_develop_with(name: Set) -> None:
    seen = {context.text for case in load_exact(name, "development") for context in case.contexts}
    assert not seen & {context.text for case in load_exact(name, "measured") for context in case.contexts}
