"""What changed between two runs over the same answers: an earlier one and the one that is reported.

Answers are joined by ``response_id``; where one has an id several times, the first with the first, the second
with the second. Claims are joined by their text and where it stands, or else by text and number, as
ids differ by policy.
Of the earlier run a few numbers an answer are held.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from guardrail.evals.agreement import WITHHELD
from guardrail.evals.overview import Worst, is_right
from guardrail.evals.results import EvaluationResult
from guardrail.evals.statistics import Estimate, as_json, mcnemar, mean_estimate
from guardrail.events import ClaimVerdict, Decision, ResponseVerdict, Span, Verdict

_ACTIONS: Final = (
    (WITHHELD, "withheld (redacted or blocked)", "right by the labels: withheld if wrong, else not"),
    (
        WITHHELD | {Decision.FLAG},
        "flagged or withheld",
        "right by the labels: flagged or withheld if wrong, else released",
    ),
)
"""Decisions that runs are compared by, and what is counted: that they were made, and that this was right."""
_SAME_SCORE: Final = 1e-9
_At = tuple[int, Span]
_Numbered = tuple[int, int]
JoinKey = tuple[str, int]
"""The id of a response, and which of those with this id."""


def _join_key(result: EvaluationResult, seen: Counter[str]) -> JoinKey | None:
    """None for what could not be read: nothing says which answer it was. ``seen`` has those of the run."""
    known = result.response if result.verdict is None else result.verdict
    if known is None:
        return None
    seen[known.response_id] += 1
    return known.response_id, seen[known.response_id]


class _Before(NamedTuple):
    """What is held of an answer of the earlier run: verdicts by the hash of a claim's text and its span, and
    these by the hash and the claim's number."""

    decision: Decision
    score: float | None
    claims: Mapping[_At, Verdict]
    numbered: Mapping[_Numbered, _At]


@dataclass(frozen=True, slots=True)
class Paired:
    """In how many answers something is so in one of the runs alone, and the p-value of McNemar's test."""

    what: str
    only_before: int
    only_now: int

    @property
    def p_value(self) -> float:
        return mcnemar(self.only_before, self.only_now)


@dataclass(frozen=True, slots=True)
class Changed:
    """An answer of which something changed, as both runs have it."""

    now: EvaluationResult
    before: EvaluationResult


class Comparison:
    """Compares an earlier run, whole, with the results that ``add`` takes one by one.

    ``examples`` answers are kept, those that changed most in decision, then in score.
    """

    def __init__(self, before: Iterable[EvaluationResult], *, examples: int) -> None:
        self._earlier = before
        self._before: dict[JoinKey, _Before | None] = {}
        seen: Counter[str] = Counter()
        for result in before:
            if (key := _join_key(result, seen)) is not None:
                self._before[key] = None if result.verdict is None else _held(result.verdict)
        self._seen: Counter[str] = Counter()
        self._examples = Worst[tuple[JoinKey, EvaluationResult]](examples)
        self.joined = 0
        self.only_now = 0
        """Answers that the earlier run has not."""
        self.errors = 0
        """Answers that one of the runs, or both, could not judge."""
        self.decisions: Counter[tuple[Decision, Decision]] = Counter()
        self.verdicts: Counter[tuple[Verdict, Verdict]] = Counter()
        self.claims_apart = 0
        """Claims that only one of the runs has: the answer is another one, or it was cut differently."""
        self.scores_before = array("d")
        self.scores_now = array("d")
        self._pairs: Counter[tuple[str, bool, bool]] = Counter()

    def add(self, result: EvaluationResult) -> None:
        key = _join_key(result, self._seen)
        if key is None or key not in self._before:
            self.only_now += 1
            return
        self.joined += 1
        before, verdict = self._before[key], result.verdict
        if before is None or verdict is None:
            self.errors += 1
            return
        self.decisions[before.decision, verdict.decision] += 1
        changed_claims = self._add_claims(before, verdict)
        moved = 0.0
        if before.score is not None and verdict.score is not None:
            self.scores_before.append(before.score)
            self.scores_now.append(verdict.score)
            moved = abs(verdict.score - before.score)
        right = is_right(result)
        for decisions, acted, rightly in _ACTIONS:
            was, acts = before.decision in decisions, verdict.decision in decisions
            self._pairs[acted, was, acts] += 1
            if right is not None:
                self._pairs[rightly, was is not right, acts is not right] += 1
        if before.decision is not verdict.decision or moved > _SAME_SCORE or changed_claims:
            self._examples.add(abs(before.decision.rank - verdict.decision.rank), moved, (key, result))

    def _add_claims(self, before: _Before, verdict: ResponseVerdict) -> int:
        """How many of the claims have another verdict now."""
        changed = 0
        left = dict(before.claims)
        moved: list[ClaimVerdict] = []
        pairs: list[tuple[Verdict, ClaimVerdict]] = []
        for claim in verdict.claims:
            if (was := left.pop((hash(claim.text), claim.span), None)) is not None:
                pairs.append((was, claim))
            else:
                moved.append(claim)
        for claim in moved:
            at = before.numbered.get((hash(claim.text), claim.index))
            if at is not None and (was := left.pop(at, None)) is not None:
                pairs.append((was, claim))
            else:
                self.claims_apart += 1
        for was, claim in pairs:
            self.verdicts[was, claim.verdict] += 1
            changed += was is not claim.verdict
        self.claims_apart += len(left)
        return changed

    @property
    def only_before(self) -> int:
        """Answers of the earlier run that the reported one has not."""
        return len(self._before) - self.joined

    @property
    def changed_decisions(self) -> int:
        return sum(count for (before, now), count in self.decisions.items() if before is not now)

    @property
    def changed_verdicts(self) -> int:
        return sum(count for (before, now), count in self.verdicts.items() if before is not now)

    def differences(self) -> list[float]:
        """Score now minus score before, of the answers that have both."""
        return [now - before for before, now in zip(self.scores_before, self.scores_now, strict=True)]

    def mean_difference(self) -> Estimate:
        """Its interval draws pairs, so that what both runs have in common cancels out."""
        return mean_estimate(self.differences())

    def paired(self) -> list[Paired]:
        """Decisions as pairs; with labels also which of them are right."""
        known = {what for what, _, _ in self._pairs}
        told = [acted for _, acted, _ in _ACTIONS]
        told += [rightly for _, _, rightly in _ACTIONS if rightly in known]
        return [Paired(what, self._pairs[what, True, False], self._pairs[what, False, True]) for what in told]

    def examples(self) -> Sequence[Changed]:
        """The answers that changed most. Goes through the earlier run once more."""
        chosen = self._examples.in_order()
        wanted: dict[JoinKey, EvaluationResult | None] = {key: None for key, _ in chosen}
        seen: Counter[str] = Counter()
        missing = len(wanted)
        for result in self._earlier if missing else ():
            key = _join_key(result, seen)
            if key in wanted and wanted[key] is None:
                wanted[key] = result
                missing -= 1
                if not missing:
                    break
        return [Changed(result, before) for key, result in chosen if (before := wanted[key]) is not None]

    def figures(self) -> dict[str, Any]:
        """As JSON; a figure that can't be given is null."""
        return as_json(
            {
                "joined": self.joined,
                "only_in_this": self.only_now,
                "only_in_other": self.only_before,
                "errors": self.errors,
                "changed_decisions": self.changed_decisions,
                "decisions": _matrix(self.decisions, Decision),
                "changed_verdicts": self.changed_verdicts,
                "verdicts": _matrix(self.verdicts, Verdict),
                "claims_not_joined": self.claims_apart,
                "scores": {
                    "pairs": len(self.scores_now),
                    "mean_other": mean_estimate(self.scores_before),
                    "mean_this": mean_estimate(self.scores_now),
                    "mean_difference": self.mean_difference(),
                },
                "paired": [
                    {
                        "what": each.what,
                        "only_other": each.only_before,
                        "only_this": each.only_now,
                        "p": each.p_value,
                    }
                    for each in self.paired()
                ],
            }
        )


def _held(verdict: ResponseVerdict) -> _Before:
    claims = {(hash(claim.text), claim.span): claim.verdict for claim in verdict.claims}
    numbered = {(hash(claim.text), claim.index): (hash(claim.text), claim.span) for claim in verdict.claims}
    return _Before(verdict.decision, verdict.score, claims, numbered)


def _matrix(counts: Mapping[tuple[Any, Any], int], values: Iterable[Any]) -> dict[str, dict[str, int]]:
    every = tuple(values)
    return {before.value: {now.value: counts.get((before, now), 0) for now in every} for before in every}
