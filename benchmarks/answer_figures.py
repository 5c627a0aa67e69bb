"""What judged answers come to beside people's labels: decisions, whole answers, claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.labelled_answers import SUPPORTED, LabelledAnswer
from guardrail.decisions import Redecision, redecide_record
from guardrail.evals.evaluation import judging_everything
from guardrail.evals.statistics import (
    Estimate,
    Figure,
    Rate,
    auroc,
    balanced_accuracy,
    bootstrap,
    percent,
)
from guardrail.events import ClaimVerdict, Decision, ResponseVerdict
from guardrail.judges import Verdict
from guardrail.policy import Policy

GROUPS: Final = ("all supported", "less than half", "others")
OUTCOMES: Final[Mapping[str, frozenset[Decision]]] = {
    "withheld": frozenset((Decision.BLOCK, Decision.REDACT)),
    "flagged": frozenset((Decision.FLAG,)),
    "untouched": frozenset((Decision.RELEASE,)),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One answer: its labels, the verdict on all its claims, and what a policy makes of it."""

    answer: LabelledAnswer
    verdict: ResponseVerdict
    live: Redecision
    """As the policy ends it: a block leaves the rest unjudged."""
    score: float | None
    """By the policy's formula over all claims."""

    @classmethod
    def of(cls, answer: LabelledAnswer, verdict: ResponseVerdict, policy: Policy) -> Case:
        """The answer under ``policy``."""
        whole = redecide_record(judging_everything(policy), verdict)
        return cls(answer, verdict, redecide_record(policy, verdict), whole.score)

    def rated(self) -> list[tuple[ClaimVerdict, str]]:
        """The claims that stand on a sentence which people rated, with its label."""
        told = ((claim, self.answer.label_of(claim.span)) for claim in self.verdict.claims)
        return [(claim, label) for claim, label in told if label is not None]


def figures(cases: Sequence[Case]) -> dict[str, Any]:
    """Everything that is reported of one set; the report in JSON has it by ``statistics.as_json``."""
    return {
        "answers": len(cases),
        "decisions": {group: _decisions(_of(cases, group)) for group in GROUPS},
        "whole_answers": _whole_answers(cases),
        "claims": _claims(cases),
        "each": [_told(case) for case in cases],
    }


def _of(cases: Iterable[Case], group: str) -> list[Case]:
    return [case for case in cases if case.answer.group == group]


def _decisions(cases: Sequence[Case]) -> dict[str, Any]:
    made = [case.live.decision for case in cases]
    found: dict[str, Any] = {
        name: Rate(sum(decision in kinds for decision in made), len(made)) for name, kinds in OUTCOMES.items()
    }
    rules = Counter(case.live.rule for case in cases if case.live.decision is not Decision.RELEASE)
    return {"answers": len(cases), **found, "rules": dict(rules.most_common())}


def _whole_answers(cases: Sequence[Case]) -> Estimate:
    """How well the score ranks answers that are all supported above those that are less than half (AUROC)."""
    ends = _of(cases, "all supported") + _of(cases, "less than half")
    told = [[(case.answer.share == 1.0, case.score)] for case in ends if case.score is not None]
    return bootstrap(told, auroc)


def _claims(cases: Sequence[Case]) -> dict[str, Any]:
    rated = [case.rated() for case in cases]
    everything = [pair for pairs in rated for pair in pairs]
    supported = [claim for claim, label in everything if label in SUPPORTED]
    contradicted = [label for claim, label in everything if claim.verdict is Verdict.CONTRADICTED]
    table: dict[str, Counter[str]] = {}
    for claim, label in everything:
        table.setdefault(label, Counter())[claim.verdict.value] += 1

    def over(read: Callable[[ClaimVerdict, float], float], figure: Figure) -> Estimate:
        groups = [
            [
                (label in SUPPORTED, read(claim, s))
                for claim, label in pairs
                if (s := claim.support) is not None
            ]
            for pairs in rated
        ]
        return bootstrap([group for group in groups if group], figure)

    return {
        "rated": len(everything),
        "labelled_supported": len(supported),
        "auroc": over(lambda _, support: support, auroc),
        "balanced_accuracy": over(
            lambda claim, _: float(claim.verdict is Verdict.SUPPORTED), balanced_accuracy
        ),
        "supported_called_contradicted": Rate(
            sum(claim.verdict is Verdict.CONTRADICTED for claim in supported), len(supported)
        ),
        "contradictions_of_supported": Rate(
            sum(label in SUPPORTED for label in contradicted), len(contradicted)
        ),
        "verdicts_by_label": {label: dict(counts.most_common()) for label, counts in sorted(table.items())},
    }


def _told(case: Case) -> dict[str, Any]:
    return {
        "response_id": case.answer.response.response_id,
        "group": case.answer.group,
        "share": case.answer.share,
        "decision": case.live.decision.value,
        "rule": case.live.rule,
        "score": case.score,
    }


def counted(rate: Rate) -> str:
    """A share for people, in percent with its interval, and what it is of."""
    return f"{rate.count} of {rate.total:,}: {percent(rate)}"


def printed(name: str, found: Mapping[str, Any]) -> str:
    """The figures of one set for people; all but counts in percent, with 95 % intervals."""
    claims = found["claims"]
    lines = [f"\n{name}: {found['answers']} answers"]
    for group in GROUPS:
        made = found["decisions"][group]
        lines.append(f"  answers {group}: {made['answers']}")
        lines += [f"    {outcome:10} {counted(made[outcome])}" for outcome in OUTCOMES]
        lines += [f"      {count:3} × {rule}" for rule, count in list(made["rules"].items())[:5]]
    lines += [
        f"  whole answers, all supported against less than half, AUROC {percent(found['whole_answers'])}",
        f"  claims on rated sentences: {claims['rated']}, {claims['labelled_supported']} labelled supported",
        f"    AUROC of support            {percent(claims['auroc'])}",
        f"    balanced accuracy           {percent(claims['balanced_accuracy'])}",
        f"    supported, CONTRADICTED     {counted(claims['supported_called_contradicted'])}",
        f"    contradictions of supported {counted(claims['contradictions_of_supported'])}",
    ]
    lines += [
        f"    {label:20} {', '.join(f'{verdict} {count}' for verdict, count in counts.items())}"
        for label, counts in claims["verdicts_by_label"].items()
    ]
    return "\n".join(lines)
