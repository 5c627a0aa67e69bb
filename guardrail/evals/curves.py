"""Curves by which a threshold is chosen: scores by what people say, precision and recall, and costs.

Numbers only; ``charts`` draws them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from guardrail.evals.aims import FAITHFUL, LEAST_RANK, WRONG, Aim, By
from guardrail.evals.deciding import Deciding
from guardrail.evals.statistics import Array

if TYPE_CHECKING:
    from guardrail.evals.labelled import Judged
    from guardrail.evals.tuning import Tuned
    from guardrail.policy import Policy

BINS: Final = 20
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
    """How many of the scores, 0 to 1, lie in each of ``BINS`` columns; ``nan`` is in none."""
    return tuple(int(n) for n in np.histogram(scores[~np.isnan(scores)], bins=BINS, range=(0.0, 1.0))[0])


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
    return _thinned(hits / wrong.sum(), hits / caught)


def costs_by_threshold(wrong: Array, scores: Array, miss: float, false_alarm: float = 1.0) -> Line:
    """What an answer costs in the mean if all with a score below a threshold are acted on, by threshold.

    ``miss`` is the cost of a wrong answer that isn't, ``false_alarm`` that of a right one that is.
    """
    if not len(wrong):
        return ()
    cuts = np.linspace(0.0, 1.0, _CUTS)
    value = np.where(np.isnan(scores), np.inf, scores)
    acts = value[None, :] < cuts[:, None]
    costs = miss * (~acts & wrong).sum(axis=1) + false_alarm * (acts & ~wrong).sum(axis=1)
    return tuple(Point(float(x), float(y)) for x, y in zip(cuts, costs / len(wrong), strict=True))


@dataclass(frozen=True, slots=True)
class TuningCurves:
    """What tuning chose among. ``threshold`` names the setting on the score that the aim acts by."""

    threshold: str
    now: float
    tuned: float
    scores: dict[str, tuple[int, ...]]
    """Columns of the histogram by what people say: ``faithful``, ``with any error``."""
    precision_recall: Line
    """By the score alone."""
    operating: dict[str, Point]
    """Recall and precision of the policies as a whole, rules included: ``now``, and ``tuned, held out``."""
    costs: Line
    """Over the threshold, all else as tuned."""


def tuning_curves(tuned: Tuned, responses: Sequence[Judged]) -> TuningCurves:
    """The curves of what ``tune`` found.

    ``responses`` are those that the tuned policy is for, calibrated where it is to be.
    """
    from guardrail.evals.tuning import classes_of

    aim = tuned.aim
    classes = classes_of(responses, aim)
    deciding = Deciding([each.verdict for each in responses], tuned.policy)
    scores = deciding.scores(tuned.policy.weights)[0]
    known = (classes == WRONG) | (classes == FAITHFUL)
    operating = {}
    for counts, name in ((tuned.baseline_counts, "now"), (tuned.held_out, "tuned, held out")):
        caught, false = counts.caught(aim.by), counts.false_alarms(aim.by)
        if caught + false and counts.wrong:
            operating[name] = Point(caught / counts.wrong, caught / (caught + false))
    return TuningCurves(
        threshold=threshold_name(aim.by),
        now=threshold_of(tuned.baseline, aim.by),
        tuned=threshold_of(tuned.policy, aim.by),
        scores={
            "faithful": binned(scores[classes == FAITHFUL]),
            f"with {aim.error}": binned(scores[classes == WRONG]),
        },
        precision_recall=precision_recall(classes[known] == WRONG, scores[known]),
        operating=operating,
        costs=_costs(deciding, classes, aim, tuned.policy),
    )


def threshold_name(by: By) -> str:
    """The setting on the score that acts so."""
    return "flag_below" if by == "flag" else "block_below"


def threshold_of(policy: Policy, by: By) -> float:
    """Its value in a policy."""
    return policy.flag_below if by == "flag" else policy.block_below


def _costs(deciding: Deciding, classes: Array, aim: Aim, policy: Policy) -> Line:
    bounds, found = deciding.bounds(), []
    wrong, faithful = classes == WRONG, classes == FAITHFUL
    total = max(1, int(wrong.sum() + faithful.sum()))
    flags = aim.by == "flag"
    for cut in np.linspace(policy.block_below if flags else 0.0, 1.0, _CUTS):
        flag, block = (cut, policy.block_below) if flags else (max(cut, policy.flag_below), cut)
        acts = deciding.ranks(bounds, flag, block, policy.weights) >= LEAST_RANK[aim.by]
        missed, false = int((wrong & ~acts).sum()), int((faithful & acts).sum())
        cost = (aim.cost_miss or 1.0) * missed + (aim.cost_false or 1.0) * false
        found.append(Point(float(cut), cost / total))
    return tuple(found)


def _thinned(x: Array, y: Array) -> Line:
    """At most so many points as a chart can show, the first and the last among them."""
    at = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST_POINTS)).astype(int))
    return tuple(Point(float(x[each]), float(y[each])) for each in at)
