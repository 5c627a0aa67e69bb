"""Figures of a binary judge: ranking, verdicts, and how far its probabilities can be taken at their word.

Truths are booleans, scores and probabilities are floats, the higher the more support; all figures are in
0..1. A figure that the data can't give (one class is missing) is ``nan``, never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

BINS: Final = 15


@dataclass(frozen=True, slots=True)
class Bin:
    """The claims whose probability lies in one stretch: mean probability and share that is true."""

    count: int
    weight: float
    predicted: float
    observed: float


def auroc(truths: Sequence[bool], scores: Sequence[float]) -> float:
    """The probability that a random positive ranks above a random negative, ties counting half."""
    order = sorted(range(len(scores)), key=scores.__getitem__)
    positives = sum(truths)
    negatives = len(truths) - positives
    if not positives or not negatives:
        return math.nan
    won = 0.0
    below = first = 0
    while first < len(order):
        last = first
        while last < len(order) and scores[order[last]] == scores[order[first]]:
            last += 1
        up = sum(truths[i] for i in order[first:last])
        down = last - first - up
        won += up * (below + down / 2)
        below += down
        first = last
    return won / (positives * negatives)


def balanced_accuracy(truths: Sequence[bool], answers: Sequence[bool]) -> float:
    """The mean of the recalls of both classes."""
    positives = sum(truths)
    negatives = len(truths) - positives
    if not positives or not negatives:
        return math.nan
    hit = sum(t and a for t, a in zip(truths, answers, strict=True))
    spared = sum(not t and not a for t, a in zip(truths, answers, strict=True))
    return (hit / positives + spared / negatives) / 2


def f1(truths: Sequence[bool], answers: Sequence[bool]) -> float:
    """The harmonic mean of precision and recall of the positive class."""
    both = sum(t and a for t, a in zip(truths, answers, strict=True))
    said = sum(truths) + sum(answers)
    return 2 * both / said if said else math.nan


def precision_at_recall(truths: Sequence[bool], scores: Sequence[float], recall: float = 0.8) -> float:
    """The precision at the highest threshold that finds at least ``recall`` of the positives.

    Scores that tie are all taken or all left.
    """
    positives = sum(truths)
    if not positives or positives == len(truths):
        return math.nan
    wanted = math.ceil(recall * positives - 1e-9)
    threshold = sorted((s for s, t in zip(scores, truths, strict=True) if t), reverse=True)[wanted - 1]
    taken = [t for s, t in zip(scores, truths, strict=True) if s >= threshold]
    return sum(taken) / len(taken)


def reliability(
    truths: Sequence[bool],
    probabilities: Sequence[float],
    bins: int = BINS,
    *,
    weights: Sequence[float] | None = None,
) -> list[Bin]:
    """The claims by stretches of equal width of their probability; empty ones are left out.

    ``weights``: what each claim counts, by default all alike.
    """
    weigh = [1.0] * len(truths) if weights is None else weights
    held: list[list[int]] = [[] for _ in range(bins)]
    for i, p in enumerate(probabilities):
        held[min(bins - 1, int(p * bins))].append(i)
    found = []
    for members in held:
        total = sum(weigh[i] for i in members)
        if total > 0.0:
            predicted = sum(weigh[i] * probabilities[i] for i in members) / total
            observed = sum(weigh[i] for i in members if truths[i]) / total
            found.append(Bin(len(members), total, predicted, observed))
    return found


def calibration_error(
    truths: Sequence[bool],
    probabilities: Sequence[float],
    bins: int = BINS,
    *,
    weights: Sequence[float] | None = None,
) -> float:
    """Expected calibration error: the mean distance of predicted and observed share over the claims."""
    found = reliability(truths, probabilities, bins, weights=weights)
    total = sum(b.weight for b in found)
    return sum(b.weight * abs(b.predicted - b.observed) for b in found) / total if total else math.nan


def best_threshold(truths: Sequence[bool], scores: Sequence[float]) -> float:
    """The threshold with the highest balanced accuracy of ``score >= threshold``; the lowest of several.

    Raises ValueError where one class is missing.
    """
    positives = sum(truths)
    negatives = len(truths) - positives
    if not positives or not negatives:
        raise ValueError("a threshold needs claims of both classes")
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    best, at = -1.0, math.nan
    hit = false = 0
    for position, i in enumerate(order):
        hit += truths[i]
        false += not truths[i]
        if position + 1 < len(order) and scores[order[position + 1]] == scores[i]:
            continue
        value = hit / positives - false / negatives
        if value >= best:
            best, at = value, scores[i]
    return at


def mean(values: Sequence[float]) -> float:
    """The mean of those that are figures; ``nan`` where none is."""
    found = [value for value in values if not math.isnan(value)]
    return sum(found) / len(found) if found else math.nan


def contradictions(truths: Sequence[bool], contradicted: Sequence[bool]) -> dict[str, float]:
    """How far contradictions can be trusted: their count, how many and which share of them fall on claims
    that are supported, and the share of the supported claims that they fall on."""
    wrong = sum(truth and said for truth, said in zip(truths, contradicted, strict=True))
    said, supported = sum(contradicted), sum(truths)
    return {
        "contradicted": said,
        "supported": supported,
        "wrong": wrong,
        "wrong_of_contradicted": wrong / said if said else math.nan,
        "wrong_of_supported": wrong / supported if supported else math.nan,
    }


def without_nan(value: Any) -> Any:
    """The same with None for ``nan``: JSON has no such number."""
    if isinstance(value, Mapping):
        return {key: without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and math.isnan(value) else value
