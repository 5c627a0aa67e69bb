"""Verdicts -> score.

``score = sum(weight(severity) * credit(claim)) / sum(weight(severity))`` over the checked claims, which are
those with any verdict but UNVERIFIED; None if there are none. A *formula* defines a claim's credit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from guardrail.events import Severity, Verdict, VerdictCounts

DEFAULT_WEIGHTS: Mapping[Severity, float] = {
    Severity.MINOR: 0.25,
    Severity.NORMAL: 1.0,
    Severity.MAJOR: 2.0,
    Severity.CRITICAL: 4.0,
}
DEFAULT_CREDITS: Mapping[Verdict, float] = {
    Verdict.SUPPORTED: 1.0,
    Verdict.PARTIALLY_SUPPORTED: 0.5,
    Verdict.UNSUPPORTED: 0.0,
    Verdict.CONTRADICTED: 0.0,
}


class Formula(StrEnum):
    """How a claim counts in the score of its response."""

    SEVERITY_WEIGHTED = "severity_weighted"
    """By its probability of support; by its verdict's credit where the judge gives none."""
    CREDITS = "credits"
    """By its verdict's credit. With all weights 1 and partial credit 0: the share of supported claims."""


def _credit(
    formula: Formula, verdict: Verdict, support: float | None, credits: Mapping[Verdict, float]
) -> float:
    return credits[verdict] if support is None or formula is Formula.CREDITS else support


def lost(
    severity: Severity,
    verdict: Verdict,
    support: float | None,
    formula: Formula,
    weights: Mapping[Severity, float],
) -> float:
    """How much of its weight a claim costs the score: 0 if it has full credit, or was not checked."""
    if verdict is Verdict.UNVERIFIED:
        return 0.0
    return weights[severity] * (1.0 - _credit(formula, verdict, support, DEFAULT_CREDITS))


class ScoreKeeper:
    """The running score: claims are added one at a time, in constant time and memory."""

    __slots__ = ("_credit", "_credits", "_formula", "_weight", "_weights", "checked")

    def __init__(
        self,
        formula: Formula = Formula.SEVERITY_WEIGHTED,
        weights: Mapping[Severity, float] = DEFAULT_WEIGHTS,
        credits: Mapping[Verdict, float] = DEFAULT_CREDITS,
    ) -> None:
        self._formula = formula
        self._weights = weights
        self._credits = credits
        self._weight = 0.0
        self._credit = 0.0
        self.checked = 0

    def add(self, severity: Severity, verdict: Verdict, support: float | None) -> None:
        """Count one claim; UNVERIFIED claims don't count."""
        if verdict is Verdict.UNVERIFIED:
            return
        weight = self._weights[severity]
        self._weight += weight
        self._credit += weight * _credit(self._formula, verdict, support, self._credits)
        self.checked += 1

    @property
    def score(self) -> float | None:
        """0..1, rounded to 6 places; None if nothing with a weight was checked."""
        if self._weight <= 0.0:
            return None
        share = round(self._credit / self._weight, 12)  # without what the order of the sum left
        return round(min(1.0, max(0.0, share)), 6)


def count_verdicts(verdicts: Iterable[Verdict]) -> VerdictCounts:
    """The number of claims with each verdict."""
    counts = dict.fromkeys(Verdict, 0)
    for verdict in verdicts:
        counts[verdict] += 1
    return VerdictCounts(**{verdict.value.lower(): n for verdict, n in counts.items()})
