"""Features -> calibrated probability of support, by the parameters that training wrote."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from guardrail.errors import ConfigError
from guardrail.judges.local.fitted import FittedVerifier

_FIELD: Final = "judge.local.parameters_path"
_VERSION: Final = 1
_OF_A_VERIFIER = ("model_", "rules_", "read_", "unread_")  # how the names of its features begin
_SUREST = 0.999  # beyond it, and its like at the other end, log-odds grow no more

# A leaf's value, or (feature, threshold, where it is at most that, where it is above).
_Node: TypeAlias = "float | tuple[str, float, _Node, _Node]"


def _leaf(node: _Node, features: Mapping[str, float]) -> float:
    while isinstance(node, tuple):
        name, threshold, lower, upper = node
        node = lower if features[name] <= threshold else upper
    return node


class Logistic(BaseModel):
    """``sigmoid(bias + sum(weight * feature))``; those in ``log_odds``, probabilities, enter as log-odds."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    kind: Literal["logistic"] = "logistic"
    bias: float
    weights: dict[str, float]
    log_odds: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _weighted(self) -> Self:
        unknown = sorted(set(self.log_odds) - self.weights.keys())
        if unknown:
            raise ValueError(f"log_odds names {', '.join(unknown)}, which weights does not have")
        return self

    def probability(self, features: Mapping[str, float]) -> float:
        """The probability of support, 0..1."""
        total = self.bias
        for name, weight in self.weights.items():
            value = features[name]
            total += weight * (log_odds(value) if name in self.log_odds else value)
        return sigmoid(total)


class Tree(BaseModel):
    """One regression tree, its nodes as parallel lists; node 0 is the root.

    At a node with a feature the way goes to ``lower`` where the feature is at most the threshold, else to
    ``upper``; a node without one ("") is a leaf with a value.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    features: list[str]
    thresholds: list[float]
    lower: list[int]
    upper: list[int]
    values: list[float]

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        nodes = len(self.features)
        columns = (self.thresholds, self.lower, self.upper, self.values)
        if not nodes or any(len(column) != nodes for column in columns):
            raise ValueError("the lists of a tree must have one entry for each node")
        seen = {0}
        for node, feature in enumerate(self.features):
            ways = (self.lower[node], self.upper[node])
            if feature and not all(node < way < nodes for way in ways):
                raise ValueError(f"the children of node {node} must come after it")
            for way in ways if feature else ():
                if way in seen:  # nested, shared branches would grow without end
                    raise ValueError(f"node {way} is the child of two ways; give each one a node of its own")
                seen.add(way)
        return self

    def nested(self, node: int = 0) -> _Node:
        """The tree below a node as nested tuples, which are walked several times as fast as the lists."""
        name = self.features[node]
        if not name:
            return self.values[node]
        lower, upper = self.nested(self.lower[node]), self.nested(self.upper[node])
        return name, self.thresholds[node], lower, upper

    def value(self, features: Mapping[str, float]) -> float:
        """The value of the leaf that the features lead to."""
        return _leaf(self.nested(), features)


class BoostedTrees(BaseModel):
    """``sigmoid(scale * (bias + sum of the trees) + shift)``; scale and shift calibrate (Platt)."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    kind: Literal["boosted_trees"] = "boosted_trees"
    bias: float
    scale: float = 1.0
    shift: float = 0.0
    trees: list[Tree]
    _nested: tuple[_Node, ...] = PrivateAttr()

    def model_post_init(self, _context: object, /) -> None:
        """Prepare the trees for being walked."""
        self._nested = tuple(tree.nested() for tree in self.trees)

    def probability(self, features: Mapping[str, float]) -> float:
        """The probability of support, 0..1."""
        total = self.bias
        for node in self._nested:
            total += _leaf(node, features)
        return sigmoid(self.scale * total + self.shift)


class Parameters(BaseModel):
    """Everything fitted: the combiner, the lines between verdicts, the rarity of words, and where from."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    version: Literal[1]
    provenance: dict[str, object]
    supported_at: float = Field(
        ge=0.0, le=1.0, description="Least probability of support that is called SUPPORTED."
    )
    partially_supported_at: float = Field(
        ge=0.0, le=1.0, description="Least probability that is called PARTIALLY_SUPPORTED."
    )
    combiner: Annotated[Logistic | BoostedTrees, Field(discriminator="kind")]
    rarity: dict[str, float] = Field(default_factory=dict)
    verifier: FittedVerifier | None = Field(
        default=None, description="The verifier whose scores are among the features; None: rules alone."
    )
    least_share: float = Field(
        default=0.6,
        ge=0.0,
        le=1.0,
        description="Of a claim's words, by rarity, that the sources must mention before it can be "
        "supported; what says a thing in other words needs a lower one.",
    )
    contradicted_at: float | None = Field(
        default=None,
        ge=0.0,
        le=1.0,
        description="Least probability of contradiction by the verifier that is called CONTRADICTED where "
        "the claim is not supported; None: never.",
    )

    @property
    def features(self) -> frozenset[str]:
        """The names of the features that the combiner looks at."""
        if isinstance(self.combiner, Logistic):
            return frozenset(self.combiner.weights)
        return frozenset(name for tree in self.combiner.trees for name in tree.features if name)

    @model_validator(mode="after")
    def _verifier_named(self) -> Self:
        model = sorted(name for name in self.features if name.startswith(_OF_A_VERIFIER))
        if self.verifier is None and (model or self.contradicted_at is not None):
            raise ValueError(
                f"{', '.join(model) or 'contradicted_at'} comes of a verifier, but verifier names none"
            )
        return self


def sigmoid(x: float) -> float:
    """The logistic function, without overflow."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


def log_odds(p: float) -> float:
    """``ln(p / (1 - p))``, within those of 0.001 and 0.999."""
    p = min(max(p, 1.0 - _SUREST), _SUREST)
    return math.log(p / (1.0 - p))


def load_parameters(path: Path | None = None) -> Parameters:
    """The parameters of a file, by default the packaged one; raises ConfigError when it can't be used."""
    return _load(path, "parameters.json")


def load_rules_parameters() -> Parameters:
    """The packaged parameters without a verifier: for judges that have none, and claims it can't read."""
    return _load(None, "parameters-rules.json")


@lru_cache(maxsize=8)
def _load(path: Path | None, packaged: str) -> Parameters:
    place = Path(str(files(__package__).joinpath(packaged))) if path is None else path
    remedy = "reinstall the package" if path is None else "fit it again with training.calibrate"
    try:
        raw = json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        instead = remedy if path is None else "name a file that training.calibrate wrote, or leave it unset"
        raise ConfigError(f"{_FIELD}: {place} can't be read: {error.strerror}; {instead}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{_FIELD}: {place} is no parameters file: it is no JSON ({type(error).__name__}); {remedy}"
        ) from None
    version = raw.get("version") if isinstance(raw, dict) else None
    if version != _VERSION:
        raise ConfigError(
            f"{_FIELD}: {place} is no parameters file of this version: it has version {version!r:.40}, this "
            f"release reads version {_VERSION}; {remedy}, or install the release it was made for"
        )
    try:
        return Parameters.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        value = first["input"]
        given = f" = {value!r:.40}" if isinstance(value, str | int | float) else ""
        raise ConfigError(
            f"{_FIELD}: {place} is no parameters file of this version: {field}{given}: {first['msg']}; "
            f"{remedy}"
        ) from None
