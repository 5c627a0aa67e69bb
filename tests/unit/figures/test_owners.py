"""Claims that give one thing what the sources give another (owners.yaml)."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail.evidence.sentences import sentence_spans
from guardrail.figures import FigureCheck, FigureSource, SourceText, State, check_figures
from tests.support.tables import table

CASES: list[dict[str, Any]] = table(__file__, "owners.yaml")


def checked(text: str, claim: str, question: str = "") -> list[FigureCheck]:
    spans, at, sentences = zip(*sentence_spans(text), strict=True), 0, []
    for start, end in spans:
        sentences.append(SourceText("c", start, end, text[start:end], text[at:start] if at else "\n\n"))
        at = end
    source = FigureSource(sentences)
    return list(check_figures(claim, source, range(min(5, len(sentences))), question))


def outcome(case: dict[str, Any], claim: str) -> str:
    checks = checked(case["source"], claim, case.get("question", ""))
    if any(check.state is State.CONFLICT for check in checks):
        return "sure"
    return "doubted" if any(check.owned for check in checks) else "right"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["source"][:30])
def test_what_belongs_to_another_thing_is_told(case: dict[str, Any]) -> None:
    assert {outcome(case, claim) for claim in case["right"]} == {"right"}
    assert "right" not in {outcome(case, claim) for claim in case.get("doubted", ())}
    assert {outcome(case, claim) for claim in case.get("sure", ())} <= {"sure"}
    assert "sure" not in {outcome(case, claim) for claim in case.get("never", ())}


def test_a_conflict_names_both_things() -> None:
    text = "Aldine costs 40 kr a day.\n\nBruna costs 65 kr a day."
    (check,) = checked(text, "A day with the Bruna is 40 kr.")
    assert check.owned is not None
    assert check.source is not None
    assert (check.owned.thing, check.owned.owner, check.source.text) == ("Bruna", "Aldine", "65 kr a day")


def test_of_very_many_sentences_nothing_is_told_apart() -> None:
    text = "Aldine costs 40 kr.\n\n" + "Nothing else is said.\n\n" * 2000 + "Bruna costs 65 kr."
    assert not any(check.owned for check in checked(text, "The Bruna is 40 kr."))
