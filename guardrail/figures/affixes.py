"""What stands around an amount: sign, currency, percent, unit, rate, limits, and the noun it counts."""

from __future__ import annotations

from typing import Final, NamedTuple

from guardrail.figures import tables
from guardrail.figures.model import Bound, Kind
from guardrail.figures.numbers import read_amount
from guardrail.figures.tables import BOUNDS, CENTS, CURRENCY_WORDS, LABELS, SIGNS, find_unit
from guardrail.figures.tokens import Tok, Token, touches

_MINUS: Final = frozenset("-−–")
_PER: Final = frozenset({"per", "pro", "par", "por", "/"})
_EACH: Final = _PER | {"a", "an", "each", "every", "al"}
_DEGREES: Final = frozenset({"°", "º", "degrees", "degree", "grad", "degrés", "grados"})
_SCALES: Final = {"c": "°C", "celsius": "°C", "centigrade": "°C", "f": "°F", "fahrenheit": "°F"}
_ONLY_ADJACENT: Final = frozenset({"A", "t", "x", "×", "B", "J", "K", "N"})
_MAX_RATES: Final = 3
_BOUND_WORDS: Final = 3
_RANGE: Final = frozenset({"-", "–", "to", "or"})
_SAME: Final = 1e-6


class Suffix(NamedTuple):
    """What follows an amount, up to token ``next``."""

    next: int
    kind: Kind = Kind.NUMBER
    unit: str | None = None
    divisor: int = 1


def read_prefix(tokens: list[Token], i: int) -> tuple[bool, str | None, int]:
    """Sign and currency before a number: "-$5", "US$ 5", "EUR 5"."""
    currency = None
    free = i == 0 or not touches(tokens, i) or tokens[i - 1].text in "(=:|"
    negative = tokens[i].text in _MINUS and touches(tokens, i + 1) and free
    j = i + negative
    if tokens[j + 1].text == "$" and tokens[j].text + "$" in SIGNS:
        currency, j = SIGNS[tokens[j].text + "$"], j + 2
    elif tokens[j].text in SIGNS:
        currency, j = SIGNS[tokens[j].text], j + 1
        j += tokens[j].text in {"$", "."} and touches(tokens, j)
    if currency and tokens[j].text in _MINUS and touches(tokens, j):
        negative, j = True, j + 1
    return negative, currency, j


def read_suffix(tokens: list[Token], j: int, currency: str | None = None) -> Suffix:
    """Percent sign, currency or unit at token ``j``."""
    token, low, follower = tokens[j], tokens[j].low, tokens[j + 1].low
    if token.text == "-" and touches(tokens, j) and touches(tokens, j + 1) and follower != "-":
        hyphened = read_suffix(tokens, j + 1)
        return hyphened if hyphened.kind in (Kind.QUANTITY, Kind.MONEY) else Suffix(j, unit=None)
    if currency:
        coded = token.text in SIGNS and token.kind is Tok.WORD
        return Suffix(j + coded, Kind.MONEY, SIGNS[token.text] if coded else currency)
    if low in tables.PERCENT_WORDS:
        if follower in {"point", "points"}:
            return Suffix(j + 2, Kind.QUANTITY, "pp")
        return Suffix(j + 1, Kind.PERCENT, "%")
    if low in {"per", "pour", "por"} and follower in {"cent", "ciento"}:
        return Suffix(j + 2, Kind.PERCENT, "%")
    if low in tables.PER_MILLE or f"{low} {follower}" in tables.PER_MILLE:
        return Suffix(j + 1 + (low not in tables.PER_MILLE), Kind.PERCENT, "%", 10)
    if low in tables.TWO_WORD_UNITS:
        after = j + 2 + (follower == "-")
        pair = f"{low} {tokens[after - 1].low}"
        if pair in CURRENCY_WORDS:
            return Suffix(after, Kind.MONEY, CURRENCY_WORDS[pair])
        if two := find_unit(pair):
            return Suffix(after, Kind.QUANTITY, two.name)
    opens = tokens[j + 1].kind is Tok.NUMBER and touches(tokens, j + 1) and not touches(tokens, j)
    if token.text in SIGNS and not opens:  # in "2021 $50" the sign belongs to what follows
        return Suffix(j + 1, Kind.MONEY, SIGNS[token.text])
    if low in CURRENCY_WORDS:
        return Suffix(j + 1, Kind.MONEY, CURRENCY_WORDS[low])
    if low in CENTS or (token.text == "p" and touches(tokens, j) and len(tokens[j - 1].text) <= 3):
        return Suffix(j + 1, Kind.MONEY, CENTS.get(low, "GBP"), 100)
    return _unit(tokens, j)


def _unit(tokens: list[Token], j: int) -> Suffix:
    token, low, follower = tokens[j], tokens[j].low, tokens[j + 1].low
    if low in _DEGREES:
        scale = _SCALES.get(follower)
        return Suffix(j + 1 + (scale is not None), Kind.QUANTITY, scale or "deg")
    if (token.text, follower, tokens[j + 2].text) == ("km", "/", "h"):
        return Suffix(j + 3, Kind.QUANTITY, "km/h")
    mega = token.text.startswith("M") and not token.text.isupper()  # "Mg" is not mg
    unit = find_unit(token.text) or (find_unit(low) if len(low) > 1 and not mega else None)
    if unit is None or token.start - tokens[j - 1].end > 1:
        return Suffix(j)
    fits = token.text not in _ONLY_ADJACENT or touches(tokens, j)
    return Suffix(j + 1, Kind.QUANTITY, unit.name) if fits else Suffix(j)


def read_rate(tokens: list[Token], j: int) -> tuple[str | None, int]:
    """ "per day", "/kg/day", "a week", "daily": the unit of the rate, and what follows it."""
    parts: list[str] = []
    while len(parts) < _MAX_RATES:
        token, after = tokens[j], tokens[j + 1]
        if token.low in _EACH and after.low in tables.WHOLE and find_unit(tokens[j + 2].low) is not None:
            j, after = j + 1, tokens[j + 2]  # "per calendar year"
        if token.low in tables.RATES:
            parts.append(tables.RATES[token.low])
            j += 1
            continue
        unit = find_unit(after.text) or find_unit(after.low)
        timed = unit is not None and unit.dimension == "time"
        if token.low in _EACH and not parts and (several := _several(tokens, j + 1)) is not None:
            per, after_it = several
            return per, j if " " in per else after_it  # "6 hours" are a figure of their own
        if after.kind is not Tok.WORD or token.low not in (_EACH if timed else _PER):
            break
        short = unit is not None and (timed or len(after.text) < 4)
        parts.append(unit.name if unit is not None and short else singular(after.low))
        j += 2
    return ("/".join(sorted(parts)) or None), j


def _several(tokens: list[Token], j: int) -> tuple[str, int] | None:
    """ "every 6 hours", "per 100 g": what a rate is per, with its number; "24 hours" are a day."""
    low = read_amount(tokens, j)
    if low is None:
        return None
    dashed = tokens[low.next].low in _RANGE
    high = read_amount(tokens, low.next + 1) if dashed else None
    at = (high or low).next
    unit = find_unit(tokens[at].text) or find_unit(tokens[at].low)
    if unit is None:
        return None
    if high is not None:
        return f"{low.values[0]:g}-{high.values[0]:g} {unit.name}", at + 1
    alike = (u for u in tables.UNIT.values() if u.dimension == unit.dimension)
    whole = next(
        (u.name for u in alike if abs(low.values[0] * unit.factor - u.factor) <= _SAME * u.factor), ""
    )
    return whole or f"{low.values[0]:g} {unit.name}", at + 1


def read_bound(tokens: list[Token], i: int, after: int) -> tuple[Bound, int, int]:
    """The limit said before the number at ``i`` or right after it, where it begins, and what follows it."""
    trailing = tables.TRAILING_BOUNDS.get(f"{tokens[after].low} {tokens[after + 1].low}")
    if trailing is not None:
        return trailing, i, after + 2
    if tokens[after].low == "+" and touches(tokens, after):
        return Bound.AT_LEAST, i, after + 1
    before: list[Token] = []
    for token in reversed(tokens[max(0, i - _BOUND_WORDS - 1) : i]):
        if token.kind is Tok.SYMBOL and token.text not in "<>=≤≥~≈.-":
            break
        before[:0] = [token] if token.text not in ".-" else []
    for size in range(min(len(before), _BOUND_WORDS), 0, -1):
        if (bound := BOUNDS.get(" ".join(token.low for token in before[-size:]))) is not None:
            return bound, tokens.index(before[-size], max(0, i - _BOUND_WORDS - 1)), after
    return Bound.EXACT, i, after


def read_noun(tokens: list[Token], i: int, after: int) -> str | None:
    """What a bare number counts ("300 people"), or what it is the number of ("section 5")."""
    if i and tokens[i - 1].low in LABELS:
        return tokens[i - 1].low
    k = after + (tokens[after].text == "-")
    # "five American teams" are teams
    named = tokens[k].text[:1].isupper() and tokens[k].kind is Tok.WORD
    k += named and tokens[k + 1].kind is Tok.WORD and tokens[k + 1].low not in tables.NO_NOUN
    token = tokens[k]
    counts = token.kind is Tok.WORD and len(token.low) > 1 and token.low not in tables.NO_NOUN
    return singular(token.low) if counts and token.start - tokens[k - 1].end <= 1 else None


def singular(word: str) -> str:
    """A plural's singular, near enough to compare two counted nouns."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
