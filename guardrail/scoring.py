"""Verdicts -> score.

``score = sum(weight(severity) * credit(verdict)) / sum(weight(severity))`` over the checked claims, those
with any verdict but UNVERIFIED; None when there is none. With all weights 1 and partial credit 0 it is the
share of supported claims, as Ragas, Haystack and Mastra define faithfulness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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


class ScoreKeeper:
    """The running score: claims are added one at a time, in constant time and memory."""

    __slots__ = ("_credit", "_credits", "_weight", "_weights", "checked")

    def __init__(
        self,
        weights: Mapping[Severity, float] = DEFAULT_WEIGHTS,
        credits: Mapping[Verdict, float] = DEFAULT_CREDITS,
    ) -> None:
        self._weights = weights
        self._credits = credits
        self._weight = 0.0
        self._credit = 0.0
        self.checked = 0

    def add(self, severity: Severity, verdict: Verdict) -> None:
        """Count one claim; UNVERIFIED ones are not checked and count for nothing."""
        if verdict is Verdict.UNVERIFIED:
            return
        weight = self._weights[severity]
        self._weight += weight
        self._credit += weight * self._credits[verdict]
        self.checked += 1

    @property
    def score(self) -> float | None:
        """0..1, rounded to 6 places; None when nothing with a weight was checked."""
        if self._weight <= 0.0:
            return None
        return round(min(1.0, max(0.0, self._credit / self._weight)), 6)


def faithfulness(
    claims: Iterable[tuple[Severity, Verdict]],
    weights: Mapping[Severity, float] = DEFAULT_WEIGHTS,
    credits: Mapping[Verdict, float] = DEFAULT_CREDITS,
) -> float | None:
    """The score of a finished list of claims."""
    keeper = ScoreKeeper(weights, credits)
    for severity, verdict in claims:
        keeper.add(severity, verdict)
    return keeper.score


def count_verdicts(verdicts: Iterable[Verdict]) -> VerdictCounts:
    """How many claims got which verdict."""
    counts = dict.fromkeys(Verdict, 0)
    for verdict in verdicts:
        counts[verdict] += 1
    return VerdictCounts(**{verdict.value.lower(): n for verdict, n in counts.items()})
