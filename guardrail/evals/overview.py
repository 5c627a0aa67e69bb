"""The figures of one run of an evaluation, in one pass over its results.

Of each result a few numbers are held, and what labels are about; only the worst are kept whole.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np

from guardrail.evals.agreement import WITHHELD, Agreement, agreement
from guardrail.evals.results import EvaluationResult
from guardrail.evals.statistics import COLUMNS, Estimate, Rate, as_json, mean_estimate
from guardrail.evals.truths import answer_truth
from guardrail.events import Decision, ResponseVerdict, Severity, Usage, Verdict
from guardrail.printable import shorten
from guardrail.verdicts import total

GROUPED_BY: Final = ("route", "tenant", "generator_model")
MOST_LABELLED: Final = 10_000
"""Answers with labels on which agreement is measured: its intervals draw them again and again."""
WRONG: Final = frozenset({Verdict.UNSUPPORTED, Verdict.CONTRADICTED})
WORST: Final = 20
"""Answers that a page shows whole."""
NOT_NAMED: Final = "(none)"
OTHERS: Final = "(others)"
_MOST_GROUPS: Final = 200
_MOST_REASONS: Final = 500
_REASON_CHARS: Final = 200
NO_REASON: Final = "no reason given"
_NO_VERDICT: Final = "no verdict, and no reason given"


class EvaluationRun(Protocol):
    """An evaluation, in memory or in a file. ``results`` can be gone through more than once."""

    @property
    def results(self) -> Iterable[EvaluationResult]:
        """In the order of the source."""

    @property
    def name(self) -> str:
        """What readers know the run by."""

    @property
    def settings(self) -> Mapping[str, str]:
        """Judge, policy and whatever else made the results."""


def is_right(result: EvaluationResult) -> bool | None:
    """Whether people found no fault in the answer; None if that is not known, or there is no verdict."""
    if result.verdict is None or not result.labels:
        return None
    return answer_truth(result.verdict.claims, result.labels).right


@dataclass(slots=True)
class Slice:
    """What is counted of all results, and of those of one route, tenant or model."""

    name: str
    results: int = 0
    errors: int = 0
    decisions: Counter[Decision] = field(default_factory=Counter)
    verdicts: Counter[tuple[Severity, Verdict]] = field(default_factory=Counter)
    scores: array[float] = field(default_factory=lambda: array("d"))
    latencies_ms: array[float] = field(default_factory=lambda: array("d"))
    cost_usd: float = 0.0

    def add(self, verdict: ResponseVerdict | None) -> None:
        self.results += 1
        if verdict is None:
            self.errors += 1
            return
        self.decisions[verdict.decision] += 1
        for claim in verdict.claims:
            self.verdicts[claim.severity, claim.verdict] += 1
        if verdict.score is not None:
            self.scores.append(verdict.score)
        self.latencies_ms.append(verdict.timings.total_ms)
        self.cost_usd += verdict.usage.cost_usd

    @property
    def judged(self) -> int:
        """Results with a verdict."""
        return self.results - self.errors

    @property
    def claims(self) -> int:
        return self.verdicts.total()

    def claims_with(self, verdicts: Iterable[Verdict], severities: Iterable[Severity] = Severity) -> int:
        """How many claims have one of these."""
        return sum(self.verdicts[severity, verdict] for severity in severities for verdict in verdicts)

    def decided(self, decisions: Iterable[Decision]) -> Rate:
        """Answers with one of these decisions, of those that were judged."""
        return Rate(sum(self.decisions[each] for each in decisions), self.judged)

    def mean_score(self) -> Estimate:
        return mean_estimate(self.scores)

    def latency_ms(self, share: float) -> float | None:
        """The quantile; None if nothing was judged."""
        return float(np.quantile(self.latencies_ms, share)) if self.latencies_ms else None

    def as_json(self) -> dict[str, Any]:
        """As the report in JSON has it."""
        return {
            "name": self.name,
            "results": self.results,
            "errors": self.errors,
            "mean_score": self.mean_score(),
            "undefined_scores": self.judged - len(self.scores),
            "decisions": {each.value: self.decided([each]) for each in Decision},
            "claims": self.claims,
            "verdicts": {
                severity.value: {verdict.value: self.verdicts[severity, verdict] for verdict in Verdict}
                for severity in Severity
            },
            "latency_ms": {f"p{round(100 * share)}": self.latency_ms(share) for share in (0.5, 0.95, 0.99)},
            "cost_usd": self.cost_usd,
        }


@dataclass(slots=True)
class Published:
    """One published score over all results."""

    values: array[float] = field(default_factory=lambda: array("d"))
    passed: int = 0
    pass_or_fail: int = 0
    """Results that pass or fail by this score."""

    def rate(self) -> Rate:
        """Of these, those that pass."""
        return Rate(self.passed, self.pass_or_fail)


@dataclass(slots=True)
class Reasons:
    """How often what was said, and where first. Bounded: what comes after many others counts as one."""

    counts: Counter[str] = field(default_factory=Counter)
    places: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, place: str) -> None:
        reason = shorten(" ".join(reason.split()), _REASON_CHARS)
        if reason not in self.counts and len(self.counts) >= _MOST_REASONS:
            reason = OTHERS
        self.counts[reason] += 1
        self.places.setdefault(reason, place)

    def most_common(self) -> list[tuple[str, int, str]]:
        return [(reason, count, self.places[reason]) for reason, count in self.counts.most_common()]


def _without_texts(result: EvaluationResult) -> EvaluationResult:
    """What agreement needs of it: contexts and traces of many would fill the memory."""
    response = result.response
    if response is not None:
        response = response.model_copy(update={"question": "", "contexts": (), "answer": "", "metadata": {}})
    return result.model_copy(update={"response": response, "explanation": None, "trace": ()})


Kept = TypeVar("Kept")


class Worst(Generic[Kept]):
    """The ``most`` things with the highest ranks; of equals those that came first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[tuple[float, float, int, Kept]] = []
        self._count = 0

    def add(self, first: float, second: float, thing: Kept) -> None:
        """``first`` ranks, and ``second`` among equals."""
        self._count += 1
        ranked = (first, second, -self._count, thing)
        if len(self._kept) < self._most:
            heapq.heappush(self._kept, ranked)
        elif self._most:
            heapq.heappushpop(self._kept, ranked)

    def in_order(self) -> list[Kept]:
        """The highest first."""
        return [ranked[-1] for ranked in sorted(self._kept, reverse=True)]


class Overview:
    """The figures of a run. The ``worst`` by decision, then score, are kept whole."""

    def __init__(self, *, worst: int) -> None:
        self.whole = Slice("all")
        self.scores_by_decision: dict[Decision, Counter[int]] = {each: Counter() for each in Decision}
        self.rules: Counter[tuple[Decision, str]] = Counter()
        self.published: dict[str, Published] = {}
        self.undefined = Reasons()
        self.errors = Reasons()
        self.unverified = Reasons()
        self.degraded = Reasons()
        self.degraded_claims = 0
        self.groups: dict[str, dict[str, Slice]] = {name: {} for name in GROUPED_BY}
        self.usage = Usage()
        self.judges: Counter[str] = Counter()
        self.by_truth: dict[bool, Counter[Decision]] = {True: Counter(), False: Counter()}
        self.worst = Worst[EvaluationResult](worst)
        self._labelled: list[EvaluationResult] = []
        self._with_labels = 0
        self._random = Random(1)
        self.misses = Worst[EvaluationResult](worst)
        self.wrongful = Worst[EvaluationResult](worst)

    def add(self, result: EvaluationResult) -> None:
        verdict, response = result.verdict, result.response
        self.whole.add(verdict)
        for field_name, groups in self.groups.items():
            name = getattr(response, field_name, None) or NOT_NAMED
            if name not in groups and len(groups) >= _MOST_GROUPS:
                name = OTHERS
            groups.setdefault(name, Slice(name)).add(verdict)
        place = result.place or (response.response_id if response else "")
        if verdict is None:
            self.errors.add(result.error or _NO_VERDICT, place)
            return
        self._add_scores(result, verdict, place)
        by = verdict.decision, shorten(verdict.rule, _REASON_CHARS)
        if by not in self.rules and len(self.rules) >= _MOST_REASONS:
            by = verdict.decision, OTHERS
        self.rules[by] += 1
        self.usage = total(self.usage, verdict.usage)
        for claim in verdict.claims:
            if claim.judge in self.judges or len(self.judges) < _MOST_REASONS:
                self.judges[claim.judge] += 1
            if claim.unanswered:
                self.unverified.add(claim.reasoning or NO_REASON, place)
            self.degraded_claims += bool(claim.degraded_from)
            for missed in claim.degraded_from:
                self.degraded.add(missed, place)
        doubt = -1.0 if verdict.score is None else 1.0 - verdict.score
        self.worst.add(verdict.decision.rank, doubt, result)
        if result.labels:
            self._add_labelled(result)
        right = is_right(result)
        if right is None:
            return
        self.by_truth[right][verdict.decision] += 1
        if right and verdict.decision in WITHHELD:
            self.wrongful.add(verdict.decision.rank, -doubt, result)
        elif not right and verdict.decision is Decision.RELEASE:
            self.misses.add(0, -doubt, result)

    def _add_scores(self, result: EvaluationResult, verdict: ResponseVerdict, place: str) -> None:
        if verdict.score is not None:
            at = min(COLUMNS - 1, int(verdict.score * COLUMNS))
            self.scores_by_decision[verdict.decision][at] += 1
        for name, score in result.scores.items():
            published = self.published.setdefault(name, Published())
            if score.value is None:
                self.undefined.add(f"{name}: {score.reason or NO_REASON}", place)
            else:
                published.values.append(score.value)
            if score.passed is not None:
                published.pass_or_fail += 1
                published.passed += score.passed

    def _add_labelled(self, result: EvaluationResult) -> None:
        """Keep it, or of many each with the same chance (reservoir sampling)."""
        self._with_labels += 1
        if len(self._labelled) < MOST_LABELLED:
            self._labelled.append(_without_texts(result))
        elif (at := self._random.randrange(self._with_labels)) < MOST_LABELLED:
            self._labelled[at] = _without_texts(result)

    @property
    def labelled(self) -> int:
        """Answers that have a verdict, and of which labels say whether they are right."""
        return sum(counts.total() for counts in self.by_truth.values())

    @cached_property
    def agreement(self) -> Agreement | None:
        """With the labels in the results, or with a sample of many; None if there are none."""
        if not self._labelled:
            return None
        found = agreement(self._labelled)
        whole = self.whole
        coverage = replace(found.coverage, answers=whole.results, failed=whole.errors, claims=whole.claims)
        warnings = found.warnings
        if self._with_labels > len(self._labelled):
            drawn = f"{len(self._labelled):,} of {self._with_labels:,} answers with labels, drawn at random"
            warnings = (*warnings, f"agreement is measured on {drawn}")
        return replace(found, coverage=coverage, warnings=warnings)

    def decided(self, right: bool, decisions: Iterable[Decision]) -> Rate:
        """Of the answers that people find right (or wrong), those with one of these decisions."""
        counts = self.by_truth[right]
        return Rate(sum(counts[each] for each in decisions), counts.total())

    def figures(self) -> dict[str, Any]:
        """All of it as JSON; a figure that can't be given is null."""
        figures: dict[str, object] = {
            **self.whole.as_json(),
            "scores": {
                name: {
                    "mean": mean_estimate(each.values),
                    "passed": each.rate() if each.pass_or_fail else None,
                    "undefined": self.whole.judged - len(each.values),
                }
                for name, each in self.published.items()
            },
            "rules": [
                {"decision": decision.value, "rule": rule, "count": count}
                for (decision, rule), count in self.rules.most_common()
            ],
            "groups": {
                name: [each.as_json() for each in named_groups(groups)]
                for name, groups in self.groups.items()
            },
            "error_reasons": _counts(self.errors),
            "undefined_reasons": _counts(self.undefined),
            "unverified_reasons": _counts(self.unverified),
            "usage": self.usage.model_dump(),
            "labelled": {
                "right": {each.value: self.decided(True, [each]) for each in Decision},
                "wrong": {each.value: self.decided(False, [each]) for each in Decision},
            }
            if self.labelled
            else None,
            "agreement": None if self.agreement is None else self.agreement.data(),
        }
        return as_json(figures)


def named_groups(groups: Mapping[str, Slice]) -> list[Slice]:
    """The largest first; none if the results name none."""
    if set(groups) <= {NOT_NAMED}:
        return []
    return sorted(groups.values(), key=lambda each: (-each.results, each.name))


def _counts(reasons: Reasons) -> list[dict[str, Any]]:
    return [
        {"reason": reason, "count": count, "first": place} for reason, count, place in reasons.most_common()
    ]
