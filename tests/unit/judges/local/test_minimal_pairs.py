"""The table of minimal pairs: the faithful one is supported, the one with a wrong detail is not.

Before anything was mended by it, the judge caught 66 of the 91 wrong ones and doubted 5 of the faithful; of
the 40 pairs of ``unseen_pairs``, which nothing was mended by, it caught 30 and doubted 3.
"""

from __future__ import annotations

from typing import Final

import pytest

from guardrail.events import Verdict
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_rules_parameters
from tests.unit.judges.local.contexts import claim_of, index_of
from tests.unit.judges.local.minimal_pairs import PAIRS
from tests.unit.judges.local.minimal_sources import SOURCES
from tests.unit.judges.local.unseen_pairs import UNSEEN_PAIRS, UNSEEN_SOURCES

CHECKER = ClaimChecker(LocalJudgeSettings(), load_rules_parameters())
INDEX = index_of(SOURCES)
UNSEEN_INDEX = index_of(UNSEEN_SOURCES)

KNOWN_MISSES: Final = {
    "Members can park for free behind the building for two hours and get a free car wash.": "'car' counts as "
    "mentioned: it stands elsewhere in the sources",
    "The joining fee is waived for pensioners.": "one word of no source, and no list that it was added to",
    "Some flights must be booked through the travel portal.": "what holds for all holds for some",
    "The contractor is paid directly by the policyholder.": "who pays whom is lost when the voice changes",
    "You have to install software updates manually.": "'automatically' stands too far from 'manually'",
    "It can be used on gas, electric and induction hobs and on open campfires.": "the item starts with a "
    "preposition",
    "Withdrawals at other banks are free.": "'other' is all that tells the two clauses apart",
    "The workshops take place in the courtyard.": "'take place' and 'held' are not known to be the same",
}
"""Wrong claims that are called supported, and why."""


def verdict_on(text: str) -> Verdict:
    return CHECKER.check("c", claim_of(text), "", INDEX).verdict


@pytest.mark.parametrize("text", [pair.faithful for pair in PAIRS])
def test_a_faithful_rewording_is_supported(text: str) -> None:
    assert verdict_on(text) is Verdict.SUPPORTED


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, marks=pytest.mark.xfail(strict=True, reason=KNOWN_MISSES[text]))
        if text in KNOWN_MISSES
        else text
        for text in (pair.wrong for pair in PAIRS)
    ],
)
def test_a_wrong_detail_is_caught(text: str) -> None:
    assert verdict_on(text) is not Verdict.SUPPORTED


def test_every_known_miss_is_of_the_table() -> None:
    assert KNOWN_MISSES.keys() <= {pair.wrong for pair in PAIRS}


def test_pairs_that_nothing_was_mended_by() -> None:
    """At least nine in ten wrong details are caught, and at most one faithful claim in twenty is doubted."""

    def supported(text: str) -> bool:
        return CHECKER.check("c", claim_of(text), "", UNSEEN_INDEX).verdict is Verdict.SUPPORTED

    caught = sum(not supported(pair.wrong) for pair in UNSEEN_PAIRS)
    doubted = sum(not supported(pair.faithful) for pair in UNSEEN_PAIRS)
    assert caught >= 0.9 * len(UNSEEN_PAIRS)
    assert doubted <= 0.05 * len(UNSEEN_PAIRS)


@pytest.mark.parametrize(
    ("source", "claim", "verdict", "reason"),
    [
        (
            "Open enrollment starts on November 4, 2024 and ends on November 22, 2024.",
            "Open enrollment starts on November 4, 2024 and ends on November 29, 2024.",
            Verdict.CONTRADICTED,
            "The claim says 'November 29, 2024', the source says 'November 22, 2024'.",
        ),
        (
            "Adults and adolescents over 12 years: take one tablet twice a day.",
            "Adults and adolescents over 12 take one tablet.",
            Verdict.SUPPORTED,
            "",
        ),
        (
            "Members may bring one guest a month free of charge.",
            "Members may bring three guests a month without charge.",
            Verdict.CONTRADICTED,
            "'three'",
        ),
        (
            "Towels can be rented for $2 each. Members may use the pool.",
            "Members get free towels.",
            Verdict.CONTRADICTED,
            "The claim says it is free, the source says it is charged for.",
        ),
        (
            "Plug the heater directly into a wall socket; do not use an extension cord or a multiple socket.",
            "You can use an extension cord with the heater.",
            Verdict.CONTRADICTED,
            "The source denies what the claim says.",
        ),
        (
            "The membership includes group classes. Underground parking is free for two hours.",
            "The membership includes free underground parking with valet service for two hours.",
            Verdict.PARTIALLY_SUPPORTED,
            "'service'",
        ),
        (
            "Either party may terminate with ninety (90) days' notice.",
            "Either party may terminate with 60 days' notice.",
            Verdict.CONTRADICTED,
            "'60 days'",
        ),
    ],
)
def test_the_reason_names_what_is_at_odds(source: str, claim: str, verdict: Verdict, reason: str) -> None:
    judgement = CHECKER.check("c", claim_of(claim), "", index_of({"c": source}))
    assert judgement.verdict is verdict
    assert reason in judgement.reasoning
