"""One claim under every judge, and what many such claims come to."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression

from guardrail.claims.severity import BuiltinSeverityRater
from guardrail.events import SegmentKind, Verdict
from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import words
from training.combiner_fit import weights_of
from training.examining import MODEL, Examiner
from training.metrics import (
    auroc,
    balanced_accuracy,
    best_threshold,
    calibration_error,
    f1,
    mean,
    precision_at_recall,
)
from training.rows import Row

OVERLAP: Final = "word overlap"
RULES: Final = "rules alone"
UNTRAINED: Final = "untrained model"
ALONE: Final = "verifier alone"
WHOLE: Final = "local judge"
RECALL: Final = 0.8


@dataclass(frozen=True, slots=True)
class Answer:
    """What one judge says: a probability of support, whether that is its verdict, and what it took."""

    probability: float
    supported: bool
    contradicted: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Scored:
    """One claim: what is true, how grave it is, and what each judge answers."""

    supported: bool
    severity: str
    answers: Mapping[str, Answer]


@dataclass(frozen=True, slots=True)
class Scale:
    """A score made a probability on held-out rows, and the threshold of the score that was best there."""

    weights: tuple[float, ...]
    bias: float
    threshold: float

    def __call__(self, features: Sequence[float]) -> float:
        """The probability, 0..1."""
        z = self.bias + sum(w * x for w, x in zip(self.weights, features, strict=True))
        return float(1.0 / (1.0 + np.exp(-z)))


def overlap(row: Row) -> float:
    """The share of the claim's distinct words (but stop words) in the passage that holds most of them."""
    terms = {term for _, term, _ in words(row.claim)}
    terms = terms - STOP_TERMS or terms
    layout = row.index().layout
    passages = zip(layout.passages.first, layout.passages.last, strict=True)
    held = (len(terms & set(layout.terms[first:last])) for first, last in passages)
    return max(held, default=0) / max(1, len(terms))


class Judges:
    """The judges that are compared: word overlap, the rules, and as far as given an untrained verifier,
    the verifier alone, and the whole local judge."""

    def __init__(
        self, rules: Examiner, whole: Examiner | None, untrained: Examiner | None, held_out: Sequence[Row]
    ) -> None:
        """``held_out`` are the rows that the scales of those without verdicts of their own come from."""
        self._rules, self._whole, self._untrained = rules, whole, untrained
        self._scales = {OVERLAP: _scale([[overlap(row)] for row in held_out], held_out)}
        for name, examiner in ((ALONE, whole), (UNTRAINED, untrained)):
            if examiner is not None:
                found = [(_model(examiner.features(row)), row) for row in held_out]
                read = [(features, row) for features, row in found if features is not None]
                self._scales[name] = _scale([features for features, _ in read], [row for _, row in read])
        self._rater = BuiltinSeverityRater()

    @property
    def names(self) -> list[str]:
        """Of those that answer, the plainest first."""
        given = {RULES, OVERLAP, *self._scales} | ({WHOLE} if self._whole else set())
        return [name for name in (OVERLAP, RULES, UNTRAINED, ALONE, WHOLE) if name in given]

    def scored(self, row: Row) -> Scored:
        """The row under all of them."""
        evidence = row.index()
        answers = {}
        begun = time.perf_counter()
        answers[OVERLAP] = self._scaled(OVERLAP, [overlap(row)], begun)
        for name, examiner in ((RULES, self._rules), (WHOLE, self._whole)):
            if examiner is not None:
                begun = time.perf_counter()
                judgement = examiner.judge(row, evidence)
                answers[name] = Answer(
                    judgement.support or 0.0,
                    judgement.verdict is Verdict.SUPPORTED,
                    judgement.verdict is Verdict.CONTRADICTED,
                    time.perf_counter() - begun,
                )
        if self._whole is not None:
            answers[ALONE] = self._scaled(ALONE, _model(self._whole.latest_features()), begun)
        if self._untrained is not None:
            begun = time.perf_counter()
            answers[UNTRAINED] = self._scaled(UNTRAINED, _model(self._untrained.features(row)), begun)
        severity, _ = self._rater.rate(row.claim, SegmentKind.SENTENCE)
        return Scored(row.supported, severity.value, answers)

    def _scaled(self, name: str, features: list[float] | None, begun: float) -> Answer:
        """The answer of a mere score; without features nothing was found that could support the claim."""
        scale = self._scales[name]
        p = 0.0 if features is None else scale(features)
        return Answer(p, p >= scale.threshold, contradicted=False, seconds=time.perf_counter() - begun)


def figures(claims: Sequence[Scored], judge: str) -> dict[str, float]:
    """All figures of one judge, 0..1, and milliseconds a claim.

    ``f1`` and ``precision_at_recall`` are those of finding the claims that are *not* wholly supported, which
    is what a guardrail is for.
    """
    answers = [claim.answers[judge] for claim in claims]
    truths = [claim.supported for claim in claims]
    wrong = [not truth for truth in truths]
    p = [answer.probability for answer in answers]
    verdicts = [answer.supported for answer in answers]
    return {
        "auroc": auroc(truths, p),
        "balanced_accuracy": balanced_accuracy(truths, verdicts),
        "f1": f1(wrong, [not v for v in verdicts]),
        "precision_at_recall": precision_at_recall(wrong, [-x for x in p], RECALL),
        "calibration_error": calibration_error(truths, p),
        "milliseconds": 1000 * median(answer.seconds for answer in answers),
    }


def caught(claims: Sequence[Scored], judge: str) -> dict[str, float]:
    """Of claims the shares that a judge doesn't call supported, and calls contradicted; of none ``nan``."""
    answers = [claim.answers[judge] for claim in claims]
    return {
        "not_supported": mean([float(not a.supported) for a in answers]),
        "contradicted": mean([float(a.contradicted) for a in answers]),
    }


def _model(features: dict[str, float] | None) -> list[float] | None:
    if features is None:
        return None
    # Odds spread what a logistic has to weigh; probabilities crowd at both ends.
    values = np.clip([value for name, value in features.items() if name.startswith(MODEL)], 1e-4, 1 - 1e-4)
    return [float(z) for z in np.log(values / (1 - values))]


def _scale(features: list[list[float]], rows: Sequence[Row]) -> Scale:
    """Fitted with both classes alike, so that probabilities are for even odds."""
    y: Any = np.array([row.supported for row in rows])
    x: Any = np.array(features)
    model = LogisticRegression(C=1.0, max_iter=1000)
    model.fit(x, y, sample_weight=weights_of([row.dataset for row in rows], y))
    p = model.predict_proba(x)[:, 1]
    return Scale(
        tuple(float(w) for w in model.coef_[0]),
        float(model.intercept_[0]),
        best_threshold(y.tolist(), p.tolist()),
    )
