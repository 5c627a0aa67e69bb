"""Do two figures mean the same, and if not, are they of a sort, so that one thing can't have both?"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import replace
from datetime import date
from typing import Final

from guardrail.figures.model import Bound, Day, Figure, Kind
from guardrail.figures.tables import FAMILIES, UNIT, backs_currency, same_currency

_LOSS: Final = 1e-6  # what conversion and thirds lose
_CALENDAR: Final = 0.035  # a month is 28 to 31 days
_ROUNDING: Final = 0.05  # what "2.5 million" and converted units may be off
_ABOUT: Final = 0.1
_LIMIT: Final = 0.25  # how far an amount may be from a limit that it keeps: "over 3 million"
_COUNTS: Final = frozenset({"tablet", "capsule", "pill", "drop", "puff", "spray", "time", "deg"})
_KEYED: Final = frozenset({Kind.VERSION, Kind.IDENTIFIER, Kind.PHONE, Kind.EMAIL, Kind.URL})
_NUMERALS: Final = re.compile(r"\d[\d.,]*+")
_DECIMALS: Final = re.compile(r"\d\.\d+")
_STRICT: Final = (Bound.OVER, Bound.UNDER)
_DOSES: Final = frozenset({"mg", "µg", "ng", "ml", "IU"})
_LOCAL: Final = 7  # digits of a telephone number without its area
_FREEZING: Final = 273.15
_MONTHLY: Final = frozenset({"month", "year", "decade", "century"})
_WEEK: Final = 7
_YEAR: Final = 12  # months
_DAY: Final = 24 * 60
_NOON: Final = 12
_HOUR: Final = 60
_DOTTED: Final = re.compile(r"(?<![\d.])(\d{1,2})\.(\d\d)(?![\d.]\d|\d)")


def dimension(figure: Figure) -> str:
    """What a figure measures: figures of other dimensions are not comparable."""
    if figure.kind in _KEYED:
        return "key"
    if figure.kind is Kind.QUANTITY and figure.unit not in _COUNTS:
        return UNIT[figure.unit or "time"].dimension
    if figure.kind in (Kind.MONEY, Kind.DATE, Kind.TIME, Kind.PERCENT):
        return figure.kind.value
    return "percent" if figure.fraction else "number"


def base(figure: Figure) -> list[tuple[float, ...]]:
    """Every reading in the base unit of the dimension, as ``(amount,)`` or ``(lower, upper)``."""
    factor, zero = 1.0, 0.0
    if figure.kind is Kind.QUANTITY and figure.unit not in _COUNTS:
        _, _, factor, zero = UNIT[figure.unit or "time"]
    elif figure.fraction and figure.kind is Kind.NUMBER:
        factor = 100.0
    return [tuple(v * factor + zero for v in reading) for reading in _pairs(figure)]


def keys(figure: Figure) -> Iterator[Hashable]:
    """Under what a figure is looked up, the most telling first: whatever a claim's first leads to are all
    figures that may mean the same, rounding aside."""
    if figure.key and figure.kind in _KEYED:
        yield "key", figure.key[-_LOCAL:]
    for day in _days(figure):
        if day.day:
            yield "day", day.month, day.day
        if day.month:
            yield "month", day.month
        if day.weekday is not None:
            yield "weekday", day.weekday
        if day.year is not None:
            if day.years == 1:
                yield "year", day.year
            yield "decade", day.year // 10
    measure = dimension(figure)
    for raw, based in zip(_pairs(figure), base(figure) if figure.kind is not Kind.DATE else (), strict=False):
        for value, converted in zip(raw, based, strict=True):
            yield measure, f"{converted:.5g}"
            yield "raw", f"{value:.6g}"


def _pairs(figure: Figure) -> list[tuple[float, ...]]:
    return [(v,) for v in figure.values] if figure.upper is None else [(figure.values[0], figure.upper)]


def agrees(claim: Figure, source: Figure) -> bool:
    """May ``source`` back ``claim``? A claim more precise than its source does not agree with it."""
    if claim.kind in _KEYED or source.kind in _KEYED:
        return _same_key(claim, source)
    if claim.kind is Kind.DATE and source.kind is Kind.DATE:
        return _dates_agree(claim, source)
    if claim.kind is Kind.ORDINAL and source.kind is Kind.DATE:  # "on the 24th"
        return any(day.day == claim.values[0] for day in _days(source))
    if Kind.TIME in (claim.kind, source.kind):
        return _times_agree(claim, source)
    if not claim.values or not source.values:
        return False
    one, other = dimension(claim), dimension(source)
    units = {claim.unit, source.unit}
    bare = claim.kind is Kind.NUMBER and claim.noun is None and not claim.fraction
    if one == other == "money" and not backs_currency(claim.unit or "", source.unit or ""):
        return False
    if units <= _COUNTS and len(units) > 1:  # two drops are not twice
        return False
    if one == other:
        ours, theirs = base(claim), base(source)
    elif "temperature" in (one, other):
        ours, theirs = (_pairs(claim), _pairs(source)) if "deg" in units else ([], [])
    elif bare or {one, other} <= {"number", "date"} or (units == {"GBP", "lb"} and _pounds(claim, source)):
        ours, theirs = _pairs(claim), _pairs(source)
    else:
        return False
    return same_rate(claim, source) and any(_near(claim, source, a, b) for a in ours for b in theirs)


def is_plain(claim: Figure, source: Figure) -> bool:
    """Do two figures that agree do so whatever a separator means: a claim's in its likeliest reading, a
    source's in each, or written as the same numeral? "2.500" is not a plain 2.5, nor 2,500."""
    if len(claim.values) < 2 > len(source.values) or Kind.TIME in (claim.kind, source.kind):
        return True
    if claim.unit == source.unit and _NUMERALS.findall(claim.text) == _NUMERALS.findall(source.text):
        return True
    return len(source.values) == 1 and agrees(replace(claim, values=claim.values[:1]), source)


def _pounds(*figures: Figure) -> bool:
    """Whether what may be pounds of weight is written so that it may be money."""
    return all(figure.unit != "lb" or "pound" in figure.text.casefold() for figure in figures)


def interchangeable(claim: Figure, source: Figure) -> bool:
    """May the source's figure, which backs the claim's, be read in its place, because it says all of it?"""
    if claim.kind is Kind.TIME or source.kind is Kind.TIME:
        same = claim.values == source.values and claim.upper == source.upper
        return same and claim.kind is source.kind and len(claim.values) == 1
    if dimension(claim) != dimension(source) or claim.bound is not source.bound or claim.per != source.per:
        return False
    if (claim.upper is None) != (source.upper is None) or (claim.last is None) != (source.last is None):
        return False
    vague = claim.unit in (*FAMILIES, "")
    return claim.kind is not Kind.MONEY or claim.unit == source.unit or vague


def beyond(claim: Figure, source: Figure) -> bool:
    """Does the claim say more or less than just what the source says: "more than 49" of "49"?"""
    return claim.bound in _STRICT and source.bound is Bound.EXACT and claim.values == source.values


def opposed(claim: Figure, source: Figure) -> bool:
    """Are both limits of the same, one upper and one lower?"""
    return claim.bound.direction * source.bound.direction < 0


def complements(claim: Figure, source: Figure) -> bool:
    """Do opposite limits part all there is in two: "18 or older" and "under 18"?"""
    return opposed(claim, source) and (claim.bound in _STRICT) != (source.bound in _STRICT)


def same_rate(claim: Figure, source: Figure) -> bool:
    """Are both per the same, as far as both say it?"""
    if not claim.per or not source.per:
        return True
    ours, theirs = set(claim.per.split("/")), set(source.per.split("/"))
    return ours <= theirs or theirs <= ours


def _near(claim: Figure, source: Figure, ours: tuple[float, ...], theirs: tuple[float, ...]) -> bool:
    if len(ours) == 2:
        return len(theirs) == 2 and all(
            abs(a - b) <= _LOSS * abs(b) for a, b in zip(ours, theirs, strict=True)
        )
    amount = ours[0]
    if len(theirs) == 2:
        inside = theirs[0] <= amount <= theirs[1]
        return (inside and claim.bound is Bound.ABOUT) or any(
            _close(claim, source, amount, t) for t in theirs
        )
    return _close(claim, source, amount, theirs[0])


def _close(claim: Figure, source: Figure, ours: float, theirs: float) -> bool:
    gap, size = abs(ours - theirs), max(abs(ours), abs(theirs))
    if gap <= size * _LOSS:
        named = claim.name and source.name  # "version 1.20" is not 1.2
        return not named or _DECIMALS.findall(claim.text) == _DECIMALS.findall(source.text)
    if claim.name or source.name or (claim.unit in _DOSES and claim.bound is not Bound.ABOUT):
        return False  # "version 3.1" is not 3.11, nor a dose of 1.8 mg one of 1.75
    if dimension(claim) == "temperature":  # whose zero is far off
        size = max(size - _FREEZING, 1.0)
    if (claim.unit in _MONTHLY) != (source.unit in _MONTHLY) and gap <= size * _CALENDAR:
        return dimension(claim) == dimension(source) == "time"
    step = claim.step * abs(ours / claim.values[0]) if claim.values[0] else 0.0
    if claim.bound is Bound.ABOUT or source.bound is Bound.ABOUT:
        return gap <= size * _ABOUT
    if claim.bound.direction:
        if source.bound.direction:
            return False
        return 0 <= (theirs - ours) * claim.bound.direction <= size * _LIMIT
    converted = claim.unit != source.unit and claim.kind is Kind.QUANTITY
    rounded = gap <= step / 2 * (1 + _LOSS)
    finer = claim.scaled or converted or claim.fraction or source.fraction or source.step < claim.step
    return finer and (claim.scaled or claim.kind is not Kind.MONEY) and rounded and gap <= size * _ROUNDING


def _same_key(claim: Figure, source: Figure) -> bool:
    a, b = (f.key if f.kind in _KEYED else "".join(filter(str.isdecimal, f.text)) for f in (claim, source))
    if not a or not b:
        return False
    if claim.kind is Kind.URL and source.kind is Kind.URL:
        return b == a or b.startswith(a + "/")
    if Kind.PHONE in (claim.kind, source.kind):
        a, b = a.lstrip("0"), b.lstrip("0")
        return min(len(a), len(b)) >= _LOCAL and (a.endswith(b) or b.endswith(a))
    return a == b or (source.kind is Kind.VERSION and b.startswith(claim.text.removeprefix("v") + "."))


# ------------------------------------------------------------------------------------- dates and times


def _days(figure: Figure) -> Iterator[Day]:
    """The days that a figure names, those within a range of one month or week among them; within a longer
    range the months."""
    yield from figure.days
    if figure.last is None or not figure.days:
        return
    first, last = figure.days[0], figure.last
    yield last
    if first.weekday is not None and last.weekday is not None:
        for step in range(1, (last.weekday - first.weekday) % _WEEK):
            yield Day(weekday=(first.weekday + step) % _WEEK)
    elif first.day and last.day and first.month == last.month:
        for number in range(first.day + 1, last.day):
            yield Day(last.year, last.month, number)
    elif first.month and last.month and first.year == last.year:
        for step in range(1, (last.month - first.month) % _YEAR):
            yield Day(last.year, (first.month + step - 1) % _YEAR + 1)


def _dates_agree(claim: Figure, source: Figure) -> bool:
    days = list(_days(source))
    if claim.last is not None and source.last is not None and not claim.name:
        spans = days_of_week(claim), days_of_week(source)
        if all(spans):  # a shorter one says something else
            return spans[0] == spans[1]
    first = any(covers(a, b) for a in claim.days for b in days)
    return first and (claim.last is None or any(covers(claim.last, b) for b in days))


def days_of_week(figure: Figure) -> frozenset[int]:
    """The weekdays that a figure names, from Monday = 0, those within a span among them."""
    return frozenset(day.weekday for day in _days(figure) if day.weekday is not None)


def covers(claim: Day, source: Day) -> bool:
    """Does the source say all that the claim says of the day? A year covers its days, never the reverse."""
    if claim.years > 1 or source.years > 1:
        if claim.year is None or source.year is None or source.years > claim.years:
            return False
        return claim.year <= source.year < claim.year + claim.years
    quarter = source.quarter or (source.month and (source.month + 2) // 3)
    return (
        claim.year in (None, source.year)
        and claim.month in (None, source.month)
        and claim.day in (None, source.day)
        and claim.quarter in (None, quarter)
        and claim.weekday in (None, _weekday(source))
    )


def compatible(claim: Figure, source: Figure) -> bool:
    """May two dates be of one day, though neither covers the other: "22 August" and "August 1777"?"""
    if claim.kind is not Kind.DATE or source.kind is not Kind.DATE:
        return False
    for one in _days(claim):
        for other in _days(source):
            said = [(d.year, d.month, d.day, d.weekday) for d in (one, other)]
            both = [(a, b) for a, b in zip(*said, strict=True) if a is not None and b is not None]
            if both and all(a == b for a, b in both):
                return True
    return False


def _weekday(day: Day) -> int | None:
    if day.weekday is None and day.year and day.month and day.day and day.year > 0:
        try:
            return date(day.year, day.month, day.day).weekday()
        except ValueError:
            return None
    return day.weekday


def _times_agree(claim: Figure, source: Figure) -> bool:
    ours, theirs = _clock(claim), _clock(source)
    if not ours or not theirs:
        return False
    if len(ours) == 2 and claim.upper is not None:
        return len(theirs) == 2 and source.upper is not None and ours == theirs
    if source.upper is not None and claim.kind is Kind.TIME:
        return any(time in theirs for time in ours)  # one within may be neither its begin nor its end
    return any(a % _DAY == b % _DAY for a in ours for b in theirs)


def _clock(figure: Figure) -> list[float]:
    """The minutes since midnight that a figure may mean: also "10-18" and "at 9"."""
    upper = figure.upper
    first = [value for value in figure.values if upper is None or value < upper] or figure.values[:1]
    values = [*first, *([] if upper is None else [upper])]
    if figure.kind is Kind.TIME:
        return values
    told = figure.hour or upper is not None
    hours = told and figure.kind is Kind.NUMBER and figure.noun is None and all(0 <= v <= 24 for v in values)
    dotted = _DOTTED.findall(figure.text) if hours else ()
    if len(dotted) == len(values) and all(int(minute) < _HOUR for _, minute in dotted):
        return [int(hour) * 60.0 + int(minute) for hour, minute in dotted]  # "6.30"
    if hours and upper is None and 1 <= values[0] <= _NOON:
        return [values[0] * 60, (values[0] + _NOON) * 60]  # "from 9 to 5"
    return [value * 60 for value in values] if hours else []


# ---------------------------------------------------------------------------------------- alternatives


def of_a_sort(claim: Figure, source: Figure) -> bool:
    """Do both say the same sort of thing, so that another figure would be a conflict?"""
    if claim.name or source.name or claim.kind is not source.kind:
        return False
    if not same_rate(claim, source) and claim.values != source.values:
        return False
    if dimension(claim) != dimension(source) or (claim.upper is None) != (source.upper is None):
        return False
    if claim.kind is Kind.DATE:
        return any(_as_precise(a, b) for a in claim.days for b in source.days)
    if claim.kind is Kind.MONEY and not same_currency(claim.unit or "", source.unit or ""):
        return False
    if claim.kind in (Kind.NUMBER, Kind.ORDINAL) and (claim.noun or claim.unit) != (
        source.noun or source.unit
    ):
        return False
    return not (claim.values and source.values and _within_limits(claim, source))


def _as_precise(claim: Day, source: Day) -> bool:
    """Does the source say everything of its day that the claim says of its own, in the same way?"""
    said = [(d.year, d.month, d.day, d.weekday, d.quarter) for d in (claim, source)]
    return all((a is None) == (b is None) for a, b in zip(*said, strict=True)) and claim.years == source.years


def keeps(limit: Figure, amount: Figure) -> bool:
    """Whether an amount of the same dimension keeps a limit: 160 million is "more than 1 million"."""
    return limit.bound.direction * (base(amount)[0][0] - base(limit)[0][0]) > 0


def _within_limits(claim: Figure, source: Figure) -> bool:
    """Whether one keeps the other's limit: "more than 1 million" is vague beside 160 million, not wrong."""
    differ = claim.bound.direction != source.bound.direction
    return differ and (keeps(claim, source) or keeps(source, claim))
