"""A claim's value against all values of a source."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from guardrail.values.agreement import agree, comparable
from guardrail.values.model import Value, ValueKind

_K: Final = ValueKind
#: Kinds of sources that may back a kind of claim.
_BACKED_BY: Final[dict[ValueKind, tuple[ValueKind, ...]]] = {
    _K.NUMBER: (_K.NUMBER, _K.PERCENT, _K.QUANTITY, _K.MONEY, _K.ORDINAL, _K.DATE, _K.VERSION, _K.PHONE),
    _K.PERCENT: (_K.PERCENT, _K.NUMBER),
    _K.MONEY: (_K.MONEY, _K.QUANTITY),
    _K.QUANTITY: (_K.QUANTITY, _K.NUMBER, _K.MONEY),
    _K.DATE: (_K.DATE, _K.NUMBER),
    _K.TIME: (_K.TIME,),
    _K.ORDINAL: (_K.ORDINAL, _K.NUMBER),
    _K.VERSION: (_K.VERSION, _K.NUMBER, _K.IDENTIFIER),
    _K.IDENTIFIER: (_K.IDENTIFIER, _K.VERSION, _K.PHONE),
    _K.EMAIL: (_K.EMAIL,),
    _K.URL: (_K.URL,),
    _K.PHONE: (_K.PHONE, _K.NUMBER, _K.IDENTIFIER),
    _K.NAME: (_K.NAME,),
}


class MatchState(StrEnum):
    """FOUND: an equivalent is there. CONFLICT: the same sort of thing with another amount. ABSENT: neither."""

    FOUND = "found"
    CONFLICT = "conflict"
    ABSENT = "absent"


class Match(NamedTuple):
    """What became of a claim's value, and the source's value that backs or opposes it."""

    state: MatchState
    source: Value | None = None


class ValueSet:
    """The values of a source, by kind, so that many claims can be matched cheaply."""

    __slots__ = ("_by_kind",)

    def __init__(self, values: Iterable[Value]) -> None:
        self._by_kind: dict[ValueKind, list[Value]] = {}
        for value in values:
            self._by_kind.setdefault(value.kind, []).append(value)

    def match(self, claim: Value) -> Match:
        """The first value that backs ``claim``; else the first that it is comparable with; else ABSENT."""
        for kind in _BACKED_BY[claim.kind]:
            for source in self._by_kind.get(kind, ()):
                if agree(claim, source):
                    return Match(MatchState.FOUND, source)
        for source in self._by_kind.get(claim.kind, ()):
            if comparable(claim, source):
                return Match(MatchState.CONFLICT, source)
        return Match(MatchState.ABSENT)


def match(claim: Value, sources: Iterable[Value]) -> Match:
    """``ValueSet(sources).match(claim)``, for one claim."""
    return ValueSet(sources).match(claim)
