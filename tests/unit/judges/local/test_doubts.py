"""Contexts that give different values for one thing, and documents that take back what they say."""

from __future__ import annotations

import pytest

from guardrail.events import Finding, Verdict
from guardrail.judges.local.check import ClaimChecker, build_checker
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.verdicts import Judgement
from tests.support.tables import table
from tests.unit.judges.local.contexts import claim_of, index_of

CASES = table(__file__, "doubts.yaml")


@pytest.fixture(scope="module")
def checker() -> ClaimChecker:
    return build_checker(LocalJudgeSettings())


def judged(checker: ClaimChecker, claim: str, *contexts: str) -> Judgement:
    return checker.check("c1", claim_of(claim), "", index_of(*contexts))


@pytest.mark.parametrize(("claim", "contexts", "values"), CASES["disagree"])
def test_both_sides_of_a_disagreement_are_named(
    checker: ClaimChecker, claim: str, contexts: tuple[str, ...], values: tuple[str, str]
) -> None:
    found = judged(checker, claim, *contexts)
    assert Finding.CONTEXTS_DISAGREE in found.findings
    assert found.verdict in (Verdict.SUPPORTED, Verdict.PARTIALLY_SUPPORTED)
    names = [next(f"d{n}" for n, text in enumerate(contexts) if value in text) for value in values]
    assert list(found.conflicting_contexts) == names
    assert found.reasoning == (
        f"The contexts disagree: '{names[0]}' says '{values[0]}', '{names[1]}' says '{values[1]}'."
    )
    assert {evidence.context_id for evidence in found.evidence} >= set(names)


@pytest.mark.parametrize(("claim", "contexts"), CASES["of different things"])
def test_values_of_different_things_are_no_disagreement(
    checker: ClaimChecker, claim: str, contexts: tuple[str, ...]
) -> None:
    found = judged(checker, claim, *contexts)
    assert Finding.CONTEXTS_DISAGREE not in found.findings
    assert found.conflicting_contexts == ()


@pytest.mark.parametrize(("claim", "context", "why"), CASES["taken back"])
def test_what_a_document_takes_back_is_no_evidence(
    checker: ClaimChecker, claim: str, context: str, why: str
) -> None:
    found = judged(checker, claim, context)
    assert found.verdict is Verdict.UNSUPPORTED
    assert found.reasoning.startswith(f"{why}: '")


@pytest.mark.parametrize(("claim", "context"), CASES["held to"])
def test_what_it_holds_to_is(checker: ClaimChecker, claim: str, context: str) -> None:
    assert judged(checker, claim, context).verdict is Verdict.SUPPORTED
