"""How much a model prefers an option for its place in the list, measured without labels and taken out.

Of some claims the model is asked twice, the second time with the options moved on by one place. With ``q``
the probability of an option as the model means it and ``b`` the preference for a place, in log-odds,

    log p1(option i) = log q(i) + b(i) + c1        log p2(option i) = log q(i) + b(i - 1) + c2

so the differences of the two answers give ``b(i) - b(i - 1)``, after their mean (``c1 - c2``) is taken out.
Their running mean over the sample, with less weight while it is small, is what ``fair`` takes out of every
answer. What the two answers still differ by then is reported: it is not the place, but the model's own
unsteadiness.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Final

from guardrail.judges.decisions.transports import Choice

FIRST: Final = 24
"""Claims that are asked twice, from the first on; afterwards it is one of ``EVERY``."""
EVERY: Final = 32
_MOST_SAID: Final = 2.0  # by one claim, in log-odds: whoever writes claims or documents may steer the model
_PRIOR: Final = 8.0  # claims without a preference, which the sample has to outweigh
_LEAST: Final = 1e-3  # a probability, below which servers' figures are noise
_REMEMBERED: Final = 512.0
_LATEST: Final = 64.0


def in_second_order(question: Choice) -> Choice:
    """The same question with its options in the second order; its id has a b behind it."""
    first, *others = question.options.items()
    return replace(question, id=f"{question.id}b", options=dict((*others, first)))


class OrderBias:
    """That of one model with one set of options. Not for several threads at once."""

    def __init__(self, places: int) -> None:
        self._steps = [0.0] * places  # b(i) - b(i - 1)
        self._weight = 0.0
        self._count = 0
        self.differs = 0.0
        """By how much the first option's probability still differs between the two orders, in the mean."""

    def to_measure(self) -> bool:
        """Whether the next claim is one of those to ask twice."""
        self._count += 1
        return self._weight < FIRST or self._count % EVERY == 0

    @property
    def preferences(self) -> tuple[float, ...]:
        """Of each place, in log-odds; their mean is 0."""
        known = self._weight / (self._weight + _PRIOR)
        sums = list(accumulate([0.0, *self._steps[1:]]))
        mean = sum(sums) / len(sums)
        return tuple(known * (each - mean) for each in sums)

    def learn(self, first: Mapping[str, float], second: Mapping[str, float]) -> None:
        """``first`` and ``second`` are the answers to a question in the two orders, in the first's order."""
        differences = [math.log(max(_LEAST, first[v]) / max(_LEAST, second[v])) for v in first]
        mean = sum(differences) / len(differences)
        self._weight = min(self._weight + 1.0, _REMEMBERED)
        for place, difference in enumerate(differences):
            said = max(-_MOST_SAID, min(_MOST_SAID, difference - mean))
            self._steps[place] += (said - self._steps[place]) / self._weight
        value = next(iter(first))
        left = abs(self.fair(first)[value] - self.fair(second, moved=True)[value])
        self.differs += (left - self.differs) / min(self._weight, _LATEST)

    def fair(self, answer: Mapping[str, float], *, moved: bool = False) -> dict[str, float]:
        """``answer``, in the first order, without the preference; ``moved``: it was asked in the second."""
        preferences = self.preferences
        weighed = {
            value: probability * math.exp(-preferences[place - 1 if moved else place])
            for place, (value, probability) in enumerate(answer.items())
        }
        whole = sum(weighed.values())
        return {value: each / whole for value, each in weighed.items()}
