"""What judged answers come to beside people's labels: decisions, whole answers, claims, cost."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from benchmarks.labelled_answers import SUPPORTED, LabelledAnswer
from benchmarks.saved_verdicts import Judged
from guardrail.events import ClaimVerdict, Decision, ResponseVerdict
from guardrail.judges import Verdict
from guardrail.offline.statistics import (
    Estimate,
    Figure,
    Rate,
    auroc,
    balanced_accuracy,
    bootstrap,
    percent,
)

GROUPS: Final = ("all supported", "less than half", "others")
OUTCOMES: Final[Mapping[str, frozenset[Decision]]] = {
    "withheld": frozenset((Decision.BLOCK, Decision.REDACT)),
    "blocked": frozenset((Decision.BLOCK,)),
    "redacted": frozenset((Decision.REDACT,)),
    "flagged": frozenset((Decision.FLAG,)),
    "untouched": frozenset((Decision.RELEASE,)),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One answer: labels, the verdict over all its claims and its cost, and what a policy made of it live."""

    answer: LabelledAnswer
    judged: Judged
    whole: ResponseVerdict
    """By the policy's score and rules, but judged to the end."""
    live: ResponseVerdict
    """As the policy ends it: a block leaves the rest unjudged."""

    def rated(self) -> list[tuple[ClaimVerdict, str]]:
        """The claims that stand on a sentence which people rated, with its label."""
        told = ((claim, self.answer.label_of(claim.span)) for claim in self.whole.claims)
        return [(claim, label) for claim, label in told if label is not None]


def figures(cases: Sequence[Case]) -> dict[str, Any]:
    """Everything that is reported of one set, ready for JSON but for ``nan``."""
    return {
        "answers": len(cases),
        "decisions": {group: _decisions(_of(cases, group)) for group in GROUPS},
        "whole_answers": _whole_answers(cases),
        "claims": _claims(cases),
        "cost": _cost(cases),
        "each": [_told(case) for case in cases],
    }


def _of(cases: Iterable[Case], group: str) -> list[Case]:
    return [case for case in cases if case.answer.group == group]


def _decisions(cases: Sequence[Case]) -> dict[str, Any]:
    made = [case.live.decision for case in cases]
    found: dict[str, Any] = {
        name: Rate(sum(decision in kinds for decision in made), len(made)).told()
        for name, kinds in OUTCOMES.items()
    }
    rules = Counter(case.live.rule for case in cases if case.live.decision is not Decision.RELEASE)
    return {"answers": len(cases), **found, "rules": dict(rules.most_common())}


def _whole_answers(cases: Sequence[Case]) -> dict[str, Any]:
    """How well answers that are all supported rank above those that are less than half."""
    ends = _of(cases, "all supported") + _of(cases, "less than half")
    readings: dict[str, Callable[[ResponseVerdict], float | None]] = {
        "score": lambda verdict: verdict.score,
        "lowest support": lambda verdict: min(_supports(verdict), default=None),
        "mean support": lambda verdict: statistics.fmean(_supports(verdict)) if _supports(verdict) else None,
    }
    return {
        name: asdict(
            bootstrap(
                [
                    [(case.answer.share == 1.0, value)]
                    for case in ends
                    if (value := read(case.whole)) is not None
                ],
                auroc,
            )
        )
        for name, read in readings.items()
    }


def _supports(verdict: ResponseVerdict) -> list[float]:
    return [claim.support for claim in verdict.claims if claim.support is not None]


def _claims(cases: Sequence[Case]) -> dict[str, Any]:
    rated = [case.rated() for case in cases]
    everything = [pair for pairs in rated for pair in pairs]
    supported = [claim for claim, label in everything if label in SUPPORTED]
    contradicted = [label for claim, label in everything if claim.verdict is Verdict.CONTRADICTED]
    table: dict[str, Counter[str]] = {}
    for claim, label in everything:
        table.setdefault(label, Counter())[claim.verdict.value] += 1
    return {
        "rated": len(everything),
        "labelled_supported": len(supported),
        "auroc": _over(rated, lambda claim: claim.support, auroc),
        "balanced_accuracy": _over(
            rated,
            lambda claim: None if claim.support is None else float(claim.verdict is Verdict.SUPPORTED),
            balanced_accuracy,
        ),
        "supported_called_contradicted": Rate(
            sum(claim.verdict is Verdict.CONTRADICTED for claim in supported), len(supported)
        ).told(),
        "contradictions_of_supported": Rate(
            sum(label in SUPPORTED for label in contradicted), len(contradicted)
        ).told(),
        "verdicts_by_label": {label: dict(counts.most_common()) for label, counts in sorted(table.items())},
    }


def _over(
    rated: Iterable[Sequence[tuple[ClaimVerdict, str]]],
    read: Callable[[ClaimVerdict], float | None],
    figure: Figure,
) -> dict[str, float]:
    groups = [
        [(label in SUPPORTED, value) for claim, label in pairs if (value := read(claim)) is not None]
        for pairs in rated
    ]
    return asdict(bootstrap([group for group in groups if group], figure))


def _cost(cases: Sequence[Case]) -> dict[str, Any]:
    claims = [claim for case in cases for claim in case.whole.claims]
    count = max(1, len(claims))
    paces = sorted(1000 * case.judged.seconds / len(case.whole.claims) for case in cases if case.whole.claims)
    return {
        "claims": len(claims),
        "unverified": sum(claim.verdict is Verdict.UNVERIFIED for claim in claims),
        "degraded": sum(bool(claim.degraded_from) for claim in claims),
        "ms_a_claim": 1000 * sum(case.judged.seconds for case in cases) / count,
        "ms_a_claim_p95_of_answers": paces[int(0.95 * (len(paces) - 1))] if paces else math.nan,
        "processor_ms_a_claim": 1000 * sum(case.judged.processor_seconds for case in cases) / count,
    }


def _told(case: Case) -> dict[str, Any]:
    return {
        "response_id": case.answer.response.response_id,
        "group": case.answer.group,
        "share": case.answer.share,
        "decision": case.live.decision.value,
        "rule": case.live.rule,
        "score": case.whole.score,
    }


def printed(name: str, found: Mapping[str, Any]) -> str:
    """The figures of one set for people; all but counts and times in percent, with 95 % intervals."""
    claims, cost = found["claims"], found["cost"]
    lines = [f"\n{name}: {found['answers']} answers, {cost['claims']} claims"]
    for group in GROUPS:
        made = found["decisions"][group]
        lines.append(f"  answers {group}: {made['answers']}")
        lines += [f"    {outcome:10} {_percent_of(made[outcome])}" for outcome in OUTCOMES]
        lines += [f"      {count:3} × {rule}" for rule, count in list(made["rules"].items())[:5]]
    lines.append("  whole answers, all supported against less than half, AUROC")
    lines += [f"    {name:15} {percent_told(value)}" for name, value in found["whole_answers"].items()]
    lines += [
        f"  claims on rated sentences: {claims['rated']}, {claims['labelled_supported']} labelled supported",
        f"    AUROC of support            {percent_told(claims['auroc'])}",
        f"    balanced accuracy           {percent_told(claims['balanced_accuracy'])}",
        f"    supported, CONTRADICTED     {_percent_of(claims['supported_called_contradicted'])}",
        f"    contradictions of supported {_percent_of(claims['contradictions_of_supported'])}",
    ]
    lines += [
        f"    {label:20} {', '.join(f'{verdict} {count}' for verdict, count in counts.items())}"
        for label, counts in claims["verdicts_by_label"].items()
    ]
    lines.append(
        f"  a claim: {cost['ms_a_claim']:.1f} ms (p95 of answers {cost['ms_a_claim_p95_of_answers']:.1f}), "
        f"{cost['processor_ms_a_claim']:.1f} ms of processor time; "
        f"{cost['unverified']} UNVERIFIED, {cost['degraded']} degraded"
    )
    return "\n".join(lines)


def _percent_of(rate: Mapping[str, float]) -> str:
    return f"{rate['count']:4} of {rate['of']:4}  {percent_told(rate)}"


def percent_told(told: Mapping[str, float]) -> str:
    """In percent for people, with the interval, of a figure as it stands in JSON."""
    return percent(Estimate(told["value"], told["low"], told["high"]))
