"""How the digits of a figure may be written: a cheap index of texts that are too long to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from guardrail.figures.agreement import base, dimension
from guardrail.figures.model import Figure, Kind
from guardrail.figures.tables import ONES, TENS, UNIT

_NUMERAL: Final = re.compile(r"\d++(?:[.,'’]\d++)*+")
_PART: Final = re.compile(r"[.,'’]")
_WORD: Final = re.compile(r"[^\W\d_]++")
_WORDS: Final = {word: str(number).strip("0") for word, number in {**ONES, **TENS}.items() if number}
_LONGEST: Final = 40
_HOURS: Final = (0, 12)


def digits_of(text: str) -> set[str]:
    """The digits of every numeral of a text and of its parts, and those of number words, without zeros before
    and after: "1,200" and "twelve" have 12. Linear."""
    found = {_WORDS[word] for word in _WORD.findall(text.casefold()) if word in _WORDS}
    for numeral in _NUMERAL.findall(text):
        parts = _PART.split(numeral)
        found.update(part.strip("0") for part in ("".join(parts), *parts) if len(part) <= _LONGEST)
    return found


def written_digits(figure: Figure) -> set[str]:
    """The digits that ``digits_of`` finds where a text has this figure, in any unit."""
    found = {f"{value:.10g}" for value in _amounts(figure)}
    return {digits for text in found if "e" not in text and (digits := text.replace(".", "").strip("0-"))}


def _amounts(figure: Figure) -> Iterator[float]:
    for day in (*figure.days, *((figure.last,) if figure.last else ())):
        yield from (float(part) for part in (day.day, day.year) if part)
    if figure.kind is Kind.TIME:
        yield from (time // 60 - before for time in figure.values for before in _HOURS)
        return
    yield from figure.values
    if figure.upper is not None:
        yield figure.upper
    measure = dimension(figure)
    for unit in UNIT.values():
        if figure.kind is Kind.QUANTITY and unit.dimension == measure:
            yield from ((reading[0] - unit.zero) / unit.factor for reading in base(figure))
