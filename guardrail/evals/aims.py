"""What tuning is for: aims, and how a policy serves one, counted over labelled responses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from guardrail.evals.statistics import Array, Rate, wilson
from guardrail.evals.truths import AnswerTruth
from guardrail.events import Decision, Severity

By = Literal["flag", "withhold", "block"]
LEAST_RANK: Final[dict[By, int]] = {
    "flag": Decision.FLAG.rank,
    "withhold": Decision.REDACT.rank,
    "block": Decision.BLOCK.rank,
}
"""The mildest decision that catches a response: flagged, withheld in part or whole, blocked."""
THRESHOLD: Final[dict[By, Literal["flag_below", "block_below"]]] = {
    "flag": "flag_below",
    "withhold": "block_below",
    "block": "block_below",
}
"""The policy's threshold on the score that acts so."""
WRONG, FAITHFUL, OTHERS = 0, 1, 2
"""The classes that responses are counted by; others have lesser errors only."""
_HALF_WIDTH: Final = 0.1


@dataclass(frozen=True, slots=True)
class Aim:
    """What a policy is to reach. Exactly one of ``catch``, ``max_false`` and both costs is given.

    A response with an error of severity ``of`` or graver is *wrong*; it is *caught* if the decision on it is
    ``by`` or stricter, else *missed*. A *false alarm* is the same decision on a faithful response, one
    without any error. Responses with lesser errors only are neither.

    ``catch``: this share of the wrong responses is caught, at the fewest false alarms. ``max_false``: at most
    this share of the faithful ones is a false alarm, and as many errors as possible are caught. ``cost_miss``
    and ``cost_false``: the sum of costs is least.
    """

    catch: float | None = None
    max_false: float | None = None
    cost_miss: float | None = None
    cost_false: float | None = None
    of: Severity = Severity.MINOR
    by: By = "flag"

    def __post_init__(self) -> None:
        costs = self.cost_miss is not None or self.cost_false is not None
        if (self.catch is not None) + (self.max_false is not None) + costs != 1:
            raise ValueError(
                "give one aim: catch, max_false, or both of cost_miss and cost_false; they exclude each other"
            )
        if costs and (not self.cost_miss or not self.cost_false or min(self.cost_miss, self.cost_false) < 0):
            raise ValueError(
                f"cost_miss ({self.cost_miss}) and cost_false ({self.cost_false}): give both, above 0"
            )
        for name in ("catch", "max_false"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1:
                raise ValueError(f"{name} ({value:g}) is not a fraction above 0 and up to 1, such as 0.95")

    @property
    def error(self) -> str:
        """What makes a response wrong, in words."""
        return "any error" if self.of is Severity.MINOR else f"an error of severity {self.of} or graver"

    def __str__(self) -> str:
        wrong = f"answers with {self.error}"
        if self.catch is not None:
            return f"catch {self.catch:.0%} of {wrong} at the fewest false alarms, by {self.by}"
        if self.max_false is not None:
            return f"at most {self.max_false:.2%} false alarms, and catch most {wrong}, by {self.by}"
        costs = f"{self.cost_miss:g} for each missed one of {wrong}, {self.cost_false:g} for each false alarm"
        return f"least cost: {costs}, by {self.by}"

    def key(self, counts: Counts) -> tuple[float, ...]:
        """What is to be least, the first figure first."""
        caught, false = counts.caught(self.by), counts.false_alarms(self.by)
        # Between policies of equal worth: the ranks of the decisions about the faithful ones.
        stricter = int(counts.table[FAITHFUL] @ np.arange(len(Decision)))
        if self.catch is not None:
            return max(0, math.ceil(self.catch * counts.wrong - 1e-9) - caught), false, stricter, -caught
        if self.max_false is not None:
            over = max(0, false - math.floor(self.max_false * counts.faithful + 1e-9))
            return over, -caught, false, stricter
        return self.cost(counts), stricter

    def cost(self, counts: Counts) -> float:
        """The sum of costs; with other aims, of one for each miss and each false alarm."""
        missed = counts.wrong - counts.caught(self.by)
        return (self.cost_miss or 1.0) * missed + (self.cost_false or 1.0) * counts.false_alarms(self.by)

    def needed(self) -> tuple[int, int]:
        """The least numbers of wrong and of faithful responses that can show whether the aim is met.

        So many that a share as aimed at is known to within about 0.1, and a bound is met or missed by more
        than one response.
        """
        wrong = labels_needed(0.8 if self.catch is None else self.catch)
        faithful = labels_needed(0.1)
        if self.catch is not None and self.catch < 1:
            wrong = max(wrong, math.ceil(1 / (1 - self.catch) - 1e-9))
        if self.max_false is not None:
            faithful = max(faithful, math.ceil(1 / self.max_false - 1e-9))
        return wrong, faithful


def labels_needed(share: float) -> int:
    """The least number of responses with which Wilson's interval of ``share`` is 0.2 wide."""
    total = 1
    while (bounds := wilson(round(share * total), total))[1] - bounds[0] > 2 * _HALF_WIDTH:
        total += 1
    return total


@dataclass(frozen=True, slots=True)
class Counts:
    """Responses by class and decision; ``table[class][rank]``."""

    table: Array

    @property
    def wrong(self) -> int:
        """Those with an error of the aim's severity."""
        return int(self.table[WRONG].sum())

    @property
    def faithful(self) -> int:
        """Those without any."""
        return int(self.table[FAITHFUL].sum())

    def caught(self, by: By) -> int:
        """The wrong ones with that decision or a stricter one."""
        return int(self.table[WRONG, LEAST_RANK[by] :].sum())

    def false_alarms(self, by: By) -> int:
        """The faithful ones with that decision or a stricter one."""
        return int(self.table[FAITHFUL, LEAST_RANK[by] :].sum())

    def rates(self, by: By) -> dict[str, Rate]:
        """Caught of the wrong, false alarms of the faithful, and of these the withheld and the flagged."""
        return {
            "caught": Rate(self.caught(by), self.wrong),
            "false alarms": Rate(self.false_alarms(by), self.faithful),
            "faithful withheld": Rate(self.false_alarms("withhold"), self.faithful),
            "faithful flagged": Rate(int(self.table[FAITHFUL, Decision.FLAG.rank]), self.faithful),
        }


def class_of(truth: AnswerTruth, aim: Aim) -> int:
    """0 wrong, 1 faithful, 2 with lesser errors only, -1 if the labels don't tell."""
    if truth.right is None:
        return -1
    if truth.right:
        return FAITHFUL
    if aim.of is Severity.MINOR:
        return WRONG
    if truth.worst is None:
        return -1
    return WRONG if truth.worst.rank >= aim.of.rank else OTHERS
