"""Is a figure a right sum, difference, product or multiple of others?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import Final

from guardrail.figures.agreement import base, dimension
from guardrail.figures.model import Figure, Kind

_MONTH: Final = 2_629_746  # seconds
_PER: Final = {"h": 3600, "day": 86_400, "week": 604_800, "month": _MONTH, "year": 12 * _MONTH}
_LOSS: Final = 0.002  # what rounding to cents costs
_CALENDAR: Final = 0.02  # 52 weeks a year, 30 days a month
_MAX_OPERANDS: Final = 10
_ADDED: Final = frozenset({"money", "number", "percent", "time", "length", "mass", "volume", "area", "data"})
_MINUTE: Final = 60


def derived(claim: Figure, operands: Sequence[Figure]) -> tuple[Figure, ...] | None:
    """The two or three operands that a claim's figure is reckoned from, or None.

    Sums of two or three and differences of figures that measure the same, products with a plain number or a
    percentage, prices per another period, times of day a duration away, and the years between two dates.
    """
    if not claim.values or claim.upper is not None:
        return None
    target = base(claim)[0][0] if claim.kind is not Kind.DATE else claim.values[0]
    for value, parts, loss in _reckonings(claim, list(dict.fromkeys(operands))[:_MAX_OPERANDS]):
        if abs(value - target) <= loss * max(abs(value), abs(target)):
            return parts
    return None


def _amount(figure: Figure) -> float:
    return figure.values[0] if figure.kind is Kind.DATE else base(figure)[0][0]


def _reckonings(claim: Figure, operands: list[Figure]) -> Iterator[tuple[float, tuple[Figure, ...], float]]:
    """Every value that may be reckoned, from what, and how exact it must be."""
    measure = dimension(claim)
    valued = [f for f in operands if f.values and not f.name and f.upper is None]
    same = [f for f in valued if dimension(f) == measure and not (f.fraction and f.kind is Kind.NUMBER)]
    plain = [f for f in valued if dimension(f) == "number"]
    if measure in _ADDED:
        for size in (2, 3):
            for group in combinations(same, size):
                yield sum(map(_amount, group)), group, _LOSS
        for first, second in permutations(same, 2):
            yield _amount(first) - _amount(second), (first, second), _LOSS
        for one in same:
            yield from ((_amount(one) * _amount(n), (one, n), _LOSS) for n in plain if n is not one)
            yield from ((_amount(one) / _amount(n), (one, n), _LOSS) for n in plain if n is not one and _amount(n))
    shares = [f for f in valued if dimension(f) == "percent"]
    if measure in {"money", "number"}:
        for one, share in ((one, share) for one in same for share in shares):
            part = _amount(one) * _amount(share) / 100
            for value in (part, _amount(one) - part, _amount(one) + part):
                yield value, (one, share), _LOSS
    if measure == "money":
        yield from _other_periods(claim, same)
        periods = [f for f in valued if dimension(f) == "time"]
        for one, period in ((one, period) for one in same for period in periods):
            unit = _PER.get((one.per or "").split("/")[0])
            if unit:
                yield _amount(one) * _amount(period) / unit, (one, period), _CALENDAR
    if measure == "time":
        for first, second in ((a, b) for a in valued for b in valued if _minutes(a) and _minutes(b)):
            yield (second.values[0] - first.values[0]) * _MINUTE, (first, second), _LOSS
        years = [f for f in valued if f.kind is Kind.DATE]
        for first, second in combinations(years, 2):
            yield abs(second.values[0] - first.values[0]) * 12 * _MONTH, (first, second), _LOSS
    if claim.kind is Kind.TIME:
        durations = [f for f in valued if dimension(f) == "time"]
        for one, duration in ((a, b) for a in valued if _minutes(a) for b in durations):
            for sign in (1, -1):
                yield one.values[0] + sign * _amount(duration) / _MINUTE, (one, duration), _LOSS
    if claim.kind is Kind.DATE:
        durations = [f for f in valued if dimension(f) == "time"]
        for one, duration in ((a, b) for a in valued if a.kind is Kind.DATE for b in durations):
            for sign in (1, -1):
                yield one.values[0] + sign * round(_amount(duration) / _MONTH / 12), (one, duration), 0.0


def _minutes(figure: Figure) -> bool:
    return figure.kind is Kind.TIME


def _other_periods(claim: Figure, prices: list[Figure]) -> Iterator[tuple[float, tuple[Figure, ...], float]]:
    """A price per month for one per year, and so on; where the claim does not say of what, of any."""
    for one in prices:
        unit = _PER.get((one.per or "").split("/")[0])
        for name, seconds in _PER.items():
            if unit and seconds != unit and claim.per in (None, name):
                exact = {unit, seconds} <= {_MONTH, 12 * _MONTH}
                yield _amount(one) * seconds / unit, (one,), _LOSS if exact else _CALENDAR
