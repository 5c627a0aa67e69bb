"""The cascade's bands from labels: how sure the first judge must be for its verdict to stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from guardrail.evals.labelled import Judged
from guardrail.evals.statistics import Array, Rate, wilson
from guardrail.evals.truths import answer_truth
from guardrail.events import Finding, Severity, Verdict
from guardrail.judges.cascade import DEFAULT_BANDS

_FOLDS: Final = 5
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


def fit_bands(
    responses: Sequence[Judged], right: float, *, first: str = "local", seed: int = 1
) -> list[FittedBand]:
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
    return [_fit(severity, found, right, seed) for severity, found in rows.items()]


def _fit(
    severity: Severity, rows: Sequence[tuple[float, bool, bool, int]], right: float, seed: int
) -> FittedBand:
    before = DEFAULT_BANDS[severity].accept_support
    if not rows:
        return FittedBand(severity, before, before, Rate(0, 0), Rate(0, 0), "no labelled claims")
    support, supported, true, response = (np.array(column) for column in zip(*rows, strict=True))
    groups, member = np.unique(response, return_inverse=True)
    fold = (np.random.default_rng(seed).permutation(len(groups)) % _FOLDS)[member]

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
