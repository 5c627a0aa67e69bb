"""The search's decisions: thousands of policies that differ in numbers only, on columns of claims.

``Deciding`` decides about many responses what ``decisions.redecide`` decides about one, for policies that
differ in bounds of rules, thresholds on the score and weights only. What can't differ is asked of the policy
once, which makes it thousands of times as fast. Responses are taken to be judged to their end; what the kinds
of their segments decide is left out. A test holds it against ``redecide``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from guardrail.evals.statistics import Array
from guardrail.events import ClaimVerdict, Decision, ResponseVerdict, Severity, Verdict
from guardrail.policy import Policy, contradiction_of
from guardrail.scoring import DEFAULT_CREDITS, Formula

BOUNDS: Final = {
    "min_support": ("support", True),
    "support_below": ("support", False),
    "min_contradiction": ("contradiction", True),
    "contradiction_below": ("contradiction", False),
    "min_confidence": ("confidence", True),
    "confidence_below": ("confidence", False),
}
"""The bounds that a rule may have: the column they are on, and whether a claim has to reach them."""
_KEPT: Final = 4096
_DIGITS: Final = 6  # of a score, as ScoreKeeper rounds it


Bounds = tuple[float | None, ...]
"""A rule's bounds in the order of ``BOUNDS``."""


class Deciding:
    """Decisions about all responses under ``policy`` with other numbers in it.

    ``columns`` hold, for each claim of all responses in their order, what bounds are held against; ``nan``
    stands for a support that is not given, and meets no bound.
    """

    def __init__(self, verdicts: Iterable[ResponseVerdict], policy: Policy) -> None:
        self.policy = policy
        texts = [sorted(verdict.claims, key=lambda claim: claim.segment) for verdict in verdicts]
        claims = list(chain.from_iterable(texts))
        self._count = len(texts)
        self._claims = claims
        self._owner = _integers(at for at, each in enumerate(texts) for _ in each)
        self._checked = _truths(claim.verdict is not Verdict.UNVERIFIED for claim in claims)
        self._ends = _ends_of_segments(texts)
        self._first = np.concatenate(([0], np.cumsum([len(each) for each in texts], dtype=np.int64)))
        self.columns: dict[str, Array] = {
            "support": np.array([claim.support for claim in claims], dtype=np.float64),
            "contradiction": np.array([contradiction_of(claim) for claim in claims], dtype=np.float64),
            "confidence": np.array([claim.confidence for claim in claims], dtype=np.float64),
        }
        self.conditions = self._without_bounds()
        """By rule, which claims meet every condition of it but its bounds."""
        self._rows: Array = np.flatnonzero(np.any([*self.conditions, np.zeros(len(claims), bool)], axis=0))
        self._met = [met[self._rows] for met in self.conditions]
        self._values = {name: column[self._rows] for name, column in self.columns.items()}
        owners, checked = self._owner[self._rows], self._checked[self._rows]
        self._left_open: Array = np.where(checked, 0, Decision.FLAG.rank).astype(np.int8)
        self._owners: Array = np.unique(owners)
        self._begins: Array = np.searchsorted(owners, self._owners)
        self._masks: dict[tuple[int, Bounds], Array] = {}
        self._scores: dict[tuple[float, ...], tuple[Array, Array]] = {}
        self._unruled = self._of_unruled()

    def bounds(self) -> tuple[Bounds, ...]:
        """Those of the policy's own rules."""
        return tuple(tuple(getattr(rule, name) for name in BOUNDS) for rule in self.policy.rules)

    def ranks(
        self,
        bounds: Sequence[Bounds],
        flag_below: float,
        block_below: float,
        weights: Mapping[Severity, float],
    ) -> Array:
        """The rank of the decision about each response, 0 to 3."""
        found: Array = self._unruled.copy()
        if len(self._rows):
            of_claims = self._left_open.copy()
            for number in range(len(bounds) - 1, -1, -1):  # the first that matches decides: it is set last
                action = self.policy.rules[number].action.rank
                np.copyto(of_claims, action, where=self._mask(number, bounds[number]))
            worst = np.maximum.reduceat(of_claims, self._begins)
            found[self._owners] = np.maximum(found[self._owners], worst)
        final, lowest = self.scores(weights)
        with np.errstate(invalid="ignore"):  # no score is below nothing
            np.maximum(found, Decision.FLAG.rank, out=found, where=final < flag_below)
            np.copyto(found, Decision.BLOCK.rank, where=lowest < block_below)
        return found

    def scores(self, weights: Mapping[Severity, float]) -> tuple[Array, Array]:
        """Each response's score, and the lowest that ``block_below`` is held against; nan without any."""
        key = tuple(weights[severity] for severity in Severity)
        known = self._scores.get(key)
        if known is None:
            known = self._scores[key] = self._scored(weights)
        return known

    def _scored(self, weights: Mapping[Severity, float]) -> tuple[Array, Array]:
        policy, owner, checked = self.policy, self._owner, self._checked
        credit = np.array([DEFAULT_CREDITS.get(claim.verdict, 0.0) for claim in self._claims], np.float64)
        if policy.score is Formula.SEVERITY_WEIGHTED:
            support = self.columns["support"]
            credit = np.where(np.isnan(support), credit, support)
        weight = checked * np.array([weights[claim.severity] for claim in self._claims], np.float64)
        final = _share(
            np.bincount(owner, weight * credit, minlength=self._count),
            np.bincount(owner, weight, minlength=self._count),
        )
        if policy.mode != "stream" or not len(self._claims):
            return final, final
        credited, weighed, many = (
            self._running(each)[self._ends] for each in (weight * credit, weight, checked * 1.0)
        )
        running = np.where(many >= policy.score_after_claims - 0.5, _share(credited, weighed), np.nan)
        lowest = final.copy()
        np.fmin.at(lowest, owner[self._ends], running)
        return final, lowest

    def _running(self, values: Array) -> Array:
        """Sums within each response, up to and with each claim."""
        sums = np.cumsum(values)
        before = np.concatenate(([0.0], sums))[self._first[:-1]]
        return sums - before[self._owner]

    def _mask(self, number: int, bounds: Bounds) -> Array:
        known = self._masks.get((number, bounds))
        if known is not None:
            return known
        mask = self._met[number]
        for (name, reach), bound in zip(BOUNDS.values(), bounds, strict=True):
            if bound is not None:
                column = self._values[name]
                with np.errstate(invalid="ignore"):
                    mask = mask & ((column >= bound) if reach else (column < bound))
        if len(self._masks) >= _KEPT:
            self._masks.clear()
        self._masks[number, bounds] = mask
        return mask

    def _without_bounds(self) -> list[Array]:
        claims, found = self._claims, []
        decidable = ~_truths(claim.unanswered for claim in claims)
        for rule in self.policy.rules:
            loose = rule.model_copy(update=dict.fromkeys(BOUNDS))
            decides = decidable if rule.decides_open else self._checked
            found.append(decides & _truths(map(loose.matches, claims)))
        return found

    def _of_unruled(self) -> Array:
        """The rank that claims give each response about which no rule can decide, whatever its bounds."""
        ranks = np.array([self.policy.decide_claim(claim)[0].rank for claim in self._claims], dtype=np.int8)
        ranks[self._rows] = 0
        found = np.zeros(self._count, dtype=np.int8)
        np.maximum.at(found, self._owner, ranks)
        return found


def _truths(values: Iterable[bool]) -> Array:
    return np.fromiter(values, dtype=bool)


def _integers(values: Iterable[int]) -> Array:
    return np.fromiter(values, dtype=np.int64)


def _ends_of_segments(texts: Sequence[Sequence[ClaimVerdict]]) -> Array:
    """The places of the last claims of segments, among the claims of all responses."""
    segments = [(number, claim.segment) for number, each in enumerate(texts) for claim in each]
    following = zip(segments, [*segments[1:], None], strict=False)
    return _integers(at for at, (each, after) in enumerate(following) if each != after)


def _share(part: Array, whole: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 1e-12, np.round(np.clip(part / whole, 0.0, 1.0), _DIGITS), np.nan)
