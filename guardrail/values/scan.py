"""The scan: text -> values, in one pass over its tokens.

Why no library does this: see the docstring of the package.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Final

from guardrail.values.addresses import find_addresses
from guardrail.values.affixes import singular
from guardrail.values.dates import (
    Found,
    is_year,
    read_day_month,
    read_month,
    read_numeric_date,
    read_period,
    read_time,
)
from guardrail.values.lexicon import MONTHS, WEEKDAYS, words
from guardrail.values.model import DateParts, Value, ValueKind
from guardrail.values.names import capitalises_nouns, is_acronym, is_capitalised, is_headline, read_name
from guardrail.values.numerals import ADVERBS, NUMBER_WORDS, ORDINALS, VULGAR
from guardrail.values.quantities import MEASURES, read_quantity
from guardrail.values.tokens import Tok, Token, tokenize
from guardrail.values.units import SIGNS

_SUFFIXES: Final = frozenset({"st", "nd", "rd", "th", "er", "º", "ª"})
_YEAR_AFTER: Final = words("""
    in since from until till by during before after of to around circa year fiscal early late mid and ( -
    – , through im seit bis en depuis desde
""")
_ARTICLES: Final = frozenset({"a", "an", "ein", "eine", "un", "une", "una"})
_NUMBER_STARTS: Final = NUMBER_WORDS | _ARTICLES | frozenset(ADVERBS)
_WEEKDAYS_SHORT: Final = {
    "mon": 0,
    "tue": 1,
    "wed": 2,
    "thu": 3,
    "fri": 4,
    "sat": 5,
    "sun": 6,
}  # in "Mon-Fri"
_TO: Final = frozenset({"-", "–", "to", "bis"})
_CLOCK_WORDS: Final = frozenset({"noon", "midday", "midnight"})
#: Lower-case words that a value may begin with.
_TRIGGERS: Final = (
    _NUMBER_STARTS
    | MONTHS.keys()
    | ORDINALS.keys()
    | SIGNS.keys()
    | _CLOCK_WORDS
    | {"version", "v"}
    | VULGAR.keys()
)


def extract(text: str) -> list[Value]:
    """The checkable values of ``text`` in their order, non-overlapping; ``text[v.start:v.end] == v.text``."""
    addresses = find_addresses(text)
    if not addresses:
        return _scan(text)
    pieces, last = [], 0
    for value in addresses:
        pieces += [text[last : value.start], "\ufffc", " " * (value.end - value.start - 1)]
        last = value.end
    values = [v for v in _scan("".join([*pieces, text[last:]])) if "\ufffc" not in v.text]
    return sorted([*values, *addresses], key=lambda value: value.start)


def _scan(text: str) -> list[Value]:
    tokens = tokenize(text)
    nouns = capitalises_nouns(tokens)
    headline = is_headline(tokens)
    tokens += [tokens[-1]] * 8  # so that looking ahead needs no check
    values: list[Value] = []
    i = 0
    while (token := tokens[i]).kind is not Tok.END:
        if token.kind is Tok.WORD and token.low not in _TRIGGERS and token.low == token.text:
            i += 1  # the way of nearly every word
            continue
        found, after = _read(text, tokens, i, nouns)
        values += (
            [v for v in found if v.kind is not ValueKind.NAME or is_acronym(v.text)] if headline else found
        )
        i = max(after, i + 1)
    return values


def _read(text: str, tokens: list[Token], i: int, nouns: bool) -> tuple[list[Value], int]:
    """What begins at token ``i``, and the index to go on from."""
    token = tokens[i]
    kind = token.kind
    if kind is Tok.WORD:
        return _word(text, tokens, i, nouns)
    if kind is Tok.NUMBER:
        return _number(text, tokens, i)
    if kind is Tok.SYMBOL:
        follower = tokens[i + 1]
        if token.text in SIGNS or (
            token.text in "-−–" and (follower.kind is Tok.NUMBER or follower.text in SIGNS)
        ):
            return read_quantity(text, tokens, i) or ([], i + 1)
        return [], i + 1
    if kind is Tok.DATE:
        date = read_numeric_date(token, i)
        return (
            (_dated(text, tokens, i, date), date.next)
            if date
            else ([_keyed(ValueKind.IDENTIFIER, token)], i + 1)
        )
    if kind is Tok.TIME:
        time = read_time(tokens, i)
        return (_dated(text, tokens, i, time), time.next) if time else ([], i + 1)
    if kind is Tok.PHONE:
        digits = "".join(c for c in token.text if c.isdigit())
        return [Value(ValueKind.PHONE, token.text, token.start, token.end, key=digits)], i + 1
    if kind is Tok.VERSION:
        return read_quantity(text, tokens, i) or ([_keyed(ValueKind.VERSION, token)], i + 1)
    if kind is Tok.IDENT:
        found = read_period(tokens, i) or read_time(tokens, i)
        return (
            (_dated(text, tokens, i, found), found.next)
            if found
            else ([_keyed(ValueKind.IDENTIFIER, token)], i + 1)
        )
    if tokens[i + 1].text == "$":
        money = read_quantity(text, tokens, i)
        if money:
            return money
    if is_acronym(token.text):
        name, after = read_name(text, tokens, i, nouns)
        return ([name] if name else []), after
    return [], i + 1


def _word(text: str, tokens: list[Token], i: int, nouns: bool) -> tuple[list[Value], int]:
    token = tokens[i]
    low = token.low
    if token.text in VULGAR:
        return read_quantity(text, tokens, i) or ([], i + 1)
    if low in MONTHS or low in WEEKDAYS or low in _CLOCK_WORDS:
        found = (
            read_month(tokens, i)
            if low in MONTHS
            else read_period(tokens, i)
            if low in WEEKDAYS
            else read_time(tokens, i)
        )
        if found:
            return _dated(text, tokens, i, found), found.next
    if low in ORDINALS and (found := read_period(tokens, i)):
        return _dated(text, tokens, i, found), found.next
    if (
        low in _ARTICLES
        and tokens[i + 1].low not in NUMBER_WORDS
        and (i == 0 or tokens[i - 1].low not in MEASURES)
    ):
        return [], i + 1
    if low in _NUMBER_STARTS or token.text in SIGNS or tokens[i + 1].text == "$":
        quantity = read_quantity(text, tokens, i)
        if quantity:
            return quantity
    if low in ORDINALS:
        ordinal = _ordinal_word(tokens, i)
        if ordinal:
            return [ordinal], i + 1
    if token.low in {"version", "v"} and tokens[i + 1].kind is Tok.NUMBER:
        number = tokens[i + 1]
        return [Value(ValueKind.VERSION, number.text, number.start, number.end, key=number.text)], i + 2
    if is_capitalised(token):
        if low in _WEEKDAYS_SHORT and (tokens[i + 1].low in _TO or (i and tokens[i - 1].low in _TO)):
            weekday = Found(i + 1, (DateParts(weekday=_WEEKDAYS_SHORT[low]),))
            return _dated(text, tokens, i, weekday), i + 1
        joined = _acronym_number(text, tokens, i)
        if joined:
            return [joined], i + 2
        name, after = read_name(text, tokens, i, nouns)
        return ([name] if name else []), after
    return [], i + 1


def _number(text: str, tokens: list[Token], i: int) -> tuple[list[Value], int]:
    token, after = tokens[i], tokens[i + 1]
    marker = _marker_end(text, tokens, i)
    if marker:
        return [], marker
    first = _first_of_range(tokens, i)
    if first:
        return _dated(text, tokens, i, first), first.next
    found = read_day_month(tokens, i) or read_time(tokens, i) or read_period(tokens, i)
    if found:
        return _dated(text, tokens, i, found), found.next
    adjacent = after.start == token.end and after.kind is Tok.WORD
    if adjacent and after.low in _SUFFIXES and token.text.isdigit():
        amount = Decimal(token.text[:20])
        noun = singular(tokens[i + 2].low) if tokens[i + 2].kind is Tok.WORD else None
        value = Value(
            ValueKind.ORDINAL,
            text[token.start : after.end],
            token.start,
            after.end,
            amount,
            readings=(amount,),
            noun=noun,
        )
        return [value], i + 2
    quantity = read_quantity(text, tokens, i)
    if quantity is None:
        return [], i + 1
    values, after_index = quantity
    value = values[0]
    if value.kind is ValueKind.NUMBER and value.upper is None:
        if adjacent and value.end == token.end and len(after.text) <= 4 and after.text.isascii():
            joined = text[token.start : after.end]  # "5G", "2FA"
            return [Value(ValueKind.IDENTIFIER, joined, token.start, after.end, key=_fold_key(joined))], i + 2
        if value.end == token.end and is_year(token) and _stands_for_year(tokens, i, value):
            return [_year(value, int(token.text))], after_index
    return values, after_index


def _first_of_range(tokens: list[Token], i: int) -> Found | None:
    """The 3 of "3-5 March 2021" and of "3-4 PM": its month or half of the day comes from the other end."""
    token = tokens[i]
    if (
        tokens[i + 1].low not in _TO
        or tokens[i + 2].kind is not Tok.NUMBER
        or not token.text.isdigit()
        or len(token.text) > 2
    ):
        return None
    day = read_day_month(tokens, i + 2)
    number = int(token.text)
    if day:
        last = day.dates[0]
        return Found(i + 1, (replace(last, day=number),)) if 1 <= number < (last.day or 0) else None
    clock = read_time(tokens, i + 2)
    if clock is None or len(clock.times) != 1 or not 1 <= number <= 12:
        return None
    morning = number % 12 * 60
    return Found(i + 1, times=(morning + 720 if morning + 720 < clock.times[0] else morning,))


def _marker_end(text: str, tokens: list[Token], i: int) -> int:
    """Where the citation "[3, 4]" or list marker "2." whose number is at ``i`` ends; 0 when it is none."""
    token, after = tokens[i], tokens[i + 1]
    if len(token.text) <= 3 and i and tokens[i - 1].text == "[":
        j = i + 1
        while j < i + 12 and (tokens[j].text in {",", "-", "–", ";"} or tokens[j].kind is Tok.NUMBER):
            j += 1
        return j + 1 if tokens[j].text == "]" else 0
    if (
        len(token.text) <= 3
        and after.text in {".", ")"}
        and after.start == token.end
        and text[after.end : after.end + 1].isspace()
    ):
        line = text.rfind("\n", max(0, token.start - 8), token.start) + 1
        if (
            (line or token.start < 8)
            and not text[line : token.start].strip(" \t*_>#(")
            and tokens[i + 2].low not in MONTHS
        ):
            return i + 2
    return 0


def _stands_for_year(tokens: list[Token], i: int, value: Value) -> bool:
    year = int(tokens[i].text)
    before = tokens[i - 1].low if i else ""
    if before in _YEAR_AFTER or before in MONTHS:
        return year >= 1000 and (value.noun is None or tokens[i + 1].low not in {"people", "patients"})
    counted = value.noun is not None and (
        tokens[i + 1].low.endswith("s") or tokens[i + 1].low in {"people", "men", "women"}
    )
    return 1800 <= year <= 2100 and not counted


def _year(value: Value, year: int) -> Value:
    """A bare year: a date, and the number that it also may be."""
    return replace(value, kind=ValueKind.DATE, dates=(DateParts(year),))


def _ordinal_word(tokens: list[Token], i: int) -> Value | None:
    """ "the third edition"; "first" and "second" only right before what they count."""
    token, after = tokens[i], tokens[i + 1]
    counts = after.kind is Tok.WORD and after.start - token.end <= 1
    if token.low in {"first", "second"} and (not counts or token.text[0].isupper()):
        return None
    amount = Decimal(ORDINALS[token.low])
    return Value(
        ValueKind.ORDINAL,
        token.text,
        token.start,
        token.end,
        amount,
        readings=(amount,),
        noun=singular(after.low) if counts else None,
    )


def _acronym_number(text: str, tokens: list[Token], i: int) -> Value | None:
    """ "ISO 9001" is one identifier; "WHO 2021" is not."""
    token, number = tokens[i], tokens[i + 1]
    if (
        number.kind is not Tok.NUMBER
        or not number.text.isdigit()
        or not 3 <= len(number.text) <= 8
        or is_year(number)
    ) and not (
        number.kind is Tok.NUMBER
        and token.text in {"ISO", "RFC", "DIN", "EN", "IEC"}
        and number.text.isdigit()
    ):
        return None
    if not is_acronym(token.text) or not 0 < number.start - token.end <= 1:
        return None
    joined = text[token.start : number.end]
    return Value(ValueKind.IDENTIFIER, joined, token.start, number.end, key=_fold_key(joined))


def _dated(text: str, tokens: list[Token], i: int, found: Found) -> list[Value]:
    start, end = tokens[i].start, tokens[found.next - 1].end
    kind = ValueKind.TIME if found.times else ValueKind.DATE
    return [Value(kind, text[start:end], start, end, dates=found.dates, times=found.times, zone=found.zone)]


def _keyed(kind: ValueKind, token: Token) -> Value:
    key = token.low.removeprefix("v") if kind is ValueKind.VERSION else _fold_key(token.text)
    return Value(kind, token.text, token.start, token.end, key=key)


def _fold_key(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
