"""Dates, periods and times of day."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from guardrail.values.lexicon import MONTHS, SHY_MONTHS, WEEKDAYS, ZONES, words
from guardrail.values.model import DateParts
from guardrail.values.numerals import ORDINALS
from guardrail.values.tokens import Tok, Token

_SUFFIXES: Final = frozenset({"st", "nd", "rd", "th"})
_AM: Final = frozenset({"am", "a.m.", "a.m"})
_PM: Final = frozenset({"pm", "p.m.", "p.m"})
_MONTH_AFTER: Final = words("""
    in of by until till since from before after during early late mid to through next last every
""")
_HOURS: Final = re.compile(r"(\d{1,2})h(\d{2})", re.IGNORECASE)
_DAY: Final = 24 * 60


class Found(NamedTuple):
    """A date or time read from tokens up to ``next``."""

    next: int
    dates: tuple[DateParts, ...] = ()
    times: tuple[int, ...] = ()
    zone: int | None = None


def is_year(token: Token) -> bool:
    """May this token be a year standing for itself?"""
    return (
        token.kind is Tok.NUMBER
        and len(token.text) == 4
        and token.text.isdigit()
        and 1000 <= int(token.text) <= 2199
    )


def _day_of(token: Token) -> int:
    """The day of a month that the token may be, or 0."""
    if token.kind is Tok.NUMBER and len(token.text) <= 2 and token.text.isdigit():
        day = int(token.text)
        return day if 1 <= day <= 31 else 0
    return 0


def _valid(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= (29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31)


def read_numeric_date(token: Token, i: int) -> Found | None:
    """ "2021-03-03", "03/04/2021" (both orders are readings), "3.4.21"."""
    parts = [int(p) for p in re.split(r"[-/.]", token.text)]
    if len(token.text.split(token.text[4])[0]) == 4 and parts[0] >= 1000:
        orders = [(parts[0], parts[1], parts[2])]
    else:
        year = parts[2] if parts[2] >= 100 else 2000 + parts[2] if parts[2] < 70 else 1900 + parts[2]
        orders = [(year, parts[1], parts[0])]
        if "." not in token.text and parts[0] != parts[1]:
            orders.insert(0, (year, parts[0], parts[1]))
    dates = tuple(DateParts(y, m, d) for y, m, d in orders if _valid(m, d))
    return Found(i + 1, dates) if dates else None


def read_day_month(tokens: list[Token], i: int) -> Found | None:
    """ "3 March 2021", "3rd of March", "3. März 2021"; ``i`` is at the number."""
    day, j = _day_of(tokens[i]), i + 1
    if not day:
        return None
    if (tokens[j].low in _SUFFIXES and tokens[j].start == tokens[i].end) or tokens[j].text in {".", "-"}:
        j += 1
    if tokens[j].low in {"of", "de"}:
        j += 1
    month = MONTHS.get(tokens[j].low) if tokens[j].kind is Tok.WORD else None
    if month is None or not _valid(month, day):
        return None
    year, after = _year_after(tokens, j + 1)
    if year is None and tokens[j].low in SHY_MONTHS and tokens[j].text[0].islower():
        return None
    return Found(after, (DateParts(year, month, day),))


def _year_after(tokens: list[Token], j: int) -> tuple[int | None, int]:
    """A year at ``j``, after "." "," "-" "of" or "de"."""
    k = j
    if tokens[k].text == ".":
        k += 1
    if tokens[k].low in {",", "of", "de", "-"}:
        k += 1
    if is_year(tokens[k]) and tokens[k + 1].text != "%":
        return int(tokens[k].text), k + 1
    return None, j


def read_month(tokens: list[Token], i: int) -> Found | None:
    """ "March 3rd, 2021", "March 2021", "in March"; ``i`` is at the month's name."""
    token = tokens[i]
    month = MONTHS[token.low]
    shy = token.low in SHY_MONTHS
    if token.text[0].islower() and (shy or not token.text.isascii() or len(token.text) < 5):
        return None
    j = i + 1
    if tokens[j].text == "." and tokens[j + 1].kind is Tok.NUMBER:
        j += 1
    day = _day_of(tokens[j])
    if day and _valid(month, day):
        j += 1
        if tokens[j].low in _SUFFIXES and tokens[j].start == tokens[j - 1].end:
            j += 1
        year, j = _year_after(tokens, j)
        return Found(j, (DateParts(year, month, day),))
    year, after = _year_after(tokens, i + 1)
    if year is not None:
        return Found(after, (DateParts(year, month),))
    previous = tokens[i - 1] if i else tokens[-1]
    if shy and previous.low not in _MONTH_AFTER:
        return None
    return Found(i + 1, (DateParts(month=month),))


def read_period(tokens: list[Token], i: int) -> Found | None:
    """ "1990s", "20th century", "300 BC", "Q3 2021", "third quarter of 2021", "FY2021", "Monday"."""
    token, after = tokens[i], tokens[i + 1]
    if token.kind is Tok.NUMBER:
        return _period_of_number(tokens, i)
    if token.low in WEEKDAYS:
        return Found(i + 1, (DateParts(weekday=WEEKDAYS[token.low]),)) if token.text[0].isupper() else None
    if token.kind is Tok.IDENT:
        if len(token.low) == 2 and token.low[0] == "q" and token.low[1] in "1234":
            year, j = _year_after(tokens, i + 1)
            return Found(j, (DateParts(year, quarter=int(token.low[1])),))
        if token.low.startswith("fy") and token.low[2:].isdigit() and len(token.low) == 6:
            return Found(i + 1, (DateParts(int(token.low[2:])),))
    rank = ORDINALS.get(token.low)
    if (
        rank is not None
        and after.low == "quarter"
        and rank <= 4
        and tokens[i + 2].low in {"of", ","} | _YEARLY
    ):
        year, j = _year_after(tokens, i + 2)
        return Found(j, (DateParts(year, quarter=rank),))
    if rank is not None and after.low == "century":
        return Found(i + 2, (DateParts((rank - 1) * 100, years=100),))
    return None


_YEARLY: Final = frozenset(str(year) for year in range(1900, 2100))


def _period_of_number(tokens: list[Token], i: int) -> Found | None:
    token, after = tokens[i], tokens[i + 1]
    if not token.text.isdigit() or len(token.text) > 4:
        return None
    number = int(token.text)
    last = i + 1 + (after.text in {"'", "’"} and len(token.text) == 4)  # "the 1960's"
    joined = all(tokens[j].start == tokens[j - 1].end for j in range(i + 1, last + 1))
    if tokens[last].low == "s" and joined and number % 10 == 0:
        if len(token.text) == 4:
            return Found(
                last + 1, (DateParts(number, years=100 if number % 100 == 0 and number < 2000 else 10),)
            )
        if len(token.text) == 2 and number >= 20 and tokens[i - (i > 0)].low not in {"over", "under"}:
            return Found(last + 1, (DateParts(1900 + number, years=10),))
    if (
        after.low in _SUFFIXES
        and after.start == token.end
        and tokens[i + 2].low in {"century", "centuries"}
        and number
    ):
        return Found(i + 3, (DateParts((number - 1) * 100, years=100),))
    if after.text in {"BC", "BCE", "B.C.", "B.C.E."}:
        return Found(i + 2, (DateParts(-number),))
    if after.text in {"AD", "CE", "A.D."}:
        return Found(i + 2, (DateParts(number),))
    return None


def read_time(tokens: list[Token], i: int) -> Found | None:
    """ "15:00", "3 PM", "3.30 p.m.", "15h30", "9 Uhr", "3 o'clock", "noon"."""
    token = tokens[i]
    if token.low in {"noon", "midday"}:
        return Found(i + 1, times=(12 * 60,))
    if token.low == "midnight":
        return Found(i + 1, times=(0,))
    marked = token.kind is Tok.TIME
    if marked or token.kind is Tok.NUMBER:
        parts = re.split(r"[:.]", token.text)
        if (
            len(parts) > 3
            or not all(p.isdigit() and len(p) <= 2 for p in parts)
            or any(len(p) != 2 for p in parts[1:])
        ):
            return None
        hour, minute = int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    elif token.kind is Tok.IDENT and (match := _HOURS.fullmatch(token.text)):
        hour, minute, marked = int(match[1]), int(match[2]), True
    else:
        return None
    if hour > 24 or minute > 59:
        return None
    after = tokens[i + 1]
    j, low = i + 1, after.low
    if low in _AM or low in _PM:
        if hour > 12:
            return None if not marked else Found(j + 1, times=(hour % 24 * 60 + minute,))
        times: tuple[int, ...] = (hour % 12 * 60 + minute + (12 * 60 if low in _PM else 0),)
        j += 1
    elif low in {"uhr", "o'clock", "o’clock"} or marked:
        times = (hour % 24 * 60 + minute,)
        if 1 <= hour <= 12 and low != "uhr" and token.text[0] != "0":
            times += ((hour % 12 * 60 + minute + 12 * 60 * (hour != 12)) % _DAY,)
        j += 0 if marked and low not in {"uhr", "o'clock", "o’clock"} else 1
    else:
        return None
    zone = ZONES.get(tokens[j].low) if tokens[j].text.isupper() else None
    return Found(j + (zone is not None), times=times, zone=zone)
