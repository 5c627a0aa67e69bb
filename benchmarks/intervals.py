"""95 % intervals of what is measured on few answers: rates by Wilson, rankings by drawing answers again.

Claims of one answer go together: an interval over claims draws whole answers, never single claims.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from training.metrics import Figure

ROUNDS: Final = 1000
_Z: Final = 1.959964


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its interval, all in 0..1, ``nan`` where the data can't give them."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Rate:
    """``count`` of ``total``, with Wilson's interval of the share."""

    count: int
    total: int

    def told(self) -> dict[str, float]:
        """As reports in JSON have it."""
        share = self.count / self.total if self.total else math.nan
        return {
            "count": self.count,
            "of": self.total,
            **asdict(Estimate(share, *wilson(self.count, self.total))),
        }


def percent(told: Mapping[str, float]) -> str:
    """An estimate or a rate, as reports in JSON have it, in percent for people."""
    if math.isnan(told["value"]):
        return "–"
    return f"{100 * told['value']:.1f} [{100 * told['low']:.1f}, {100 * told['high']:.1f}]"


def wilson(count: int, total: int) -> tuple[float, float]:
    """The bounds of the share ``count / total``; nan of nothing."""
    if not 0 <= count <= total:
        raise ValueError(f"hits {count} of {total}: hits must be from 0 to the number of trials")
    if not total:
        return math.nan, math.nan
    share = count / total
    spread = _Z * math.sqrt(share * (1 - share) / total + (_Z / (2 * total)) ** 2)
    middle, scale = share + _Z**2 / (2 * total), 1 + _Z**2 / total
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def bootstrap(
    groups: Sequence[Sequence[tuple[bool, float]]], figure: Figure, *, rounds: int = ROUNDS, seed: int = 1
) -> Estimate:
    """``figure`` over the claims of all groups, and the middle 95 % of it where groups are drawn again.

    A group holds truth and score of the claims of one answer. Draws in which one class is missing are left
    out.
    """
    truths = np.array([truth for group in groups for truth, _ in group], dtype=bool)
    scores = np.array([score for group in groups for _, score in group], dtype=float)
    member = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    value = figure(truths, scores, np.ones(len(truths)))
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan)
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(rounds):
        times = np.bincount(random.integers(0, len(groups), len(groups)), minlength=len(groups))
        found = figure(truths, scores, times[member])
        if not math.isnan(found):
            drawn.append(found)
    if not drawn:
        return Estimate(value, math.nan, math.nan)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Estimate(value, float(low), float(high))
