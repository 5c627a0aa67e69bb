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
CAUGHT: Final = 0.35
"""Of the claims that state as a fact what an unseen text takes back. Measured: 16 of 40."""
UPHELD: Final = 0.8
"""Of the others about those texts. Measured: 65 of 80."""

REBUTTED: Final = (
    ("Neighbours say that the well is poisoned. It isn't.", "The well is poisoned."),
    ('"Goats eat tin cans." That is a myth, though they like the labels.', "Goats eat tin cans."),
    ("Some say that the hall is heated in winter. No, bring a coat.", "The hall is heated in winter."),
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
    # what the text goes on about is something else, or denied in its turn
    ("Does the ticket for 20 euros include the castle? No.", "The ticket costs 20 euros."),
    ("Is the 24-month warranty transferable? No.", "The warranty is 24 months."),
    ("Can I park at the hotel in Ulm Street overnight? No, only until 10 pm.", "The hotel is in Ulm Street."),
    ("Do I need a visa for stays of up to 90 days? No.", "Stays of up to 90 days are visa-free."),
    (
        "Can I get a refund if my train is late? There is no reason not to ask; you can claim it online.",
        "You can get a refund if your train is late.",
    ),
    (
        "The company denied that it would close the plant, saying it will invest 5 million euros in Ulm.",
        "The company will invest 5 million euros in Ulm.",
    ),
    (
        "It is not true that bulls hate red; they react to the movement of the cape.",
        "Bulls react to the movement of the cape.",
    ),
    ("It is not true that the shop is closed on Mondays: it opens at 10.", "The shop opens at 10."),
    (
        "It is a misconception that antibiotics cure colds, because colds are caused by viruses.",
        "Colds are caused by viruses.",
    ),
    (
        "There is no indication that it harms babies; it can be used during breast-feeding.",
        "It can be used during breast-feeding.",
    ),
    (
        "There is no evidence that the tea lowers blood pressure, but it helps against colds.",
        "The tea helps against colds.",
    ),
    (
        "The manufacturer says that one tablet a day is enough. There is no benefit in taking more.",
        "One tablet a day is enough.",
    ),
    (
        "The manual says that the filter lasts two years. There is no such guarantee for the pump.",
        "The filter lasts two years.",
    ),
    (
        "The firm said that it had found a leak in the pipe. There was no reason to close the road.",
        "The firm had found a leak in the pipe.",
    ),
    (
        "Officials said that the ship carried 500 tonnes of oil. None of it leaked.",
        "The ship carried 500 tonnes of oil.",
    ),
    (
        "The guide says the cave is 12 km long. It is not as deep as the one in Ulm.",
        "The cave is 12 km long.",
    ),
    (
        "The spokeswoman said the factory employs 300 people. It is not, however, the largest in the region.",
        "The factory employs 300 people.",
    ),
    (
        "The label says that the jar contains nuts. You should not, therefore, give it to everybody.",
        "The jar contains nuts.",
    ),
    (
        "The timetable states that the last tram leaves at midnight. No. 7 runs all night.",
        "The last tram leaves at midnight.",
    ),
    ("It was reported that wages rose in 2009. This was true in 2010, too.", "Wages rose in 2009."),
    (
        "The agency said that the drug was approved in 1999. It was withdrawn in 2004.",
        "The drug was approved in 1999.",
    ),
    (
        "The company announced that it had recalled the toy. It was withdrawn from shops in May.",
        "The company had recalled the toy.",
    ),
    (
        "The council said that the club had applied for a licence. It was denied in March.",
        "The club had applied for a licence.",
    ),
    ("Scientists say that the climate is warming. Nobody denies that.", "The climate is warming."),
    (
        "The company does not deny that it stored the data of customers.",
        "The company stored the data of customers.",
    ),
    (
        "The system rejects passwords that are shorter than 8 characters or contain your name.",
        "The system rejects passwords shorter than 8 characters or containing your name.",
    ),
    (
        "The editors retracted three papers that contained manipulated images of cells.",
        "The retracted papers contained manipulated images of cells.",
    ),
    ("Critics dismissed the film that won the prize in Cannes as dull.", "The film won the prize in Cannes."),
    ("The court dismissed the appeal ruling that the deadline had passed.", "The deadline had passed."),
    (
        "Police said the fire started in the kitchen. There is no evidence of arson.",
        "The fire started in the kitchen.",
    ),
    (
        "Hospital officials said the boy was in a stable condition. There was no sign of infection.",
        "The boy was in a stable condition.",
    ),
    (
        "Police said that two men were arrested on Sunday. They could not confirm their names.",
        "Two men were arrested on Sunday.",
    ),
    (
        "The leaflet says to take the tablets with food. There is no evidence of harm to the stomach.",
        "Take the tablets with food.",
    ),
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
    assert "leaves it open" not in judged.reasoning


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
