"""What stands around an amount: sign, currency, percent, unit, rate, limits, and the noun it counts."""

from __future__ import annotations

from typing import Final, NamedTuple

from guardrail.values.lexicon import (
    BOUNDS,
    LABELS,
    NO_NOUN,
    PERCENT_WORDS,
    RATE_WORDS,
    TRAILING_BOUNDS,
    words,
)
from guardrail.values.model import Bound, ValueKind
from guardrail.values.tokens import Tok, Token
from guardrail.values.units import CENTS, CURRENCY_WORDS, SIGNS, find_unit

_MINUS: Final = frozenset("-−–")
TWO_WORD_UNITS: Final = words("""
    business working percentage basis square cubic fl fluid sq kilowatt swiss us u.s. canadian australian
    pound pounds
""")
_ABBREVIATED: Final = words("approx ca c max min")
_EACH: Final = words("per a an each every pro par por al")
_EVEN: Final = words("""
    movies cookies series species calories zombies ties pies selfies rookies
""")


class Suffix(NamedTuple):
    """What follows an amount, up to token ``next``."""

    next: int
    kind: ValueKind = ValueKind.NUMBER
    unit: str | None = None
    divisor: int = 1


def read_prefix(text: str, tokens: list[Token], i: int) -> tuple[bool, str | None, int]:
    """Sign and currency before a number: "-$5", "US$ 5", "EUR 5"."""
    j, negative = i, False
    if tokens[j].text in _MINUS:
        before = text[tokens[j].start - 1] if tokens[j].start else " "
        if tokens[j + 1].start == tokens[j].end and (before.isspace() or before in "(=:|"):
            negative, j = True, j + 1
    currency = None
    if tokens[j].text in SIGNS:
        currency, j = SIGNS[tokens[j].text], j + 1
        if tokens[j].text in {"$", "."} and tokens[j].start == tokens[j - 1].end:
            j += 1
    elif (
        tokens[j + 1].text == "$" and tokens[j].text + "$" in SIGNS
        if tokens[j].kind in (Tok.WORD, Tok.ABBREVIATION)
        else False
    ):
        currency, j = SIGNS[tokens[j].text + "$"], j + 2
    if currency and tokens[j].text in _MINUS and tokens[j].start == tokens[j - 1].end:
        negative, j = True, j + 1
    return negative, currency, j


def read_suffix(tokens: list[Token], j: int, currency: str | None) -> Suffix:
    """Percent sign, currency or unit at token ``j``."""
    token = tokens[j]
    if token.text == "-" and tokens[j + 1].start == token.end and tokens[j - 1].end == token.start:
        hyphen = read_suffix(tokens, j + 1, None)
        if hyphen.kind is ValueKind.QUANTITY:
            return hyphen
    if currency:
        after = j + 1 if token.text in {"USD", "EUR", "CAD", "AUD"} else j
        return Suffix(after, ValueKind.MONEY, SIGNS[token.text] if after > j else currency)
    low, follower = token.low, tokens[j + 1].low
    if low in PERCENT_WORDS:
        if follower in {"point", "points"}:
            return Suffix(j + 2, ValueKind.QUANTITY, "pp")
        return Suffix(j + 1, ValueKind.PERCENT, "%")
    if low in {"per", "pour", "por"} and follower in {"cent", "ciento"}:
        return Suffix(j + 2, ValueKind.PERCENT, "%")
    if low == "‰":
        return Suffix(j + 1, ValueKind.PERCENT, "%", 10)
    if low in TWO_WORD_UNITS:
        pair = f"{low} {follower}"
        if pair in CURRENCY_WORDS:
            return Suffix(j + 2, ValueKind.MONEY, CURRENCY_WORDS[pair])
        two = find_unit(pair) or find_unit(f"{low} {tokens[j + 2].low}" if follower == "-" else "")
        if two:
            return Suffix(j + (3 if follower == "-" else 2), ValueKind.QUANTITY, two.name)
    if token.text in SIGNS and not (token.kind is Tok.SYMBOL and _opens_money(tokens, j)):
        return Suffix(j + 1, ValueKind.MONEY, SIGNS[token.text])
    if low in CURRENCY_WORDS:
        return Suffix(j + 1, ValueKind.MONEY, CURRENCY_WORDS[low])
    if low in CENTS or (low == "p" and token.start == tokens[j - 1].end and len(tokens[j - 1].text) <= 3):
        return Suffix(j + 1, ValueKind.MONEY, CENTS.get(low, "GBP"), 100)
    return _degrees(tokens, j) or _plain_unit(tokens, j)


def _opens_money(tokens: list[Token], j: int) -> bool:
    """In "2021 $50" the sign belongs to what follows."""
    return (
        tokens[j + 1].kind is Tok.NUMBER
        and tokens[j + 1].start == tokens[j].end
        and tokens[j].start > tokens[j - 1].end
    )


def _degrees(tokens: list[Token], j: int) -> Suffix | None:
    if tokens[j].low not in {"°", "º", "degrees", "degree", "grad", "degrés", "grados"}:
        return None
    scale = tokens[j + 1].low
    if scale in {"c", "celsius", "centigrade"}:
        return Suffix(j + 2, ValueKind.QUANTITY, "°C")
    if scale in {"f", "fahrenheit"}:
        return Suffix(j + 2, ValueKind.QUANTITY, "°F")
    return Suffix(j + 1, ValueKind.QUANTITY, "deg")


def _plain_unit(tokens: list[Token], j: int) -> Suffix:
    token = tokens[j]
    if token.kind in (Tok.WORD, Tok.IDENT) and token.start - tokens[j - 1].end <= 1:
        unit = find_unit(token.text) or (find_unit(token.low) if len(token.low) > 1 else None)
        if unit is not None and not (
            token.text in {"t", "A", "B", "N", "V", "W", "J", "K"}
            and token.start != tokens[j - 1].end
            and token.text in {"A", "t"}
        ):
            return Suffix(j + 1, ValueKind.QUANTITY, unit.name)
    return Suffix(j)


def read_rate(tokens: list[Token], j: int) -> tuple[str | None, int]:
    """ "per day", "/kg/day", "a week", "daily": the unit of the rate, and what follows it."""
    parts: list[str] = []
    while len(parts) < 3:
        token, after = tokens[j], tokens[j + 1]
        if token.low in RATE_WORDS:
            parts.append(RATE_WORDS[token.low])
            j += 1
            continue
        slash = token.text == "/"
        if (not slash and token.low not in _EACH) or after.kind not in (Tok.WORD, Tok.NUMBER):
            break
        unit = find_unit(after.text) or find_unit(after.low)
        if slash or token.low in {"per", "pro", "par", "por"}:
            if after.kind is Tok.NUMBER:
                hundred = find_unit(tokens[j + 2].low)
                if hundred is None:
                    break
                parts.append(f"{after.text} {hundred.name}")
                j += 3
                continue
            parts.append(unit.name if unit else after.low.removesuffix("s"))
        elif unit is not None and unit.dimension in {"time", "months"}:
            parts.append(unit.name)
        else:
            break
        j += 2
    return ("/".join(parts) or None), j


def read_bound(tokens: list[Token], i: int, after: int) -> tuple[Bound, int]:
    """The limit said before the number at ``i`` or right after it, and what follows."""
    low, follower = tokens[after].low, tokens[after + 1].low if after + 1 < len(tokens) else ""
    trailing = TRAILING_BOUNDS.get(f"{low} {follower}")
    if trailing is not None:
        return trailing, after
    if low == "+" and tokens[after].start == tokens[after - 1].end:
        return Bound.AT_LEAST, after + 1
    words_before: list[str] = []
    k = i - 1
    while k >= 0 and len(words_before) < 3:
        token = tokens[k]
        if token.text == "=" and k and tokens[k - 1].text in "<>":
            words_before.insert(0, tokens[k - 1].text + "=")
            k -= 2
            continue
        if token.text == "." and not (k and tokens[k - 1].low in _ABBREVIATED):
            break
        if token.kind is Tok.SYMBOL and token.text not in ".<>≤≥~≈":
            break
        if token.text != ".":
            words_before.insert(0, token.low)
        k -= 1
    for size in range(len(words_before), 0, -1):
        bound = BOUNDS.get(" ".join(words_before[-size:]))
        if bound is not None:
            return bound, after
    return Bound.EXACT, after


def read_noun(tokens: list[Token], i: int, after: int) -> str | None:
    """What a bare number counts ("300 people"), or what it is the number of ("section 5")."""
    if i and tokens[i - 1].low in LABELS:
        return tokens[i - 1].low
    k = after + (tokens[after].text == "-")
    if (
        tokens[k].kind is Tok.WORD
        and tokens[k].text[0].isupper()
        and tokens[k + 1].start - tokens[k].end == 1
    ):
        after, k = k + 1, k + 1  # "five American teams" are teams
    token = tokens[k]
    if (
        token.kind is Tok.WORD
        and len(token.low) > 1
        and token.low not in NO_NOUN
        and token.start - tokens[after - 1].end <= 1
    ):
        return singular(token.low)
    return None


def singular(word: str) -> str:
    """A plural's singular, near enough to compare two counted nouns."""
    if word.endswith("ies") and len(word) > 4 and word not in _EVEN:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
