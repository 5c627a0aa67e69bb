"""How benchmarks.local_judge_cases counts what is upheld and caught."""

from __future__ import annotations

from benchmarks.local_judge_cases import misjudged, report
from guardrail.events import Severity
from guardrail.judges import Judgement, Verdict
from tests.verifier_cases.cases import Case, Kind, Label, Located
from tests.verifier_cases.judging import Judged, sampled


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


def test_rates_in_all_and_by_kind_those_of_supported_claims_first() -> None:
    assert [" ".join(line.split()) for line in report(FOUND)] == [
        "supported 2 of 3 66.7%",
        "not supported 1 of 2 50.0%",
        "not called contradicted 3 of 3 100.0%",
        "critical figures no case",
        "chat 1 of 2 50.0%",
        "reported 1 of 1 100.0%",
        "merged 1 of 1 100.0%",
        "short-addition 0 of 1 0.0%",
    ]


def test_cases_judged_wrongly_are_listed_with_what_the_judge_says() -> None:
    assert [" ".join(line.split()) for line in misjudged(FOUND)] == [
        "chat supported UNSUPPORTED 0.75 You can return it.",
        "short-addition partially_supported SUPPORTED 0.75 It keeps for days.",
    ]


def test_a_sample_has_cases_of_each_kind_spread_over_their_order() -> None:
    located = [one("supported", "chat", Verdict.SUPPORTED, f"Claim number {n}.").located for n in range(10)]
    located.append(FOUND[2].located)
    chosen = [each.case.claim for each in sampled(located, 3)]
    assert chosen == ["Claim number 0.", "Claim number 3.", "Claim number 6.", "A claim of some length."]
