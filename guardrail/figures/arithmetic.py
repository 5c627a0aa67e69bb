"""Is a figure a right sum, difference, product, quotient, rate or share of others?

Any number comes out of some pair of many. What comes out counts only where a claim says what it calculates
with, or where the documents leave no choice of figures; ``check`` sees to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from enum import StrEnum
from itertools import chain, combinations, permutations
from typing import Final, NamedTuple

from guardrail.figures.agreement import base, dimension
from guardrail.figures.model import Bound, Day, Figure, Kind
from guardrail.figures.tables import find_unit, same_currency

_MONTH: Final = 2_629_746  # seconds
#: In seconds; a month is a twelfth of a year.
PERIODS: Final = {"h": 3600, "day": 86_400, "week": 604_800, "month": _MONTH, "year": 12 * _MONTH}
_LOSS: Final = 0.002  # what rounding to cents costs
_CALENDAR: Final = 0.02  # 52 weeks a year, 30 days a month
_EXACT: Final = 1e-6
_ABOUT: Final = 0.03  # what "roughly" may be off
_MAX_OPERANDS: Final = 24
_MAX_ADDED: Final = 12  # of which three are added
_ADDED: Final = frozenset({"money", "number", "percent", "time", "length", "mass", "volume", "area", "data"})
_SHARED: Final = frozenset({Kind.MONEY, Kind.QUANTITY, Kind.NUMBER})
_MINUTE: Final = 60
_DAY: Final = 24 * 60  # minutes
_DAYS: Final = 86_400  # seconds
_NEARLY: Final = 0.08  # what "nearly half" may be off
_OVER: Final = 0.15  # the same of "more than a third"
_COMMON_YEAR: Final = 2001  # of days without a year
_MONTHS_DIFFER: Final = 0.035  # a month has 28 to 31 days
_MONTH_DAYS: Final = 30.44
_YEAR_DAYS: Final = 365.2425
#: By unit, in months and in days.
_CALENDAR_DAYS: Final = {"day": (0, 1), "week": (0, 7), "month": (1, 0), "year": (12, 0)}
_MOST_MONTHS: Final = 12_000
_MOST_DAYS: Final = 366_000
_ROUND: Final = frozenset({"month", "year"})
_TAKEN: Final = frozenset({"mass", "volume"})  # what a dose is measured in
_NO_PERIOD: Final[frozenset[str]] = frozenset()


class By(StrEnum):
    """How a figure is calculated. SHARE: what part one is of another, or how many times as much; CHANGE: by
    how much in percent; REST: what a share leaves; SPAN: how long from one moment to another, and the moment
    so long after or before; PERIOD: per another period."""

    SUM = "sum"
    DIFFERENCE = "difference"
    PRODUCT = "product"
    SHARE = "share"
    CHANGE = "change"
    REST = "rest"
    SPAN = "span"
    PERIOD = "period"


class Calculation(NamedTuple):
    """A value, what it is calculated from and how, how exact it must be, and per which periods it is; None:
    per any."""

    value: float
    parts: tuple[Figure, ...]
    by: By
    loss: float = _LOSS
    per: frozenset[str] | None = _NO_PERIOD


def calculations(claim: Figure, operands: Sequence[Figure], *, twice: bool = False) -> Iterator[Calculation]:
    """The calculations with ``operands`` that come to a claim's figure; ``twice``: also those in two steps, a
    product and another or an amount together or apart."""
    if claim.kind is Kind.DATE and claim.days and not claim.values:
        yield from _dates(claim, operands)
    if not claim.values or claim.upper is not None:
        return
    targets = _amounts(claim)
    place = _place(claim, targets[0])
    usable = list(dict.fromkeys(_operands(operands)))[:_MAX_OPERANDS]
    found = [_sums(claim, usable), _products(claim, usable), _shares(claim, usable)]
    found += [_moments(claim, usable), _lengths(claim, operands), _changes(claim, operands)]
    if twice:
        found.append(_two_steps(claim, usable))
    for calculation in chain(*found):
        value, _, _, loss, per = calculation
        come = any(_comes_to(claim, value, each, loss, place) for each in targets)
        if come and _per_the_same(claim, per):
            yield calculation


def _per_the_same(claim: Figure, per: frozenset[str] | None) -> bool:
    """Whether a claim's figure is per the periods that what was calculated is per. A claim may leave them
    out, but not of a dose: 400 mg a day are not 400 mg whenever one takes it."""
    if per is None:
        return True
    said = _periods(claim)
    return said == per if said or not per else not _is_dose(claim)


def _periods(*figures: Figure) -> frozenset[str]:
    """The periods that figures are per."""
    parts = (part for figure in figures for part in (figure.per or "").split("/") if part)
    return frozenset(part for part in parts if _is_period(part))


def _is_period(part: str) -> bool:
    unit = find_unit(part.rpartition(" ")[2])
    return unit is not None and unit.dimension == "time"


def _is_dose(figure: Figure) -> bool:
    counted = dimension(figure) == "number" and figure.kind is Kind.QUANTITY and figure.unit != "time"
    return counted or dimension(figure) in _TAKEN


def _operands(figures: Sequence[Figure]) -> Iterator[Figure]:
    """What can be calculated with; of a span of hours both ends."""
    for figure in figures:
        if figure.kind is Kind.TIME and figure.upper is not None:
            yield from (
                replace(figure, values=(end,), upper=None) for end in (figure.values[0], figure.upper)
            )
        elif figure.values and not figure.name and figure.upper is None:
            yield figure


def _place(claim: Figure, target: float) -> float:
    """Half the size of the last place written: what rounding may cost."""
    return claim.step * (abs(target / claim.values[0]) if claim.values[0] else 1.0) / 2


def _comes_to(claim: Figure, value: float, target: float, loss: float, place: float) -> bool:
    """Whether a claim's figure is what was calculated, as exactly as it says."""
    gap, size = value - target, abs(value)
    rough = claim.bound is Bound.ABOUT
    if claim.fraction:
        loss = max(loss, _NEARLY if rough else _ABOUT)
    elif rough:
        loss = max(loss, _ABOUT)
    if claim.bound.direction and (claim.fraction or claim.kind is Kind.PERCENT):  # "a little over a third"
        return 0 <= gap * claim.bound.direction <= _OVER * size
    error = loss * size
    return abs(gap) <= (min(error, place) if loss == _LOSS else error) + _EXACT * abs(target)


def _amount(figure: Figure) -> float:
    return figure.values[0] if figure.kind is Kind.DATE else base(figure)[0][0]


def _amounts(figure: Figure) -> tuple[float, ...]:
    """The readings that count: a time without "a.m." has two."""
    return figure.values if figure.kind is Kind.TIME else (_amount(figure),)


def _sums(claim: Figure, operands: list[Figure]) -> Iterator[Calculation]:
    measure = dimension(claim)
    same = _like(claim, operands) if measure in _ADDED else []
    for group in chain(combinations(same, 2), combinations(same[:_MAX_ADDED], 3)):
        if (per := _common(*group)) is not None:
            yield Calculation(sum(map(_amount, group)), group, By.SUM, per=per)
    for one, other in permutations(same, 2):
        if (per := _common(one, other)) is not None:
            yield Calculation(_amount(one) - _amount(other), (one, other), By.DIFFERENCE, per=per)
    for unit in dict.fromkeys(f.unit for f in same):  # of a column
        column = tuple(f for f in same if f.unit == unit)
        if len(column) > 2 and (per := _common(*column)) is not None:
            total = sum(map(_amount, column))
            yield Calculation(total, column, By.SUM, per=per)
            yield Calculation(total / len(column), column, By.SUM, per=per)
    if measure == "percent":
        yield from (Calculation(100 - _amount(one), (one,), By.REST) for one in same)


def _common(*figures: Figure) -> frozenset[str] | None:
    """The periods that all of several figures are per, those left out where they go without saying, or None
    where they differ."""
    said = {periods for figure in figures if (periods := _periods(figure))}
    return next(iter(said), _NO_PERIOD) if len(said) < 2 else None


def _products(claim: Figure, operands: list[Figure]) -> Iterator[Calculation]:
    """Amounts so many times, one of so many parts of them, shares of them, and rates times a quantity."""
    measure = dimension(claim)
    same = _like(claim, operands) if measure in _ADDED else []
    counts = _counts(operands) if measure != "percent" else []
    for one, count in ((a, b) for a in same for b in counts if a is not b):
        yield from _times(claim, one, count)
    for one, share in ((a, b) for a in same for b in operands if _is_share(b) and a is not b):
        part = _amount(one) * _amount(share) / 100
        yield Calculation(part, (one, share), By.PRODUCT, per=_periods(one))
        yield Calculation(_amount(one) - part, (one, share), By.PRODUCT, per=_periods(one))
    much = [f for f in operands if f.kind is Kind.QUANTITY and f.unit and dimension(f) != measure]
    for rate, one in ((r, o) for r in same for o in much):
        if (found := _for_so_much(rate, one)) is not None:
            yield Calculation(found[0], (rate, one), By.PRODUCT, per=found[1])
        for each in much if not rate.per else ():  # "€5 for 15 minutes"
            if each is not one and dimension(each) == dimension(one) and _amount(each):
                value = _amount(rate) * _amount(one) / _amount(each)
                yield Calculation(value, (rate, each, one), By.PRODUCT)
        parts = (claim.per or "").split("/")
        if one.values[0] and (one.unit in parts or not any(map(find_unit, parts))):  # "€17 per square metre"
            yield Calculation(_amount(rate) / one.values[0], (rate, one), By.PRODUCT, per=None)
    for one in same:
        yield from _other_periods(claim, one)


def _times(claim: Figure, one: Figure, count: Figure) -> Iterator[Calculation]:
    """An amount so many times, and one of so many parts of it; how much it is a day of what is taken so often
    a day."""
    product, quotient = _amount(one) * _amount(count), _amount(one) / _amount(count)
    often = _periods(count)
    if not often:
        parts = set((one.per or "").split("/"))
        kept = set((claim.per or "").split("/")) - _periods(claim) - {""}  # "per person"
        if not kept or (kept <= parts and count.noun in parts - kept):
            yield Calculation(product, (one, count), By.PRODUCT, per=_periods(one) - {count.noun})
        yield Calculation(quotient, (one, count), By.PRODUCT, per=_periods(one))
    elif not _periods(one):
        yield Calculation(product, (one, count), By.PRODUCT, per=often)
    elif _periods(one) == often:
        yield Calculation(quotient, (one, count), By.PRODUCT, per=_NO_PERIOD)


def _other_periods(claim: Figure, one: Figure) -> Iterator[Calculation]:
    """So much per month for what it is per year, and so on; and so much per month of what comes to so much in
    a year."""
    said = _periods(claim)
    part = next((part for part in (one.per or "").split("/") if part in PERIODS), "")
    unit, left = PERIODS.get(part), _periods(one) - {part}
    for name, seconds in PERIODS.items() if unit else ():
        if seconds != unit:
            loss = _LOSS if {unit, seconds} <= {_MONTH, 12 * _MONTH} else _CALENDAR
            per = (left | {name}) if said else None
            yield Calculation(_amount(one) * seconds / (unit or 1), (one,), By.PERIOD, loss, per)
    whole = next((PERIODS[name] for name in said if name in PERIODS), None)
    if not one.per and whole:
        yield Calculation(_amount(one) * whole / (12 * _MONTH), (one,), By.PERIOD, _CALENDAR, None)


def _moments(claim: Figure, operands: list[Figure]) -> Iterator[Calculation]:
    """A time of day or a year so long before or after another, and the years between two dates."""
    moments = [f for f in operands if f.kind in (Kind.TIME, Kind.DATE)]
    if claim.kind is Kind.NUMBER and claim.unit is None:
        for one, other in permutations([f for f in moments if f.kind is Kind.DATE], 2):
            yield Calculation(one.values[0] - other.values[0], (one, other), By.SPAN, per=None)
    if claim.kind not in (Kind.TIME, Kind.DATE):
        return
    scale = _MINUTE if claim.kind is Kind.TIME else 12 * _MONTH
    spans = [f for f in operands if dimension(f) == "time"]
    for one, span in ((a, b) for a in moments if a.kind is claim.kind for b in spans):
        for moment, way in ((m, w) for m in one.values for w in (1, -1)):
            away = moment + way * _amount(span) / scale
            away = away % _DAY if claim.kind is Kind.TIME else away
            yield Calculation(away, (one, span), By.SPAN, _EXACT, None)


def _lengths(claim: Figure, figures: Sequence[Figure]) -> Iterator[Calculation]:
    """How long it is between two times of day or dates, or from one end of a span to the other."""
    if claim.kind is not Kind.QUANTITY or dimension(claim) != "time":
        return
    moments = [f for f in figures if f.kind in (Kind.TIME, Kind.DATE)][:_MAX_OPERANDS]
    loss = _MONTHS_DIFFER if claim.unit in _ROUND else _EXACT
    for one in moments:
        if one.kind is Kind.TIME and one.upper is not None:
            gap = (one.upper - one.values[0]) % _DAY
            yield Calculation(gap * _MINUTE, (one,), By.SPAN, _EXACT, None)
        elif one.last is not None and one.days:
            for days in _between(one.days[0], one.last):
                yield Calculation(days * _DAYS, (one,), By.SPAN, loss, None)
    for one, other in combinations((f for f in moments if f.upper is None and f.last is None), 2):
        if one.kind is not other.kind:
            continue
        if one.kind is Kind.TIME:
            gaps = {(b - a) % _DAY for a in one.values for b in other.values}
            for gap in sorted(gaps):
                yield Calculation(gap * _MINUTE, (one, other), By.SPAN, _EXACT, None)
        else:
            pair = sorted((one, other), key=lambda f: f.days[0].year or 0)
            for days in _between(pair[0].days[0], pair[1].days[0]):
                yield Calculation(days * _DAYS, (one, other), By.SPAN, loss, None)


def _between(first: Day, last: Day) -> Iterator[float]:
    """How many days it is from one day or month to another, without and with the last; of days without a
    year to the next such day; of years the years between them."""
    if first.years > 1 or last.years > 1 or (first.month is None) != (last.month is None):
        return
    if first.month is None or last.month is None:
        if first.year and last.year:
            yield (last.year - first.year) * _YEAR_DAYS
        return
    begin = _date(first.year or last.year or _COMMON_YEAR, first.month, first.day or 1)
    end = _date(last.year or first.year or _COMMON_YEAR, last.month, last.day or 1)
    if begin is None or end is None:
        return
    gap = (end - begin).days
    if gap < 0 and not last.year:
        gap += 365
    if last.day is None:  # to the end of the month
        yield gap + _MONTH_DAYS
    else:
        yield gap + 1
    yield gap


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _dates(claim: Figure, figures: Sequence[Figure]) -> Iterator[Calculation]:
    """A date so many days, weeks, months or years after or before another."""
    wanted = claim.days[0]
    dated = [f for f in figures if f.kind is Kind.DATE and f.days and f.days[0].month][:_MAX_ADDED]
    spans = [f for f in figures if f.unit in _CALENDAR_DAYS and f.values][:_MAX_ADDED]
    for one, span in ((a, b) for a in dated for b in spans if wanted.day and wanted.month):
        month, day, year = one.days[0].month or 1, one.days[0].day or 1, one.days[0].year
        for way in (1, -1):
            months, days = _CALENDAR_DAYS[span.unit or ""]
            last = month - 1 + way * int(months * span.values[0])
            begun = _date((year or _COMMON_YEAR) + last // 12, last % 12 + 1, day)
            if begun is None or abs(last) > _MOST_MONTHS or abs(days * span.values[0]) > _MOST_DAYS:
                continue
            found = begun + way * timedelta(days=days * span.values[0])
            if (found.month, found.day) == (wanted.month, wanted.day) and (
                not year or wanted.year in (None, found.year)
            ):
                yield Calculation(0.0, (one, span), By.SPAN, per=None)


def _is_share(figure: Figure) -> bool:
    return figure.kind is Kind.PERCENT or figure.fraction


def _shares(claim: Figure, operands: list[Figure]) -> Iterator[Calculation]:
    """What share one figure is of another, by how much it is more or less, how many times as much, and how
    long a stock lasts."""
    measure = dimension(claim)
    for part, whole in permutations((f for f in operands if f.kind in _SHARED and not f.fraction), 2):
        if dimension(part) != dimension(whole) or not _amount(whole) or not _of_one_thing(part, whole):
            continue
        share, unit = _amount(part) / _amount(whole), find_unit(whole.per or "")
        if measure == "percent" and dimension(part) != "percent":
            if 0 < share < 1:
                loss = claim.step / 2 / (100 * share)
                yield Calculation(100 * share, (part, whole), By.SHARE, loss, None)
            if share not in (0, 1) and _common(part, whole) is not None:
                change = 100 * abs(share - 1)
                yield Calculation(change, (part, whole), By.CHANGE, claim.step / 2 / change, None)
        elif claim.unit == "time" and share > 1:
            yield Calculation(share, (part, whole), By.SHARE, per=None)
        elif unit is not None and unit.dimension == measure:
            yield Calculation(share * unit.factor, (part, whole), By.SHARE, per=None)


def _changes(claim: Figure, figures: Sequence[Figure]) -> Iterator[Calculation]:
    """What something that went from one amount to another changed by: "from 40 to 60", which is 50% more,
    20 more and 1.5 times as much."""
    for span in [f for f in figures if f.upper is not None and f.kind in _SHARED][:_MAX_OPERANDS]:
        ends = [replace(span, values=(end,), upper=None) for end in (span.values[0], span.upper or 0.0)]
        for found in chain(_sums(claim, ends), _shares(claim, ends)):
            if found.by is not By.SUM:
                yield found._replace(parts=(span,))


def _of_one_thing(part: Figure, whole: Figure) -> bool:
    """Whether a count may be part of another: "36 of 400 patients", not 36 nurses of 400 patients."""
    one, other = part.unit or part.noun, whole.unit or whole.noun
    return dimension(part) != "number" or not one or not other or one == other


def _like(claim: Figure, operands: list[Figure]) -> list[Figure]:
    """The operands that measure what the claim's figure does."""
    same = [f for f in operands if dimension(f) == dimension(claim) and f.kind is not Kind.ORDINAL]
    money = claim.kind is Kind.MONEY
    return [f for f in same if f.values[0] and (not money or same_currency(claim.unit or "", f.unit or ""))]


def _counts(operands: list[Figure]) -> list[Figure]:
    numbers = (f for f in operands if dimension(f) == "number" and f.kind is not Kind.ORDINAL)
    return [f for f in numbers if f.values[0] > 1]


def _for_so_much(rate: Figure, much: Figure) -> tuple[float, frozenset[str]] | None:
    """What ``much`` comes to at a rate, and per which periods that is; of one that doesn't say per what, per
    unit as written."""
    if not rate.per:
        often = dimension(much) == "time" or much.unit == "time"
        return None if often and _is_dose(rate) else (_amount(rate) * much.values[0], _NO_PERIOD)
    for part in rate.per.split("/"):
        number, _, name = part.rpartition(" ")  # "6 h"
        unit = find_unit(name)
        if unit is not None and unit.dimension == dimension(much) and "-" not in number:
            value = _amount(rate) * _amount(much) / (unit.factor * float(number or 1))
            return value, _periods(rate) - {part}
    return None


def _two_steps(claim: Figure, own: list[Figure]) -> Iterator[Calculation]:
    """A product and another or an amount together or apart."""
    if dimension(claim) not in _ADDED - {"number", "percent"}:
        return
    products = [(r.value, r.parts, r.per) for r in _products(claim, own) if len(r.parts) > 1]
    single = [(_amount(a), (a,), _periods(a)) for a in _like(claim, own)]
    for (one, first, per), (other, second, other_per) in chain(
        combinations(products, 2), ((p, s) for p in products for s in single)
    ):
        if (per and other_per and per != other_per) or any(a is b for a in first for b in second):
            continue
        parts = (*first, *second)
        yield Calculation(one + other, parts, By.SUM, per=per or other_per)
        yield Calculation(abs(one - other), parts, By.DIFFERENCE, per=per or other_per)
