"""The search's decisions: thousands of policies that differ in numbers only, on columns of records.

``Deciding`` decides what ``records.decide_all`` does, for policies that differ in bounds of rules, thresholds
on the score and weights only. What can't differ is computed once, which makes it some ten times as fast.
Records are taken to be judged to their end; what the kinds of their segments decide is left out. A test holds
it against ``decisions.redecide``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from guardrail.events import Decision, Severity
from guardrail.offline.records import (
    SEVERITIES,
    VERDICTS,
    Array,
    Records,
    decided_by,
    matching,
    unverified_rank,
)
from guardrail.policy import Policy, Rule
from guardrail.scoring import Formula

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
    """Decisions about all responses under ``policy`` with other numbers in it."""

    def __init__(self, records: Records, policy: Policy) -> None:
        self.records = records
        self.policy = policy
        self.conditions = [self._without_bounds(rule) for rule in policy.rules]
        """By rule, which claims meet every condition of it but its bounds."""
        any_rule = np.zeros(len(records.verdict), dtype=bool)
        for met in self.conditions:
            any_rule |= met
        self._rows: Array = np.flatnonzero(any_rule)
        self._met = [met[self._rows] for met in self.conditions]
        self._values = {name: getattr(records, name)[self._rows] for name, _ in BOUNDS.values()}
        owners = records.claim_response[self._rows]
        open_ = records.left_open[self._rows]
        self._left_open: Array = np.where(open_, Decision.FLAG.rank, 0).astype(np.int8)
        self._owners: Array = np.unique(owners)
        self._begins: Array = np.searchsorted(owners, self._owners)
        self._masks: dict[tuple[int, Bounds], Array] = {}
        self._scores: dict[tuple[float, ...], tuple[Array, Array]] = {}
        self._unverified = self._of_unverified()

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
        found: Array = self._unverified.copy()
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
        key = tuple(weights[severity] for severity in SEVERITIES)
        known = self._scores.get(key)
        if known is None:
            known = self._scores[key] = self._scored(np.array(key))
        return known

    def _scored(self, weights: Array) -> tuple[Array, Array]:
        records, policy = self.records, self.policy
        credit = np.array([policy.credits.get(verdict, 0.0) for verdict in VERDICTS])[records.verdict]
        if policy.score is Formula.SEVERITY_WEIGHTED:
            credit = np.where(np.isnan(records.support), credit, records.support)
        weight = np.where(records.checked, weights[records.severity], 0.0)
        final = _share(
            np.bincount(records.claim_response, weight * credit, minlength=len(records)),
            np.bincount(records.claim_response, weight, minlength=len(records)),
        )
        if policy.mode != "stream" or not len(records.verdict):
            return final, final
        ends = records.claim_start[1:][np.diff(records.claim_start) > 0] - 1  # the last claims of segments
        owner = records.claim_response[ends]
        so_far = [self._running(each)[ends] for each in (weight * credit, weight, records.checked * 1.0)]
        running = np.where(so_far[2] >= policy.score_after_claims - 0.5, _share(so_far[0], so_far[1]), np.nan)
        lowest = final.copy()
        np.fmin.at(lowest, owner, running)
        return final, lowest

    def _running(self, values: Array) -> Array:
        """Sums within each response, up to and with each claim."""
        sums = np.cumsum(values)
        before = np.concatenate(([0.0], sums))[self.records.first_claim[:-1]]
        return sums - before[self.records.claim_response]

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

    def _without_bounds(self, rule: Rule) -> Array:
        """Which claims meet all of ``rule`` but its bounds."""
        loose = rule.model_copy(update=dict.fromkeys(BOUNDS))
        return matching(loose, self.records) & decided_by(rule, self.records)

    def _of_unverified(self) -> Array:
        """The rank that claims without a verdict give each response, and those left open by no rule."""
        records = self.records
        found = np.zeros(len(records), dtype=np.int8)
        no_rule = records.left_open.copy()
        no_rule[self._rows] = False
        found[records.claim_response[no_rule]] = Decision.FLAG.rank
        unverified = np.zeros(len(records), dtype=np.int8)
        unanswered = ~records.checked & ~records.left_open
        unverified[records.claim_response[unanswered]] = unverified_rank(self.policy)
        return np.maximum(found, unverified)


def _share(part: Array, whole: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 1e-12, np.round(np.clip(part / whole, 0.0, 1.0), _DIGITS), np.nan)
