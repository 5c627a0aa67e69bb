"""Calibrations of judges from labels: temperature or isotonic regression, whichever predicts better, or
none; and the bands of a cascade: how sure its first judge must be for its verdict to stand.

A label of SUPPORTED says that a claim is supported, any other that it isn't; CONTRADICTED says that it is
contradicted. A method is taken if its log loss on responses held out is less, by more than chance, than that
of the simpler one: temperature than the judge's own probabilities, isotonic regression than the better of
these. Claims of one response stay in one fold, and go together in intervals.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from guardrail.evals.records import Judged
from guardrail.evals.statistics import (
    ROUNDS,
    SEED,
    Array,
    Bin,
    Estimate,
    Rate,
    calibration_error,
    reliability,
    wilson,
)
from guardrail.evals.truths import answer_truth
from guardrail.events import Finding, Severity, Verdict
from guardrail.judges.calibrated import (
    EDGE,
    Calibration,
    Calibrations,
    Isotonic,
    JudgeCalibration,
    Temperature,
)
from guardrail.judges.cascade import DEFAULT_BANDS

Method = Literal["none", "temperature", "isotonic"]
NEEDED: Final = 50
"""The least number of labelled claims of either class from which a calibration is fitted."""
_FOLDS: Final = 5
_STEPS: Final = 60
_LOG_TEMPERATURES: Final = (math.log(0.1), math.log(10.0))
_DIGITS: Final = 6
_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_METHODS: Final[tuple[Method, ...]] = ("none", "temperature", "isotonic")
_BY_LINES: Final = "decisions:"
_LINES: Final = {"support": "supported", "contradiction": "contradicted"}
_MILDEST: Final = {"support": Verdict.PARTIALLY_SUPPORTED, "contradiction": Verdict.CONTRADICTED}
"""By probability the mildest verdict of a label that is an error: it is right that a claim is supported, and
wrong where it is contradicted."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was found for one probability of one judge. Losses are on responses held out, in nats a claim.

    ``errors`` are the expected calibration errors before and after, and ``before`` and ``after`` the shares
    behind them. ``line`` is where the verdict begins, for a judge whose verdicts follow from the calibrated
    probability. ``problem`` says why none was fitted.
    """

    judge: str
    probability: str
    claims: int
    true: int
    method: Method = "none"
    losses: tuple[tuple[Method, float], ...] = ()
    errors: tuple[float, float] = (math.nan, math.nan)
    before: tuple[Bin, ...] = ()
    after: tuple[Bin, ...] = ()
    calibration: Calibration | None = None
    line: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Claims:
    """Labelled claims of one judge: probability, truth, and the number of the response."""

    said: Array
    true: Array
    response: Array


def calibrations_of(fitted: Sequence[Fitted]) -> Calibrations:
    """The file's content: what was chosen, by judge."""
    judges: dict[str, dict[str, Any]] = defaultdict(dict)
    for each in fitted:
        if each.calibration is not None:
            judges[each.judge][each.probability] = each.calibration
        if each.line is not None:
            judges[each.judge].setdefault("lines", {})[_LINES[each.probability]] = each.line
    for own in judges.values():
        if "supported" not in own.get("lines", ()):
            own.pop("lines", None)
    found = {name: JudgeCalibration.model_validate(judges[name]) for name in sorted(judges) if judges[name]}
    return Calibrations(judges=found)


def fit_calibrations(responses: Sequence[Judged]) -> list[Fitted]:
    """For each judge and probability the calibration that predicts labels best, or why there is none."""
    return [_fit(*key, claims) for key, claims in sorted(_labelled(responses).items())]


def calibrated(judged: Judged, calibrations: Calibrations) -> Judged:
    """The response as it would be if its judges had been calibrated so."""
    claims = []
    for claim in judged.claims:
        own = calibrations.judges.get(claim.judge)
        claims.append(claim if own is None else claim.model_copy(update=own.apply(claim)._asdict()))
    return replace(judged, verdict=judged.verdict.model_copy(update={"claims": tuple(claims)}))


def calibrating(responses: Sequence[Judged]) -> Callable[[Judged], Judged]:
    """Fits calibrations on these responses, for ``tune``: what it is given are others."""
    fitted = calibrations_of(fit_calibrations(responses))
    return lambda judged: calibrated(judged, fitted)


def _labelled(responses: Sequence[Judged]) -> dict[tuple[str, str], _Claims]:
    rows: dict[tuple[str, str], list[tuple[float, bool, int]]] = defaultdict(list)
    for number, judged in enumerate(responses):
        for probability, mildest in _MILDEST.items():
            for truth in answer_truth(judged.claims, judged.labels, mildest).claims:
                claim = truth.claim
                said: float | None = getattr(claim, probability)
                # Support of what was checked in part is a bound, not what the judge thinks.
                in_part = Finding.CHECKED_IN_PART in claim.findings
                if said is not None and claim.verdict is not Verdict.UNVERIFIED and not in_part:
                    true = truth.right == (probability == "support")
                    rows[claim.judge, probability].append((said, true, number))
    return {
        key: _Claims(*(np.array(column) for column in zip(*each, strict=True))) for key, each in rows.items()
    }


def _fit(judge: str, probability: str, claims: _Claims) -> Fitted:
    true = int(claims.true.sum())
    found = Fitted(judge, probability, len(claims.true), true)
    fewer = min(true, found.claims - true)
    if fewer < NEEDED:
        what = "supported" if probability == "support" else "contradicted"
        counted = f"{true} of {found.claims} labelled claims are {what}"
        problem = f"{counted}: at least {NEEDED} of either kind are needed"
        return replace(found, problem=problem)
    member, fold = _folds(claims.response)
    held_out = {method: np.array(claims.said, dtype=float) for method in _METHODS}
    for number in range(_FOLDS):
        out, rest = fold == number, fold != number
        for method in ("temperature", "isotonic"):
            fitted = _FITS[method](claims.said[rest], claims.true[rest])
            held_out[method][out] = [fitted.apply(p) for p in claims.said[out]]
    losses = {method: _log_losses(claims.true, p) for method, p in held_out.items()}
    best: Method = "none"
    for method in _METHODS[1:]:  # the simpler one first: one with more freedom has to earn its place
        if _mean_of_groups(losses[best] - losses[method], member).low > 0:
            best = method
    calibration = None if best == "none" else _FITS[best](claims.said, claims.true)
    line = None
    if judge.startswith(_BY_LINES):
        line = best_line(claims.said, claims.true)
        line = line if calibration is None else calibration.apply(line)
    return replace(
        found,
        method=best,
        line=line,
        losses=tuple((method, float(loss.mean())) for method, loss in losses.items()),
        errors=(
            calibration_error(claims.true, held_out["none"]),
            calibration_error(claims.true, held_out[best]),
        ),
        before=tuple(reliability(claims.true, held_out["none"])),
        after=tuple(reliability(claims.true, held_out[best])),
        calibration=calibration,
        problem="" if best != "none" else "none is better than the judge's own by more than chance",
    )


def _folds(response: Array) -> tuple[Array, Array]:
    """Of each claim the number of its response, and its fold: claims of one response stay together."""
    groups, member = np.unique(response, return_inverse=True)
    return member, (np.random.default_rng(SEED).permutation(len(groups)) % _FOLDS)[member]


def fit_temperature(said: Array, true: Array) -> Temperature:
    """The temperature of least log loss, between 0.1 and 10: a golden section of its logarithm."""
    p = np.clip(np.asarray(said, dtype=float), EDGE, 1 - EDGE)
    logit = np.log(p / (1 - p))
    sign = np.where(true, -1.0, 1.0)

    def loss(log_temperature: float) -> float:
        return float(np.logaddexp(0.0, sign * logit / math.exp(log_temperature)).mean())

    low, high = _LOG_TEMPERATURES
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if loss(left) <= loss(right):
            high = right
        else:
            low = left
    return Temperature(temperature=round(math.exp((low + high) / 2), 4))


def best_line(said: Array, true: Array) -> float:
    """The probability from which on to say yes for the best balanced accuracy: half of the way from the
    highest one that gets a no. Of equally good ones the highest, which says yes least often.
    """
    levels = np.unique(np.asarray(said, dtype=float))
    edges = np.append((levels[1:] + levels[:-1]) / 2, min(1.0, levels[-1] + EDGE))
    yes = np.asarray(true, dtype=bool)
    accuracies = [(said[yes] >= edge).mean() + (said[~yes] < edge).mean() for edge in edges]
    best = int(np.flatnonzero(np.isclose(accuracies, max(accuracies)))[-1])
    return round(float(edges[best]), _DIGITS)


def fit_isotonic(said: Array, true: Array) -> Isotonic:
    """Isotonic regression by pooling neighbours; each block is a point, by mean and share.

    A share is (true + share of all) / (claims + 1), so that no claim is ever certain; where that breaks the
    order, the share before it holds.
    """
    levels, at = np.unique(np.asarray(said, dtype=float), return_inverse=True)
    totals = np.bincount(at)
    hits = np.bincount(at, np.asarray(true, dtype=float))
    blocks: list[tuple[float, float, float]] = []  # claims, true ones, and the sum of what was said
    for level, total, hit in zip(levels.tolist(), totals.tolist(), hits.tolist(), strict=True):
        block = (float(total), float(hit), level * total)
        while blocks and blocks[-1][1] * block[0] >= block[1] * blocks[-1][0]:
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1], before[2] + block[2])
        blocks.append(block)
    prior = float(np.mean(true))
    points: dict[float, float] = {}  # what rounding makes equal is one point
    highest = 0.0
    for total, hit, told in blocks:
        highest = max(highest, (hit + prior) / (total + 1))
        points[round(told / total, _DIGITS)] = round(highest, _DIGITS)
    return Isotonic(points=tuple(points.items()))


_FITS: Final[dict[str, Callable[[Array, Array], Temperature | Isotonic]]] = {
    "temperature": fit_temperature,
    "isotonic": fit_isotonic,
}


def _log_losses(true: Array, said: Array) -> Array:
    p = np.clip(said, EDGE, 1 - EDGE)
    return -np.where(true, np.log(p), np.log1p(-p))


def _mean_of_groups(values: Array, member: Array) -> Estimate:
    """The mean over claims, and its interval where whole responses are drawn again."""
    sums, sizes = np.bincount(member, values), np.bincount(member)
    random = np.random.default_rng(SEED)
    drawn = []
    for _ in range(ROUNDS):
        at = random.integers(0, len(sizes), len(sizes))
        drawn.append(sums[at].sum() / sizes[at].sum())
    return Estimate.drawn(float(values.mean()), np.array(drawn))


# ------------------------------------------------------------------------------ the cascade's bands

_CUTS: Final = tuple(round(0.5 + 0.01 * step, 2) for step in range(51))


@dataclass(frozen=True, slots=True)
class FittedBand:
    """``accept_support`` of one severity: chosen, and as the cascade has it; and what it does held out.

    ``right``: of the claims that stand as SUPPORTED, those that people call so. ``settled``: of all claims of
    that severity, those that stand. ``problem`` says why the cascade's own value is kept.
    """

    severity: Severity
    accept_support: float
    before: float
    right: Rate
    settled: Rate
    problem: str = ""


def fit_bands(responses: Sequence[Judged], right: float, *, first: str = "local") -> list[FittedBand]:
    """By severity the least ``accept_support`` with which the share ``right`` of settled claims is right.

    The share counts by the lower bound of Wilson's interval. Verdicts other than SUPPORTED keep going to the
    second judge. Judgements by other judges than ``first``, and degraded ones, are left out, since they
    are none of a cascade's first judge.
    """
    rows: dict[Severity, list[tuple[float, bool, bool, int]]] = {severity: [] for severity in Severity}
    for number, judged in enumerate(responses):
        for truth in answer_truth(judged.claims, judged.labels).claims:
            claim = truth.claim
            usable = claim.judge == first and not claim.degraded_from and claim.support is not None
            if usable and Finding.CHECKED_IN_PART not in claim.findings:
                supported = claim.verdict is Verdict.SUPPORTED
                rows[claim.severity].append((claim.support or 0.0, supported, truth.right, number))
    return [_fit_band(severity, found, right) for severity, found in rows.items()]


def _fit_band(severity: Severity, rows: Sequence[tuple[float, bool, bool, int]], right: float) -> FittedBand:
    before = DEFAULT_BANDS[severity].accept_support
    if not rows:
        return FittedBand(severity, before, before, Rate(0, 0), Rate(0, 0), "no labelled claims")
    support, supported, true, response = (np.array(column) for column in zip(*rows, strict=True))
    _, fold = _folds(response)

    def cut_on(chosen: Array) -> float | None:
        for cut in _CUTS:
            stands = chosen & supported & (support >= cut)
            total = int(stands.sum())
            if total and wilson(int((stands & true).sum()), total)[0] >= right:
                return cut
        return None

    settled = np.zeros(len(rows), dtype=bool)
    for number in range(_FOLDS):
        cut = cut_on(fold != number)
        if cut is not None:
            settled |= (fold == number) & supported & (support >= cut)
    chosen = cut_on(np.ones(len(rows), dtype=bool))
    told = chosen is not None and settled.any()
    problem = "" if told else f"{len(rows)} labelled claims don't show {right:.1%} right for any"
    return FittedBand(
        severity,
        before if chosen is None or problem else chosen,
        before,
        Rate(int((settled & true).sum()), int(settled.sum())),
        Rate(int(settled.sum()), len(rows)),
        problem,
    )
