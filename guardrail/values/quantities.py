"""Numbers with what belongs to them: sign, currency, percent, unit, rate, range, limit, and what they count."""

from __future__ import annotations

from decimal import Decimal
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
from guardrail.values.model import Bound, Value, ValueKind
from guardrail.values.numerals import ADVERBS, Amount, read_amount
from guardrail.values.tokens import Tok, Token
from guardrail.values.units import CENTS, CURRENCY_WORDS, SIGNS, find_unit

_MINUS: Final = frozenset("-−–")
_DASHES: Final = frozenset({"-", "–", "—", "−", "~"})
_RANGE_WORDS: Final = frozenset({"to", "bis", "à", "a", "through"})
_TWO_WORD_UNITS: Final = words("""
    business working percentage basis square cubic fl fluid sq kilowatt swiss us u.s. canadian australian
    pound pounds
""")
_SPEEDS: Final = {("km", "h"): "km/h", ("mi", "h"): "mph", ("m", "s"): "m-s"}
_EACH: Final = words("""
    per a an each every pro par por al
""")
MEASURES: Final = words("""
    within for after about over than under least of lasts takes innerhalb
""")
_ODDS_MAX: Final = 100_000


class Suffix(NamedTuple):
    """What follows an amount, up to token ``next``."""

    next: int
    kind: ValueKind = ValueKind.NUMBER
    unit: str | None = None
    divisor: int = 1


def read_quantity(text: str, tokens: list[Token], i: int) -> tuple[list[Value], int] | None:
    """The number that begins at token ``i`` with all that belongs to it, and the index to go on from."""
    if tokens[i].kind is Tok.WORD and tokens[i].low in ADVERBS:
        return _adverb(text, tokens, i)
    negative, currency, j = _prefix(text, tokens, i)
    amount = read_amount(tokens, j)
    if amount is None:
        return _article(text, tokens, i)
    if amount.spelled and _is_pronoun(tokens, j, amount):
        return None
    if (
        currency
        and amount.next < len(tokens)
        and tokens[amount.next].text in {"m", "mm"}
        and tokens[amount.next].start == tokens[amount.next - 1].end
    ):
        amount = _scale(amount, 10**6, amount.next + 1)
    suffix = _suffix(tokens, amount.next, currency)
    low, high, suffix, after = _range(text, tokens, i, j, amount, suffix, currency)
    if high is None and suffix.kind is ValueKind.NUMBER:
        odds = _odds(tokens, amount)
        if odds is not None:
            amount = low = odds
            suffix = Suffix(odds.next)
            after = odds.next
    sign = -1 if negative else 1
    readings = tuple(sign * r / suffix.divisor for r in low.readings)
    upper = None if high is None else sign * high.readings[0] / suffix.divisor
    rate, after = _rate(tokens, after) if suffix.kind is not ValueKind.PERCENT else (None, after)
    unit = suffix.unit
    if unit is not None and rate is not None and (unit, rate) in _SPEEDS:
        unit, rate = _SPEEDS[unit, rate], None
    bound, after = _bound(tokens, i, after)
    noun = _noun(tokens, i, after) if unit is None else None
    end = tokens[after - 1].end
    start = tokens[i].start
    value = Value(
        suffix.kind,
        text[start:end],
        start,
        end,
        amount=readings[0],
        upper=upper,
        readings=readings,
        unit=unit,
        per=rate,
        bound=bound,
        step=low.step / suffix.divisor,
        noun=noun,
        fraction=low.fraction,
        scaled=low.scaled,
        key=low.key,
    )
    return [value], after


def _scale(amount: Amount, factor: int, after: int) -> Amount:
    return amount._replace(
        readings=tuple(r * factor for r in amount.readings),
        step=amount.step * factor,
        next=after,
        scaled=True,
    )


def _adverb(text: str, tokens: list[Token], i: int) -> tuple[list[Value], int] | None:
    """ "twice a day", "double": so many times. A bare "once" is a conjunction."""
    rate, after = _rate(tokens, i + 1)
    if tokens[i].low == "once" and rate is None:
        return None
    count = Decimal(ADVERBS[tokens[i].low])
    bound, _ = _bound(tokens, i, after)
    start, end = tokens[i].start, tokens[after - 1].end
    value = Value(
        ValueKind.QUANTITY,
        text[start:end],
        start,
        end,
        count,
        readings=(count,),
        unit="time",
        per=rate,
        bound=bound,
    )
    return [value], after


def _article(text: str, tokens: list[Token], i: int) -> tuple[list[Value], int] | None:
    """ "within a week": one of a unit of time, after a preposition that measures."""
    unit = find_unit(tokens[i + 1].low)
    if (
        tokens[i].low not in {"a", "an", "einer", "eine", "un", "une"}
        or unit is None
        or unit.dimension not in {"time", "months", "length"}
    ):
        return None
    if i == 0 or tokens[i - 1].low not in MEASURES or unit.name in {"s"}:
        return None
    start, end = tokens[i].start, tokens[i + 1].end
    bound, _ = _bound(tokens, i, i + 2)
    one = Decimal(1)
    return [
        Value(
            ValueKind.QUANTITY, text[start:end], start, end, one, readings=(one,), unit=unit.name, bound=bound
        )
    ], i + 2


def _is_pronoun(tokens: list[Token], j: int, amount: Amount) -> bool:
    """ "one" alone is a pronoun more often than a number: it counts with a unit, a "percent" or "in four"."""
    if amount.next != j + 1 or tokens[j].low != "one":
        return False
    after = tokens[amount.next]
    k = amount.next + (after.text == "-")
    if tokens[k].low in PERCENT_WORDS or (
        tokens[k].low == "in" and tokens[k + 1].kind in (Tok.NUMBER, Tok.WORD)
    ):
        return tokens[k].low == "in" and read_amount(tokens, k + 1) is None
    if tokens[k].kind is Tok.WORD and (
        find_unit(tokens[k].low) or tokens[k].low in CURRENCY_WORDS or tokens[k].low in _TWO_WORD_UNITS
    ):
        return False
    return not (after.low in {"or", "to"} and read_amount(tokens, amount.next + 1) is not None)


def _prefix(text: str, tokens: list[Token], i: int) -> tuple[bool, str | None, int]:
    """Sign and currency before a number: "-$5", "US$ 5", "EUR 5"."""
    j, negative = i, False
    if tokens[j].text in _MINUS:
        before = text[tokens[j].start - 1] if tokens[j].start else " "
        if before.isspace() or before in "(=:|":
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


def _suffix(tokens: list[Token], j: int, currency: str | None) -> Suffix:
    """Percent sign, currency or unit at token ``j``."""
    token = tokens[j]
    if token.text == "-" and tokens[j + 1].start == token.end and tokens[j - 1].end == token.start:
        hyphen = _suffix(tokens, j + 1, None)
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
    if low in _TWO_WORD_UNITS:
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
    if low in CENTS or (low == "p" and token.start == tokens[j - 1].end):
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
        unit = find_unit(token.text) or find_unit(token.low)
        if unit is not None and not (
            token.text in {"t", "A", "B", "N", "V", "W", "J", "K"}
            and token.start != tokens[j - 1].end
            and token.text in {"A", "t"}
        ):
            return Suffix(j + 1, ValueKind.QUANTITY, unit.name)
    return Suffix(j)


def _range(
    text: str, tokens: list[Token], i: int, j: int, amount: Amount, suffix: Suffix, currency: str | None
) -> tuple[Amount, Amount | None, Suffix, int]:
    """ "5-10 mg", "$5 to $10", "between 5 and 10": the lower end, the upper end, their unit, what follows."""
    k = suffix.next
    token = tokens[k]
    between = (
        i > 0
        and tokens[i - 1].low in {"between", "zwischen", "entre"}
        and token.low in {"and", "und", "et", "y"}
    )
    if not (between or token.text in _DASHES or (token.low in _RANGE_WORDS and token.low != "a")):
        return amount, None, suffix, k
    if token.text in _DASHES and (tokens[k + 1].start - token.end) != (token.start - tokens[k - 1].end):
        return amount, None, suffix, k
    _, second_currency, m = _prefix(text, tokens, k + 1)
    upper = read_amount(tokens, m) if tokens[m].kind is not Tok.END else None
    if upper is None or (second_currency and second_currency != currency):
        return amount, None, suffix, k
    tail = _suffix(tokens, upper.next, currency or second_currency)
    if (suffix.unit and tail.unit and (suffix.unit, suffix.kind) != (tail.unit, tail.kind)) or (
        suffix.unit and not tail.unit and not between
    ):
        return amount, None, suffix, k
    if not suffix.unit and tail.unit in {"time"} and not amount.key:
        return amount, None, suffix, k
    low = amount
    if upper.scaled and not amount.scaled and suffix.next == amount.next and not amount.fraction:
        factor = int(
            upper.step / (upper.step if tokens[m].kind is not Tok.NUMBER else _plain_step(tokens, m))
        )
        low = _scale(amount, factor, amount.next) if factor > 1 else amount
    if low.readings[0] >= upper.readings[0] or (_year_like(amount) and _year_like(upper) and not tail.unit):
        return amount, None, suffix, k
    return low, upper, tail if tail.unit else suffix._replace(next=tail.next), max(tail.next, upper.next)


def _plain_step(tokens: list[Token], m: int) -> Decimal:
    return Decimal(1).scaleb(-len(tokens[m].text.partition(".")[2]))


def _year_like(amount: Amount) -> bool:
    return len(amount.key) == 4 and amount.key.isdigit() and amount.key[:2] in {"18", "19", "20"}


def _odds(tokens: list[Token], amount: Amount) -> Amount | None:
    """ "one in four", "3 out of 5": a part of a whole."""
    k = amount.next
    if tokens[k].low == "out" and tokens[k + 1].low == "of":
        k += 2
    elif tokens[k].low == "in":
        k += 1
        if _year_like(Amount((), Decimal(1), 0, tokens[k].text)):
            return None
    else:
        return None
    whole = read_amount(tokens, k)
    if (
        whole is None
        or not 0 < amount.readings[0] < whole.readings[0] <= _ODDS_MAX
        or _suffix(tokens, whole.next, None).unit
    ):
        return None
    return Amount((amount.readings[0] / whole.readings[0],), Decimal("0.001"), whole.next, fraction=True)


def _rate(tokens: list[Token], j: int) -> tuple[str | None, int]:
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


def _bound(tokens: list[Token], i: int, after: int) -> tuple[Bound, int]:
    """The limit said before the number at ``i`` or right after it, and what follows."""
    low, follower = tokens[after].low, tokens[after + 1].low if after + 1 < len(tokens) else ""
    trailing = TRAILING_BOUNDS.get(f"{low} {follower}")
    if trailing is not None:
        return trailing, after
    if low == "+" and tokens[after].start == tokens[after - 1].end:
        return Bound.AT_LEAST, after + 1
    words: list[str] = []
    k = i - 1
    while k >= 0 and len(words) < 3:
        token = tokens[k]
        if token.text == "=" and k and tokens[k - 1].text in "<>":
            words.insert(0, tokens[k - 1].text + "=")
            k -= 2
            continue
        if token.text not in {".", "a", "an", "the"} or (not words and token.text != "."):
            if token.kind is Tok.SYMBOL and token.text not in "<>≤≥~≈":
                break
        if token.text != ".":
            words.insert(0, token.low)
        k -= 1
    for size in range(len(words), 0, -1):
        bound = BOUNDS.get(" ".join(words[-size:]))
        if bound is not None:
            return bound, after
    return Bound.EXACT, after


def _noun(tokens: list[Token], i: int, after: int) -> str | None:
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


_EVEN: Final = words("""
    movies cookies series species calories zombies ties pies selfies rookies
""")


def singular(word: str) -> str:
    """A plural's singular, near enough to compare two counted nouns."""
    if word.endswith("ies") and len(word) > 4 and word not in _EVEN:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
