"""May a source's value back a claim's? The rules are about meaning; spelling was folded before."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Final

from guardrail.values.model import Bound, DateParts, Value, ValueKind
from guardrail.values.names import same_name
from guardrail.values.units import BY_NAME, COUNTS, same_currency

_HUNDRED: Final = Decimal(100)
_TEN: Final = Decimal(10)
_LOSS: Final = Decimal("1e-9")  # what thirds and Fahrenheit lose in 28 digits
_SLACK: Final = Decimal("0.01")  # rounding that needs no "about"
_ABOUT: Final = Decimal("0.025")
_ABOUT_MAX: Final = Decimal("0.1")
_LIMIT: Final = Decimal("0.25")  # how far an amount may be from a round limit that it keeps: "over 3 million"
_CLOSE: Final = Decimal(
    "0.1"
)  # and a count, share or price from any: "more than 358", "less than $24.5 million"
_COUNTED: Final = frozenset({ValueKind.NUMBER, ValueKind.PERCENT, ValueKind.MONEY})
_ROUND_UNITS: Final = frozenset({"decade", "century"})
_NUMERIC: Final = frozenset(
    {ValueKind.NUMBER, ValueKind.PERCENT, ValueKind.MONEY, ValueKind.QUANTITY, ValueKind.ORDINAL}
)
_NAMED: Final = frozenset({ValueKind.NUMBER, ValueKind.VERSION, ValueKind.IDENTIFIER})
_DAY: Final = 24 * 60
BARE_DEGREES: Final = "deg"
SCALES: Final = frozenset({"°C", "°F"})
"""What "40 degrees" may be of, besides an angle."""
_LEFT_OUT: Final = frozenset({"year"})  # units that readers supply: "children under 12"


def agree(claim: Value, source: Value) -> bool:
    """May ``source`` back ``claim``? Equivalents agree; a claim more precise than its source does not."""
    kind, other = claim.kind, source.kind
    if kind is ValueKind.NAME:
        return other is ValueKind.NAME and same_name(claim.words, source.words)
    if kind is ValueKind.DATE or other is ValueKind.DATE:
        return _dates_agree(claim, source)
    if kind is ValueKind.TIME:
        return other is ValueKind.TIME and _times_agree(claim, source)
    if kind in _NUMERIC and other in _NUMERIC:
        return _numbers_agree(claim, source)
    if kind is ValueKind.PHONE or other is ValueKind.PHONE:
        return _phones_agree(claim, source)
    named = kind is other or (kind in _NAMED and other in _NAMED)
    return named and bool(claim.key) and claim.key == source.key


# ---------------------------------------------------------------------------------------------- numbers


def comparable(claim: Value, source: Value) -> bool:
    """Do both say the same sort of thing, so that different amounts would be a conflict?"""
    if claim.kind is ValueKind.NUMBER and _bare_limit(claim) and claim.bound is source.bound:
        # "over 12" is at odds with "over 6 years": the unit goes without saying.
        return source.unit in _LEFT_OUT or (source.kind is claim.kind and _bare_limit(source))
    if claim.kind is not source.kind:
        return False
    if (
        claim.bound in (Bound.OVER, Bound.UNDER)
        and not source.bound.direction
        and _within_limit(claim, source)
    ):
        return False
    if claim.kind is ValueKind.MONEY:
        return same_currency(claim.unit or "", source.unit or "") and _same_rate(claim, source)
    if claim.kind is ValueKind.QUANTITY:
        a, b = BY_NAME[claim.unit or "time"], BY_NAME[source.unit or "time"]
        one_sort = a.dimension == b.dimension or _bare_degrees(claim, source)
        return one_sort and _same_rate(claim, source)
    if claim.kind in (ValueKind.NUMBER, ValueKind.ORDINAL):
        return claim.noun is not None and claim.noun == source.noun
    if claim.kind is ValueKind.DATE:
        return any(_as_precise(a, b) for a in claim.dates for b in source.dates)
    return claim.kind not in (ValueKind.NAME, ValueKind.IDENTIFIER)


def _bare_degrees(claim: Value, source: Value) -> bool:
    """Does one say "40 degrees" and the other of what scale?"""
    units = {claim.unit, source.unit}
    return BARE_DEGREES in units and not SCALES.isdisjoint(units)


def _bare_limit(value: Value) -> bool:
    return value.noun is None and value.bound in (Bound.OVER, Bound.UNDER) and not value.fraction


def _as_precise(claim: DateParts, source: DateParts) -> bool:
    """Does the source say everything of its date that the claim says of its own?"""
    return (
        (claim.year is None or source.year is not None)
        and (claim.month is None or source.month is not None)
        and (claim.day is None or source.day is not None)
        and (claim.weekday is None or _weekday(source) is not None)
        and (claim.quarter is None or source.quarter is not None or source.month is not None)
        and source.years <= claim.years
    )


def _within_limit(claim: Value, source: Value) -> bool:
    """ "More than $1 million" is too vague to be backed by $160 million, but not contradicted by it.

    Only so where the source gives an amount: "below 30 °C" contradicts "below 25 °C".
    """
    way = claim.bound.direction
    return any(way * (theirs[0] - ours[0]) >= 0 for ours, theirs, _ in _in_one_unit(claim, source))


def _same_rate(claim: Value, source: Value) -> bool:
    return claim.per is None or source.per is None or claim.per == source.per


def _numbers_agree(claim: Value, source: Value) -> bool:
    if claim.bound.direction * source.bound.direction < 0 or not _same_rate(claim, source):
        return False
    pairs = _in_one_unit(claim, source)
    return any(_amounts_agree(claim, source, a, b, step) for a, b, step in pairs)


def _in_one_unit(
    claim: Value, source: Value
) -> list[tuple[tuple[Decimal, ...], tuple[Decimal, ...], Decimal]]:
    """(amounts of the claim, of the source, step of the claim) in a common unit; empty when there is none."""
    ours, theirs, step = _amounts(claim), _amounts(source), claim.step
    kinds = (claim.kind, source.kind)
    if claim.kind is source.kind:
        if claim.kind is ValueKind.MONEY:
            return _product(ours, theirs, step) if same_currency(claim.unit or "", source.unit or "") else []
        if claim.kind is ValueKind.QUANTITY and claim.unit != source.unit:
            bare = _bare_degrees(claim, source)
            return _product(ours, theirs, step) if bare else _converted(claim, source)
        return _product(ours, theirs, step)
    if ValueKind.PERCENT in kinds and ValueKind.NUMBER in kinds:
        number = claim if claim.kind is ValueKind.NUMBER else source
        if number.fraction:
            scale = _HUNDRED
            if number is claim:
                return _product([tuple(x * scale for x in a) for a in ours], theirs, step * scale)
            return _product(ours, [tuple(x * scale for x in b) for b in theirs], step)
        return _product(ours, theirs, step) if claim is number and claim.noun is None else []
    if kinds == (ValueKind.QUANTITY, ValueKind.NUMBER):
        return _product(ours, theirs, step) if claim.unit in COUNTS and source.noun is None else []
    if claim.kind is ValueKind.NUMBER and source.kind in (ValueKind.QUANTITY, ValueKind.MONEY):
        return (
            _product(ours, theirs, step)
            if claim.noun is None or (source.unit in COUNTS and claim.noun == source.unit)
            else []
        )
    if set(kinds) == {ValueKind.ORDINAL, ValueKind.NUMBER}:
        both = claim.noun is None or source.noun is None or claim.noun == source.noun
        return _product(ours, theirs, step) if both and not (claim.fraction or source.fraction) else []
    if set(kinds) == {ValueKind.MONEY, ValueKind.QUANTITY}:  # "50 pounds" may be either
        pound = {claim.unit, source.unit} == {"GBP", "lb"} and "ound" in claim.text + source.text
        return _product(ours, theirs, step) if pound else []
    return []


def _amounts(value: Value) -> list[tuple[Decimal, ...]]:
    """Each reading as (amount,) or (lower, upper)."""
    if value.upper is not None:
        return [(value.readings[0], value.upper)]
    return [(reading,) for reading in value.readings]


def _product(
    ours: list[tuple[Decimal, ...]], theirs: list[tuple[Decimal, ...]], step: Decimal
) -> list[tuple[tuple[Decimal, ...], tuple[Decimal, ...], Decimal]]:
    return [(a, b, step) for a in ours for b in theirs]


def _converted(claim: Value, source: Value) -> list[tuple[tuple[Decimal, ...], tuple[Decimal, ...], Decimal]]:
    """Both in the claim's unit, so that its rounding means what it meant as written."""
    ours, theirs = BY_NAME[claim.unit or "time"], BY_NAME[source.unit or "time"]
    if ours.dimension != theirs.dimension:
        return []
    shift = theirs.offset - ours.offset
    b = [tuple((x * theirs.factor + shift) / ours.factor for x in reading) for reading in _amounts(source)]
    return _product(_amounts(claim), b, claim.step)


def _amounts_agree(
    claim: Value, source: Value, ours: tuple[Decimal, ...], theirs: tuple[Decimal, ...], step: Decimal
) -> bool:
    if len(ours) == 2:
        return len(theirs) == 2 and all(
            _near(claim, source, a, b, step) for a, b in zip(ours, theirs, strict=True)
        )
    amount = ours[0]
    if len(theirs) == 2:
        inside = claim.bound is Bound.ABOUT and theirs[0] <= amount <= theirs[1]
        return inside or any(_near(claim, source, amount, end, step) for end in theirs)
    return _near(claim, source, amount, theirs[0], step)


def _near(claim: Value, source: Value, ours: Decimal, theirs: Decimal, step: Decimal) -> bool:
    if ours == theirs:
        return True
    gap, size = abs(ours - theirs), max(abs(ours), abs(theirs))
    if gap <= size * _LOSS:
        return True
    converted = claim.unit != source.unit and claim.kind is ValueKind.QUANTITY
    rounded = gap <= step / 2 * (1 + _LOSS)
    rounded_down = ours <= theirs < ours + step
    if claim.bound is Bound.EXACT:
        if (claim.fraction and source.kind is ValueKind.PERCENT) or source.fraction:
            return gap <= size * _SLACK
        loose = (
            claim.scaled
            or converted
            or (
                (claim.kind is not ValueKind.MONEY and theirs != theirs.to_integral_value())
                or source.bound is Bound.ABOUT
            )
        )
        return loose and rounded and gap <= size * (_ABOUT if converted else _SLACK)
    if source.bound.direction:
        # "Over five decades" is how "over 55 years" is said in decades.
        return claim.unit in _ROUND_UNITS and claim.bound is source.bound is Bound.OVER and rounded_down
    coarse = _coarse_step(ours)
    if claim.bound is Bound.ABOUT:
        return (
            gap <= size * _ABOUT
            or (rounded and gap <= size * _ABOUT_MAX)
            or gap <= min(coarse / 2, size * _ABOUT_MAX)
        )
    within = min(coarse, size * _LIMIT)
    # "At most", "at least" and whatever has a rate are rules: 11 kg is another one than 10 kg.
    if claim.bound in (Bound.OVER, Bound.UNDER) and claim.kind in _COUNTED and claim.per is None:
        within = max(within, size * _CLOSE)
    return 0 <= (theirs - ours) * claim.bound.direction < within


def _coarse_step(amount: Decimal) -> Decimal:
    """The place of the last digit that is not zero: 3,100,000 -> 100,000."""
    normal = amount.normalize()
    exponent = normal.as_tuple().exponent
    return _TEN ** (exponent if isinstance(exponent, int) else 0)


# ------------------------------------------------------------------------------------- dates and times


def _dates_agree(claim: Value, source: Value) -> bool:
    if claim.kind is source.kind:
        return any(covers(a, b) for a in claim.dates for b in source.dates)
    year, other = (claim, source) if claim.kind is ValueKind.DATE else (source, claim)
    if year.amount is None or other.kind is not ValueKind.NUMBER:
        return False
    return year.amount in other.readings


def covers(claim: DateParts, source: DateParts) -> bool:
    """Does the source say all that the claim says of the date? A year covers its days, never the reverse."""
    if claim.years > 1:
        if source.year is None or claim.year is None or source.years > claim.years:
            return False
        return claim.year <= source.year < claim.year + claim.years
    if source.years > 1 or (claim.year is not None and claim.year != source.year):
        return False
    if (claim.month is not None and claim.month != source.month) or (
        claim.day is not None and claim.day != source.day
    ):
        return False
    if claim.quarter is not None and claim.quarter != (
        source.quarter or (source.month and (source.month + 2) // 3)
    ):
        return False
    return claim.weekday is None or claim.weekday == _weekday(source)


def _weekday(parts: DateParts) -> int | None:
    if parts.weekday is not None or not (parts.year and parts.month and parts.day):
        return parts.weekday
    try:
        return date(parts.year, parts.month, parts.day).weekday()
    except ValueError:
        return None


def _times_agree(claim: Value, source: Value) -> bool:
    shift = 0 if claim.zone is None or source.zone is None else source.zone - claim.zone
    return any((a + shift) % _DAY == b % _DAY for a in claim.times for b in source.times)


# ---------------------------------------------------------------------------------------------- phones


def _phones_agree(claim: Value, source: Value) -> bool:
    """Punctuation ignored; a country code that only one side gives is skipped, a leading zero with it."""
    a, b = _digits(claim), _digits(source)
    if min(len(a), len(b)) < 3:
        return False
    if a == b:
        return True
    a, b = a.removeprefix("00").lstrip("0"), b.removeprefix("00").lstrip("0")
    short, long = sorted((a, b), key=len)
    return len(short) >= 7 and len(long) - len(short) <= 3 and long.endswith(short)


def _digits(value: Value) -> str:
    if value.kind is ValueKind.PHONE:
        return value.key
    return (
        "".join(c for c in value.text if c.isdigit())
        if value.kind in (ValueKind.NUMBER, ValueKind.IDENTIFIER)
        else ""
    )
