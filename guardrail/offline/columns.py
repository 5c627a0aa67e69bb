"""Many responses' verdicts as columns, on which thousands of policies decide in seconds.

``Deciding`` does what ``decisions.redecide`` does, for all responses at once and for policies that differ in
bounds of rules, thresholds on the score and weights only. What can't differ is computed once. A test
holds both against each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from guardrail.events import ClaimVerdict, Decision, Severity, Verdict
from guardrail.policy import Policy, Rule, contradiction_of
from guardrail.scoring import Formula

Array = Any
"""An array of numpy."""
BOUNDS: Final = {
    "min_support": ("support", True),
    "support_below": ("support", False),
    "min_contradiction": ("contradiction", True),
    "contradiction_below": ("contradiction", False),
    "min_confidence": ("confidence", True),
    "confidence_below": ("confidence", False),
}
"""The bounds that a rule may have: the column they are on, and whether a claim has to reach them."""
RANK: Final = {each: rank for rank, each in enumerate(Decision)}
"""Decisions as numbers, from the mildest, 0, to the strictest."""
_SEVERITIES: Final = tuple(Severity)
_VERDICTS: Final = tuple(Verdict)
_KEPT: Final = 4096
_DIGITS: Final = 6  # of a score, as ScoreKeeper rounds it


class Columns:
    """The claims of ``responses`` in one row after the other, those of a response together, in text order."""

    def __init__(self, responses: Sequence[Sequence[ClaimVerdict]]) -> None:
        self.claims = [claim for claims in responses for claim in claims]
        self.size = len(responses)
        """The number of responses."""
        counts = [len(claims) for claims in responses]
        self.owner: Array = np.repeat(np.arange(self.size), counts)
        self.first: Array = np.cumsum([0, *counts])[:-1]
        self.severity: Array = np.array([_SEVERITIES.index(c.severity) for c in self.claims], dtype=np.int8)
        self.verdict: Array = np.array([_VERDICTS.index(c.verdict) for c in self.claims], dtype=np.int8)
        self.checked: Array = self.verdict != _VERDICTS.index(Verdict.UNVERIFIED)
        self.segment: Array = np.array([c.segment for c in self.claims], dtype=np.int64)
        self.values: dict[str, Array] = {
            "support": _floats([c.support for c in self.claims]),
            "contradiction": _floats([contradiction_of(c) for c in self.claims]),
            "confidence": _floats([c.confidence for c in self.claims]),
        }


def _floats(values: Sequence[float | None]) -> Array:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


Bounds = tuple[float | None, ...]
"""A rule's bounds in the order of ``BOUNDS``."""


class Deciding:
    """Decisions about all responses under ``policy`` with other numbers in it."""

    def __init__(self, columns: Columns, policy: Policy) -> None:
        self.columns = columns
        self.policy = policy
        self.conditions = [self._without_bounds(rule) for rule in policy.rules]
        """By rule, which claims meet every condition of it but its bounds."""
        any_rule = np.zeros(len(columns.claims), dtype=bool)
        for met in self.conditions:
            any_rule |= met
        self._rows: Array = np.flatnonzero(any_rule)
        self._met = [met[self._rows] for met in self.conditions]
        self._values = {name: column[self._rows] for name, column in columns.values.items()}
        owners = columns.owner[self._rows]
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
            of_claims = np.zeros(len(self._rows), dtype=np.int8)
            for number in range(len(bounds) - 1, -1, -1):  # the first that matches decides: it is set last
                action = RANK[self.policy.rules[number].action]
                np.copyto(of_claims, action, where=self._mask(number, bounds[number]))
            worst = np.maximum.reduceat(of_claims, self._begins)
            found[self._owners] = np.maximum(found[self._owners], worst)
        final, lowest = self.scores(weights)
        with np.errstate(invalid="ignore"):  # no score is below nothing
            np.maximum(found, RANK[Decision.FLAG], out=found, where=final < flag_below)
            np.copyto(found, RANK[Decision.BLOCK], where=lowest < block_below)
        return found

    def scores(self, weights: Mapping[Severity, float]) -> tuple[Array, Array]:
        """Each response's score, and the lowest that ``block_below`` is held against; nan without any."""
        key = tuple(weights[severity] for severity in _SEVERITIES)
        known = self._scores.get(key)
        if known is None:
            known = self._scores[key] = self._scored(np.array(key))
        return known

    def _scored(self, weights: Array) -> tuple[Array, Array]:
        columns, policy = self.columns, self.policy
        credit = np.array([policy.credits.get(verdict, 0.0) for verdict in _VERDICTS])[columns.verdict]
        if policy.score is Formula.SEVERITY_WEIGHTED:
            support = columns.values["support"]
            credit = np.where(np.isnan(support), credit, support)
        weight = np.where(columns.checked, weights[columns.severity], 0.0)
        final = _share(
            np.bincount(columns.owner, weight * credit, minlength=columns.size),
            np.bincount(columns.owner, weight, minlength=columns.size),
        )
        if policy.mode != "stream" or not len(columns.claims):
            return final, final
        ends = np.flatnonzero(
            np.append(
                (columns.owner[1:] != columns.owner[:-1]) | (columns.segment[1:] != columns.segment[:-1]),
                True,
            )
        )
        owner = columns.owner[ends]
        so_far = [self._running(each)[ends] for each in (weight * credit, weight, columns.checked * 1.0)]
        running = np.where(so_far[2] >= policy.score_after_claims - 0.5, _share(so_far[0], so_far[1]), np.nan)
        lowest = final.copy()
        np.fmin.at(lowest, owner, running)
        return final, lowest

    def _running(self, values: Array) -> Array:
        """Sums within each response, up to and with each claim."""
        sums = np.cumsum(values)
        before = np.concatenate(([0.0], sums))[self.columns.first.clip(max=len(values))]
        return sums - before[self.columns.owner]

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
        return np.array(
            [c.verdict is not Verdict.UNVERIFIED and loose.matches(c) for c in self.columns.claims],
            dtype=bool,
        )

    def _of_unverified(self) -> Array:
        """The rank that claims without a verdict give each response."""
        found = np.zeros(self.columns.size, dtype=np.int8)
        unverified = next((c for c in self.columns.claims if c.verdict is Verdict.UNVERIFIED), None)
        if unverified is not None:
            decision, _ = self.policy.decide_claim(unverified)
            found[self.columns.owner[~self.columns.checked]] = RANK[decision]
        return found


def _share(part: Array, whole: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 1e-12, np.round(np.clip(part / whole, 0.0, 1.0), _DIGITS), np.nan)
