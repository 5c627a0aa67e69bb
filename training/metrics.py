"""Figures of a binary judge: ranking, verdicts, and how far its probabilities can be taken at their word.

``truths`` are booleans and ``scores`` floats, the higher the more support, sequences or arrays of one length;
``weights`` say what each claim counts, by default all alike. A figure that the data can't give (one class is
missing) is ``nan``, never a guess. All are in 0..1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

BINS: Final = 15
_SUPPORTED: Final = 0.5
_Array = Any
Figure = Callable[[_Array, _Array, _Array], float]
"""Truths, scores and weights of claims -> the figure, or nan."""


class Bin(NamedTuple):
    """The claims whose probability lies in one stretch: what they weigh, their mean probability, and the
    share of them that is true."""

    weight: float
    predicted: float
    observed: float


def auroc(truths: _Array, scores: _Array, weights: _Array | None = None) -> float:
    """The probability that a true claim ranks above another, ties counting half."""
    true, weigh = _columns(truths, weights)
    _, rank = np.unique(np.asarray(scores), return_inverse=True)
    up, down = np.bincount(rank, weigh * true), np.bincount(rank, weigh * ~true)
    if not up.sum() or not down.sum():
        return math.nan
    return float((up * (np.cumsum(down) - down / 2)).sum() / (up.sum() * down.sum()))


def balanced_accuracy(truths: _Array, scores: _Array, weights: _Array | None = None) -> float:
    """The mean of the recalls of both classes; ``scores`` above 0.5 say that the claim is true."""
    true, weigh = _columns(truths, weights)
    said = np.asarray(scores) > _SUPPORTED
    positives, negatives = weigh[true].sum(), weigh[~true].sum()
    if not positives or not negatives:
        return math.nan
    return float((weigh[true & said].sum() / positives + weigh[~true & ~said].sum() / negatives) / 2)


def reliability(truths: _Array, scores: _Array, weights: _Array | None = None) -> list[Bin]:
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


def calibration_error(truths: _Array, scores: _Array, weights: _Array | None = None) -> float:
    """Expected calibration error: the mean distance of predicted and observed share over the claims."""
    found = reliability(truths, scores, weights)
    total = sum(each.weight for each in found)
    return sum(b.weight * abs(b.predicted - b.observed) for b in found) / total if total else math.nan


def _columns(truths: _Array, weights: _Array | None) -> tuple[_Array, _Array]:
    true = np.asarray(truths, dtype=bool)
    return true, np.ones(len(true)) if weights is None else np.asarray(weights, dtype=float)


def mean(values: Sequence[float]) -> float:
    """The mean of those that are figures; ``nan`` where none is."""
    found = [value for value in values if not math.isnan(value)]
    return sum(found) / len(found) if found else math.nan


def without_nan(value: Any) -> Any:
    """The same with None for ``nan``: JSON has no such number."""
    if isinstance(value, Mapping):
        return {key: without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
