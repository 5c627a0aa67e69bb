"""Numbers with what belongs to them: ranges, odds, rates, and what they measure or count."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from guardrail.values.affixes import (
    TWO_WORD_UNITS,
    Suffix,
    read_bound,
    read_noun,
    read_prefix,
    read_rate,
    read_suffix,
)
from guardrail.values.lexicon import NO_NOUN, PERCENT_WORDS, words
from guardrail.values.model import Bound, Value, ValueKind
from guardrail.values.numerals import ADVERBS, Amount, read_amount
from guardrail.values.tokens import Tok, Token
from guardrail.values.units import CURRENCY_WORDS, find_unit

_DASHES: Final = frozenset({"-", "–", "—", "−", "~"})
_RANGE_WORDS: Final = frozenset({"to", "or", "bis", "oder", "à", "through"})
_SPEEDS: Final = {("km", "h"): "km/h", ("mi", "h"): "mph", ("m", "s"): "m-s"}
MEASURES: Final = words("within for after about over than under least of lasts takes innerhalb")
_NO_COUNT: Final = words("the this that which no any every each another some first last only same right")
_ODDS_MAX: Final = 100_000
_AGES: Final = {"over": Bound.OVER, "under": Bound.UNDER}


def read_quantity(text: str, tokens: list[Token], i: int) -> tuple[list[Value], int] | None:
    """The number that begins at token ``i`` with all that belongs to it, and the index to go on from."""
    if tokens[i].kind is Tok.WORD and tokens[i].low in ADVERBS:
        return _adverb(text, tokens, i)
    negative, currency, j = read_prefix(text, tokens, i)
    amount = read_amount(tokens, j)
    if amount is None:
        return _article(text, tokens, i)
    if amount.spelled and _is_pronoun(tokens, j, amount):
        return None
    if amount.spelled:
        amount = _written_twice(tokens, amount)
    if (
        currency
        and amount.next < len(tokens)
        and tokens[amount.next].text in {"m", "mm"}
        and tokens[amount.next].start == tokens[amount.next - 1].end
    ):
        amount = _scale(amount, 10**6, amount.next + 1)
    if negative:
        amount = _negated(amount)
    suffix = _half_an_hour(tokens, amount) or read_suffix(tokens, amount.next, currency)
    low, high, suffix, after = _range(text, tokens, i, amount, suffix, currency)
    if high is None and suffix.kind is ValueKind.NUMBER:
        odds = _odds(tokens, amount)
        if odds is not None:
            amount = low = odds
            suffix = Suffix(odds.next)
            after = odds.next
    readings = tuple(r / suffix.divisor for r in low.readings)
    upper = None if high is None else high.readings[0] / suffix.divisor
    rate, after = read_rate(tokens, after) if suffix.kind is not ValueKind.PERCENT else (None, after)
    unit = suffix.unit
    if unit is not None and rate is not None and (unit, rate) in _SPEEDS:
        unit, rate = _SPEEDS[unit, rate], None
    bound, after = read_bound(tokens, i, after)
    if unit == "s" and (aged := _age_group(tokens, i, after)) is not None:
        suffix, unit, bound = suffix._replace(kind=ValueKind.NUMBER), None, aged
    noun = read_noun(tokens, i, after) if unit is None else None
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


def _age_group(tokens: list[Token], i: int, after: int) -> Bound | None:
    """ "over-65s", "under 25s": people of an age, not seconds."""
    if tokens[after - 1].start != tokens[after - 2].end:
        return None
    before = i - 1 - (i > 1 and tokens[i - 1].text == "-")
    return _AGES.get(tokens[before].low) if before >= 0 else None


def _written_twice(tokens: list[Token], amount: Amount) -> Amount:
    """Contracts write a number in words and figures: "ninety (90) days"."""
    k = amount.next
    if k + 2 >= len(tokens) or tokens[k].text != "(" or tokens[k + 2].text != ")":
        return amount
    figure = read_amount(tokens, k + 1) if tokens[k + 1].kind is Tok.NUMBER else None
    same = figure is not None and figure.next == k + 2 and amount.readings[0] in figure.readings
    return amount._replace(next=k + 3) if same else amount


def _negated(amount: Amount) -> Amount:
    return amount._replace(readings=tuple(-r for r in amount.readings))


def _half_an_hour(tokens: list[Token], amount: Amount) -> Suffix | None:
    """ "half an hour", "three quarters of an hour"."""
    k = amount.next + (tokens[amount.next].low == "of")
    if not amount.fraction or tokens[k].low not in {"a", "an"}:
        return None
    unit = find_unit(tokens[k + 1].low)
    return Suffix(k + 2, ValueKind.QUANTITY, unit.name) if unit is not None else None


def _scale(amount: Amount, factor: int, after: int) -> Amount:
    return amount._replace(
        readings=tuple(r * factor for r in amount.readings),
        step=amount.step * factor,
        next=after,
        scaled=True,
    )


def _adverb(text: str, tokens: list[Token], i: int) -> tuple[list[Value], int] | None:
    """ "twice a day", "double": so many times. A bare "once" is a conjunction."""
    rate, after = read_rate(tokens, i + 1)
    if tokens[i].low == "once" and rate is None:
        return None
    count = Decimal(ADVERBS[tokens[i].low])
    bound, _ = read_bound(tokens, i, after)
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
    if i == 0 or tokens[i - 1].low not in MEASURES or unit.name == "s":
        return None
    start, end = tokens[i].start, tokens[i + 1].end
    bound, _ = read_bound(tokens, i, i + 2)
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
        find_unit(tokens[k].low) or tokens[k].low in CURRENCY_WORDS or tokens[k].low in TWO_WORD_UNITS
    ):
        return False
    if tokens[k].kind is Tok.WORD and tokens[k].low not in NO_NOUN and tokens[j - 1].low not in _NO_COUNT:
        return not tokens[k].text[0].islower()
    return not (after.low in {"or", "to"} and read_amount(tokens, amount.next + 1) is not None)


def _range(
    text: str, tokens: list[Token], i: int, amount: Amount, suffix: Suffix, currency: str | None
) -> tuple[Amount, Amount | None, Suffix, int]:
    """ "5-10 mg", "$5 to $10", "between 5 and 10": the lower end, the upper end, their unit, what follows."""
    k = suffix.next
    token = tokens[k]
    between = (
        i > 0
        and tokens[i - 1].low in {"between", "zwischen", "entre"}
        and token.low in {"and", "und", "et", "y"}
    )
    if not (between or token.text in _DASHES or token.low in _RANGE_WORDS):
        return amount, None, suffix, k
    if token.text in _DASHES and (tokens[k + 1].start - token.end) != (token.start - tokens[k - 1].end):
        return amount, None, suffix, k
    minus, second_currency, m = read_prefix(text, tokens, k + 1)
    upper = read_amount(tokens, m) if tokens[m].kind is not Tok.END else None
    if upper is None or (second_currency and second_currency != currency):
        return amount, None, suffix, k
    if minus:
        upper = _negated(upper)
    tail = read_suffix(tokens, upper.next, currency or second_currency)
    if (suffix.unit and tail.unit and (suffix.unit, suffix.kind) != (tail.unit, tail.kind)) or (
        suffix.unit and not tail.unit and not between
    ):
        return amount, None, suffix, k
    if not suffix.unit and tail.unit == "time" and not amount.key:
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
    k += tokens[k].low == "every"
    whole = read_amount(tokens, k)
    if (
        whole is None
        or not 0 < amount.readings[0] < whole.readings[0] <= _ODDS_MAX
        or read_suffix(tokens, whole.next, None).unit
    ):
        return None
    return Amount((amount.readings[0] / whole.readings[0],), Decimal("0.001"), whole.next, fraction=True)
