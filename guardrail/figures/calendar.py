"""Dates, periods and times of day. A reader gives None where its kind does not begin at a token."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, NamedTuple

from guardrail.figures import tables
from guardrail.figures.model import Day
from guardrail.figures.tables import (
    MONTHS,
    ORDINALS,
    SHY_MONTHS,
    WEEKDAYS,
    WEEKDAYS_SHORT,
    Tok,
    Token,
    touches,
)

TO: Final = frozenset({"-", "–", "—", "to", "bis", "through", "until", "till"})
SUFFIXES: Final = frozenset({"st", "nd", "rd", "th"})
DAYS: Final = frozenset({"day", "days", "daily"})
_BUT: Final = frozenset({"but", "except", "excluding"})
_BESIDES: Final = frozenset({"for", "on"})
_PAST: Final = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}
CLOCK_WORDS: Final = {"noon": 720, "midday": 720, "midnight": 0}
_AM: Final = frozenset({"am", "a.m.", "a.m"})
_PM: Final = frozenset({"pm", "p.m.", "p.m"})
_CLOCK: Final = frozenset({"uhr", "o'clock", "o’clock"})
_ERAS: Final = {"bc": -1, "bce": -1, "b.c.": -1, "b.c.e.": -1, "ad": 1, "ce": 1, "a.d.": 1}
_BESIDE: Final = TO | {",", ":", ".", "/", "|", "and", "(", "&"}
_LIST: Final = frozenset({",", "and", "or", "&", "/", "und"})
_HOUR: Final = re.compile(r"(\d{1,2})(?:[:.hH](\d{2}))?(?::\d{2})?")
_MAX_LIST: Final = 12
_DAY: Final = 24 * 60
_WEEK: Final = 7
_SHORT_YEARS: Final = 70  # "3/4/69" is of 2069, "3/4/70" of 1970


class FoundMoment(NamedTuple):
    """A date or time read from the tokens up to ``next``; of times the minutes since midnight."""

    next: int
    days: tuple[Day, ...] = ()
    times: tuple[float, ...] = ()
    last: Day | None = None


def is_year(token: Token) -> bool:
    """May this token be a year standing for itself? Not what is written with a separator: "1,121"."""
    plain = token.kind is Tok.NUMBER and token.end - token.start == len(token.text)
    return plain and re.fullmatch(r"1\d{3}|2[01]\d\d", token.text) is not None


def _short(token: Token, most: int = 31) -> int:
    """A number of one or two digits up to ``most``, or 0."""
    plain = token.kind is Tok.NUMBER and len(token.text) <= 2 and token.text.isdecimal()
    return int(token.text) if plain and int(token.text) <= most else 0


def _valid(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= (29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31)


def read_numeric_date(token: Token, i: int) -> FoundMoment | None:
    """ "2021-03-03", "03/04/2021" (both orders are readings), "24.12."."""
    a, b, c = (int(part) if part else None for part in re.split(r"[-/.]", token.text))
    if c is None or b is None or a is None:
        orders: list[tuple[int | None, int, int]] = [(None, b or 0, a or 0)]
    elif a >= 1000:
        orders = [(a, b, c)]
    else:
        year = c if c >= 100 else c + (2000 if c < _SHORT_YEARS else 1900)
        orders = [(year, b, a)] if "." in token.text else [(year, a, b), (year, b, a)]
    days = tuple(dict.fromkeys(Day(y, m, d) for y, m, d in orders if _valid(m, d)))
    return FoundMoment(i + 1, days) if days else None


def read_day_month(tokens: list[Token], i: int) -> FoundMoment | None:
    """ "3 March 2021", "3rd of March", "3. März 2021"; ``i`` is at the number."""
    day, j = _short(tokens[i]), i + 1
    j += (tokens[j].low in SUFFIXES and touches(tokens, j)) or tokens[j].text in {".", "-"}
    j += tokens[j].low in {"of", "de"}
    month = MONTHS.get(tokens[j].low)
    if month is None or not _valid(month, day):
        return None
    year, after = _year_after(tokens, j + 1)
    if year is None and tokens[j].low in SHY_MONTHS and tokens[j].text[0].islower():
        return None
    return FoundMoment(after, (Day(year, month, day),))


def read_listed_day(tokens: list[Token], i: int) -> FoundMoment | None:
    """The 24 of "24, 25 and 31 December", the 3 of "3-5 March" (a range): the month comes from the end."""
    day, j, ranged = _short(tokens[i]), i, False
    for _ in range(_MAX_LIST if day else 0):
        j += 1 + (tokens[j + 1].low in SUFFIXES and touches(tokens, j + 1))
        j += tokens[j].text == "." and tokens[j + 1].low in _LIST
        if tokens[j].low not in _LIST and tokens[j].low not in TO:
            break
        ranged = j <= i + 2 and tokens[j].low in TO
        j += 1 + (tokens[j].text == "," and tokens[j + 1].low in _LIST)
        if end := read_day_month(tokens, j):
            own, after = replace(end.days[0], day=day), i + 1 + (tokens[i + 1].low in SUFFIXES)
            return FoundMoment(end.next, (own,), last=end.days[0]) if ranged else FoundMoment(after, (own,))
        if not _short(tokens[j]):
            break
    return None


def read_day_after(tokens: list[Token], i: int) -> FoundMoment | None:
    """The 25 of "December 24 and 25", the 26 of "Dec 24, 25 & 26": the month stands before the list."""
    day, j, joined = _short(tokens[i]), i - 1, False
    after = i + 1 + (tokens[i + 1].low in SUFFIXES and touches(tokens, i + 1))
    for _ in range(_MAX_LIST if day else 0):
        if j < 2 or (tokens[j].low not in _LIST and not (j < i - 1 and tokens[j].low in TO)):
            return None
        joined = joined or tokens[j].text != ","
        j -= 1 + (tokens[j - 1].text == ",")
        j -= tokens[j].low in SUFFIXES and touches(tokens, j)
        before = j - 1 - (tokens[j - 1].text == ".")
        month = MONTHS.get(tokens[before].low)
        if not _short(tokens[j]):
            return None
        if month is not None and tokens[before].text[0].isupper():
            year, end = _year_after(tokens, after)
            # "On May 14, 25 were sold": commas alone make no list
            listed = joined or (tokens[after].low in _LIST and _short(tokens[after + 1]) > 0)
            return FoundMoment(end, (Day(year, month, day),)) if listed and _valid(month, day) else None
        j -= 1
    return None


def _year_after(tokens: list[Token], j: int) -> tuple[int | None, int]:
    """A year at ``j``, after "." "," "-" "of" or "de"."""
    k = j + (tokens[j].text == ".")
    k += tokens[k].low in {",", "of", "de", "-"}
    year = is_year(tokens[k]) and tokens[k + 1].text != "%"
    return (int(tokens[k].text), k + 1) if year else (None, j)


def read_month(tokens: list[Token], i: int) -> FoundMoment | None:
    """ "March 3rd, 2021", "March 3-5", "March 2021", "in March"."""
    token, month = tokens[i], MONTHS.get(tokens[i].low)
    shy = token.low in SHY_MONTHS
    if month is None or (
        token.text[0].islower() and (shy or not token.text.isascii() or len(token.text) < 5)
    ):
        return None
    j = i + 1 + (tokens[i + 1].text == "." and tokens[i + 2].kind is Tok.NUMBER)
    day = _short(tokens[j])
    if day and _valid(month, day):
        j += 1 + (tokens[j + 1].low in SUFFIXES and touches(tokens, j + 1))
        last = _short(tokens[j + 1]) if tokens[j].low in TO else 0
        last = last if last > day and tokens[j + 2].kind is not Tok.NUMBER else 0
        year, j = _year_after(tokens, j + 2 * bool(last))
        return FoundMoment(j, (Day(year, month, day),), last=Day(year, month, last) if last else None)
    year, after = _year_after(tokens, i + 1)
    if year is None and shy and (tokens[i - 1].low if i else "") not in tables.MONTH_AFTER:
        return None
    return FoundMoment(after, (Day(year, month),))


def read_date_range(tokens: list[Token], i: int, first: FoundMoment) -> FoundMoment:
    """A month or day with the end of its range, if one follows: "June to August", "1 May – 30 September"."""
    to, j = tokens[first.next].low, first.next + 1
    between = to == "and" and i > 0 and tokens[i - 1].low == "between"
    if first.last or not (to in TO or between) or not (first.days and first.days[0].month):
        return first
    end = read_day_month(tokens, j) if tokens[j].kind is Tok.NUMBER else read_month(tokens, j)
    if end is None or end.last or (first.days[0].day is None) != (end.days[0].day is None):
        return first
    own = tuple(replace(day, year=day.year or end.days[0].year) for day in first.days)
    return FoundMoment(end.next, own, last=end.days[0])


def read_weekday(tokens: list[Token], i: int) -> FoundMoment | None:
    """ "Monday", "Mon-Fri", "Monday to Friday", "weekdays", "(every) day but Sunday"."""
    if tokens[i].low in DAYS:
        j = i + 2 + (tokens[i + 2].low in _BESIDES)
        but = _weekday(tokens, j) if tokens[i + 1].low in _BUT else None
        if but is None:
            return None
        return FoundMoment(j + 1, (Day(weekday=(but + 1) % _WEEK),), last=Day(weekday=(but - 1) % _WEEK))
    if group := tables.DAY_GROUPS.get(tokens[i].low):
        return FoundMoment(i + 1, (Day(weekday=group[0]),), last=Day(weekday=group[1]))
    first = _weekday(tokens, i)
    if first is None:
        return None
    j = i + 1 + (tokens[i + 1].text == "." and tokens[i].low in WEEKDAYS_SHORT)
    last = _weekday(tokens, j + 1) if tokens[j].low in TO else None
    if last is None:
        return FoundMoment(i + 1, (Day(weekday=first),))
    return FoundMoment(j + 2, (Day(weekday=first),), last=Day(weekday=last))


def _weekday(tokens: list[Token], i: int) -> int | None:
    """The number of a weekday; a short name counts in a list or range, or in front of hours, only."""
    token = tokens[i]
    short = token.low in WEEKDAYS_SHORT and token.text.istitle()
    beside = (tokens[i - 1].text if i else "") in _BESIDE or tokens[i + 1].text in _BESIDE
    if short and (beside or _begins_hours(tokens, i + 1)):
        return WEEKDAYS_SHORT[token.low]
    return WEEKDAYS.get(token.low)


def _begins_hours(tokens: list[Token], i: int) -> bool:
    """ "Mon 9–12", "Sat 10:30"."""
    first = tokens[i]
    return first.kind is Tok.TIME or (first.kind is Tok.NUMBER and tokens[i + 1].low in TO | _AM | _PM)


def read_period(tokens: list[Token], i: int) -> FoundMoment | None:
    """ "1990s", "20th century", "300 BC", "Q3 2021", "third quarter of 2021", "FY2021"."""
    token, after = tokens[i], tokens[i + 1]
    figures = token.kind is Tok.NUMBER and token.text.isdecimal() and len(token.text) <= 4
    ranked = figures and after.low in SUFFIXES
    rank = int(token.text) if ranked else ORDINALS.get(token.low, 0)
    k = i + 1 + ranked + (tokens[i + 1 + ranked].text == "-")
    other = k + 1 + (tokens[k + 2].low in SUFFIXES)  # "the third or fourth century"
    listed = tokens[k].low in _LIST and (tokens[k + 1].low in ORDINALS or other > k + 1)
    if rank and tokens[other + 1 if listed else k].low in {"century", "centuries"}:
        return FoundMoment(i + 1 + ranked if listed else k + 1, (Day((rank - 1) * 100, years=100),))
    quarter = re.fullmatch("q([1-4])", token.low)
    if quarter or (1 <= rank <= 4 and after.low == "quarter"):
        year, j = _year_after(tokens, i + 1 + (quarter is None))
        told = quarter or year or tokens[j].low == "of"
        return FoundMoment(j, (Day(year, quarter=int(quarter[1]) if quarter else rank),)) if told else None
    if re.fullmatch(r"fy[12]\d{3}", token.low):
        return FoundMoment(i + 1, (Day(int(token.low[2:])),))
    if not figures:
        return None
    number, last = int(token.text), i + 1 + (after.text in {"'", "’"})  # "the 1960's"
    if tokens[last].low == "s" and touches(tokens, i + 1) and touches(tokens, last) and number % 10 == 0:
        if len(token.text) == 4:
            return FoundMoment(
                last + 1, (Day(number, years=100 if number % 100 == 0 and number < 2000 else 10),)
            )
        if number >= 20 and i and tokens[i - 1].low in {"the", "'", "’", "and"}:
            return FoundMoment(last + 1, (Day(1900 + number, years=10),))
    if after.low in _ERAS and after.text[0].isupper():
        return FoundMoment(i + 2, (Day(number * _ERAS[after.low]),))
    return None


_FOUR_DIGITS: Final = re.compile(r"(?:[01]\d|2[0-3])[0-5]\d")
_HOURS: Final = frozenset({"hours", "hrs"})
_AT: Final = frozenset("at from to until till by before after around - –".split())  # noqa: SIM905


def read_time(tokens: list[Token], i: int) -> FoundMoment | None:
    """ "15:00", "3 PM", "3.30 p.m.", "15h30", "9 Uhr", "noon", "at 1700 hours"; every reading."""
    token, after = tokens[i], tokens[i + 1].low
    if token.low in CLOCK_WORDS:
        return FoundMoment(i + 1, times=(float(CLOCK_WORDS[token.low]),))
    if token.kind is Tok.WORD:
        return _spoken_time(tokens, i)
    if after in _HOURS and _FOUR_DIGITS.fullmatch(token.text):
        return _four_digits(tokens, i)
    match = _HOUR.fullmatch(token.text) if token.kind in (Tok.TIME, Tok.NUMBER) else None
    marked = token.kind is Tok.TIME
    halved = after in _AM or after in _PM
    if match is None or not (marked or halved or after in _CLOCK):
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    if hour > 24 or minute > 59 or (hour > 12 and halved and not marked):
        return None
    j = i + 1 + (halved or after in _CLOCK)
    if halved and hour <= 12:
        times: tuple[float, ...] = (hour % 12 * 60.0 + minute + 720 * (after in _PM),)
    else:
        times = (hour % 24 * 60.0 + minute,)
        if 1 <= hour <= 12 and after != "uhr" and token.text[0] != "0":
            times += ((times[0] + 720) % _DAY,)
    return FoundMoment(j + (tokens[j].low in tables.ZONES and tokens[j].text.isupper()), times=times)


def _four_digits(tokens: list[Token], i: int) -> FoundMoment | None:
    """ "at 1700 hours", "0630 hrs"."""
    text = tokens[i].text
    told = text[0] == "0" or (i > 0 and tokens[i - 1].low in _AT)
    return FoundMoment(i + 2, times=(int(text[:2]) * 60.0 + int(text[2:]),)) if told else None


def _spoken_time(tokens: list[Token], i: int) -> FoundMoment | None:
    """ "half past six", "a quarter to nine p.m.", "ten past eight", "five o'clock", "six p.m."."""
    named, clock = tables.ONES.get(tokens[i].low, 0), tokens[i + 1].low
    if 1 <= named <= 12 and (clock in _CLOCK or clock in _AM or clock in _PM):
        morning = named % 12 * 60.0
        both = (morning,) if clock == "uhr" else (morning, morning + 720)
        return FoundMoment(i + 2, times=both if clock in _CLOCK else (morning + 720 * (clock in _PM),))
    j = i + (tokens[i].low == "a" and tokens[i + 1].low == "quarter")
    minutes, way, hour = _PAST.get(tokens[j].low), tokens[j + 1].low, tokens[j + 2]
    if minutes is None or not (way in {"past", "after"} or (way == "to" and tokens[j].low == "quarter")):
        return None
    whole = _short(hour, 12) or tables.ONES.get(hour.low, 0)
    if not 1 <= whole <= 12:
        return None
    time = (whole % 12 * 60.0 + (minutes if way != "to" else -minutes)) % _DAY
    after = tokens[j + 3].low
    halved = after in _AM or after in _PM
    if way == "after" and tokens[j + 3].kind is Tok.WORD and not halved and after not in tables.NO_NOUN:
        return None  # "ten after one dose"
    times = ((time + 720 * (after in _PM)) % _DAY,) if halved else (time, (time + 720) % _DAY)
    return FoundMoment(j + 3 + halved, times=times)


def read_first_time(tokens: list[Token], i: int) -> float | None:
    """The minutes of the 3 of "3-4 PM": its half of the day comes from the other end."""
    hour = _short(tokens[i], 12)
    clock = read_time(tokens, i + 2) if hour and tokens[i + 1].low in TO else None
    if clock is None or len(clock.times) != 1:
        return None
    morning = hour % 12 * 60.0
    return morning + 720 if morning + 720 < clock.times[0] else morning
