"""What a source reports and takes back may not be stated as a fact; what it confirms may."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml

from guardrail.events import Context, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judgement
from guardrail.judges.local import LocalJudgeSettings
from guardrail.judges.local.assembly import build_checker
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import load_rules_parameters
from tests.unit.judges.local.contexts import claim_of

UNSEEN: Final = Path(__file__).parents[3] / "taken_back_cases.yaml"
CAUGHT: Final = 0.3
"""Of the claims that state as a fact what an unseen text takes back. Measured: 14 of 40."""
UPHELD: Final = 0.75
"""Of the others about those texts. Measured: 61 of 80."""

REBUTTED: Final = (
    ("Neighbours say that the well is poisoned. It isn't.", "The well is poisoned."),
    ('"Goats eat tin cans." That is a myth, though they like the labels.', "Goats eat tin cans."),
    ("Is the hall heated in winter? No, bring a coat.", "The hall is heated in winter."),
    ("The spokesman denied that the plant in Ulm will be closed.", "The plant in Ulm will be closed."),
    ("A tabloid wrongly reported that the singer had left the band.", "The singer had left the band."),
    ("It is a myth that bulls hate red.", "Bulls hate red."),
    (
        "The dealer claimed that the clock was made in Bern. That has been disproved.",
        "The clock was made in Bern.",
    ),
    ("We heard that the pass is open all year. It used to be so until 2015.", "The pass is open all year."),
    ("A guide promised that the cave is lit. Nothing of the kind.", "The cave is lit."),
)
LEFT_OPEN: Final = (
    ("Legend has it that a monk planted the oak. Historians doubt it.", "A monk planted the oak."),
    ("There is no evidence that the tea lowers blood pressure.", "The tea lowers blood pressure."),
    ("The owner said that sales had doubled. Auditors could not confirm this.", "Sales had doubled."),
)
NOT_TAKEN_BACK: Final = (
    # said by the source itself, before something else is denied
    ("The bridge opened in 1932. It does not carry trucks.", "The bridge opened in 1932."),
    ("The shop sells tents. They are not for rent.", "The shop sells tents."),
    # reported and not taken back
    ("The guide said that the cave is lit. It is not far from the road.", "The cave is lit."),
    ("Is the hall heated? Yes, in winter.", "The hall is heated in winter."),
    # who says the denial, or reports the report
    ("Neighbours say that the well is poisoned. It isn't.", "The well is not poisoned."),
    ("Neighbours say that the well is poisoned. It isn't.", "Neighbours say the well is poisoned."),
    ("It is a myth that bulls hate red.", "It is a myth that bulls hate red."),
    # what stands beside the report
    ("The band played in Ulm and denied that it was breaking up.", "The band played in Ulm."),
)


@pytest.fixture(scope="module", name="rules")
def _rules() -> ClaimChecker:
    return ClaimChecker(LocalJudgeSettings(), load_rules_parameters())


def check(checker: ClaimChecker, source: str, claim: str) -> Judgement:
    evidence = EvidenceIndex([Context(id="c1", text=f"Here is what we know. {source} More follows soon.")])
    return checker.check("r:0", claim_of(claim), "", evidence)


@pytest.mark.parametrize(("source", "claim"), REBUTTED)
def test_what_the_source_rebuts_is_contradicted(rules: ClaimChecker, source: str, claim: str) -> None:
    judged = check(rules, source, claim)
    assert judged.verdict is Verdict.CONTRADICTED
    assert judged.reasoning == "The source says so only to rebut it."
    quotes = [evidence.quote for evidence in judged.evidence]
    assert " ".join(quotes) in source


@pytest.mark.parametrize(("source", "claim"), LEFT_OPEN)
def test_what_the_source_leaves_open_is_unsupported(rules: ClaimChecker, source: str, claim: str) -> None:
    judged = check(rules, source, claim)
    assert judged.verdict is Verdict.UNSUPPORTED
    assert judged.reasoning == "The source reports it and leaves it open."


@pytest.mark.parametrize(("source", "claim"), NOT_TAKEN_BACK)
def test_what_is_not_taken_back_is_judged_as_before(rules: ClaimChecker, source: str, claim: str) -> None:
    judged = check(rules, source, claim)
    assert "rebut" not in judged.reasoning
    assert "open" not in judged.reasoning


def test_another_sentence_that_says_so_stands(rules: ClaimChecker) -> None:
    source = "Neighbours say that the well is poisoned. It isn't. After the spill, the well is poisoned."
    assert "rebut" not in check(rules, source, "The well is poisoned.").reasoning


def test_nothing_is_read_across_the_end_of_a_context(rules: ClaimChecker) -> None:
    contexts = [
        Context(id="c1", text="Neighbours say that the well is poisoned."),
        Context(id="c2", text="It isn't."),
    ]
    judged = rules.check("r:0", claim_of("The well is poisoned."), "", EvidenceIndex(contexts))
    assert "rebut" not in judged.reasoning


def test_unseen_texts() -> None:
    judge = build_checker(LocalJudgeSettings())
    caught: list[bool] = []
    upheld: list[bool] = []
    for text in yaml.safe_load(UNSEEN.read_text(encoding="utf-8")):
        evidence = EvidenceIndex([Context(id="c1", text=text["source"])])
        for claims, results, supported in ((text["wrong"], caught, False), (text["says"], upheld, True)):
            for claim in claims:
                judged = judge.check("r:0", claim_of(claim), "", evidence)
                results.append((judged.verdict is Verdict.SUPPORTED) == supported)
    assert sum(caught) >= CAUGHT * len(caught)
    assert sum(upheld) >= UPHELD * len(upheld)
