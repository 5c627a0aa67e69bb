"""The scan: text -> figures, in one pass over its tokens. Every reader looks at a bounded number of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from guardrail.figures import calendar
from guardrail.figures.affixes import (
    Suffix,
    read_bound,
    read_noun,
    read_prefix,
    read_rate,
    read_suffix,
    singular,
    touches,
)
from guardrail.figures.calendar import TO, Found, is_year
from guardrail.figures.model import Bound, Day, Figure, Kind
from guardrail.figures.numbers import Amount, read_amount
from guardrail.figures.tables import (
    ADVERBS,
    ARTICLES,
    CURRENCY_WORDS,
    DAY_GROUPS,
    FREE_BEFORE,
    FREE_NOT_AFTER,
    FREE_PHRASES,
    LABELS,
    MEASURES,
    MONTHS,
    NO_COUNT,
    NO_NOUN,
    NUMBER_WORDS,
    ORDINALS,
    PERCENT_WORDS,
    SIGNS,
    TWO_WORD_UNITS,
    VULGAR,
    WEEKDAYS,
    WEEKDAYS_SHORT,
    YEAR_AFTER,
    find_unit,
)
from guardrail.figures.tokens import Tok, Token, tokenize

_SUFFIXES: Final = frozenset({"st", "nd", "rd", "th", "er", "º", "ª"})
_DASHES: Final = frozenset({"-", "–", "—", "−", "~"})
_RANGE_WORDS: Final = frozenset({"to", "or", "bis", "oder", "à", "through"})
_BETWEEN: Final = frozenset({"between", "zwischen", "entre", "from"})
_AND: Final = frozenset({"and", "und", "et", "y"})
_NORMS: Final = frozenset({"ISO", "RFC", "DIN", "EN", "IEC"})
_MARK: Final = 3  # digits of a citation or list marker
_ODDS: Final = 100_000
_FREE: Final = frozenset({"free", "no", "at", "for"})
_MAX_PHRASE: Final = 4
#: Lower-case words that a figure may begin with.
_TRIGGERS: Final = (
    NUMBER_WORDS | ARTICLES | _FREE | ADVERBS.keys() | ORDINALS.keys() | MONTHS.keys() | WEEKDAYS.keys()
    | WEEKDAYS_SHORT.keys() | DAY_GROUPS.keys() | {"noon", "midday", "midnight", "version", "v"}
    | {sign.casefold() for sign in SIGNS} | VULGAR.keys()
)  # fmt: skip


def may_hold_figures(text: str, words: frozenset[str]) -> bool:
    """Whether a text, whose ``words`` are in lower case, can have a figure: cheaper than to look."""
    return not words.isdisjoint(_TELLING) or any(c.isdigit() for c in text) or "@" in text or "www" in text


_TELLING: Final = _TRIGGERS - ARTICLES - _FREE | {"free", "cost", "charge", "fee", "fees", "com", "org", "net"} | {
    "hour", "minute", "day", "week", "month", "year", "mile"
}  # fmt: skip


def find_figures(text: str) -> tuple[Figure, ...]:
    """The figures of ``text`` in their order, not overlapping; ``text[f.start:f.end] == f.text``. Linear."""
    tokens = tokenize(text)
    figures: list[Figure] = []
    i = 0
    while (token := tokens[i]).kind is not Tok.END:
        if token.kind is Tok.WORD and token.low not in _TRIGGERS and tokens[i + 1].text != "$":
            i += 1  # the way of nearly every word
            continue
        found, after = _read(text, tokens, i)
        if found is not None:
            figures.append(found)
        i = max(after, i + 1)
    return tuple(figures)


def _figure(kind: Kind, text: str, tokens: list[Token], i: int, after: int, **said: Any) -> Figure:
    start, end = tokens[i].start, tokens[after - 1].end
    return Figure(kind, text[start:end], start, end, **said)


def _dated(text: str, tokens: list[Token], i: int, found: Found) -> tuple[Figure, int]:
    kind = Kind.TIME if found.times else Kind.DATE
    values = tuple(map(float, found.times))
    figure = _figure(kind, text, tokens, i, found.next, values=values, days=found.days, last=found.last)
    return replace(figure, name=tokens[i].low in DAY_GROUPS), found.next


def _read(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    """What begins at token ``i``, and the index to go on from."""
    return _READERS[tokens[i].kind](text, tokens, i)


def _address(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    kind = Kind.EMAIL if tokens[i].kind is Tok.EMAIL else Kind.URL
    key = tokens[i].low
    for prefix in ("https://", "http://", "ftp://", "www."):
        key = key.removeprefix(prefix)
    return _figure(kind, text, tokens, i, i + 1, key=key.partition("#")[0].rstrip("/")), i + 1


def _phone(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    digits = "".join(c for c in tokens[i].text if c.isdecimal())
    return _figure(Kind.PHONE, text, tokens, i, i + 1, key=digits), i + 1


def _date(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    found = calendar.read_numeric_date(tokens[i], i)
    return _dated(text, tokens, i, found) if found else _named(Kind.IDENTIFIER, text, tokens, i, i + 1)


def _clock(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    found = calendar.read_time(tokens, i)
    if found is None:
        return None, i + 1
    end = calendar.read_time(tokens, found.next + 1) if tokens[found.next].low in TO else None
    return _times(text, tokens, i, found.times, found.next, end)


def _times(
    text: str, tokens: list[Token], i: int, times: tuple[int, ...], after: int, end: Found | None
) -> tuple[Figure, int]:
    """A time of day, or with ``end`` a span of it: "10 a.m. to 6 p.m."."""
    upper = None
    if end is not None and end.times:
        upper = float(max(end.times) if max(end.times) > times[0] else end.times[0])
        after = end.next
    return _figure(Kind.TIME, text, tokens, i, after, values=tuple(map(float, times)), upper=upper), after


def _version(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    return _quantity(text, tokens, i) or _named(Kind.VERSION, text, tokens, i, i + 1)


def _identifier(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    if found := calendar.read_period(tokens, i) or calendar.read_time(tokens, i):
        return _dated(text, tokens, i, found)
    return _named(Kind.IDENTIFIER, text, tokens, i, i + 1)


def _named(kind: Kind, text: str, tokens: list[Token], i: int, after: int) -> tuple[Figure, int]:
    written = text[tokens[i].start : tokens[after - 1].end].casefold()
    key = written.removeprefix("v") if kind is Kind.VERSION else "".join(c for c in written if c.isalnum())
    return _figure(kind, text, tokens, i, after, key=key, name=True), after


def _symbol(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    token, follower = tokens[i], tokens[i + 1]
    opens = token.text in "-−–" and (follower.kind is Tok.NUMBER or follower.text in SIGNS)
    found = _quantity(text, tokens, i) if opens or token.text in SIGNS else None
    return found or (None, i + 1)


def _word(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    token, follower = tokens[i], tokens[i + 1]
    low = token.low
    found = calendar.read_month(tokens, i) if low in MONTHS else None
    if found is None and low in {"noon", "midday", "midnight"}:
        return _clock(text, tokens, i)
    found = found or calendar.read_weekday(tokens, i) or calendar.read_period(tokens, i)
    if found:
        return _dated(text, tokens, i, found)
    if low in _FREE and (free := _free(text, tokens, i)):
        return free
    if low in ADVERBS:
        return _adverb(text, tokens, i)
    if low in {"version", "v"} and follower.kind is Tok.NUMBER:
        return _named(Kind.VERSION, text, tokens, i + 1, i + 2)
    starts = low in NUMBER_WORDS or token.text in SIGNS or token.text in VULGAR or follower.text == "$"
    if low in ARTICLES:
        starts = follower.low in NUMBER_WORDS or (i > 0 and tokens[i - 1].low in MEASURES)
    if starts and (quantity := _quantity(text, tokens, i)):
        return quantity
    return _ordinal(text, tokens, i) if low in ORDINALS else (None, i + 1)


def _ordinal(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    """ "the third edition", "21st"; "first" and "second" only right before what they count."""
    token, figures = tokens[i], tokens[i].kind is Tok.NUMBER
    after = i + 1 + figures
    noun = tokens[after]
    counts = noun.kind is Tok.WORD and noun.start - tokens[after - 1].end <= 1
    vague = token.low in {"first", "second"} and (not counts or token.text[0].isupper() or noun.low in NO_NOUN)
    value = float(token.text[:40]) if figures else float(ORDINALS[token.low])
    counted = singular(noun.low) if counts and noun.low not in NO_NOUN else None
    name = vague or (counts and noun.text[0].isupper() and (figures or token.text[0].isupper()))
    return _figure(Kind.ORDINAL, text, tokens, i, after, values=(value,), noun=counted, name=name), after


def _free(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int] | None:
    """What costs nothing: "free of charge", "is free", "no fee"."""
    after = 0
    for size in range(1, _MAX_PHRASE + 1):
        if " ".join(token.low for token in tokens[i : i + size]) in FREE_PHRASES:
            after = i + size
    before = tokens[i - 1].low if i else ""
    if not after and tokens[i].low == "free" and before in FREE_BEFORE:
        after = i + 1 if tokens[i + 1].low not in FREE_NOT_AFTER else 0
    if not after:
        return None
    return _figure(Kind.MONEY, text, tokens, i, after, values=(0.0,), unit="", step=0.0), after


def _adverb(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    """ "twice a day", "double": so many times. A bare "once" is a conjunction."""
    rate, after = read_rate(tokens, i + 1)
    if tokens[i].low == "once" and rate is None:
        return None, i + 1
    bound, _ = read_bound(tokens, i, after)
    values = (float(ADVERBS[tokens[i].low]),)
    said = {"values": values, "unit": "time", "per": rate, "bound": bound}
    return _figure(Kind.QUANTITY, text, tokens, i, after, **said), after


def _number(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    token, after = tokens[i], tokens[i + 1]
    if marker := _marker_end(text, tokens, i):
        return None, marker
    if found := calendar.read_listed_day(tokens, i) or calendar.read_day_month(tokens, i):
        return _dated(text, tokens, i, found)
    if (first := calendar.read_first_time(tokens, i)) is not None:
        return _times(text, tokens, i, (first,), i + 1, calendar.read_time(tokens, i + 2))
    if calendar.read_time(tokens, i):
        return _clock(text, tokens, i)
    if found := calendar.read_period(tokens, i):
        return _dated(text, tokens, i, found)
    adjacent = after.kind is Tok.WORD and touches(tokens, i + 1)
    if adjacent and after.low in _SUFFIXES and token.text.isdecimal():
        return _ordinal(text, tokens, i)
    quantity = _quantity(text, tokens, i)
    if quantity is None:
        return None, i + 1
    figure = quantity[0]
    if figure.kind is Kind.NUMBER and figure.upper is None and figure.end == token.end:
        if adjacent and len(after.text) <= 4 and after.text.isascii():
            return _named(Kind.IDENTIFIER, text, tokens, i, i + 2)  # "5G", "2FA"
        if is_year(token) and _stands_for_year(tokens, i, figure):
            return replace(figure, kind=Kind.DATE, days=(Day(int(token.text)),)), quantity[1]
    return quantity


def _marker_end(text: str, tokens: list[Token], i: int) -> int:
    """Where the citation "[3, 4]" or list marker "2." whose number is at ``i`` ends; 0 when it is none."""
    token, after = tokens[i], tokens[i + 1]
    if len(token.text) > _MARK:
        return 0
    if i and tokens[i - 1].text == "[":
        j = i + 1
        while j < i + 12 and (tokens[j].text in {",", "-", "–", ";"} or tokens[j].kind is Tok.NUMBER):
            j += 1
        return j + 1 if tokens[j].text == "]" else 0
    spaced = text[after.end : after.end + 1].isspace()
    if after.text not in {".", ")"} or not touches(tokens, i + 1) or not spaced or tokens[i + 2].low in MONTHS:
        return 0
    line = text.rfind("\n", max(0, token.start - 8), token.start) + 1
    begins = (line or token.start < 8) and not text[line : token.start].strip(" \t*_>#(")
    return i + 2 if begins else 0


def _stands_for_year(tokens: list[Token], i: int, figure: Figure) -> bool:
    before, after = tokens[i - 1].low if i else "", tokens[i + 1].low
    counted = figure.noun is not None and (after.endswith("s") or after in {"people", "men", "women"})
    placed = before in YEAR_AFTER or before in MONTHS
    return not counted and (placed or 1800 <= int(tokens[i].text) <= 2100)


def _quantity(text: str, tokens: list[Token], i: int) -> tuple[Figure, int] | None:
    """The number that begins at token ``i`` with all that belongs to it, and the index to go on from."""
    negative, currency, j = read_prefix(text, tokens, i)
    amount = read_amount(tokens, j)
    if amount is None:
        return _one_unit(text, tokens, i)
    if amount.spelled:
        if _is_pronoun(tokens, j, amount):
            return None
        amount = _written_twice(tokens, amount)
    if currency and tokens[amount.next].text in {"m", "mm"} and touches(tokens, amount.next):
        amount = amount.times(10**6, amount.next + 1)
    if negative:
        amount = amount._replace(values=tuple(-value for value in amount.values))
    suffix = _part_of_unit(tokens, amount) or read_suffix(tokens, amount.next, currency)
    amount, upper, suffix, after = _range(text, tokens, i, amount, suffix, currency)
    if upper is None and suffix.kind is Kind.NUMBER and (odds := _odds(tokens, amount)):
        amount, suffix, after = odds, Suffix(odds.next), odds.next
    rate, after = read_rate(tokens, after) if suffix.kind is not Kind.PERCENT else (None, after)
    bound, after = read_bound(tokens, i, after)
    unit = suffix.unit
    if unit == "s" and bound.direction and touches(tokens, after - 1):
        suffix, unit = suffix._replace(kind=Kind.NUMBER), None  # "over-65s" are people
    noun = read_noun(tokens, i, after) if unit is None else None
    figure = _figure(
        suffix.kind, text, tokens, i, after,
        values=tuple(value / suffix.divisor for value in amount.values),
        upper=None if upper is None else upper / suffix.divisor,
        unit=unit, per=rate, bound=bound, step=amount.step / suffix.divisor, noun=noun,
        fraction=amount.fraction, scaled=amount.scaled, key=amount.digits,
        name=unit is None and bound is Bound.EXACT and not amount.scaled and _names(text, tokens, i, after),
    )  # fmt: skip
    return figure, after


def _names(text: str, tokens: list[Token], i: int, after: int) -> bool:
    """Does a number name a thing: "Rule 19", "Apollo 11"? Not "In Rome 300 people"."""
    if i == 0 or tokens[i].start - tokens[i - 1].end > 1 or tokens[i].kind is not Tok.NUMBER:
        return False
    before, follower = tokens[i - 1], tokens[after]
    if before.low in LABELS:
        return True
    counts = follower.kind is Tok.WORD and follower.low.endswith("s") and follower.text[0].islower()
    return before.kind is Tok.WORD and before.text[0].isupper() and i > 1 and not counts


def _one_unit(text: str, tokens: list[Token], i: int) -> tuple[Figure, int] | None:
    """ "within a week": one of a unit, after a preposition that measures."""
    unit = find_unit(tokens[i + 1].low)
    if tokens[i].low not in ARTICLES or unit is None or unit.dimension not in {"time", "length"}:
        return None
    if i == 0 or tokens[i - 1].low not in MEASURES or unit.name == "s":
        return None
    bound, _ = read_bound(tokens, i, i + 2)
    said = {"values": (1.0,), "unit": unit.name, "bound": bound}
    return _figure(Kind.QUANTITY, text, tokens, i, i + 2, **said), i + 2


def _is_pronoun(tokens: list[Token], j: int, amount: Amount) -> bool:
    """ "one" alone is a pronoun more often than a number: it counts with a unit, a "percent" or "in four"."""
    if amount.next != j + 1 or tokens[j].low != "one":
        return False
    k = amount.next + (tokens[amount.next].text == "-")
    token = tokens[k]
    if token.low in PERCENT_WORDS or token.low in CURRENCY_WORDS or token.low in TWO_WORD_UNITS:
        return False
    if token.low in {"in", "or", "to"} and read_amount(tokens, k + 1) is not None:
        return False
    if token.kind is not Tok.WORD or token.low in NO_NOUN:
        return True
    return find_unit(token.low) is None and (tokens[j - 1].low in NO_COUNT or token.text[0].isupper())


def _written_twice(tokens: list[Token], amount: Amount) -> Amount:
    """Contracts write a number in words and figures: "ninety (90) days"."""
    k = amount.next
    if tokens[k].text != "(" or tokens[k + 1].kind is not Tok.NUMBER or tokens[k + 2].text != ")":
        return amount
    figure = read_amount(tokens, k + 1)
    same = figure is not None and amount.values[0] in figure.values
    return amount._replace(next=k + 3) if same else amount


def _part_of_unit(tokens: list[Token], amount: Amount) -> Suffix | None:
    """ "half an hour", "three quarters of an hour"."""
    k = amount.next + (tokens[amount.next].low == "of")
    unit = find_unit(tokens[k + 1].low) if amount.fraction and tokens[k].low in {"a", "an"} else None
    return None if unit is None else Suffix(k + 2, Kind.QUANTITY, unit.name)


def _range(
    text: str, tokens: list[Token], i: int, low: Amount, suffix: Suffix, currency: str | None
) -> tuple[Amount, float | None, Suffix, int]:
    """ "5-10 mg", "$5 to $10", "between 5 and 10": the lower end, the upper end, their unit, what follows."""
    k = suffix.next
    sign, none = tokens[k], (low, None, suffix, k)
    between = i > 0 and tokens[i - 1].low in _BETWEEN and sign.low in _AND
    if sign.text in _DASHES:
        if (tokens[k + 1].start - sign.end) != (sign.start - tokens[k - 1].end):
            return none
    elif not between and sign.low not in _RANGE_WORDS:
        return none
    minus, second, m = read_prefix(text, tokens, k + 1)
    high = read_amount(tokens, m)
    if high is None or minus or (second and second != currency):
        return none
    tail = read_suffix(tokens, high.next, currency or second)
    if suffix.unit and (tail.unit not in (None, suffix.unit) or (tail.unit is None and not between)):
        return none
    if tail.unit == "time" and not suffix.unit and not low.digits:
        return none
    if high.scaled and not low.scaled and not suffix.unit and low.digits:
        low = low.times(high.values[0] / read_amount_alone(tokens, m), low.next)
    years = is_year(tokens[i]) and tokens[m].kind is Tok.NUMBER and is_year(tokens[m]) and not tail.unit
    if low.values[0] >= high.values[0] or years:
        return none
    unit = tail if tail.unit else suffix._replace(next=tail.next)
    return low, high.values[0], unit, max(tail.next, high.next)


def read_amount_alone(tokens: list[Token], m: int) -> float:
    """The amount of the token ``m`` without a magnitude word behind it; 1 for none."""
    amount = read_amount([tokens[m], *[tokens[-1]] * 8], 0)
    return (amount.values[0] if amount else 0.0) or 1.0


def _odds(tokens: list[Token], amount: Amount) -> Amount | None:
    """ "one in four", "3 out of 5": a part of a whole."""
    k = amount.next
    if tokens[k].low == "out" and tokens[k + 1].low == "of":
        k += 2
    elif tokens[k].low == "in" and not is_year(tokens[k + 1]):
        k += 1
    else:
        return None
    k += tokens[k].low == "every"
    whole = read_amount(tokens, k)
    if whole is None or not 0 < amount.values[0] < whole.values[0] <= _ODDS:
        return None
    if read_suffix(tokens, whole.next).unit:
        return None
    return Amount((amount.values[0] / whole.values[0],), 0.001, whole.next, fraction=True)


def _acronym(text: str, tokens: list[Token], i: int) -> tuple[Figure | None, int]:
    """ "ISO 9001" is one identifier."""
    if tokens[i].text in _NORMS and tokens[i + 1].kind is Tok.NUMBER:
        return _named(Kind.IDENTIFIER, text, tokens, i, i + 2)
    return _word(text, tokens, i)


_Reader = Callable[[str, list[Token], int], tuple[Figure | None, int]]
_READERS: Final[dict[Tok, _Reader]] = {
    Tok.WORD: _acronym,
    Tok.EMAIL: _address,
    Tok.URL: _address,
    Tok.PHONE: _phone,
    Tok.DATE: _date,
    Tok.TIME: _clock,
    Tok.VERSION: _version,
    Tok.IDENT: _identifier,
    Tok.NUMBER: _number,
    Tok.SYMBOL: _symbol,
}
