"""What becomes of a figure of a claim, and the figure with everything it is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Final

from guardrail.figures.model import Figure
from guardrail.figures.owners import Owned
from guardrail.figures.source import FigureSource, Sentence

_LOOKED_UP: Final = 8  # sentences beside the near ones, for a figure that another is calculated from


class State(StrEnum):
    """FOUND: a source has it. DERIVED: the claim spells out how it is calculated from the sources' figures,
    or they leave no other way. UNCHECKED: it may be calculated from them. ECHOED: it is the question's, and
    given rather than told. CONFLICT: a source has another figure for the same thing, or the claim's own
    equation comes to another. ABSENT: no source has it, or only of other matters, where a sentence says all
    the rest of the claim and has a figure of the sort."""

    FOUND = "found"
    DERIVED = "derived"
    UNCHECKED = "unchecked"
    ECHOED = "echoed"
    CONFLICT = "conflict"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class FigureCheck:
    """What became of one figure of a claim.

    ``sentence`` is the number of the sentence that decides and ``source`` its figure, whose ``text`` stands
    there verbatim; both None for ABSENT. Of a CONFLICT without a sentence ``source`` is what the claim's own
    equation comes to, and its ``text`` what is calculated. ``frame`` is how much of what the claim says
    around the figure that sentence says too, 0..1; for ABSENT, the best sentence. ``owned``: it is another
    thing's there, as far as words tell; a CONFLICT where that is sure.
    """

    figure: Figure
    state: State
    frame: float
    sentence: int | None = None
    source: Figure | None = None
    operands: tuple[Figure, ...] = ()
    owned: Owned | None = None


@dataclass(frozen=True, slots=True)
class ClaimFigure:
    """One figure of a claim, with what it is compared with.

    ``near`` are the numbers of the sentences that evidence search found, best first; ``asked`` the question's
    figures, ``before`` what the claim goes on from, and ``checks`` those of the claim's figures before it.
    """

    figure: Figure
    claim: Sentence
    source: FigureSource
    near: Sequence[int]
    asked: Sequence[Figure]
    before: Sentence
    checks: Sequence[FigureCheck]

    def sentences(self) -> Iterator[tuple[int, Sentence]]:
        """The near sentences with their numbers, best first."""
        return ((number, self.source.sentence(number)) for number in self.near)

    def is_backed(self, figure: Figure) -> bool:
        """Whether a source has ``figure``, of whatever."""
        numbers = chain(self.near, self.source.holding(figure)[:_LOOKED_UP])
        return any(self.source.backing(figure, number) for number in numbers)

    def derived(self, operands: tuple[Figure, ...] = ()) -> FigureCheck:
        """DERIVED from ``operands``."""
        return FigureCheck(self.figure, State.DERIVED, 0.0, operands=operands)

    def unchecked(self, operands: tuple[Figure, ...] = ()) -> FigureCheck:
        """UNCHECKED: it may come of ``operands``."""
        return FigureCheck(self.figure, State.UNCHECKED, 0.0, operands=operands)
