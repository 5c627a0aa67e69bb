"""Rows -> what the local judge finds out about each: the features that its combiner is fitted on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from guardrail.claims.model import Claim
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import Combiner, Fit, Lines, Parameters
from guardrail.judges.local.features import FEATURES, WORDS
from guardrail.judges.local.fitted import FittedVerifier
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.verifier import Verifier
from training.examples import DataError
from training.rows import Row


@dataclass(frozen=True, slots=True)
class Features:
    """``x [rows, FEATURES]`` (those of the verifier ``nan`` where it could not read), labels and sets."""

    x: Any
    labels: list[str]
    sets: list[str]

    def save(self, path: Path) -> None:
        """Write them."""
        np.savez_compressed(path, x=self.x, labels=self.labels, sets=self.sets, names=list(FEATURES))

    @classmethod
    def load(cls, path: Path) -> Features:
        """Read what ``save`` wrote. Raises DataError where the features are others."""
        with np.load(path) as raw:
            if tuple(raw["names"].tolist()) != FEATURES:
                raise DataError(f"{path}: other features than this release's; remove the file")
            return cls(raw["x"], raw["labels"].tolist(), raw["sets"].tolist())


def unfitted(verifier: FittedVerifier) -> Parameters:
    """Parameters that say nothing yet: for what is found out before they are asked."""
    fit = Fit(
        combiner=Combiner(biases=(0, 0, 0, 0), weights={}),
        lines=Lines(supported=0.5, partially=0.3, contradicted=0.9, sure=1.0, hopeless=0.0),
    )
    return Parameters(version=2, provenance={}, verifier=verifier, read=fit, words=fit)


def checker_for(verifier: Verifier) -> ClaimChecker:
    """What finds out the features with a verifier."""
    return ClaimChecker(LocalJudgeSettings(), unfitted(verifier.fitted()), verifier)


def features_of(rows: Iterable[Row], checker: ClaimChecker) -> Features:
    """The features of the rows that have something to compare, all windows read."""
    found: list[list[float]] = []
    labels: list[str] = []
    sets: list[str] = []
    for row in rows:
        features = row_features(row, checker)
        if features is not None:
            found.append([features.get(name, np.nan) for name in FEATURES])
            labels.append(row.label)
            sets.append(row.dataset)
    return Features(np.array(found), labels, sets)


def row_features(row: Row, checker: ClaimChecker) -> dict[str, float] | None:
    """Those of one row; None where there is nothing to compare the claim with."""
    examined = checker.examine(row.as_claim(), row.question, row.index())
    return None if examined is None else examined.features


def claims_of(rows: Sequence[Row]) -> list[Claim]:
    """The claims of rows."""
    return [row.as_claim() for row in rows]


def as_json(parameters: Parameters) -> str:
    """Parameters as they are shipped."""
    return json.dumps(parameters.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


ALL_WORDS = WORDS
