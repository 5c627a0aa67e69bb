"""Rows -> their features -> the local judge's parameters, as ``training.calibrate`` writes them."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.metrics import roc_auc_score

from guardrail.evidence.sentences import sentence_spans
from guardrail.evidence.tokens import stem, words
from guardrail.judges.local.combiner import Logistic, Parameters
from guardrail.judges.local.fitted import FittedVerifier
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.verifier import Verifier
from training.calibration_rows import split_by_document
from training.combiner_fit import Features, fit, lines_of, probabilities, weights_of
from training.examining import Examiner
from training.examples import DataError
from training.metrics import auroc
from training.rows import LICENCES, Row

SEED: Final = 20260101
_VERSION: Final = 1
_RARITY_WORDS: Final = 3000
_APART: Final = 0.2

_REVISED: Final = "vitaminc"
"""How the names of data sets begin that hold a sentence in many revisions: its words would seem common."""


def rarity(rows: Iterable[Row]) -> dict[str, float]:
    """The commonest stems of the sentences of all contexts, and how little each says (see ``Rarity``)."""
    seen: set[int] = set()
    frequency: Counter[str] = Counter()
    sentences = 0
    for row in rows:
        for text in row.contexts:
            if row.dataset not in LICENCES or row.dataset.startswith(_REVISED) or hash(text) in seen:
                continue
            seen.add(hash(text))
            for start, end in zip(*sentence_spans(text), strict=True):
                sentences += 1
                frequency.update({stem(surface) for _, _, surface in words(text[start:end])})
    listed = [(word, n) for word, n in frequency.most_common(_RARITY_WORDS) if word.isalpha()]
    if not listed or listed[-1][1] == sentences:
        return {}
    least = math.log(sentences / listed[-1][1])
    return {word: round(math.log(sentences / n) / least, 3) for word, n in listed}


def features_of(
    rows: Sequence[Row],
    weights: dict[str, float],
    verifier: Verifier | None,
    settings: LocalJudgeSettings | None = None,
) -> Features:
    """What the judge finds out about the rows that share a word with their contexts.

    A verifier is at work where one is given; the features don't depend on anything fitted but the rarities.
    """
    blank = Parameters(
        version=_VERSION, provenance={}, supported_at=0.5, partially_supported_at=0.5,
        combiner=Logistic(bias=0.0, weights={}), rarity=weights,
    )  # fmt: skip
    examiner = Examiner(blank, verifier, settings)
    apart = split_by_document(rows, share=_APART, seed=SEED)
    names: list[str] = []
    vectors, kept = [], []
    for number, row in enumerate(rows):
        found = examiner.features(row)
        if found is not None:
            names = list(found)
            vectors.append(list(found.values()))
            kept.append(number)
        if number % 1000 == 999:
            print(f"  {number + 1:,} of {len(rows):,} rows examined", flush=True)
    if not kept:
        raise DataError(
            "none of the rows could be examined: the verifier lacks their words, or there are none"
        )
    return Features(
        names,
        np.array(vectors, dtype=np.float64),
        [rows[n].label for n in kept],
        [rows[n].dataset for n in kept],
        np.array([apart[n] for n in kept], dtype=bool),
    )


def figures_of(features: Features, p: Any) -> dict[str, dict[str, Any]]:
    """Each data set's rows, and on those that are set apart: AUROC and the share told right, percent."""
    by_set: dict[str, list[int]] = defaultdict(list)
    for number in np.flatnonzero(features.apart).tolist():
        by_set[features.sets[number]].append(number)
    y = features.supported
    figures = {}
    for name, numbers in sorted(by_set.items()):
        truths = y[numbers].tolist()
        said = (p[numbers] >= 0.5).tolist()
        figures[name] = {
            "rows": features.sets.count(name),
            "auroc_held_out": _percent(auroc(truths, p[numbers].tolist())),
            "right_held_out": _percent(sum(a == t for a, t in zip(said, truths, strict=True)) / len(truths)),
        }
    return figures


def calibrated(
    features: Features, common: dict[str, float], verifier: FittedVerifier | None, *, seed: int = SEED
) -> Parameters:
    """The parameters. Raises ValueError where the rows don't suffice."""
    y = features.supported
    w = weights_of(features.sets, y)
    fitted = fit(features, w, seed=seed)
    combiner = fitted.combiner
    p = probabilities(combiner, features)
    lines = lines_of(features, p, w, fitted.strange)
    apart = features.apart
    made = sorted({s for s in features.sets if s not in LICENCES})
    return Parameters(
        version=_VERSION,
        provenance={
            "written_by": "training/calibrate.py",
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "seed": seed,
            "rows": len(y),
            "licences": {name: LICENCES[name] for name in sorted(set(features.sets)) if name in LICENCES},
            "synthetic": f"made from texts of the data sets above: {', '.join(made)}" if made else "",
            "figures": figures_of(features, p),
            "auroc_held_out": _percent(roc_auc_score(y[apart], p[apart], sample_weight=w[apart])),
            "brier_held_out": round(float(np.average((p - y)[apart] ** 2, weights=w[apart])), 4),
            "calibration_error_known_sets_held_out": _percent(fitted.error_on_known_sets),
            "calibration_error_other_sets_held_out": _percent(fitted.error_on_other_sets),
        },
        supported_at=round(lines.supported, 3),
        partially_supported_at=round(lines.partially, 3),
        contradicted_at=None if lines.contradicted is None else round(lines.contradicted, 3),
        combiner=combiner,
        rarity=common,
        verifier=verifier,
        least_share=lines.share,
    )


def save_features(path: Path, features: Features, common: dict[str, float]) -> None:
    """Keep features and rarities as .npz."""
    np.savez_compressed(
        path, names=features.names, x=features.x, labels=features.labels, sets=features.sets,
        apart=features.apart, rarity=json.dumps(common),
    )  # fmt: skip


def read_features(path: Path) -> tuple[Features, dict[str, float]]:
    """What ``save_features`` kept."""
    with np.load(path, allow_pickle=False) as kept:
        return Features(
            kept["names"].tolist(), kept["x"], kept["labels"].tolist(), kept["sets"].tolist(), kept["apart"]
        ), json.loads(str(kept["rarity"]))


def _percent(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * value, 1)
