"""Features -> calibrated probability of support, by the parameters that training wrote."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guardrail.errors import ConfigError


class Logistic(BaseModel):
    """``sigmoid(bias + sum(weight * feature))``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["logistic"] = "logistic"
    bias: float
    weights: dict[str, float]

    def probability(self, features: Mapping[str, float]) -> float:
        """The probability of support, 0..1."""
        return sigmoid(self.bias + sum(weight * features[name] for name, weight in self.weights.items()))


Combiner = Logistic


class Parameters(BaseModel):
    """Everything fitted: the combiner, the lines between verdicts, the rarity of words, and where from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: int
    provenance: dict[str, object]
    supported_at: float
    partially_supported_at: float
    combiner: Combiner
    rarity: dict[str, float] = Field(default_factory=dict)


def sigmoid(x: float) -> float:
    """The logistic function, without overflow."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@lru_cache(maxsize=8)
def load_parameters(path: Path | None = None) -> Parameters:
    """The parameters of a file, by default the packaged one; raises ConfigError when it can't be used."""
    try:
        if path is None:
            text = files(__package__).joinpath("parameters.json").read_text(encoding="utf-8")
        else:
            text = path.read_text(encoding="utf-8")
        return Parameters.model_validate(json.loads(text))
    except OSError as error:
        raise ConfigError(f"parameters_path: {path} can't be read: {error.strerror}") from error
    except (ValidationError, ValueError) as error:
        raise ConfigError(
            f"parameters_path: {path} is no parameters file of this version; write one with "
            f"training/fit_local_judge.py ({error})"
        ) from error
