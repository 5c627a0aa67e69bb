"""What a value is: one checkable detail of a text, in a form that can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final


class ValueKind(StrEnum):
    """What kind of detail a value is."""

    NUMBER = "number"
    PERCENT = "percent"
    MONEY = "money"
    QUANTITY = "quantity"
    DATE = "date"
    TIME = "time"
    ORDINAL = "ordinal"
    VERSION = "version"
    IDENTIFIER = "identifier"
    EMAIL = "email"
    URL = "url"
    PHONE = "phone"
    NAME = "name"


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
        return _DIRECTION[self]


_DIRECTION: Final = {
    Bound.EXACT: 0,
    Bound.ABOUT: 0,
    Bound.OVER: 1,
    Bound.AT_LEAST: 1,
    Bound.UNDER: -1,
    Bound.AT_MOST: -1,
}


@dataclass(frozen=True, slots=True)
class DateParts:
    """A day, or a period: what is None is not said.

    ``years`` is the length of a decade (10) or century (100). ``weekday`` counts from Monday = 0,
    ``quarter`` from 1.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    quarter: int | None = None
    years: int = 1


@dataclass(frozen=True, slots=True)
class Value:
    """One checkable detail: ``source_text[start:end] == text`` (code points), and what it means.

    Numbers: ``amount`` is the likeliest reading with its magnitude applied ("5 million" is 5000000) in
    ``unit``; ``readings`` holds every reading ("1.500" is 1.5 or 1500); ``upper`` ends a range; ``step`` is
    the size of the last place written ("3.1 million": 100000). ``unit`` is a name of ``units.py``, a currency
    code or sign, or None; ``per`` the unit of a rate ("mg per day"). ``noun`` is the word the number counts
    ("tablet"), or its label ("section"). ``fraction`` marks a part of a whole ("half", "1/4", "one in four").

    Dates: ``dates`` holds every reading. Times: ``times``, minutes since midnight, every reading; ``zone`` is
    the offset from UTC in minutes. Everything: ``key`` is the folded form that identifiers are compared by.
    """

    kind: ValueKind
    text: str
    start: int
    end: int
    amount: Decimal | None = None
    upper: Decimal | None = None
    readings: tuple[Decimal, ...] = ()
    unit: str | None = None
    per: str | None = None
    bound: Bound = Bound.EXACT
    step: Decimal = Decimal(1)
    noun: str | None = None
    fraction: bool = False
    scaled: bool = False
    dates: tuple[DateParts, ...] = ()
    times: tuple[int, ...] = ()
    zone: int | None = None
    key: str = ""
    words: tuple[str, ...] = ()

    @property
    def approx(self) -> bool:
        """Is the number said to be rounded or a limit?"""
        return self.bound is not Bound.EXACT
