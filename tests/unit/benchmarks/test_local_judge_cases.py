"""How benchmarks.local_judge_cases counts what is upheld and caught."""

from __future__ import annotations

from benchmarks.local_judge_cases import misjudged, report
from guardrail.events import Severity, Verdict
from guardrail.judges.base import Judgement
from tests.verifier_cases.cases import Case, Kind, Label, Located
from tests.verifier_cases.judging import Judged


def one(label: Label, kind: Kind, verdict: Verdict, claim: str = "A claim of some length.") -> Judged:
    case = Case(claim=claim, label=label, kind=kind, severity=Severity.NORMAL)
    return Judged(Located("domain", ("passage",), case), Judgement("c", verdict, 0.75, 0.5, "judge"))


FOUND = [
    one("supported", "chat", Verdict.SUPPORTED),
    one("supported", "chat", Verdict.UNSUPPORTED, "You can return it."),
    one("supported", "reported", Verdict.SUPPORTED),
    one("contradicted", "merged", Verdict.PARTIALLY_SUPPORTED),
    one("partially_supported", "short-addition", Verdict.SUPPORTED, "It keeps for days."),
]


def test_shares_in_all_and_by_kind_those_of_supported_claims_first() -> None:
    assert [" ".join(line.split()) for line in report(FOUND)] == [
        "supported claims upheld 2 of 3 66.7%",
        "chat 1 of 2 50.0%",
        "reported 1 of 1 100.0%",
        "others caught 1 of 2 50.0%",
        "merged 1 of 1 100.0%",
        "short-addition 0 of 1 0.0%",
    ]


def test_cases_judged_wrongly_are_listed_with_what_the_judge_says() -> None:
    assert [" ".join(line.split()) for line in misjudged(FOUND)] == [
        "chat supported UNSUPPORTED 0.75 You can return it.",
        "short-addition partially_supported SUPPORTED 0.75 It keeps for days.",
    ]


def test_no_cases_of_a_side_are_no_share() -> None:
    assert report(FOUND[:1])[-1].split()[-1] == "n/a"
