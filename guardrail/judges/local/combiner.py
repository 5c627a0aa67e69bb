"""What is found out about a claim -> calibrated probabilities of the four verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from guardrail.errors import ConfigError, said_wrong
from guardrail.evidence.tokens import words
from guardrail.figures import FigureCheck, State
from guardrail.frozen import Frozen
from guardrail.judges.local.search import Candidates, ClaimView, WindowText
from guardrail.judges.model import FittedVerifier, Reading
from guardrail.judges.model.verifier import MANIFEST

_SUREST: Final = 0.999  # beyond it, and its like at the other end, log-odds grow no more

WORDS: Final = ("share", "figures_absent", "figures_conflicting")
"""Of words and figures alone, known whether or not the verifier reads."""
READ: Final = ("support", "support_mean", "contradiction", "unsupported_most", "unsupported_mean")
"""Of what the verifier reads."""
FEATURES: Final = (*READ, *WORDS)


@dataclass(frozen=True, slots=True)
class Read:
    """A window and what the verifier says of the claim beside it."""

    window: WindowText
    reading: Reading


def word_features(view: ClaimView, found: Candidates, figures: Sequence[FigureCheck]) -> dict[str, float]:
    """Those of ``WORDS``; ``share`` is by rarity, 0..1, with the words of figures that the sources back."""
    strong = [check for check in figures if not check.figure.name]
    backed = {
        term
        for check in figures
        if check.state in (State.FOUND, State.DERIVED, State.ECHOED)
        for _, term, _ in words(check.figure.text)
    }
    return {
        "share": view.share(found.present | backed),
        "figures_absent": float(any(check.state is State.ABSENT for check in strong)),
        "figures_conflicting": float(any(check.state is State.CONFLICT for check in strong)),
    }


def read_features(read: Sequence[Read]) -> dict[str, float]:
    """Those of ``READ``, of at least one window; probabilities of the claim enter as log-odds."""
    best = best_of(read).reading
    marks = [unsupported for _, _, unsupported in best.tokens]
    return {
        "support": log_odds(best.support),
        "support_mean": sum(log_odds(each.reading.support) for each in read) / len(read),
        "contradiction": log_odds(max(each.reading.contradiction for each in read)),
        "unsupported_most": max(marks, default=0.0),
        "unsupported_mean": sum(marks) / len(marks) if marks else 0.0,
    }


def best_of(read: Sequence[Read]) -> Read:
    """The window that supports the claim most."""
    return max(read, key=lambda each: each.reading.support)


def log_odds(p: float) -> float:
    """``ln(p / (1 - p))``, within those of 0.001 and 0.999."""
    p = min(max(p, 1.0 - _SUREST), _SUREST)
    return math.log(p / (1.0 - p))


# ---------------------------------------------------------------------------------- features -> probabilities

_FIELD: Final = "judge.local.verifier"
_FILE: Final = "parameters.json"
_VERSION: Final = 2
_PACKAGED: Final = Path(str(files(__package__).joinpath("verifier_model")))


class Probabilities(NamedTuple):
    """Of the four verdicts; they sum to 1."""

    supported: float
    partially_supported: float
    unsupported: float
    contradicted: float


class Combiner(Frozen):
    """A multinomial logistic: ``softmax(biases + weights @ features)``, in the order of ``Probabilities``."""

    model_config = ConfigDict(allow_inf_nan=False)

    biases: tuple[float, float, float, float]
    weights: dict[str, tuple[float, float, float, float]]

    def probabilities(self, features: Mapping[str, float]) -> Probabilities:
        """The probabilities of the verdicts."""
        totals = list(self.biases)
        for name, weights in self.weights.items():
            value = features[name]
            for at, weight in enumerate(weights):
                totals[at] += weight * value
        most = max(totals)
        grown = [math.exp(total - most) for total in totals]
        whole = sum(grown)
        return Probabilities(*(each / whole for each in grown))


class Lines(Frozen):
    """Where verdicts begin."""

    model_config = ConfigDict(allow_inf_nan=False)

    supported: float = Field(ge=0.0, le=1.0, description="Least probability of support that is SUPPORTED.")
    partially: float = Field(
        ge=0.0, le=1.0, description="Least probability of support that is PARTIALLY_SUPPORTED."
    )
    contradicted: float = Field(
        ge=0.0, le=1.0, description="Least probability of contradiction that is CONTRADICTED."
    )
    sure: float = Field(
        ge=0.0,
        le=1.0,
        description="Probability of support after a window from which on no further one is read.",
    )
    hopeless: float = Field(
        ge=0.0,
        le=1.0,
        description="Probability of support after two windows up to which no further one is read.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.partially > self.supported:
            raise ValueError(f"partially ({self.partially}) is above supported ({self.supported})")
        return self


class Fit(Frozen):
    """A combiner and its lines."""

    combiner: Combiner
    lines: Lines


class Parameters(Frozen):
    """Everything fitted, and where from: what judges with the verifier, and what judges by words and figures
    alone, where there is no verifier, or none that could read the claim in time."""

    version: Literal[2]
    provenance: dict[str, object]
    verifier: FittedVerifier = Field(description="The verifier whose scores are among the features.")
    read: Fit
    words: Fit

    @model_validator(mode="after")
    def _known(self) -> Self:
        """Features of another release: at the first claim it would be too late."""
        for name, fit, known in (("read", self.read, FEATURES), ("words", self.words, WORDS)):
            unknown = sorted(fit.combiner.weights.keys() - set(known))
            if unknown:
                raise ValueError(
                    f"{name}.combiner has weights of {', '.join(unknown)}, which this release "
                    "does not find out"
                )
        return self


@lru_cache(maxsize=8)
def load_parameters(folder: Path | None = None) -> Parameters:
    """The parameters that were fitted with the verifier of a folder, by default the packaged one; raises
    ConfigError when they can't be used.
    """
    place = (folder or _PACKAGED) / _FILE
    remedy = "reinstall the package" if folder is None else "fit it again with training.calibrate"
    try:
        raw = json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{_FIELD}: {place} can't be read: {error.strerror}; {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{_FIELD}: {place} is not a parameters file: it is not JSON ({type(error).__name__}); {remedy}"
        ) from None
    version = raw.get("version") if isinstance(raw, dict) else None
    if version != _VERSION:
        raise ConfigError(
            f"{_FIELD}: {place} is not a parameters file of this version: it has version {version!r:.40}, "
            f"this release reads version {_VERSION}; {remedy}, or install the release it was made for"
        )
    try:
        return Parameters.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        value = first["input"]
        given = f" = {value!r:.40}" if isinstance(value, str | int | float) else ""
        raise ConfigError(
            f"{_FIELD}: {place} is not a parameters file of this version: {field}{given}: "
            f"{said_wrong(first)}; {remedy}"
        ) from None


def packaged_folder() -> Path | None:
    """The verifier that this package ships, or None where it ships none."""
    return _PACKAGED if (_PACKAGED / MANIFEST).is_file() else None
