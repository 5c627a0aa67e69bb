"""What a figure is, a number, amount, date, time or identifier of a text in a form that can be compared, and
what becomes of one of a claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guardrail.figures.owners import Owned


class Kind(StrEnum):
    """What kind of detail a figure is. Weekdays are dates, durations are quantities."""

    NUMBER = "number"
    PERCENT = "percent"
    MONEY = "money"
    QUANTITY = "quantity"
    DATE = "date"
    TIME = "time"
    ORDINAL = "ordinal"
    VERSION = "version"
    IDENTIFIER = "identifier"
    PHONE = "phone"
    EMAIL = "email"
    URL = "url"


class Bound(StrEnum):
    """How the words around a number limit it."""

    EXACT = "exact"
    ABOUT = "about"
    OVER = "over"
    AT_LEAST = "at_least"
    UNDER = "under"
    AT_MOST = "at_most"

    @property
    def direction(self) -> int:
        """+1 for a lower limit, -1 for an upper one, 0 for none."""
        return (self in (Bound.OVER, Bound.AT_LEAST)) - (self in (Bound.UNDER, Bound.AT_MOST))


@dataclass(frozen=True, slots=True)
class Day:
    """A day or a period; what is None is not said. ``weekday`` counts from Monday = 0, ``quarter`` from 1;
    ``years`` is the length of a decade (10) or century (100)."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    quarter: int | None = None
    years: int = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: ``source[start:end] == text`` (code points), and what it means.

    ``values`` holds every reading, the likeliest first ("1.500" is 1.5 or 1500, unless the text shows which),
    with its magnitude applied
    ("5 million" is 5000000), in ``unit`` (a name of the table of units, a currency, or None); of a TIME
    the minutes since midnight. ``upper`` ends a range, ``step`` is the size of the last place written,
    ``per`` the unit of a rate, ``noun`` what a bare number counts. ``days`` holds every reading of a DATE,
    ``last`` ends a range of days. ``key`` is the folded form of what has no value: identifiers, telephone
    numbers, addresses. ``hour`` marks a bare number that stands where a time of day does ("at 9", "from
    7.30"), ``name`` what names a thing ("Rule 19") or says little ("first of all").
    """

    kind: Kind
    text: str
    start: int
    end: int
    values: tuple[float, ...] = ()
    upper: float | None = None
    unit: str | None = None
    per: str | None = None
    bound: Bound = Bound.EXACT
    step: float = 1.0
    noun: str | None = None
    fraction: bool = False
    scaled: bool = False
    days: tuple[Day, ...] = ()
    last: Day | None = None
    key: str = ""
    hour: bool = False
    name: bool = False


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
