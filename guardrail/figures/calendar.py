"""Dates, periods and times of day."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, NamedTuple

from guardrail.figures.affixes import touches
from guardrail.figures.model import Day
from guardrail.figures.tables import (
    DAY_GROUPS,
    MONTH_AFTER,
    MONTHS,
    ORDINALS,
    SHY_MONTHS,
    WEEKDAYS,
    WEEKDAYS_SHORT,
    ZONES,
)
from guardrail.figures.tokens import Tok, Token

TO: Final = frozenset({"-", "–", "—", "to", "bis", "through", "until", "till"})
_SUFFIXES: Final = frozenset({"st", "nd", "rd", "th"})
_AM: Final = frozenset({"am", "a.m.", "a.m"})
_PM: Final = frozenset({"pm", "p.m.", "p.m"})
_CLOCK: Final = frozenset({"uhr", "o'clock", "o’clock"})
_ERAS: Final = {"bc": -1, "bce": -1, "b.c.": -1, "b.c.e.": -1, "ad": 1, "ce": 1, "a.d.": 1}
_HOURS: Final = re.compile(r"(\d{1,2})h(\d{2})", re.IGNORECASE)
_LIST: Final = frozenset({",", "and", "or", "&", "und"})
_MAX_LIST: Final = 12
_DAY: Final = 24 * 60
_SHORT_YEARS: Final = 70  # "3/4/69" is of 2069, "3/4/70" of 1970


class Found(NamedTuple):
    """A date or time read from the tokens up to ``next``; of times the minutes since midnight."""

    next: int
    days: tuple[Day, ...] = ()
    times: tuple[int, ...] = ()
    last: Day | None = None


def is_year(token: Token) -> bool:
    """May this token be a year standing for itself?"""
    return token.kind is Tok.NUMBER and re.fullmatch(r"1\d{3}|2[01]\d\d", token.text) is not None


def _short(token: Token, most: int) -> int:
    """A number of one or two digits up to ``most``, or 0."""
    plain = token.kind is Tok.NUMBER and len(token.text) <= 2 and token.text.isdecimal()
    return int(token.text) if plain and int(token.text) <= most else 0


def _valid(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= (29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31)


def read_numeric_date(token: Token, i: int) -> Found | None:
    """ "2021-03-03", "03/04/2021" (both orders are readings), "24.12."."""
    parts = [int(part) for part in re.split(r"[-/.]", token.text) if part]
    if len(parts) == 2:
        return Found(i + 1, (Day(None, parts[1], parts[0]),)) if _valid(parts[1], parts[0]) else None
    a, b, c = parts
    if a >= 1000:
        orders = [(a, b, c)]
    else:
        year = c if c >= 100 else c + (2000 if c < _SHORT_YEARS else 1900)
        orders = [(year, b, a)] if "." in token.text else [(year, a, b), (year, b, a)]
    days = tuple(dict.fromkeys(Day(y, m, d) for y, m, d in orders if _valid(m, d)))
    return Found(i + 1, days) if days else None


def read_day_month(tokens: list[Token], i: int) -> Found | None:
    """ "3 March 2021", "3rd of March", "3. März 2021"; ``i`` is at the number."""
    day, j = _short(tokens[i], 31), i + 1
    if not day:
        return None
    j += (tokens[j].low in _SUFFIXES and touches(tokens, j)) or tokens[j].text in {".", "-"}
    j += tokens[j].low in {"of", "de"}
    month = MONTHS.get(tokens[j].low)
    if month is None or not _valid(month, day):
        return None
    year, after = _year_after(tokens, j + 1)
    if year is None and tokens[j].low in SHY_MONTHS and tokens[j].text[0].islower():
        return None
    return Found(after, (Day(year, month, day),))


def read_listed_day(tokens: list[Token], i: int) -> Found | None:
    """The 24 of "24, 25 and 31 December", the 3 of "3-5 March" (a range): the month comes from the end."""
    day, j, ranged = _short(tokens[i], 31), i, False
    for _ in range(_MAX_LIST if day else 0):
        j += 1 + (tokens[j + 1].low in _SUFFIXES and touches(tokens, j + 1))
        if tokens[j].low not in _LIST and tokens[j].low not in TO:
            break
        ranged = j <= i + 2 and tokens[j].low in TO
        j += 1 + (tokens[j].text == "," and tokens[j + 1].low in _LIST)
        if end := read_day_month(tokens, j):
            own, after = replace(end.days[0], day=day), i + 1 + (tokens[i + 1].low in _SUFFIXES)
            return Found(end.next, (own,), last=end.days[0]) if ranged else Found(after, (own,))
        if not _short(tokens[j], 31):
            break
    return None


def _year_after(tokens: list[Token], j: int) -> tuple[int | None, int]:
    """A year at ``j``, after "." "," "-" "of" or "de"."""
    k = j + (tokens[j].text == ".")
    k += tokens[k].low in {",", "of", "de", "-"}
    if is_year(tokens[k]) and tokens[k + 1].text != "%":
        return int(tokens[k].text), k + 1
    return None, j


def read_month(tokens: list[Token], i: int) -> Found | None:
    """ "March 3rd, 2021", "March 3-5", "March 2021", "in March"; ``i`` is at the month's name."""
    token, month = tokens[i], MONTHS[tokens[i].low]
    shy = token.low in SHY_MONTHS
    if token.text[0].islower() and (shy or not token.text.isascii() or len(token.text) < 5):
        return None
    j = i + 1 + (tokens[i + 1].text == "." and tokens[i + 2].kind is Tok.NUMBER)
    day = _short(tokens[j], 31)
    if day and _valid(month, day):
        j += 1
        j += tokens[j].low in _SUFFIXES and touches(tokens, j)
        last = _short(tokens[j + 1], 31) if tokens[j].low in TO else 0
        last = last if last > day and tokens[j + 2].kind is not Tok.NUMBER else 0
        year, j = _year_after(tokens, j + 2 * bool(last))
        return Found(j, (Day(year, month, day),), last=Day(year, month, last) if last else None)
    year, after = _year_after(tokens, i + 1)
    if year is not None:
        return Found(after, (Day(year, month),))
    previous = tokens[i - 1].low if i else ""
    return None if shy and previous not in MONTH_AFTER else Found(i + 1, (Day(month=month),))


def read_weekday(tokens: list[Token], i: int) -> Found | None:
    """ "Monday", "Mon-Fri", "Monday to Friday", "weekdays"."""
    token = tokens[i]
    if group := DAY_GROUPS.get(token.low):
        return Found(i + 1, (Day(weekday=group[0]),), last=Day(weekday=group[1]))
    first = _weekday(tokens, i)
    if first is None:
        return None
    j = i + 1 + (tokens[i + 1].text == "." and token.low in WEEKDAYS_SHORT)
    last = _weekday(tokens, j + 1) if tokens[j].low in TO else None
    if last is None:
        return Found(i + 1, (Day(weekday=first),))
    return Found(j + 2, (Day(weekday=first),), last=Day(weekday=last))


def _weekday(tokens: list[Token], i: int) -> int | None:
    token = tokens[i]
    if token.low in WEEKDAYS:
        return WEEKDAYS[token.low]
    if token.low not in WEEKDAYS_SHORT or not token.text[0].isupper() or token.text[1:].isupper():
        return None
    beside = [tokens[i - 1].text if i else "", tokens[i + 1].text]
    listed = any(text in TO or text in {",", ":", ".", "/", "|", "and", "(", "&"} for text in beside)
    return WEEKDAYS_SHORT[token.low] if listed else None


def read_period(tokens: list[Token], i: int) -> Found | None:
    """ "1990s", "20th century", "300 BC", "Q3 2021", "third quarter of 2021", "FY2021"."""
    token, after = tokens[i], tokens[i + 1]
    if token.kind is Tok.NUMBER:
        return _period_of_number(tokens, i)
    if token.kind is Tok.IDENT:
        if re.fullmatch("q[1-4]", token.low):
            year, j = _year_after(tokens, i + 1)
            return Found(j, (Day(year, quarter=int(token.low[1])),))
        if re.fullmatch(r"fy[12]\d{3}", token.low):
            return Found(i + 1, (Day(int(token.low[2:])),))
        return None
    rank = ORDINALS.get(token.low)
    if rank is not None and after.low == "century":
        return Found(i + 2, (Day((rank - 1) * 100, years=100),))
    if rank is not None and rank <= 4 and after.low == "quarter":
        year, j = _year_after(tokens, i + 2)
        return Found(j, (Day(year, quarter=rank),)) if year or tokens[j].low == "of" else None
    return None


def _period_of_number(tokens: list[Token], i: int) -> Found | None:
    token, after = tokens[i], tokens[i + 1]
    if not token.text.isdecimal() or len(token.text) > 4:
        return None
    number, last = int(token.text), i + 1 + (after.text in {"'", "’"})  # "the 1960's"
    joined = touches(tokens, i + 1) and touches(tokens, last)
    if tokens[last].low == "s" and joined and number % 10 == 0:
        if len(token.text) == 4:
            years = 100 if number % 100 == 0 and number < 2000 else 10
            return Found(last + 1, (Day(number, years=years),))
        before = tokens[i - 1].low if i else ""
        if number >= 20 and before not in {"over", "under", "-"} and len(token.text) == 2:
            return Found(last + 1, (Day(1900 + number, years=10),))
    century = tokens[i + 2].low if tokens[i + 2].text != "-" else tokens[i + 3].low
    if after.low in _SUFFIXES and touches(tokens, i + 1) and century in {"century", "centuries"} and number:
        return Found(i + 3, (Day((number - 1) * 100, years=100),))
    if after.low in _ERAS and after.text[0].isupper():
        return Found(i + 2, (Day(number * _ERAS[after.low]),))
    return None


def read_time(tokens: list[Token], i: int) -> Found | None:
    """ "15:00", "3 PM", "3.30 p.m.", "15h30", "9 Uhr", "3 o'clock", "noon"; every reading."""
    token, after = tokens[i], tokens[i + 1].low
    if token.low in {"noon", "midday", "midnight"}:
        return Found(i + 1, times=(0 if token.low == "midnight" else 12 * 60,))
    marked = token.kind is Tok.TIME
    if marked or token.kind is Tok.NUMBER:
        parts = re.split(r"[:.]", token.text)
        if not all(p.isdecimal() and len(p) <= 2 for p in parts) or any(len(p) != 2 for p in parts[1:]):
            return None
    elif token.kind is Tok.IDENT and (match := _HOURS.fullmatch(token.text)):
        parts, marked = [match[1], match[2]], True
    else:
        return None
    hour, minute = int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    if hour > 24 or minute > 59 or len(parts) > 3:
        return None
    j = i + 1
    if after in _AM or after in _PM:
        if hour > 12 and not marked:
            return None
        hour = hour if hour > 12 else hour % 12 + 12 * (after in _PM)
        times: tuple[int, ...] = (hour * 60 + minute,)
        j += 1
    elif after in _CLOCK or marked:
        times = (hour % 24 * 60 + minute,)
        if 1 <= hour <= 12 and after != "uhr" and token.text[0] != "0":
            times += ((hour % 12 * 60 + minute + 12 * 60 * (hour != 12)) % _DAY,)
        j += after in _CLOCK
    else:
        return None
    return Found(j + (tokens[j].low in ZONES and tokens[j].text.isupper()), times=times)


def read_first_time(tokens: list[Token], i: int) -> int | None:
    """The minutes of the 3 of "3-4 PM": its half of the day comes from the other end."""
    hour = _short(tokens[i], 12)
    clock = read_time(tokens, i + 2) if hour and tokens[i + 1].low in TO else None
    if clock is None or len(clock.times) != 1:
        return None
    morning = hour % 12 * 60
    return morning + 720 if morning + 720 < clock.times[0] else morning
