"""Is a figure a right sum, difference, product, quotient, rate or share of others?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import chain, combinations, permutations
from typing import Final, NamedTuple

from guardrail.figures.agreement import base, dimension, same_rate
from guardrail.figures.model import Bound, Day, Figure, Kind
from guardrail.figures.tables import find_unit, same_currency

_MONTH: Final = 2_629_746  # seconds
#: In seconds; a month is a twelfth of a year.
PERIODS: Final = {"h": 3600, "day": 86_400, "week": 604_800, "month": _MONTH, "year": 12 * _MONTH}
_LOSS: Final = 0.002  # what rounding to cents costs
_CALENDAR: Final = 0.02  # 52 weeks a year, 30 days a month
_EXACT: Final = 1e-6
_ABOUT: Final = 0.03  # what "roughly" may be off
_MAX_OPERANDS: Final = 12
_MAX_OWN: Final = 8
_ADDED: Final = frozenset({"money", "number", "percent", "time", "length", "mass", "volume", "area", "data"})
_SHARED: Final = frozenset({Kind.MONEY, Kind.QUANTITY, Kind.NUMBER})
_MINUTE: Final = 60
_DAY: Final = 24 * 60  # minutes
_DAYS: Final = 86_400  # seconds
_NEARLY: Final = 0.08  # what "nearly half" may be off
_OVER: Final = 0.15  # the same of "more than a third"
_MAX_COMPARED: Final = 6  # figures of the sources among which two are compared
_HARDLY_BY_CHANCE: Final = 10  # least bare number that a claim's own figures hardly come to by chance
_FEW_LENGTHS: Final = 3
_COMMON_YEAR: Final = 2001  # of days without a year
_MONTHS_DIFFER: Final = 0.035  # a month has 28 to 31 days
_MONTH_DAYS: Final = 30.44
_YEAR_DAYS: Final = 365.2425
_ROUND: Final = frozenset({"month", "year"})
_TAKEN: Final = frozenset({"mass", "volume"})  # what a dose is measured in
_NO_PERIOD: Final[frozenset[str]] = frozenset()


class Reckoning(NamedTuple):
    """A value, what it is reckoned from, how exact it must be, whether it needs no word that says so, whether
    one operand at least must be the claim's or the question's own, whether it compares two figures, and per
    which periods it is."""

    value: float
    parts: tuple[Figure, ...]
    loss: float = _LOSS
    plain: bool = False
    own: bool = False
    compares: bool = False
    per: frozenset[str] | None = _NO_PERIOD


class Cues(NamedTuple):
    """What the words around a figure say of how it came about: that it is ``reckoned``, perhaps
    (``hinted``), or that it says how far two figures are apart (``compared``; ``apart``, right behind it),
    that it is more (``way`` +1) or less (-1), of which ``periods`` it or the question speaks, and whether it
    says how ``often`` a thing is done."""

    reckoned: bool = False
    hinted: bool = False
    compared: bool = False
    apart: bool = False
    way: int = 0
    periods: frozenset[str] = frozenset()
    often: bool = False
    whole: Figure | None = None  # what it is said to be a share of: "about 3% of the 400 seats"

    @property
    def said(self) -> bool:
        """Whether anything says that it was reckoned."""
        return self.reckoned or self.hinted or self.compared or self.apart


def derived(
    claim: Figure,
    own: Sequence[Figure],
    theirs: Sequence[Figure],
    cues: Cues,
    later: Sequence[Figure] = (),
    changes: Sequence[Figure] = (),
) -> tuple[Figure, ...] | None:
    """The operands that a claim's figure is reckoned from, or None.

    Sums of two or three and differences of figures that measure the same, products with a plain number, a
    percentage or a fraction, rates times a quantity, shares, changes in percent, how many times as much,
    amounts per another period, times of day a duration away, how long something lasts, the years between two
    dates, and a product with another or an amount added, all of ``own`` figures: the other ones of the claim,
    its lead-in and the question.

    Any number comes out of some pair of many. So where no word says that the claim reckons, only that counts
    which can hardly be by chance: what is reckoned of ``own`` figures throughout, sums and differences only
    of those that come ``later`` ("€30: €10 and €20"), and some of what takes one of them. What is reckoned
    must be per what the claim says it is per, and ``meant``: of what the claim speaks of.
    """
    if not claim.values or claim.upper is not None:
        return None
    targets = _amounts(claim)
    place = _place(claim, targets[0])
    mine, others = (list(_operands(group)) for group in (own, theirs))
    mine = list(dict.fromkeys(mine))[:_MAX_OWN]
    known = {(f.kind, f.values, f.unit) for f in own}
    operands = [*mine, *(f for f in others if (f.kind, f.values, f.unit) not in known)][:_MAX_OPERANDS]
    said, explains = {*mine, *own}, {*later, *_operands(later)}
    found = [_reckonings(claim, operands, cues), _rates(claim, operands, cues), _lengths(claim, own, theirs)]
    found.append(_changes(claim, changes, said, cues))
    if cues.reckoned or cues.hinted:
        found.append(_two_steps(claim, mine, cues))
    measure = dimension(claim)
    for reckoning in chain(*found):
        value, parts, loss, plain, needs_own, compares = reckoning[:6]
        if not any(_comes_to(claim, value, each, loss, place) for each in targets):
            continue
        if compares and not all(same_rate(claim, part) for part in parts):
            continue  # "$30 a year more", of prices per month
        if not _per_the_same(claim, reckoning.per, cues):
            continue
        named = sum(part in said for part in parts)
        alike = all(dimension(part) == dimension(claim) for part in parts)  # added, not multiplied
        told = _told(claim, parts, named) and (not alike or len(parts) == 1 or explains.issuperset(parts))
        if plain or told or (compares and cues.compared and len(theirs) <= _MAX_COMPARED):
            return parts
        if cues.whole is not None and parts[-1] is cues.whole and measure == "percent":
            return parts
        if measure == "percent" and needs_own and _rough(claim):
            continue
        enough = len(parts) if alike and not cues.reckoned else 1
        if (cues.reckoned and not needs_own) or (cues.said and named >= enough):
            return parts
        by_chance = needs_own or alike or claim.kind is not Kind.MONEY
        if len(parts) == 2 and parts[1] in mine and not by_chance:
            return parts
    return None


def _per_the_same(claim: Figure, per: frozenset[str] | None, cues: Cues) -> bool:
    """Whether a claim's figure is per the periods that what was reckoned is per. A claim may leave them out,
    but not of a dose: 400 mg a day are not 400 mg whenever one takes it."""
    if per is None:
        return True
    said = _periods(claim)
    if said or not per:
        return said == per
    return per <= cues.periods or not _is_dose(claim)


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


def _told(claim: Figure, parts: Sequence[Figure], named: int) -> bool:
    """Whether all that a figure is reckoned from is named beside it, which is hardly by chance."""
    if named < len(parts) or (len(parts) == 1 and not claim.per):
        return False
    return claim.kind is not Kind.NUMBER or claim.fraction or claim.values[0] >= _HARDLY_BY_CHANCE


def _rough(claim: Figure) -> bool:
    return claim.fraction or claim.bound is not Bound.EXACT


def _operands(figures: Sequence[Figure]) -> Iterator[Figure]:
    """What can be reckoned with; of a span of hours both ends."""
    for figure in figures:
        if figure.kind is Kind.TIME and figure.upper is not None:
            yield from (
                replace(figure, values=(end,), upper=None) for end in (figure.values[0], figure.upper)
            )
        elif figure.values and not figure.name and figure.upper is None:
            yield figure


def comes_to(claim: Figure, value: float, target: float) -> bool:
    """Whether a claim's figure, which is ``target`` in the unit of ``value``, is what was reckoned."""
    place = _place(claim, target)
    rounded = (claim.kind is Kind.PERCENT or claim.step < 1) and claim.kind is not Kind.MONEY and value
    return _comes_to(claim, value, target, place / abs(value) if rounded else _LOSS, place)


def _place(claim: Figure, target: float) -> float:
    """Half the size of the last place written: what rounding may cost."""
    return claim.step * (abs(target / claim.values[0]) if claim.values[0] else 1.0) / 2


def _comes_to(claim: Figure, value: float, target: float, loss: float, place: float) -> bool:
    """Whether a claim's figure is what was reckoned, as exactly as it says."""
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


def _reckonings(claim: Figure, operands: list[Figure], cues: Cues) -> Iterator[Reckoning]:
    measure = dimension(claim)
    same, counts = _like(claim, operands), _counts(operands)
    spans = [f for f in operands if dimension(f) == "time"]
    moments = [f for f in operands if f.kind in (Kind.TIME, Kind.DATE)]
    if measure in _ADDED:
        for one, count in ((a, b) for a in same for b in counts if a is not b and measure != "percent"):
            yield from _products(claim, one, count, cues)
        for group in (g for size in (2, 3) for g in combinations(same, size)):
            if (per := _common(*group)) is not None:
                yield Reckoning(sum(map(_amount, group)), group, per=per)
        for one, other in permutations(same, 2):
            if (per := _common(one, other)) is not None:
                yield Reckoning(_amount(one) - _amount(other), (one, other), compares=True, per=per)
        for one, share in ((a, b) for a in same for b in operands if _is_share(b) and a is not b):
            part = _amount(one) * _amount(share) / 100
            for value in (part, _amount(one) - part):
                yield Reckoning(value, (one, share), per=_periods(one))
        yield from _other_periods(claim, same, spans, cues)
    if measure == "percent":
        yield from (Reckoning(100 - _amount(one), (one,)) for one in same)
    if claim.kind is Kind.NUMBER and claim.unit is None:
        years = [f for f in moments if f.kind is Kind.DATE]
        yield from (Reckoning(a.values[0] - b.values[0], (a, b), per=None) for a, b in permutations(years, 2))
    if claim.kind in (Kind.TIME, Kind.DATE):
        scale = _MINUTE if claim.kind is Kind.TIME else 12 * _MONTH
        for one, span in ((a, b) for a in moments if a.kind is claim.kind for b in spans):
            for moment, way in ((m, w) for m in one.values for w in (1, -1)):
                away = moment + way * _amount(span) / scale
                away = away % _DAY if claim.kind is Kind.TIME else away
                yield Reckoning(away, (one, span), _EXACT, per=None)


def _common(*figures: Figure) -> frozenset[str] | None:
    """The periods that all of several figures are per, those left out where they go without saying, or None
    where they differ."""
    said = {periods for figure in figures if (periods := _periods(figure))}
    return next(iter(said), _NO_PERIOD) if len(said) < 2 else None


def _products(claim: Figure, one: Figure, count: Figure, cues: Cues) -> Iterator[Reckoning]:
    """An amount so many times, and one of so many parts of it.

    How much it is a day of what is taken so often a day counts for a figure per day only, and where the claim
    says how often, only if it has the single amount beside it: "400 mg twice a day" is not that much a day.
    """
    product, quotient = _amount(one) * _amount(count), _amount(one) / _amount(count)
    often = _periods(count)
    if not often:
        parts = set((one.per or "").split("/"))
        kept = set((claim.per or "").split("/")) - _periods(claim) - {""}  # "per person"
        if not kept or (kept <= parts and count.noun in parts - kept):
            yield Reckoning(product, (one, count), per=_periods(one) - {count.noun})
        yield Reckoning(quotient, (one, count), per=_periods(one))
    elif not _periods(one):
        asked = often == _periods(claim) or (not _periods(claim) and often <= cues.periods)
        if asked and (not cues.often or bool(_periods(claim))):
            plain, own = not cues.often, cues.often
            yield Reckoning(product, (one, count), plain=plain, own=own, per=often)
    elif _periods(one) == often:
        yield Reckoning(quotient, (one, count), own=True)


def _lengths(claim: Figure, own: Sequence[Figure], theirs: Sequence[Figure]) -> Iterator[Reckoning]:
    """How long it is between two times of day or dates, or from one end of a span to the other."""
    if claim.kind is not Kind.QUANTITY or dimension(claim) != "time":
        return
    figures = [f for f in (*own, *theirs) if f.kind in (Kind.TIME, Kind.DATE)][:_MAX_OPERANDS]
    loss = _MONTHS_DIFFER if claim.unit in _ROUND else _EXACT
    found: list[Reckoning] = []
    for one in figures:
        if one.kind is Kind.TIME and one.upper is not None:
            found.append(Reckoning((one.upper - one.values[0]) % _DAY * _MINUTE, (one,), _EXACT))
        elif one.last is not None and one.days:
            found += (Reckoning(days * _DAYS, (one,), loss) for days in _between(one.days[0], one.last))
    for one, other in combinations((f for f in figures if f.upper is None and f.last is None), 2):
        if one.kind is not other.kind:
            continue
        if one.kind is Kind.TIME:
            gaps = {(b - a) % _DAY for a in one.values for b in other.values if (b > a or b + a > _DAY)}
            found += (Reckoning(gap * _MINUTE, (one, other), _EXACT) for gap in gaps)
        else:
            pair = sorted((one, other), key=lambda f: f.days[0].year or 0)
            gaps = set(_between(pair[0].days[0], pair[1].days[0]))
            found += (Reckoning(days * _DAYS, (one, other), loss) for days in gaps)
    few = len(found) <= _FEW_LENGTHS
    for each in found:
        told = all(part in own for part in each.parts)
        yield each._replace(plain=told or few, own=not few, per=None)


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


def _is_share(figure: Figure) -> bool:
    return figure.kind is Kind.PERCENT or figure.fraction


def _rates(claim: Figure, operands: list[Figure], cues: Cues) -> Iterator[Reckoning]:
    """So much per one or per so many, times a quantity, or for one of them; and shares."""
    measure = dimension(claim)
    much = [f for f in operands if f.kind is Kind.QUANTITY and f.unit and dimension(f) != measure]
    for rate in _like(claim, operands) if measure in _ADDED else ():
        for one in much:
            if (found := _for_so_much(rate, one)) is not None:
                value, per = found
                yield Reckoning(value, (rate, one), own=True, per=per)
            for each in much:
                if dimension(each) == dimension(one) and _amount(each) and each is not one and not rate.per:
                    value = _amount(rate) * _amount(one) / _amount(each)
                    yield Reckoning(value, (rate, each, one), own=True)
    rated = (claim.per or "").split("/")
    for rate, one in ((r, o) for r in _like(claim, operands) for o in much if claim.per and not r.per):
        if one.values[0] and one.unit in rated:  # "€17 per square metre"
            value = _amount(rate) / one.values[0]
            yield Reckoning(value, (rate, one), own=True, per=_periods(claim))
    yield from _shares(claim, operands, cues)


def _shares(claim: Figure, operands: list[Figure], cues: Cues) -> Iterator[Reckoning]:
    """What share one figure is of another, by how much it is more or less, how many times as much, and how
    long a stock lasts."""
    measure = dimension(claim)
    for part, whole in permutations((f for f in operands if f.kind in _SHARED and not f.fraction), 2):
        if dimension(part) != dimension(whole) or not _amount(whole) or not _of_one_thing(part, whole):
            continue
        share, unit = _amount(part) / _amount(whole), find_unit(whole.per or "")
        if measure == "percent" and dimension(part) != "percent":
            if 0 < share < 1 and not cues.apart:
                loss = claim.step / 2 / (100 * share)
                yield Reckoning(100 * share, (part, whole), loss, own=True, per=None)
            change = 100 * (share - 1)
            if change and cues.compared and cues.way * change >= 0 and _common(part, whole) is not None:
                loss, change = claim.step / 2 / abs(change), abs(change)
                yield Reckoning(change, (part, whole), loss, own=True, compares=True, per=None)
        elif claim.unit == "time" and share > 1:
            yield Reckoning(share, (part, whole), own=True, compares=True, per=None)
        elif unit is not None and unit.dimension == measure:
            yield Reckoning(share * unit.factor, (part, whole), own=True, per=None)


def _changes(claim: Figure, changes: Sequence[Figure], said: set[Figure], cues: Cues) -> Iterator[Reckoning]:
    """What something that went from one amount to another changed by: "from 40 to 60", which is 50% more,
    20 more and 1.5 times as much."""
    times = claim.unit == "time" and claim.kind is Kind.QUANTITY
    if not (times or cues.compared):
        return
    spans = [f for f in changes if f.upper is not None and f.kind in _SHARED]
    for span in spans[:_MAX_OPERANDS]:
        first, last = base(span)[0]
        told, way = span in said, cues.way * (last - first)
        if first <= 0 or way < 0:
            continue
        if times:
            plain = told or len(spans) == 1
            yield Reckoning(last / first, (span,), plain=plain, own=True, per=None)
        elif dimension(claim) == "percent" and dimension(span) != "percent" and last != first:
            changed = 100 * abs(last / first - 1)
            loss = claim.step / 2 / changed
            yield Reckoning(changed, (span,), loss, plain=told, own=True, compares=True, per=None)
        elif dimension(claim) == dimension(span):
            change = abs(last - first)
            yield Reckoning(change, (span,), plain=told, own=True, compares=True, per=_periods(span))


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


def _two_steps(claim: Figure, own: list[Figure], cues: Cues) -> Iterator[Reckoning]:
    """A product and another or an amount together or apart, all of figures that are named."""
    if dimension(claim) not in _ADDED - {"number", "percent"}:
        return
    same = _like(claim, own)
    counts = _counts(own)
    products = [(r.value, r.parts, r.per) for a in same for n in counts for r in _products(claim, a, n, cues)]
    products += [(r.value, r.parts, r.per) for r in _rates(claim, own, cues) if len(r.parts) == 2]
    rates = [f for f in same if f.per]
    lengths = [f for f in own if dimension(f) == "time"]
    for high, low in permutations(rates, 2):  # what a lower rate saves over a year
        if high.per == low.per and (apart := _amount(high) - _amount(low)) > 0:
            for r in _other_periods(claim, [replace(high, values=(apart,))], lengths, cues):
                yield r._replace(parts=(high, low), own=True, plain=False)
    single = [(_amount(a), (a,), _periods(a)) for a in same]
    for (one, first, per), (other, second, other_per) in chain(
        combinations(products, 2), ((p, s) for p in products for s in single)
    ):
        if (per and other_per and per != other_per) or any(a is b for a in first for b in second):
            continue
        for value in (one + other, abs(one - other)):
            yield Reckoning(value, (*first, *second), own=True, per=per or other_per)


def _other_periods(
    claim: Figure, amounts: list[Figure], spans: list[Figure], cues: Cues
) -> Iterator[Reckoning]:
    """So much per month for what it is per year, and so on, where the claim says per what or speaks of that;
    for so many months; and so much per month of what comes to so much in a year."""
    said = _periods(claim)
    for one in amounts:
        parts = (one.per or "").split("/")
        part = next((part for part in parts if part in PERIODS), "")
        unit, left = PERIODS.get(part), _periods(one) - {part}
        for name, seconds in PERIODS.items() if unit else ():
            if seconds != unit and name in (said or cues.periods):
                exact = {unit, seconds} <= {_MONTH, 12 * _MONTH}
                loss, value = _LOSS if exact else _CALENDAR, _amount(one) * seconds / (unit or 1)
                per = (left | {name}) if said else None
                yield Reckoning(value, (one,), loss, plain=name in said, per=per)
        for span in spans if unit else ():
            value = _amount(one) * _amount(span) / (unit or 1)
            yield Reckoning(value, (one, span), _CALENDAR, per=left)
        whole = next((PERIODS[name] for name in said if name in PERIODS), None)
        if not one.per and whole:
            value = _amount(one) * whole / (12 * _MONTH)
            yield Reckoning(value, (one,), _CALENDAR, own=True, per=None)
