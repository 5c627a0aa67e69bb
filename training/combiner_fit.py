"""Features -> the local judge's combiner, its calibration and the lines between verdicts.

A multinomial logistic over four verdicts. Of rows whose label does not tell which of the three unsupported
ones it is, the three count together. Each data set counts by what it resembles (``weight_of``), both its
classes alike, and of all together supported claims count ``SUPPORTED_SHARE``: probabilities are for such
odds. How sure the probabilities are, and the lines, come
from rows of data sets whose family the combiner was kept from: the judge meets texts that are of none of the
sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from guardrail.judges.local.combiner import FEATURES, WORDS, Combiner, Fit, Lines
from training.examples import DataError
from training.rows import SUPPORTED_SHARE

WEIGHTS: Final[dict[str, float]] = {
    "summedits": 5.0,
    "wice": 5.0,
    "begin": 5.0,
    "attribution-bench": 5.0,
    "factcg": 3.0,
    "written": 0.2,  # the verifier knows their writers: nothing says that users word things as they do
    "synthetic-absent": 1.5,
    "synthetic-name": 0.6,
    "synthetic": 0.3,
    "help": 0.3,
    "breaking-nli": 0.3,
}
"""By how a data set's name begins, the first that fits; others 1. Sets that look like answers count more,
made-up ones less."""
_MADE: Final = ("-changed", "-stranger")
_WHOLE_WEIGHT_FROM: Final = 40  # rows; smaller sets count less, so that no row counts much more than others
_RIDGE: Final = 1e-2
_PARTLY_BELOW: Final = 0.015
_MOST_WRONGLY_CONTRADICTED: Final = 0.002  # of supported claims: the aim for real answers
_LEAST_CONTRADICTED: Final = 0.5
_CLASSES: Final = ("supported", "partially_supported", "unsupported", "contradicted")


@dataclass(frozen=True, slots=True)
class Features:
    """``x [rows, FEATURES]`` (those of the verifier ``nan`` where it could not read), labels and sets."""

    x: Any
    labels: list[str]
    sets: list[str]

    @property
    def supported(self) -> Any:
        """Whether each row is wholly supported."""
        return np.array([label in ("supported", "Complete") for label in self.labels])

    def of(self, chosen: Any) -> Features:
        """Some of the rows."""
        numbers = np.flatnonzero(chosen).tolist()
        return Features(self.x[numbers], [self.labels[n] for n in numbers], [self.sets[n] for n in numbers])

    def save(self, path: Path) -> None:
        """Write them."""
        np.savez_compressed(path, x=self.x, labels=self.labels, sets=self.sets, names=list(FEATURES))

    def __add__(self, other: Features) -> Features:
        """The rows of both."""
        return Features(np.vstack([self.x, other.x]), self.labels + other.labels, self.sets + other.sets)

    @classmethod
    def load(cls, path: Path) -> Features:
        """Read what ``save`` wrote. Raises DataError where the features are others."""
        with np.load(path) as raw:
            if tuple(raw["names"].tolist()) != FEATURES:
                raise DataError(f"{path}: other features than this release's; remove the file")
            return cls(raw["x"], raw["labels"].tolist(), raw["sets"].tolist())


def weight_of(dataset: str) -> float:
    """What all rows of a data set count together, relative to the others."""
    if dataset.endswith(_MADE):
        return WEIGHTS["synthetic"]
    return next((weight for name, weight in WEIGHTS.items() if dataset.startswith(name)), 1.0)


def weights_of(sets: Sequence[str], supported: Any) -> Any:
    """Each data set counts as ``weight_of`` says, both its classes alike; then supported claims count
    ``SUPPORTED_SHARE`` of all; the mean is 1."""
    count: Counter[tuple[str, bool]] = Counter(zip(sets, supported.tolist(), strict=True))
    rows = Counter(sets)
    raw = np.array(
        [
            weight_of(s) * min(1.0, rows[s] / _WHOLE_WEIGHT_FROM) / count[s, bool(true)]
            for s, true in zip(sets, supported, strict=True)
        ]
    )
    for true, share in ((True, SUPPORTED_SHARE), (False, 1.0 - SUPPORTED_SHARE)):
        raw[supported == true] *= share / raw[supported == true].sum()
    return raw / raw.mean()


def family(dataset: str) -> str:
    """Data sets of one origin have one."""
    return dataset.split("-")[0]


def fit(features: Features, names: Sequence[str], *, sure: float, hopeless: float) -> Fit:
    """The combiner over some of the features. Raises DataError where the rows don't suffice."""
    columns = [FEATURES.index(name) for name in names]
    x = features.x[:, columns]
    if len(set(features.supported.tolist())) < 2:
        raise DataError("too few rows to fit on: supported and other claims are needed")
    weights = weights_of(features.sets, features.supported)
    allowed = np.array([_allowed(label) for label in features.labels])
    families = np.array([family(s) for s in features.sets])
    strange = np.full((len(x), len(_CLASSES)), np.nan)  # logits by combiners that never saw the family
    for each in sorted(set(families.tolist())):
        mine = families == each
        if not mine.all() and len(set(features.supported[~mine].tolist())) == 2:
            strange[mine] = _logits(x[mine], _fitted(x[~mine], allowed[~mine], weights[~mine]))
    known = ~np.isnan(strange[:, 0])
    raw = _fitted(x, allowed, weights)
    if not known.any():
        strange, known = _logits(x, raw), np.ones(len(x), bool)
    scale = _scale(strange[known], allowed[known], weights[known])
    biases, matrix = raw
    told = _softmax(scale * strange[known])
    return Fit(
        combiner=Combiner(
            biases=_four(scale * biases),
            weights={name: _four(scale * row) for name, row in zip(names, matrix, strict=True)},
        ),
        lines=_lines(told, features.of(known), weights[known], sure, hopeless),
    )


def _four(values: Any) -> tuple[float, float, float, float]:
    first, second, third, fourth = (round(float(value), 4) for value in values)
    return first, second, third, fourth


def _allowed(label: str) -> list[bool]:
    if label in _CLASSES:
        return [name == label for name in _CLASSES]
    return [False, True, True, True]


def _fitted(x: Any, allowed: Any, weights: Any) -> tuple[Any, Any]:
    """``(biases [4], weights [features, 4])`` of the greatest likelihood, a little ridge on what is
    standardised."""
    middle, spread = x.mean(axis=0), x.std(axis=0) + 1e-6
    z = (x - middle) / spread
    share = weights / weights.sum()
    width = z.shape[1]

    def loss(flat: Any) -> tuple[float, Any]:
        matrix = flat.reshape(width + 1, len(_CLASSES))
        p = _softmax(matrix[0] + z @ matrix[1:])
        right = (p * allowed).sum(axis=1).clip(min=1e-12)
        wanted = p * allowed / right[:, None]
        slope = share[:, None] * (p - wanted)
        gradient = np.vstack([slope.sum(axis=0), z.T @ slope])
        gradient[1:] += 2 * _RIDGE * matrix[1:]
        return float(-(share * np.log(right)).sum() + _RIDGE * (matrix[1:] ** 2).sum()), gradient.ravel()

    found = minimize(
        loss, np.zeros((width + 1) * len(_CLASSES)), jac=True, method="L-BFGS-B", options={"maxiter": 500}
    )
    matrix = found.x.reshape(width + 1, len(_CLASSES))
    weights_ = matrix[1:] / spread[:, None]
    return matrix[0] - middle @ weights_, weights_


def _logits(x: Any, raw: tuple[Any, Any]) -> Any:
    return raw[0] + x @ raw[1]


def _softmax(logits: Any) -> Any:
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return grown / grown.sum(axis=1, keepdims=True)


def _scale(logits: Any, allowed: Any, weights: Any) -> float:
    """How much surer or less sure the logits should be."""

    def loss(scale: float) -> float:
        right = (_softmax(scale * logits) * allowed).sum(axis=1).clip(min=1e-12)
        return float(-np.average(np.log(right), weights=weights))

    return float(minimize_scalar(loss, bounds=(0.05, 3.0), method="bounded").x)


def _lines(told: Any, features: Features, weights: Any, sure: float, hopeless: float) -> Lines:
    """SUPPORTED from one half on. UNSUPPORTED is what three in two hundred of the supported claims do not
    reach: it is said of what is known, and what lies between is PARTIALLY_SUPPORTED. CONTRADICTED is what no
    more than two thousandths of the supported claims reach."""
    supported = features.supported
    low = _quantile(told[supported, 0], weights[supported], _PARTLY_BELOW)
    high = _quantile(told[supported, 3], weights[supported], 1.0 - _MOST_WRONGLY_CONTRADICTED)
    return Lines(
        supported=0.5,
        partially=round(min(0.5, low), 3),
        contradicted=round(min(1.0, max(_LEAST_CONTRADICTED, high)), 3),
        sure=sure,
        hopeless=hopeless,
    )


def _quantile(values: Any, weights: Any, share: float) -> float:
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(len(order) - 1, int(np.searchsorted(cumulated, share)))])


def fits(features: Features, *, sure: float, hopeless: float) -> tuple[Fit, Fit]:
    """``(read, words)``: with the verifier, and by words and figures alone."""
    read = features.of(~np.isnan(features.x).any(axis=1))
    return (
        fit(read, FEATURES, sure=sure, hopeless=hopeless),
        fit(features, WORDS, sure=1.0, hopeless=0.0),
    )
