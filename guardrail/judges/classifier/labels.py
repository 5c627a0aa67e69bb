"""From the model's numbers to probabilities of support and of contradiction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from guardrail.errors import ConfigError, JudgeReplyError
from guardrail.judges.classifier.settings import Outcome

_KNOWN: Final = {
    "entailment": Outcome.SUPPORTED,
    "entailed": Outcome.SUPPORTED,
    "supported": Outcome.SUPPORTED,
    "supports": Outcome.SUPPORTED,
    "consistent": Outcome.SUPPORTED,
    "neutral": Outcome.NEUTRAL,
    "not_entailment": Outcome.UNSUPPORTED,
    "unsupported": Outcome.UNSUPPORTED,
    "not_supported": Outcome.UNSUPPORTED,
    "hallucinated": Outcome.UNSUPPORTED,
    "inconsistent": Outcome.UNSUPPORTED,
    "contradiction": Outcome.CONTRADICTED,
    "contradicted": Outcome.CONTRADICTED,
    "refutes": Outcome.CONTRADICTED,
}


@dataclass(frozen=True, slots=True)
class Scores:
    """Probabilities, 0 to 1. ``contradiction`` is 0 for a model that has no such label."""

    support: float
    contradiction: float


class LabelMap:
    """Which of the model's outputs mean what."""

    def __init__(self, outcomes: Mapping[int, Outcome]) -> None:
        """``outcomes`` by position in the model's output; positions that are missing are not looked at."""
        self._outcomes = dict(sorted(outcomes.items()))

    @property
    def has_contradiction(self) -> bool:
        return Outcome.CONTRADICTED in self._outcomes.values()

    def scores(self, logits: Sequence[float]) -> Scores:
        """Softmax over the mapped outputs; the logistic function where a model has one output only.

        Raises JudgeReplyError for numbers that are none (NaN of a half-precision overflow, say).
        """
        chosen = [logits[position] for position in self._outcomes]
        if not all(math.isfinite(value) for value in chosen):
            raise JudgeReplyError("the model's output is not a number")
        if len(chosen) == 1:
            # One output is the logit of support, whatever its label is called.
            return Scores(_logistic(chosen[0]), 0.0)
        top = max(chosen)
        weights = [math.exp(value - top) for value in chosen]
        total = sum(weights)
        shares = dict.fromkeys(Outcome, 0.0)
        for outcome, weight in zip(self._outcomes.values(), weights, strict=True):
            shares[outcome] += weight / total
        return Scores(min(1.0, shares[Outcome.SUPPORTED]), min(1.0, shares[Outcome.CONTRADICTED]))


def resolve_labels(
    configured: Mapping[str, Outcome], names: Sequence[str], outputs: int, *, subset: bool, section: str
) -> LabelMap:
    """The label map for a model with ``outputs`` outputs, called ``names`` as far as it says.

    ``subset``: outputs that nobody named are no labels (a vocabulary). Otherwise every one needs a meaning,
    since leaving a label out would move its share to the others. Raises ConfigError.
    """
    by_name = {_fold(name): position for position, name in enumerate(names[:outputs])}
    if not configured and not subset:
        if outputs == 1:
            return LabelMap({0: Outcome.SUPPORTED})
        found = {position: _KNOWN[name] for name, position in by_name.items() if name in _KNOWN}
        if len(found) != outputs or Outcome.SUPPORTED not in found.values():
            known = ", ".join(list(names)[:outputs][:20]) or f"0 to {outputs - 1}"
            raise ConfigError(
                f"{section}.labels: the model's labels are {known}, which doesn't tell what they mean; map "
                "each to supported, unsupported, contradicted or neutral"
            )
        return LabelMap(found)
    outcomes: dict[int, Outcome] = {}
    for label, outcome in configured.items():
        position = by_name.get(_fold(label), int(label) if label.strip().isdecimal() else -1)
        if not 0 <= position < outputs:
            raise ConfigError(
                f"{section}.labels: the model has no label {label!r}; it has "
                f"{', '.join(list(names)[:20]) or 'no names'} and numbers from 0 to {outputs - 1}"
            )
        if outcomes.setdefault(position, outcome) is not outcome:
            raise ConfigError(f"{section}.labels: label {position} is given two meanings; keep one")
    if not subset and len(outcomes) != outputs:
        missing = ", ".join(
            str(position) for position in range(min(outputs, 100)) if position not in outcomes
        )
        raise ConfigError(
            f"{section}.labels: the model has {outputs} labels; say what label {missing} means too"
        )
    if subset and len(set(outcomes.values())) < 2:
        raise ConfigError(f"{section}.labels: name the token ids that mean supported and unsupported")
    if outputs == 1 and outcomes.get(0) is not Outcome.SUPPORTED:
        raise ConfigError(f"{section}.labels: the model's only output must mean supported")
    return LabelMap(outcomes)


def _fold(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _logistic(value: float) -> float:
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    grown = math.exp(value)
    return grown / (1.0 + grown)
