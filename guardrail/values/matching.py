"""A claim's value against all values of a source."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from guardrail.values.agreement import BARE_DEGREES, SCALES, agree, comparable
from guardrail.values.model import Value, ValueKind
from guardrail.values.names import fold_text
from guardrail.values.scan import extract
from guardrail.values.units import BY_NAME, COUNTS

_K: Final = ValueKind
#: Other kinds of sources that may back a kind of claim.
_BACKED_BY: Final[dict[ValueKind, tuple[ValueKind, ...]]] = {
    _K.NUMBER: (_K.PERCENT, _K.QUANTITY, _K.MONEY, _K.ORDINAL, _K.DATE, _K.VERSION, _K.PHONE),
    _K.PERCENT: (_K.NUMBER,),
    _K.MONEY: (_K.QUANTITY,),
    _K.QUANTITY: (_K.NUMBER, _K.MONEY),
    _K.DATE: (_K.NUMBER,),
    _K.TIME: (),
    _K.ORDINAL: (_K.NUMBER,),
    _K.VERSION: (_K.NUMBER, _K.IDENTIFIER),
    _K.IDENTIFIER: (_K.VERSION, _K.PHONE),
    _K.EMAIL: (),
    _K.URL: (),
    _K.PHONE: (_K.NUMBER, _K.IDENTIFIER),
    _K.NAME: (),
}


class MatchState(StrEnum):
    """FOUND: an equivalent is there. CONFLICT: the same sort of thing, but another. ABSENT: neither."""

    FOUND = "found"
    CONFLICT = "conflict"
    ABSENT = "absent"


class Match(NamedTuple):
    """What became of a claim's value, and the source's value that backs or opposes it.

    A name may be FOUND without a value: its words stand in the source's text.
    """

    state: MatchState
    source: Value | None = None


class _Entry(NamedTuple):
    """A source's value, and the interval that its readings span (in the base unit of its dimension)."""

    value: Value
    low: float
    high: float


class ValueSet:
    """The values of a source, by kind, so that many claims can be matched cheaply.

    Before ``agree`` is asked, amounts that are too far apart for any of its rules are passed over.
    """

    __slots__ = ("_by_kind", "_words")

    def __init__(self, values: Iterable[Value], text: str = "") -> None:
        """``text``: where they are from. A claim's name then may stand anywhere in it, so that what
        extraction leaves out as doubtful (a sentence's first word, a speaker's "Tom:") still backs it."""
        self._words = fold_text(text) if text else ""
        self._by_kind: dict[ValueKind, list[_Entry]] = {}
        for value in values:
            self._by_kind.setdefault(value.kind, []).append(_Entry(value, *_interval(value)))

    @classmethod
    def of(cls, text: str) -> ValueSet:
        """The values of a text."""
        return cls(extract(text), text)

    def match(self, claim: Value) -> Match:
        """The first value that backs ``claim``; else the nearest that it is comparable with; else ABSENT."""
        entries = self._by_kind.get(claim.kind, [])
        low, high = _interval(claim)
        slack = _SLACK * max(abs(low), abs(high)) + _TINY
        low, high = low - slack, high + slack
        for value, bottom, top in entries:
            if bottom <= high and top >= low and agree(claim, value):
                return Match(MatchState.FOUND, value)
        for kind in _other_kinds(claim):
            for entry in self._by_kind.get(kind, ()):
                if agree(claim, entry.value):
                    return Match(MatchState.FOUND, entry.value)
        if claim.kind in (ValueKind.NAME, ValueKind.IDENTIFIER) and self._mentions(claim):
            return Match(MatchState.FOUND)
        nearest, distance = None, float("inf")
        middle = (low + high) / 2
        for value, bottom, top in self._rivals(claim, entries):
            gap = abs((bottom + top) / 2 - middle)
            if gap < distance and comparable(claim, value):
                nearest, distance = value, gap
        return Match(MatchState.ABSENT) if nearest is None else Match(MatchState.CONFLICT, nearest)

    def _rivals(self, claim: Value, entries: list[_Entry]) -> list[_Entry]:
        """The values that may be at odds with the claim; for a bare number also quantities ("over 12")."""
        if claim.kind is ValueKind.NUMBER and claim.noun is None:
            return entries + self._by_kind.get(ValueKind.QUANTITY, [])
        return entries

    def _mentions(self, claim: Value) -> bool:
        words = " ".join(claim.words) if claim.kind is ValueKind.NAME else fold_text(claim.text).strip()
        return bool(words) and any(
            f" {form} " in self._words for form in (words, words.removesuffix("s"), words + "s")
        )


_SLACK: Final = 0.35  # more than the loosest rule of ``agree`` forgives
_TINY: Final = 1e-9


def _interval(value: Value) -> tuple[float, float]:
    """Every amount that the value may mean lies in here; (0, 0) for what is no number."""
    if not value.readings or value.kind is ValueKind.DATE:
        return 0.0, 0.0
    amounts = [float(x) for x in value.readings]
    if value.upper is not None:
        amounts.append(float(value.upper))
    unit = BY_NAME.get(value.unit or "") if value.kind is ValueKind.QUANTITY else None
    units = [unit] if unit is not None else []
    if value.unit == BARE_DEGREES:
        units += [BY_NAME[scale] for scale in SCALES]
    amounts = [x * float(u.factor) + float(u.offset) for u in units for x in amounts] or amounts
    return min(amounts), max(amounts)


def _other_kinds(claim: Value) -> Iterable[ValueKind]:
    """Kinds other than its own that may back the claim, see ``agree``."""
    kind = claim.kind
    if kind is ValueKind.NUMBER and claim.noun is not None and not claim.fraction:
        kinds = (_K.ORDINAL, _K.DATE, _K.PHONE, _K.VERSION)
        return (*kinds, _K.QUANTITY) if claim.noun in COUNTS else kinds
    if kind is ValueKind.QUANTITY and claim.unit not in COUNTS:
        return (_K.MONEY,) if claim.unit == "lb" else ()
    if kind is ValueKind.MONEY and claim.unit != "GBP":
        return ()
    return _BACKED_BY[kind]


def match(claim: Value, sources: Iterable[Value]) -> Match:
    """``ValueSet(sources).match(claim)``, for one claim."""
    return ValueSet(sources).match(claim)
