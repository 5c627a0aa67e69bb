"""The scan: text -> figures, in one pass over its tokens. Every reader looks at a bounded number of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from guardrail.evidence.tokens import CITATION
from guardrail.figures import calendar, numbers, tables
from guardrail.figures.calendar import CLOCK_WORDS, SUFFIXES, TO, FoundMoment, is_year
from guardrail.figures.model import Bound, Day, Figure, Kind
from guardrail.figures.numbers import Amount, Separators, Suffix
from guardrail.figures.tables import (
    ARTICLES,
    MONTHS,
    NO_NOUN,
    NUMBER_WORDS,
    ORDINALS,
    SIGNS,
    Tok,
    Token,
    find_unit,
    tokenize,
    touches,
)

_Read = tuple[Figure, int] | None
_DASHES: Final = frozenset({"-", "–", "—", "−", "~"})
_RANGE_WORDS: Final = frozenset({"to", "or", "bis", "oder", "à", "through"})
_BETWEEN: Final = frozenset({"between", "zwischen", "entre", "from"})
_AND: Final = frozenset({"and", "und", "et", "y"})
_FREE: Final = frozenset({"free", "no", "at", "for"})
_MARKER: Final = re.compile(r"(?:\A|(?<=\n))[ \t*_>#(]{0,8}\d{1,3}[.)](?=\s)(?!\s(?:[A-Z][a-zä]+)\s\d{4})")
_AGE_BEFORE: Final = frozenset({"his", "her", "their", "my", "your", "early", "mid", "late"})
_FIGURE: Final = re.compile(r"[\d½⅓⅔¼¾⅛@]|www")
_WORD: Final = re.compile(r"[^\W\d_]+")
MOST: Final = 300
"""Figures of one text that are read, a tenth of a millisecond each: far more than a long sentence has."""
MOST_CHARS: Final = 20_000
"""Characters of one text that are read."""
#: What "past six" and "o'clock" stand behind.
_SPOKEN: Final = frozenset({"half", "quarter", "a", "twenty"}) | {
    w for w, n in tables.ONES.items() if 1 <= n <= 12
}
_BESIDE_HOURS: Final = frozenset({",", ":", "and", "or", "&", "/", "und", "|"})
_LISTED_HOURS: Final = 16  # tokens
_MAX_PHRASE: Final = 4
_AND_A_HALF: Final = 3  # words
_MOST_PARTS: Final = 3
_LOSS: Final = 1e-9
_TEMPERATURES: Final = frozenset({"deg", "°C", "°F"})
_COMPOUND: Final = frozenset({"time", "length", "mass"})
_LATE: Final = re.compile(r"(?<![\d:.])(?:1[3-9]|2[0-4])[:.hH]\d\d(?!\d)")
#: Lower-case words that a figure may begin with.
_WORDS: Final = (
    NUMBER_WORDS | tables.ADVERBS.keys() | ORDINALS.keys() | MONTHS.keys() | tables.WEEKDAYS.keys()
    | tables.WEEKDAYS_SHORT.keys() | tables.DAY_GROUPS.keys() | CLOCK_WORDS.keys() | tables.VULGAR.keys()
    | {sign.casefold() for sign in SIGNS} | {"version", "v", "minus"}
)  # fmt: skip
_TRIGGERS: Final = _WORDS | ARTICLES | _FREE | calendar.DAYS
_TELLING: Final = _WORDS | tables.TELLING


def may_hold_figures(text: str) -> bool:
    """Whether a text can have a figure: cheaper than to look."""
    return _FIGURE.search(text) is not None or not _TELLING.isdisjoint(_WORD.findall(text.casefold()))


def find_figures(text: str, shown: Separators | None = None) -> tuple[Figure, ...]:
    """The figures of ``text`` in their order, not overlapping; ``text[f.start:f.end] == f.text``. Linear.
    The numbers of citations and of list items are none. ``shown``: what separators do where the text stands;
    None: what it shows itself. What stands behind the first ``MOST`` figures or ``MOST_CHARS`` characters is,
    if it may hold any, one figure that agrees with nothing but itself."""
    masked = text[:MOST_CHARS]
    for mark in (CITATION, _MARKER):
        masked = mark.sub(lambda match: " " * len(match.group()), masked)
    tokens = tokenize(masked)
    if numbers.MAY_BE_EITHER.search(masked):
        tokens = numbers.settled(tokens, numbers.separators_of(masked) if shown is None else shown)
    figures: list[Figure] = []
    i = 0
    while (token := tokens[i]).kind is not Tok.END and len(figures) < MOST:
        skip = token.kind is Tok.WORD and token.low not in _TRIGGERS and tokens[i + 1].text != "$"
        found = None if skip else _READERS[token.kind](tokens, i)  # a word is skipped nearly always
        if found is not None:
            start, end = max(found[0].start, figures[-1].end if figures else 0), found[0].end
            figures.append(replace(found[0], start=start, text=text[start:end]))
        i = i + 1 if found is None else found[1]
    figures = _of_long_days(figures)
    if (rest := _unread(text, token.start)) is not None:
        figures.append(rest)
    return tuple(figures)


def _unread(text: str, start: int) -> Figure | None:
    """What was not read of a text, as one figure: a claim must not be supported because its figures were not
    read. Its key has a space, which those of others don't."""
    if start == len(text) or not may_hold_figures(text[start:]):
        return None
    return Figure(Kind.IDENTIFIER, text[start:], start, len(text), key=f" {text[start:]}")


def _of_long_days(figures: list[Figure]) -> list[Figure]:
    """Figures of which one is 13:00 or later: "9:00" beside it is in the morning."""
    times = [figure for figure in figures if figure.kind is Kind.TIME]
    if not any(_LATE.search(time.text) for time in times):
        return figures
    return [replace(f, values=f.values[:1]) if f.kind is Kind.TIME else f for f in figures]


def _figure(kind: Kind, tokens: list[Token], i: int, after: int, **said: Any) -> tuple[Figure, int]:
    return Figure(kind, "", tokens[i].start, tokens[after - 1].end, **said), after


def _dated(tokens: list[Token], i: int, found: FoundMoment) -> tuple[Figure, int]:
    found = calendar.read_date_range(tokens, i, found)
    kind = Kind.TIME if found.times else Kind.DATE
    year = next((day.year for day in found.days if day.month is None and day.years == 1), None)
    values = found.times or ((float(year),) if year is not None else ())
    group = tokens[i].low in tables.DAY_GROUPS
    return _figure(kind, tokens, i, found.next, values=values, days=found.days, last=found.last, name=group)


def _address(tokens: list[Token], i: int) -> _Read:
    key = re.sub(r"\A(?:https?://|ftp://)?(?:www\.)?", "", tokens[i].low).partition("#")[0].rstrip("/")
    return _figure(Kind[tokens[i].kind.name], tokens, i, i + 1, key=key)


def _phone(tokens: list[Token], i: int) -> _Read:
    return _figure(Kind.PHONE, tokens, i, i + 1, key="".join(filter(str.isdecimal, tokens[i].text)))


def _date(tokens: list[Token], i: int) -> _Read:
    found = calendar.read_numeric_date(tokens[i], i)
    return _dated(tokens, i, found) if found else _identifier(tokens, i)


def _clock(tokens: list[Token], i: int) -> _Read:
    """A time of day, or a span of it: "10 a.m. to 6 p.m."."""
    if (first := calendar.read_first_time(tokens, i)) is not None:
        found: FoundMoment | None = FoundMoment(i + 1, times=(first,))
    else:
        found = calendar.read_time(tokens, i)
    if found is None:
        return None
    joined = tokens[found.next].low
    between = joined in _AND and i > 0 and tokens[i - 1].low == "between"
    end = calendar.read_time(tokens, found.next + 1) if joined in TO or between else None
    if end is None:
        return _dated(tokens, i, found)
    upper = max(end.times) if max(end.times) > found.times[0] else end.times[0]
    return _figure(Kind.TIME, tokens, i, end.next, values=found.times, upper=upper)


def _version(tokens: list[Token], i: int) -> _Read:
    return _figure(Kind.VERSION, tokens, i, i + 1, key=tokens[i].low.removeprefix("v"), name=True)


def _identifier(tokens: list[Token], i: int, after: int = 0) -> _Read:
    if found := calendar.read_period(tokens, i):
        return _dated(tokens, i, found)
    key = "".join(c for token in tokens[i : after or i + 1] for c in token.low if c.isalnum())
    return _figure(Kind.IDENTIFIER, tokens, i, after or i + 1, key=key, name=True)


def _symbol(tokens: list[Token], i: int) -> _Read:
    opens = tokens[i].text in "-−–" and (tokens[i + 1].kind is Tok.NUMBER or tokens[i + 1].text in SIGNS)
    return _quantity(tokens, i) if opens or tokens[i].text in SIGNS | tables.VULGAR else None


def _word(tokens: list[Token], i: int) -> _Read:
    token, follower = tokens[i], tokens[i + 1]
    low = token.low
    if (low in CLOCK_WORDS or low in _SPOKEN) and (clock := _clock(tokens, i)):
        return clock
    for reader in (calendar.read_month, calendar.read_weekday, calendar.read_period):
        if found := reader(tokens, i):
            return _dated(tokens, i, found)
    if low in _FREE and (free := _free(tokens, i)):
        return free
    if low in tables.ADVERBS:
        return _adverb(tokens, i)
    if low in {"version", "v"} and follower.kind is Tok.NUMBER:
        return _version(tokens, i + 1)
    starts = low in NUMBER_WORDS or token.text in SIGNS or token.text in tables.VULGAR or follower.text == "$"
    starts = starts or low == "minus"
    if low in ARTICLES and not (token.text.isupper() and follower.text == "$" and touches(tokens, i + 1)):
        starts = follower.low in NUMBER_WORDS or (i > 0 and tokens[i - 1].low in tables.MEASURES)
        starts = (
            starts or tokens[i + 2].low in tables.AWAY or _phrase(tokens, i + 2, _AND_A_HALF) == "and a half"
        )
    return (_quantity(tokens, i) if starts else None) or (_ordinal(tokens, i) if low in ORDINALS else None)


def _ordinal(tokens: list[Token], i: int) -> _Read:
    """ "the third edition", "21st". A "first" that counts nothing says little."""
    token, figures = tokens[i], tokens[i].kind is Tok.NUMBER
    after = i + 1 + figures
    noun = tokens[after]
    counts = noun.kind is Tok.WORD and noun.start - tokens[after - 1].end <= 1 and noun.low not in NO_NOUN
    named = counts and noun.text[0].isupper() and (figures or token.text[0].isupper())
    value = numbers.read_numeral(token.text)[0][0] if figures else float(ORDINALS[token.low])
    name = named or (token.low in {"first", "second"} and (not counts or token.text[0].isupper()))
    said = {"values": (value,), "noun": numbers.singular(noun.low) if counts else None, "name": name}
    return _figure(Kind.ORDINAL, tokens, i, after, **said)


def _free(tokens: list[Token], i: int) -> _Read:
    """What costs nothing: "free of charge", "is free", "no fee"."""
    after = 0
    for size in range(1, _MAX_PHRASE + 1):
        if " ".join(token.low for token in tokens[i : i + size]) in tables.FREE_PHRASES:
            after = i + size
    before = tokens[i - 1].low if i else ""
    if not after and tokens[i].low == "free" and before in tables.FREE_BEFORE:
        after = i + 1 if tokens[i + 1].low not in tables.FREE_NOT_AFTER else 0
    return _figure(Kind.MONEY, tokens, i, after, values=(0.0,), unit="", step=0.0) if after else None


def _adverb(tokens: list[Token], i: int) -> _Read:
    """ "twice a day", "double": so many times. A bare "once" is a conjunction."""
    rate, after = numbers.read_rate(tokens, i + 1)
    if tokens[i].low == "once" and rate is None:
        return None
    value, (bound, first, after) = float(tables.ADVERBS[tokens[i].low]), numbers.read_bound(tokens, i, after)
    return _figure(Kind.QUANTITY, tokens, first, after, values=(value,), unit="time", per=rate, bound=bound)


def _number(tokens: list[Token], i: int) -> _Read:
    token, after = tokens[i], tokens[i + 1]
    if found := calendar.read_listed_day(tokens, i) or calendar.read_day_month(tokens, i):
        return _dated(tokens, i, found)
    if clock := _clock(tokens, i):
        return clock
    if found := calendar.read_period(tokens, i):
        return _dated(tokens, i, found)
    adjacent = after.kind is Tok.WORD and touches(tokens, i + 1)
    listed = calendar.read_day_after(tokens, i)
    if adjacent and after.low in SUFFIXES and token.text.isdecimal():
        return _dated(tokens, i, listed) if listed else _ordinal(tokens, i)
    quantity = _quantity(tokens, i)
    if listed and quantity and _is_bare(quantity[0]):
        return _dated(tokens, i, listed)
    if quantity is None or quantity[0].kind is not Kind.NUMBER or quantity[0].end != token.end:
        return quantity
    if adjacent and len(after.text) <= 4 and after.text.isascii():
        return _identifier(tokens, i, i + 2)  # "5G", "2FA"
    if is_year(token) and _stands_for_year(tokens, i, quantity[0]):
        return replace(quantity[0], kind=Kind.DATE, days=(Day(int(token.text)),), name=False), quantity[1]
    return quantity


def _is_bare(figure: Figure) -> bool:
    """Whether a number counts nothing, so that it may be a day of a month that was named before."""
    return figure.kind is Kind.NUMBER and not (
        figure.noun or figure.upper or figure.fraction or figure.scaled
    )


def _stands_for_year(tokens: list[Token], i: int, figure: Figure) -> bool:
    before, after = tokens[i - 1].low if i else "", tokens[i + 1].low
    counted = figure.noun is not None and (after.endswith("s") or after in {"people", "men", "women"})
    placed = before in tables.YEAR_AFTER or before in MONTHS
    return not counted and (placed or 1800 <= int(tokens[i].text) <= 2100)


def _quantity(tokens: list[Token], i: int) -> _Read:
    """The number that begins at token ``i`` with all that belongs to it, and the index to go on from."""
    negative, currency, j = numbers.read_prefix(tokens, i)
    amount = numbers.read_amount(tokens, j)
    if amount is None:
        return _one_unit(tokens, i)
    if (scale := _money_scale(tokens, amount.next, currency)) is not None:
        amount = amount.times(scale, amount.next + 1)
    suffix = _part_of_unit(tokens, amount) or numbers.read_suffix(tokens, amount.next, currency)
    if tokens[j].low == "one" and amount.next == j + 1 and _is_pronoun(tokens, j, suffix):
        return None
    amount, upper, suffix = _range(tokens, i, amount, suffix, currency, negative=negative)
    if upper is None:
        amount, suffix = _compound(tokens, i, amount, suffix)
    if suffix.unit in _TEMPERATURES and _phrase(tokens, suffix.next, 2) == "below zero":
        negative, suffix = True, suffix._replace(next=suffix.next + 2)
    rate, after = (
        (None, suffix.next) if suffix.kind is Kind.PERCENT else numbers.read_rate(tokens, suffix.next)
    )
    noun = numbers.read_noun(tokens, i, after) if suffix.unit is None else None
    bound, first, after = numbers.read_bound(tokens, i, after)
    kind, unit = suffix.kind, suffix.unit
    if unit == "s" and touches(tokens, after - 1) and (bound.direction or tokens[i - 1].low in _AGE_BEFORE):
        kind, unit = Kind.NUMBER, None  # "over-65s" are people, "his 30s" an age
    timed = kind is Kind.QUANTITY and tables.UNIT[unit or ""].dimension == "time"
    if not timed and tokens[first].low == "after":
        bound, first = Bound.EXACT, i
    factor = (-1 if negative else 1) / suffix.divisor
    return _figure(
        kind, tokens, first, after,
        values=tuple(value * factor for value in amount.values),
        upper=None if upper is None else upper / suffix.divisor,
        unit=unit, per=rate, bound=bound, step=amount.step / suffix.divisor,
        noun=noun or (numbers.read_noun(tokens, i, after) if unit is None else None),
        fraction=amount.fraction, scaled=amount.scaled,
        name=unit is None and bound is Bound.EXACT and not amount.scaled and _names(tokens, i, after),
        hour=kind is Kind.NUMBER and _stands_for_hour(tokens, i),
    )  # fmt: skip


def _compound(tokens: list[Token], i: int, amount: Amount, suffix: Suffix) -> tuple[Amount, Suffix]:
    """ "1 hour and 20 minutes", "5 ft 3 in" are one amount, in the smaller unit."""
    large = tables.UNIT.get(suffix.unit or "")
    between = i > 0 and tokens[i - 1].low in _BETWEEN
    for _ in range(_MOST_PARTS if large is not None and not between else 0):
        k = suffix.next + (tokens[suffix.next].low in _AND)
        part = numbers.read_amount(tokens, k) if tokens[k - 1].end + 1 >= tokens[k].start else None
        if part is None or large is None:
            break
        feet = large.name == "ft" and tokens[part.next].low == "in"
        tail = (
            Suffix(part.next + 1, Kind.QUANTITY, "inch") if feet else numbers.read_suffix(tokens, part.next)
        )
        small = tables.UNIT.get(tail.unit or "") if tail.kind is Kind.QUANTITY else None
        if small is None or small.dimension != large.dimension or large.dimension not in _COMPOUND:
            break
        if not part.values[0] * small.factor < large.factor * (1 - _LOSS):
            break
        whole = tuple(value * large.factor / small.factor + part.values[0] for value in amount.values)
        amount, suffix, large = part._replace(values=whole), tail, small
    return amount, suffix


def _money_scale(tokens: list[Token], j: int, currency: str | None) -> int | None:
    """The magnitude of a letter behind an amount of money: "$5m", "$49 k", "49 k€"."""
    letter, after = tokens[j].text, tokens[j + 1]
    if not currency and after.text not in SIGNS and after.low not in tables.CURRENCY_WORDS:
        return None
    near = tokens[j].start - tokens[j - 1].end <= 1
    return {**tables.LETTER_MAGNITUDES, "m": 10**6}.get(letter) if near else None


def _stands_for_hour(tokens: list[Token], i: int) -> bool:
    """Whether a bare number stands where a time of day does: "at 9", "departs: 7.40, 8.10"."""
    before = tokens[max(0, i - _LISTED_HOURS) : i]
    while before and (before[-1].kind is Tok.NUMBER or before[-1].low in _BESIDE_HOURS):
        before.pop()
    return bool(before) and (before[-1].low in tables.HOUR_AFTER or before[-1].low in tables.WEEKDAYS)


def _names(tokens: list[Token], i: int, after: int) -> bool:
    """Does a number name a thing: "Rule 19", "Apollo 11"? Not "In Rome 300 people"."""
    if i == 0 or tokens[i].start - tokens[i - 1].end > 1 or tokens[i].kind is not Tok.NUMBER:
        return False
    before, follower = tokens[i - 1], tokens[after]
    counts = follower.kind is Tok.WORD and follower.low.endswith("s") and follower.text[0].islower()
    counts = counts and follower.low not in NO_NOUN
    named = before.kind is Tok.WORD and before.text[0].isupper() and before.low not in NO_NOUN
    return (named and not counts) or numbers.label_before(tokens, i) is not None


def _one_unit(tokens: list[Token], i: int) -> _Read:
    """ "within a week", "an hour earlier", "an hour and a half": one of a unit, where it is measured."""
    unit = find_unit(tokens[i + 1].low)
    behind = i > 0 and tokens[i - 1].low in tables.MEASURES
    half = _AND_A_HALF * (_phrase(tokens, i + 2, _AND_A_HALF) == "and a half")
    measured = tokens[i].low in ARTICLES and (behind or half or tokens[i + 2].low in tables.AWAY)
    if not measured or unit is None or unit.dimension not in {"time", "length"} or unit.name == "s":
        return None
    bound, first, after = numbers.read_bound(tokens, i, i + 2 + half)
    value = 1.5 if half else 1.0
    return _figure(Kind.QUANTITY, tokens, first, after, values=(value,), unit=unit.name, bound=bound)


def _phrase(tokens: list[Token], i: int, count: int) -> str:
    return " ".join(token.low for token in tokens[i : i + count])


def _is_pronoun(tokens: list[Token], j: int, suffix: Suffix) -> bool:
    """ "one" alone is a pronoun more often than a number: it counts with a unit, a noun or as an end."""
    after = tokens[j + 1]
    if suffix.unit or (after.low in {"in", "or", "to"} and numbers.read_amount(tokens, j + 2) is not None):
        return False
    counts = after.kind is Tok.WORD and after.low not in NO_NOUN and after.text[0].islower()
    return not counts or tokens[j - 1].low in tables.NO_COUNT


def _part_of_unit(tokens: list[Token], amount: Amount) -> Suffix | None:
    """ "half an hour", "three quarters of an hour"."""
    k = amount.next + (tokens[amount.next].low == "of")
    unit = find_unit(tokens[k + 1].low) if amount.fraction and tokens[k].low in {"a", "an"} else None
    return None if unit is None else Suffix(k + 2, Kind.QUANTITY, unit.name)


def _range(
    tokens: list[Token], i: int, low: Amount, suffix: Suffix, currency: str | None, *, negative: bool
) -> tuple[Amount, float | None, Suffix]:
    """ "5-10 mg", "$5 to $10", "between 5 and 10": the lower end, the upper end, their unit. ``negative`` is
    the sign of the first one, which the amount lacks; the upper end has its own."""
    k, none = suffix.next, (low, None, suffix)
    sign, after = tokens[k], tokens[k + 1]
    between = i > 0 and tokens[i - 1].low in _BETWEEN and sign.low in _AND
    dashed = sign.text in _DASHES and after.start - sign.end == sign.start - tokens[k - 1].end
    if not (between or dashed or sign.low in _RANGE_WORDS):
        return none
    minus, second, m = numbers.read_prefix(tokens, k + 1)
    high = numbers.read_amount(tokens, m)
    if high is None or (minus and not negative) or (second and second != currency):
        return none
    tail = numbers.read_suffix(tokens, high.next, currency or second)
    if suffix.unit and (tail.unit not in (None, suffix.unit) or (tail.unit is None and not between)):
        return none
    if high.scaled and not low.scaled and not suffix.unit and tokens[m].kind is Tok.NUMBER:
        low = low.times(high.values[0] / (numbers.read_numeral(tokens[m].text)[0][0] or 1), low.next)
    years = is_year(tokens[i]) and is_year(tokens[m]) and not tail.unit
    first, last = (-1 if negative else 1) * low.values[0], (-1 if minus else 1) * high.values[0]
    if first >= last or years:
        return none
    return low, last, tail if tail.unit else suffix._replace(next=high.next)


_READERS: Final[dict[Tok, Callable[[list[Token], int], _Read]]] = {
    Tok.WORD: _word, Tok.EMAIL: _address, Tok.URL: _address, Tok.PHONE: _phone, Tok.DATE: _date,
    Tok.TIME: _clock, Tok.VERSION: _version, Tok.IDENT: _identifier, Tok.NUMBER: _number, Tok.SYMBOL: _symbol,
}  # fmt: skip
