"""Is a figure a right sum, difference, product or multiple of others?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import Final, NamedTuple

from guardrail.figures.agreement import base, dimension
from guardrail.figures.model import Figure, Kind
from guardrail.figures.tables import same_currency

_MONTH: Final = 2_629_746  # seconds
_PER: Final = {"h": 3600, "day": 86_400, "week": 604_800, "month": _MONTH, "year": 12 * _MONTH}
_LOSS: Final = 0.002  # what rounding to cents costs
_CALENDAR: Final = 0.02  # 52 weeks a year, 30 days a month
_MAX_OPERANDS: Final = 12
_ADDED: Final = frozenset({"money", "number", "percent", "time", "length", "mass", "volume", "area", "data"})
_MINUTE: Final = 60


class _Reckoning(NamedTuple):
    """A value, what it is reckoned from, how exact it must be, and whether it needs a word that says so."""

    value: float
    parts: tuple[Figure, ...]
    loss: float = _LOSS
    plain: bool = False


def derived(
    claim: Figure, own: Sequence[Figure], theirs: Sequence[Figure], *, reckons: bool
) -> tuple[Figure, ...] | None:
    """The two or three operands that a claim's figure is reckoned from, or None.

    Sums of two or three and differences of figures that measure the same, products with a plain number or a
    percentage, prices per another period, times of day a duration away, and the years between two dates.
    ``own`` are the other figures of the claim and of the question. Where no word says that the claim reckons
    (``reckons``), only what can hardly be by chance counts.
    """
    if not claim.values or claim.upper is not None:
        return None
    target = _amount(claim)
    operands = [f for f in dict.fromkeys([*own, *theirs]) if f.values and not f.name and f.upper is None]
    for value, parts, loss, plain in _reckonings(claim, operands[:_MAX_OPERANDS]):
        near = abs(value - target) <= loss * max(abs(value), abs(target))
        if near and (plain or reckons or (len(parts) == 2 and parts[1] in own and claim.kind is Kind.MONEY)):
            return parts
    return None


def _amount(figure: Figure) -> float:
    return figure.values[0] if figure.kind is Kind.DATE else base(figure)[0][0]


def _reckonings(claim: Figure, operands: list[Figure]) -> Iterator[_Reckoning]:
    measure = dimension(claim)
    same = [f for f in operands if dimension(f) == measure and f.kind is not Kind.ORDINAL and f.values[0]]
    if measure == "money":
        same = [f for f in same if same_currency(claim.unit or "", f.unit or "")]
    counts = [f for f in operands if dimension(f) == "number" and f.kind is Kind.NUMBER and f.values[0] > 1]
    spans = [f for f in operands if dimension(f) == "time"]
    moments = [f for f in operands if f.kind in (Kind.TIME, Kind.DATE)]
    if measure in _ADDED:
        for one, count in ((a, b) for a in same for b in counts if a is not b):
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
