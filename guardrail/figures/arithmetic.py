"""Is a figure a right sum, difference, product, quotient, rate or share of others?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise, permutations
from typing import Final, NamedTuple

from guardrail.figures.agreement import base, dimension
from guardrail.figures.model import Bound, Figure, Kind
from guardrail.figures.tables import OPERATORS, find_unit, same_currency

_MONTH: Final = 2_629_746  # seconds
_PER: Final = {"h": 3600, "day": 86_400, "week": 604_800, "month": _MONTH, "year": 12 * _MONTH}
_LOSS: Final = 0.002  # what rounding to cents costs
_CALENDAR: Final = 0.02  # 52 weeks a year, 30 days a month
_EXACT: Final = 1e-6
_ABOUT: Final = 0.03  # what "roughly" may be off
_MAX_OPERANDS: Final = 12
_MAX_OWN: Final = 8
_GAP: Final = 24  # code points between two figures that an operator joins
_BRACKETS: Final = re.compile(r"[()\[\]*_`]*(?:[-–](?=[^\W\d]))?")
_ADDED: Final = frozenset({"money", "number", "percent", "time", "length", "mass", "volume", "area", "data"})
_SHARED: Final = frozenset({Kind.MONEY, Kind.QUANTITY, Kind.NUMBER})
_MINUTE: Final = 60


class _Reckoning(NamedTuple):
    """A value, what it is reckoned from, how exact it must be, whether it needs no word that says so, and
    whether one operand at least must be the claim's or the question's own."""

    value: float
    parts: tuple[Figure, ...]
    loss: float = _LOSS
    plain: bool = False
    own: bool = False


def derived(
    claim: Figure, own: Sequence[Figure], theirs: Sequence[Figure], *, reckons: bool, hints: bool = False
) -> tuple[Figure, ...] | None:
    """The operands that a claim's figure is reckoned from, or None.

    Sums of two or three and differences of figures that measure the same, products with a plain number or a
    percentage, rates times a quantity, shares, prices per another period, times of day a duration away, the
    years between two dates, and a product with another or an amount added, all of ``own`` figures: the other
    ones of the claim, its lead-in and the question. Where no word says that the claim reckons (``reckons``),
    only what can hardly be by chance counts; where one hints at it (``hints``), an operand must be of
    ``own``.
    """
    if not claim.values or claim.upper is not None:
        return None
    target = _amount(claim)
    place = claim.step * (abs(target / claim.values[0]) if claim.values[0] else 1.0) / 2  # of what is rounded
    mine, others = ([f for f in group if f.values and not f.name and not f.upper] for group in (own, theirs))
    mine = list(dict.fromkeys(mine))[:_MAX_OWN]
    known = {(f.kind, f.values, f.unit) for f in own}
    operands = [*mine, *(f for f in others if (f.kind, f.values, f.unit) not in known)][:_MAX_OPERANDS]
    found = [_reckonings(claim, operands), _rates(claim, operands)]
    if reckons or hints:
        found.append(_two_steps(claim, mine))
    for value, parts, loss, plain, needs_own in chain(*found):
        loss = max(loss, _ABOUT if claim.bound is Bound.ABOUT or claim.fraction else 0.0)
        error = loss * max(abs(value), abs(target))
        if abs(value - target) > (min(error, place) if loss == _LOSS else error) + _EXACT * abs(target):
            continue
        named = sum(part in mine for part in parts)
        alike = all(dimension(part) == dimension(claim) for part in parts)  # added, not multiplied
        enough = len(parts) if alike and not reckons else 1
        if plain or (reckons and not needs_own) or ((hints or reckons) and named >= enough):
            return parts
        by_chance = needs_own or alike or claim.kind is not Kind.MONEY
        if len(parts) == 2 and parts[1] in mine and not by_chance:
            return parts
    return None


class Written(NamedTuple):
    """What a text reckons with signs or words ("2 × €5 plus €3"): the results, whose ``text`` is the whole,
    the figures that went in, and those of them that are bare factors."""

    results: tuple[Figure, ...]
    operands: tuple[Figure, ...]
    factors: tuple[Figure, ...]


def written(text: str, figures: Sequence[Figure]) -> Written:
    """The reckonings of a text; linear."""
    runs = [[("", figure)] for figure in figures[:1]]
    for before, after in pairwise(figures):
        if sign := _operator(text, before, after):
            runs[-1].append((sign, after))
        else:
            runs.append([("", after)])
    results: list[Figure] = []
    operands: list[Figure] = []
    factors: list[Figure] = []
    for run in runs:
        if len(run) > 1 and (result := _result(run)) is not None:
            start, end = run[0][1].start, run[-1][1].end
            results.append(replace(result, start=start, end=end, text=text[start:end]))
            operands += (figure for _, figure in run)
            pairs = ((one, other) for (_, one), (sign, other) in pairwise(run) if sign == "*")
            factors += (f for pair in pairs for f in pair if dimension(f) in ("number", "time"))
    return Written(tuple(results), tuple(operands), tuple(factors))


def _operator(text: str, before: Figure, after: Figure) -> str | None:
    """The sign between two figures; "2×" and "twice" hold theirs."""
    between = text[before.end : after.start] if after.start - before.end <= _GAP else "?"
    said = _BRACKETS.sub("", between.casefold()).strip()
    holds = before.unit == "time" and before.kind is Kind.QUANTITY and not before.per
    return "*" if not said and holds else OPERATORS.get(said)


def _result(run: Sequence[tuple[str, Figure]]) -> Figure | None:
    """What comes out of factors and addends, in the unit of the first that has one."""
    total, product, sense = 0.0, 0.0, 1.0
    for sign, figure in run:
        if not figure.values or figure.upper is not None:
            return None
        value = figure.values[0] / (100 if figure.kind is Kind.PERCENT else 1)
        if sign in ("*", "/"):
            product = product * value if sign == "*" else product / value if value else 0.0
        else:
            total += sense * product
            product, sense = value, -1.0 if sign == "-" else 1.0
            product *= total if figure.kind is Kind.PERCENT and sign else 1.0
    figures = [f for _, f in run if f.kind in (Kind.MONEY, Kind.QUANTITY, Kind.NUMBER)]
    order = sorted(figures, key=lambda f: (f.kind is not Kind.MONEY, dimension(f) == "number"))
    return replace(order[0], values=(total + sense * product,), per=None) if order else None


def _amount(figure: Figure) -> float:
    return figure.values[0] if figure.kind is Kind.DATE else base(figure)[0][0]


def _reckonings(claim: Figure, operands: list[Figure]) -> Iterator[_Reckoning]:
    measure = dimension(claim)
    same, counts = _like(claim, operands), _counts(operands)
    spans = [f for f in operands if dimension(f) == "time"]
    moments = [f for f in operands if f.kind in (Kind.TIME, Kind.DATE)]
    if measure in _ADDED:
        for one, count in ((a, b) for a in same for b in counts if a is not b and measure != "percent"):
            yield _Reckoning(_amount(one) * _amount(count), (one, count))
            yield _Reckoning(_amount(one) / _amount(count), (one, count))
        for size in (2, 3):
            yield from (_Reckoning(sum(map(_amount, g)), g) for g in combinations(same, size))
        yield from (_Reckoning(_amount(a) - _amount(b), (a, b)) for a, b in permutations(same, 2))
        for one, share in ((a, b) for a in same for b in operands if b.kind is Kind.PERCENT and a is not b):
            part = _amount(one) * _amount(share) / 100
            yield from (_Reckoning(value, (one, share)) for value in (part, _amount(one) - part))
    if measure == "percent":
        yield from (_Reckoning(100 - _amount(one), (one,)) for one in same)
    if measure == "money":
        yield from _other_periods(claim, same, spans)
    if measure == "time" or (claim.kind is Kind.NUMBER and claim.unit is None):
        scales = {Kind.TIME: _MINUTE, Kind.DATE: 12 * _MONTH if measure == "time" else 1}
        for one, other in permutations(moments, 2):
            if one.kind is other.kind and (measure == "time" or one.kind is Kind.DATE):
                gap = (one.values[0] - other.values[0]) * scales[one.kind]
                yield _Reckoning(gap, (one, other), plain=measure == "time" and one.kind is Kind.TIME)
    if claim.kind in (Kind.TIME, Kind.DATE):
        scale = _MINUTE if claim.kind is Kind.TIME else 12 * _MONTH
        for one, span in ((a, b) for a in moments if a.kind is claim.kind for b in spans):
            yield from (
                _Reckoning(one.values[0] + s * _amount(span) / scale, (one, span), 1e-6) for s in (1, -1)
            )


def _rates(claim: Figure, operands: list[Figure]) -> Iterator[_Reckoning]:
    """So much per one or per so many, times a quantity; how long a stock lasts; and what share a part is."""
    measure = dimension(claim)
    much = [f for f in operands if f.kind is Kind.QUANTITY and f.unit and dimension(f) != measure]
    for rate in _like(claim, operands) if measure in _ADDED else ():
        for one in much:
            if (value := _for_so_much(rate, one)) is not None:
                yield _Reckoning(value, (rate, one), own=True)
            for each in much:
                if dimension(each) == dimension(one) and _amount(each) and each is not one and not rate.per:
                    value = _amount(rate) * _amount(one) / _amount(each)
                    yield _Reckoning(value, (rate, each, one), own=True)
    for part, whole in permutations((f for f in operands if f.kind in _SHARED), 2):
        counted = dimension(part) == "number"
        if dimension(part) != dimension(whole) or not _amount(whole):
            continue
        if counted and (part.unit or part.noun) != (whole.unit or whole.noun) and not claim.fraction:
            continue
        share, unit = _amount(part) / _amount(whole), find_unit(whole.per or "")
        if measure == "percent" and 0 < share < 1 and dimension(part) != "percent":
            yield _Reckoning(100 * share, (part, whole), claim.step / 2 / (100 * share), own=True)
        elif unit is not None and unit.dimension == measure:
            yield _Reckoning(share * unit.factor, (part, whole), own=True)


def _like(claim: Figure, operands: list[Figure]) -> list[Figure]:
    """The operands that measure what the claim's figure does."""
    same = [f for f in operands if dimension(f) == dimension(claim) and f.kind is not Kind.ORDINAL]
    money = claim.kind is Kind.MONEY
    return [f for f in same if f.values[0] and (not money or same_currency(claim.unit or "", f.unit or ""))]


def _counts(operands: list[Figure]) -> list[Figure]:
    numbers = (f for f in operands if dimension(f) == "number" and f.kind is not Kind.ORDINAL)
    return [f for f in numbers if f.values[0] > 1]


def _for_so_much(rate: Figure, much: Figure) -> float | None:
    """What ``much`` comes to at a rate; of one that doesn't say per what, per unit as written."""
    if not rate.per:
        return _amount(rate) * much.values[0]
    number, _, name = rate.per.rpartition(" ")  # "6 h"
    unit = find_unit(name)
    if unit is None or unit.dimension != dimension(much) or "-" in number:
        return None
    return _amount(rate) * _amount(much) / (unit.factor * float(number or 1))


def _two_steps(claim: Figure, own: list[Figure]) -> Iterator[_Reckoning]:
    """A product and another or an amount together or apart, all of figures that are named."""
    if dimension(claim) not in _ADDED - {"number", "percent"}:
        return
    same = _like(claim, own)
    products = [(_amount(a) * _amount(n), (a, n)) for a in same for n in _counts(own)]
    products += [(r.value, r.parts) for r in _rates(claim, own) if len(r.parts) == 2]
    single = [(_amount(a), (a,)) for a in same]
    for (one, first), (other, second) in chain(
        combinations(products, 2), ((p, s) for p in products for s in single)
    ):
        if not any(a is b for a in first for b in second):
            for value in (one + other, abs(one - other)):
                yield _Reckoning(value, (*first, *second), own=True)


def _other_periods(claim: Figure, prices: list[Figure], spans: list[Figure]) -> Iterator[_Reckoning]:
    """A price per month for one per year, and so on; or for so many months."""
    for one in prices:
        unit = _PER.get((one.per or "").split("/")[0])
        for name, seconds in _PER.items() if unit else ():
            if seconds != unit and claim.per in (None, name):
                exact = {unit, seconds} <= {_MONTH, 12 * _MONTH}
                loss = _LOSS if exact else _CALENDAR
                yield _Reckoning(_amount(one) * seconds / (unit or 1), (one,), loss, plain=claim.per == name)
        yield from (_Reckoning(_amount(one) * _amount(s) / unit, (one, s), _CALENDAR) for s in spans if unit)
