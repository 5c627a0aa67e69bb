"""Contexts that give different values for one thing, and documents that take back what they say."""

from __future__ import annotations

import pytest

from guardrail.events import Finding, Verdict
from guardrail.judges.local.check import ClaimChecker, build_checker
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.verdicts import Judgement
from tests.unit.judges.local.contexts import claim_of, index_of


@pytest.fixture(scope="module")
def checker() -> ClaimChecker:
    return build_checker(LocalJudgeSettings())


def judged(checker: ClaimChecker, claim: str, *contexts: str) -> Judgement:
    return checker.check("c1", claim_of(claim), "", index_of(*contexts))


@pytest.mark.parametrize(
    ("claim", "contexts", "values"),
    [
        (
            "The ferry to Ulva takes 35 minutes.",
            ("The ferry to Ulva takes 35 minutes and carries cars.", "Ferry to Ulva: it takes 50 minutes."),
            ("35 minutes", "50 minutes"),
        ),
        (
            "The kiln may be heated to at most 1,200 °C.",
            ("Kiln K2: heat to at most 900 °C.", "The kiln may be heated to at most 1,200 °C."),
            ("at most 1,200 °C", "at most 900 °C"),
        ),
        (
            "Applications for the Corvin grant close on 4 May.",
            (
                "The Corvin grant: applications close on 4 May.",
                "Applications for the Corvin grant close on 11 May.",
            ),
            ("4 May", "11 May"),
        ),
        (  # one words it as the claim does, and the other has its value
            "The Vega plan costs £18 a month.",
            (
                "Prices: Vega £18 a month, Lyra £27 a month.",
                "The Vega plan costs £21 a month. Cancel at any time.",
            ),
            ("£18 a month", "£21 a month"),
        ),
    ],
)
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


@pytest.mark.parametrize(
    ("claim", "contexts"),
    [
        ("It seats 40.", ("The Heron is a launch. It seats 40.", "The Osprey is a launch. It seats 55.")),
        (
            "The Osprey seats 40.",
            ("The Heron is a launch. It seats 40.", "The Osprey is a launch. It seats 55."),
        ),
        ("The Heron seats 40.", ("The Heron seats 40.", "Myth: The Heron seats 60.")),
        (
            "The oven runs at 180 to 220 °C.",
            ("The oven runs at 180 °C or more.", "The oven runs at 220 °C or less."),
        ),
        (
            "The Lyra plan costs £27 a month.",
            ("The Vega plan costs £18 a month.", "The Lyra plan costs £27 a month."),
        ),
        (
            "In 2022 the mill ground 70 tons.",
            ("In 2021 the mill ground 64 tons.", "In 2022 the mill ground 70 tons."),
        ),
        (
            "The hut is 1.5 km from the car park.",
            ("The hut is 1.5 km from the car park.", "The hut is 1,500 m from the car park."),
        ),
        (
            "A day pass costs 20 euros, children pay 9.",
            ("A day pass costs 20 euros.", "A day pass costs 9 euros for children."),
        ),
        (
            "The ferry takes 35 minutes.",
            ("The ferry takes 35 minutes.", "The ferry takes 35 minutes, with cars 50 minutes."),
        ),
    ],
)
def test_values_of_different_things_are_no_disagreement(
    checker: ClaimChecker, claim: str, contexts: tuple[str, ...]
) -> None:
    found = judged(checker, claim, *contexts)
    assert Finding.CONTEXTS_DISAGREE not in found.findings
    assert found.conflicting_contexts == ()


TAKEN_BACK = [
    (
        "The spa has a wave pool.",
        "Wrong: The spa has a wave pool. It has a hot tub.",
        "The document calls it false",
    ),
    (
        "Bats are blind.",
        "Misconception: Bats are blind.\nTruth: Bats can see.",
        "The document calls it false",
    ),
    (
        "Parking costs 3 euros an hour.",
        "Until March 2020 parking cost 3 euros an hour. It is now 5 euros.",
        "The document says it only of a time that has passed",
    ),
    (
        "The chapel is lit by gas.",
        "Formerly, the chapel was lit by gas.",
        "The document says it only of a time that has passed",
    ),
    (
        "The visa takes 10 days.",
        "Caller: I was told that the visa takes 10 days.\nClerk: I'm afraid that's not so. Count on 30 days.",
        "Another speaker denies it",
    ),
]


@pytest.mark.parametrize(("claim", "context", "why"), TAKEN_BACK)
def test_what_a_document_takes_back_is_no_evidence(
    checker: ClaimChecker, claim: str, context: str, why: str
) -> None:
    found = judged(checker, claim, context)
    assert found.verdict is Verdict.UNSUPPORTED
    assert found.reasoning.startswith(f"{why}: '")


@pytest.mark.parametrize(
    ("claim", "context"),
    [
        (
            "Parking costs 5 euros an hour.",
            "Until March 2020 parking cost 3 euros an hour; since then it costs 5 euros an hour.",
        ),
        (
            "Until March 2020 parking cost 3 euros an hour.",
            "Until March 2020 parking cost 3 euros an hour. It is now 5 euros.",
        ),
        ("The chapel was lit by gas.", "Formerly, the chapel was lit by gas."),
        ("Bats can see.", "Misconception: Bats are blind.\nTruth: Bats can see."),
        (
            "The visa takes 30 days.",
            "Caller: Does the visa take 10 days?\nClerk: No, the visa takes 30 days.",
        ),
        (
            "The visa takes 10 days.",
            "Caller: Does the visa take 10 days?\nClerk: No problem, the visa takes 10 days.",
        ),
    ],
)
def test_what_it_holds_to_is(checker: ClaimChecker, claim: str, context: str) -> None:
    assert judged(checker, claim, context).verdict is Verdict.SUPPORTED
