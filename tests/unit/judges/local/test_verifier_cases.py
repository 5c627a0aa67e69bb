"""The local judge as shipped, on the self-written cases of ``tests/verifier_cases``: floor figures.

A floor is what the judge reaches, less a little; whoever improves the judge raises it. Nothing is fitted on
the cases, and a case is never changed because a judge gets it wrong.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from pydantic import ValidationError

from guardrail.claims.severity import BuiltinSeverityRater
from guardrail.events import SegmentKind, Severity
from guardrail.judges.local import LocalJudge
from tests.verifier_cases.cases import SUPPORTED_KINDS, Located, load
from tests.verifier_cases.judging import judged

CASES: Final = load()

UPHELD: Final = 0.82
"""Of the supported claims, the least share that the judge calls supported. Measured: 170 of 206, 83 %."""
CAUGHT: Final = 0.85
"""Of the others, the least share that it does not call supported. Measured: 187 of 217, 86 %."""
CRITICAL_VALUES_CAUGHT: Final = 0.90
"""The same, of wrong numbers, dates and units in critical claims."""
BY_KIND: Final = {
    "verbatim": 1.0, "combination": 0.83, "coreference": 0.85, "paraphrase": 0.75, "chat": 0.79,
    "reported": 0.8,
    "number": 0.9, "date": 0.8, "unit": 0.9, "negation": 0.75, "addition": 0.9, "swap": 0.55, "name": 0.95,
    "overgeneralisation": 0.9, "qualifier": 0.74, "short-addition": 0.88, "quoted-falsehood": 0.55,
    "merged": 0.8,
}  # fmt: skip
"""The least share that is judged rightly, by kind; ``python -m benchmarks.local_judge_cases`` prints all."""


@pytest.fixture(scope="module")
def right() -> list[tuple[Located, bool]]:
    """Each case, and whether the judge tells supported from not supported as its label does."""
    return asyncio.run(_judged())


async def _judged() -> list[tuple[Located, bool]]:
    judge = LocalJudge()
    found = await judged(judge, CASES)
    await judge.aclose()
    return [(one.located, one.right) for one in found]


def share(results: list[bool]) -> float:
    return sum(results) / len(results)


def test_supported_claims_are_upheld_and_others_caught(right: list[tuple[Located, bool]]) -> None:
    upheld = share([ok for located, ok in right if located.case.label == "supported"])
    caught = share([ok for located, ok in right if located.case.label != "supported"])
    assert upheld >= UPHELD
    assert caught >= CAUGHT


@pytest.mark.parametrize("kind", sorted(BY_KIND))
def test_floor_by_kind(right: list[tuple[Located, bool]], kind: str) -> None:
    assert share([ok for located, ok in right if located.case.kind == kind]) >= BY_KIND[kind]


def test_wrong_values_in_critical_claims_are_caught(right: list[tuple[Located, bool]]) -> None:
    values = {"number", "date", "unit"}
    results = [ok for at, ok in right if at.case.kind in values and at.case.severity is Severity.CRITICAL]
    assert len(results) >= 20
    assert share(results) >= CRITICAL_VALUES_CAUGHT


def test_the_cases_are_many_and_cover_every_kind_and_label() -> None:
    kinds = Counter[str](located.case.kind for located in CASES)
    labels = Counter[str](located.case.label for located in CASES)
    assert len(CASES) >= 400
    assert min(kinds.values()) >= 9
    assert kinds.keys() == BY_KIND.keys()
    assert 0.45 <= labels["supported"] / len(CASES) <= 0.55
    assert len(labels) == 4
    assert sum(kinds[kind] for kind in SUPPORTED_KINDS) == labels["supported"]


def test_no_claim_stands_twice() -> None:
    claims = Counter(located.case.claim for located in CASES)
    assert not [claim for claim, count in claims.items() if count > 1]


def test_verbatim_cases_stand_in_their_source_and_no_other_case_does() -> None:
    """But for falsehoods, which a source may quote word for word."""
    for located in CASES:
        if located.case.kind == "quoted-falsehood":
            continue
        said = any(located.case.claim in " ".join(text.split()) for text in located.contexts)
        assert said == (located.case.kind == "verbatim"), located.case.claim


def test_severities_are_seldom_below_what_the_builtin_rules_give() -> None:
    """A person may see money or health where no rule does; the other way round the rule would be coarse."""
    rater = BuiltinSeverityRater()
    rated = [(rater.rate(at.case.claim, SegmentKind.SENTENCE)[0], at.case) for at in CASES]
    assert share([severity.rank <= case.severity.rank for severity, case in rated]) >= 0.98
    assert share([severity is case.severity for severity, case in rated]) >= 0.8


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            "{label: supported, kind: number, severity: normal, claim: 'A claim of some length.'}",
            "does not go",
        ),
        (
            "{label: unsupported, kind: verbatim, severity: normal, claim: 'A claim of some length.'}",
            "does not go",
        ),
        ("{label: wrong, kind: number, severity: normal, claim: 'A claim of some length.'}", "label"),
        ("{label: contradicted, kind: number, severity: normal, claim: 'Short.'}", "at least 10"),
        (
            "{label: contradicted, kind: number, severity: normal, claim: 'A claim of some length.', x: 1}",
            "x",
        ),
    ],
)
def test_a_malformed_case_is_refused(tmp_path: Path, case: str, message: str) -> None:
    text = "word " * 40
    content = f"domain: d\nsources:\n  - contexts: ['{text}']\n    cases:\n      - {case}\n"
    (tmp_path / "bad.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(ValidationError, match=message):
        load(tmp_path)


def test_a_passage_of_a_few_words_is_refused(tmp_path: Path) -> None:
    case = "{label: contradicted, kind: number, severity: normal, claim: 'A claim of some length.'}"
    content = f"domain: d\nsources:\n  - contexts: ['too short']\n    cases:\n      - {case}\n"
    (tmp_path / "bad.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(ValidationError, match="30 to 150 words"):
        load(tmp_path)
