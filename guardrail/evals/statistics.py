"""Figures of binary judgements against people's labels, and how sure they are.

``truths`` are booleans and ``scores`` floats, the higher the more support, sequences or arrays of one length;
``weights`` say what each claim counts, by default all alike. A figure that the data can't give (one class is
missing) is ``nan``, never a guess. All are in 0..1, but for kappa, which is in -1..1.

Intervals are 95 %: rates by Wilson, all else by drawing answers again. Claims of one answer go together: an
interval over claims draws whole answers, never single claims.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final, NamedTuple, overload

import numpy as np

BINS: Final = 15
ROUNDS: Final = 1000
SEED: Final = 1
"""Of everything that is drawn, so that the same answers always give the same figures."""
_FEW_LEVELS: Final = 8
_Z: Final = 1.959964
_SUPPORTED: Final = 0.5
_MANY: Final = 2000
Array = Any
"""An array of numpy."""
Figure = Callable[[Array, Array, Array], float]
"""Truths, scores and weights of claims -> the figure, or nan."""


class Bin(NamedTuple):
    """The claims of one stretch of probability: their weight, mean probability, and share that is true."""

    weight: float
    predicted: float
    observed: float


def auroc(truths: Array, scores: Array, weights: Array | None = None) -> float:
    """The probability that a true claim ranks above another, ties counting half."""
    true, weigh = _columns(truths, weights)
    rank = _ranks(scores)
    up, down = np.bincount(rank, weigh * true), np.bincount(rank, weigh * ~true)
    if not up.sum() or not down.sum():
        return math.nan
    return float((up * (np.cumsum(down) - down / 2)).sum() / (up.sum() * down.sum()))


def balanced_accuracy(truths: Array, scores: Array, weights: Array | None = None) -> float:
    """The mean of the recalls of both classes; ``scores`` above 0.5 say that the claim is true."""
    true, weigh = _columns(truths, weights)
    said = np.asarray(scores) > _SUPPORTED
    positives, negatives = weigh[true].sum(), weigh[~true].sum()
    if not positives or not negatives:
        return math.nan
    return float((weigh[true & said].sum() / positives + weigh[~true & ~said].sum() / negatives) / 2)


def average_precision(truths: Array, scores: Array, weights: Array | None = None) -> float:
    """The area under the precision-recall curve, by steps: the mean precision at the true claims, by rank."""
    true, weigh = _columns(truths, weights)
    rank = _ranks(scores)
    up, every = np.bincount(rank, weigh * true)[::-1], np.bincount(rank, weigh)[::-1]
    if not up.sum() or up.sum() == every.sum():
        return math.nan
    found, all_found = np.cumsum(up), np.cumsum(every)
    precision = np.divide(found, all_found, out=np.zeros(len(found)), where=all_found > 0)
    return float((precision * up).sum() / up.sum())


def f1(truths: Array, scores: Array, weights: Array | None = None) -> float:
    """The harmonic mean of precision and recall of the true class; ``scores`` above 0.5 say true."""
    true, weigh = _columns(truths, weights)
    said = np.asarray(scores) > _SUPPORTED
    hits, errors = weigh[true & said].sum(), weigh[true != said].sum()
    return float(2 * hits / (2 * hits + errors)) if weigh[true].sum() and weigh[~true].sum() else math.nan


def cohen_kappa(truths: Array, scores: Array, weights: Array | None = None) -> float:
    """Agreement beyond chance (Cohen 1960); ``scores`` above 0.5 say true. In -1..1."""
    true, weigh = _columns(truths, weights)
    said = np.asarray(scores) > _SUPPORTED
    total = weigh.sum()
    if not weigh[true].sum() or not weigh[~true].sum():
        return math.nan
    agreed = weigh[true == said].sum() / total
    chance = (weigh[true].sum() * weigh[said].sum() + weigh[~true].sum() * weigh[~said].sum()) / total**2
    return float((agreed - chance) / (1 - chance)) if chance < 1 else math.nan


def mcnemar(only_first: int, only_second: int) -> float:
    """The two-sided p-value of McNemar's test: of the cases that one of two runs alone has right.

    Exact; of many cases by the normal distribution with continuity correction, which then agrees.
    """
    total = only_first + only_second
    fewer = min(only_first, only_second)
    if total >= _MANY:
        apart = max(0, abs(only_first - only_second) - 1)
        return math.erfc(apart / math.sqrt(2 * total))
    tail = sum(math.comb(total, k) for k in range(fewer + 1)) / 2**total
    return float(min(1.0, 2 * tail))


def reliability(truths: Array, scores: Array, weights: Array | None = None) -> list[Bin]:
    """The claims by ``BINS`` stretches of equal width of their probability; empty ones are left out."""
    true, weigh = _columns(truths, weights)
    p = np.asarray(scores, dtype=float)
    at = np.minimum(BINS - 1, (p * BINS).astype(int))
    total, predicted, observed = (
        np.bincount(at, weigh * each, minlength=BINS) for each in (np.ones(len(p)), p, true)
    )
    return [
        Bin(float(t), float(a / t), float(b / t))
        for t, a, b in zip(total, predicted, observed, strict=True)
        if t
    ]


def calibration_error(truths: Array, scores: Array, weights: Array | None = None) -> float:
    """Expected calibration error: the mean distance of predicted and observed share over the claims."""
    found = reliability(truths, scores, weights)
    total = sum(each.weight for each in found)
    return sum(b.weight * abs(b.predicted - b.observed) for b in found) / total if total else math.nan


def _ranks(scores: Array) -> Array:
    """The place of each score in ascending order, equal ones alike; whole numbers from 0 are places already.

    Sorting is what takes long in a figure: whoever needs it of many draws sorts once, and passes the places.
    """
    found = np.asarray(scores)
    whole = np.issubdtype(found.dtype, np.integer)
    if whole and found.size and found.min() >= 0 and found.max() <= found.size:
        return found
    return np.unique(found, return_inverse=True)[1]


def _columns(truths: Array, weights: Array | None) -> tuple[Array, Array]:
    true = np.asarray(truths, dtype=bool)
    return true, np.ones(len(true)) if weights is None else np.asarray(weights, dtype=float)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure and its interval, all in 0..1, ``nan`` where the data can't give them."""

    value: float
    low: float
    high: float

    @classmethod
    def drawn(cls, value: float, draws: Array) -> Estimate:
        """``value`` with the middle 95 % of what drawing again gave."""
        low, high = np.quantile(draws, (0.025, 0.975))
        return cls(value, float(low), float(high))


@dataclass(frozen=True, slots=True)
class Rate:
    """``count`` of ``total``, with Wilson's interval of the share."""

    count: int
    total: int

    def estimate(self) -> Estimate:
        """The share with its interval."""
        share = self.count / self.total if self.total else math.nan
        return Estimate(share, *wilson(self.count, self.total))


@overload
def as_json(value: Mapping[Any, Any]) -> dict[str, Any]: ...
@overload
def as_json(value: Any) -> Any: ...
def as_json(value: Any) -> Any:
    """Figures as reports in JSON have them: dataclasses by their fields, keys as texts, null for ``nan``."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, Rate):
        return {"count": value.count, "of": value.total, **as_json(value.estimate())}
    if isinstance(value, Mapping):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if is_dataclass(value):
        return {each.name: as_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return as_json(value._asdict())
    if isinstance(value, (list, tuple)):
        return [as_json(inner) for inner in value]
    return value


def percent(figure: Rate | Estimate) -> str:
    """In percent for people, with the interval."""
    found = figure.estimate() if isinstance(figure, Rate) else figure
    if math.isnan(found.value):
        return "–"
    return f"{100 * found.value:.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def mean_estimate(values: Sequence[float]) -> Estimate:
    """The mean of values of any scale, such as scores, or differences of two runs in the same answers.

    The interval comes from drawing answers again; of many, where that takes long and agrees, from the
    standard error.
    """
    found = np.asarray(values, dtype=float)
    count = len(found)
    if not count:
        return Estimate(math.nan, math.nan, math.nan)
    value = float(found.mean())
    if count >= _MANY:
        spread = _Z * float(found.std(ddof=1)) / math.sqrt(count)
        return Estimate(value, value - spread, value + spread)
    drawn = found[np.random.default_rng(SEED).integers(0, count, (ROUNDS, count))].mean(axis=1)
    return Estimate.drawn(value, drawn)


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


def _cells(truths: Array, scores: Array, member: Array, groups: int) -> tuple[Array, Array, Array] | None:
    """Claims alike in truth and score as one, counted by group: draws are fast then. None of many scores."""
    levels, level = np.unique(scores, return_inverse=True)
    if len(levels) > _FEW_LEVELS:
        return None
    cells = 2 * len(levels)
    counts = np.bincount(member * cells + 2 * level + truths, minlength=groups * cells)
    return np.tile([False, True], len(levels)), np.repeat(levels, 2), counts.reshape(groups, cells)


def bootstrap(
    groups: Sequence[Sequence[tuple[bool, float]]],
    figure: Figure,
    *,
    rounds: int = ROUNDS,
    by_rank: bool = False,
) -> Estimate:
    """``figure`` over the claims of all groups, and the middle 95 % of it where groups are drawn again.

    A group holds truth and score of the claims of one answer. Draws in which one class is missing are left
    out. ``by_rank``: the figure depends on the order of scores alone, and gets their places instead.
    """
    truths = np.array([truth for group in groups for truth, _ in group], dtype=bool)
    scores = np.array([score for group in groups for _, score in group], dtype=float)
    if by_rank:
        scores = _ranks(scores)
    member = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    value = figure(truths, scores, np.ones(len(truths)))
    if math.isnan(value):
        return Estimate(math.nan, math.nan, math.nan)
    cells = _cells(truths, scores, member, len(groups))
    if cells is not None:
        truths, scores, counts = cells
    random = np.random.default_rng(SEED)
    drawn = []
    for _ in range(rounds):
        times = np.bincount(random.integers(0, len(groups), len(groups)), minlength=len(groups))
        found = figure(truths, scores, times[member] if cells is None else times @ counts)
        if not math.isnan(found):
            drawn.append(found)
    if not drawn:
        return Estimate(value, math.nan, math.nan)
    return Estimate.drawn(value, drawn)


# --------------------------------------------------------------- curves by which a threshold is chosen

COLUMNS: Final = 20
"""Of a histogram of scores, of equal width from 0 to 1."""
_CUTS: Final = 101
_MOST_POINTS: Final = 400


class Point(NamedTuple):
    """A place on a chart."""

    x: float
    y: float


Line = tuple[Point, ...]
"""A curve, from left to right."""


def binned(scores: Array) -> tuple[int, ...]:
    """How many of the scores, 0 to 1, lie in each of ``COLUMNS`` columns; ``nan`` is in none."""
    return tuple(int(n) for n in np.histogram(scores[~np.isnan(scores)], bins=COLUMNS, range=(0.0, 1.0))[0])


def precision_recall(wrong: Array, scores: Array) -> Line:
    """Recall and precision of the wrong answers, as the threshold on the score rises.

    ``wrong`` is true for answers that are wrong; lower scores are more suspicious, and none (``nan``) is the
    least. Answers with one score come together. Empty without a wrong answer.
    """
    if not wrong.any():
        return ()
    risk = np.where(np.isnan(scores), -1.0, 1.0 - scores)
    order = np.argsort(-risk, kind="stable")
    last = np.append(risk[order][1:] != risk[order][:-1], True)
    hits, caught = np.cumsum(wrong[order])[last], (np.arange(len(order)) + 1)[last]
    # At most so many points as a chart can show, the first and the last among them.
    shown = np.unique(np.linspace(0, len(hits) - 1, min(len(hits), _MOST_POINTS)).astype(int))
    recall, precision = hits / wrong.sum(), hits / caught
    return tuple(Point(float(recall[at]), float(precision[at])) for at in shown)


def costs_by_threshold(wrong: Array, scores: Array, miss: float) -> Line:
    """The mean cost of an answer if all below a threshold are acted on: ``miss`` of a miss, 1 in vain."""
    if not len(wrong):
        return ()
    cuts = np.linspace(0.0, 1.0, _CUTS)
    value = np.where(np.isnan(scores), np.inf, scores)
    acts = value[None, :] < cuts[:, None]
    costs = miss * (~acts & wrong).sum(axis=1) + (acts & ~wrong).sum(axis=1)
    return tuple(Point(float(x), float(y)) for x, y in zip(cuts, costs / len(wrong), strict=True))
