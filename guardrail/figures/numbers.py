"""Numerals and number words -> amounts, and what stands around them.

That is sign, currency, percent, unit, rate, limits, and the noun that an amount counts.
Digits past the fortieth are left out: nobody compares them.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final, NamedTuple

from guardrail.figures import tables
from guardrail.figures.model import Bound, Kind
from guardrail.figures.tables import (
    ARTICLES,
    BOUNDS,
    CENTS,
    CURRENCY_WORDS,
    LABELS,
    MAGNITUDES,
    ONES,
    PARTS,
    SIGNS,
    TENS,
    VULGAR,
    Tok,
    Token,
    find_unit,
    touches,
)

_MAX_DIGITS: Final = 40
_MAX_WORDS: Final = 16
_PART_STEP: Final = 0.001
_EXPONENT: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_MAX_EXPONENT: Final = 4  # digits
_RAISED_SIGNS: Final = ("⁻", "⁺")
_TIMES: Final = ("×", "·", "x", "*")
_HUGE: Final = 250  # digits that a power may have; numerals have 40
_HALVES: Final = frozenset("half halves hälfte moitié mitad drittel viertel".split())  # noqa: SIM905
_SCALES: Final = frozenset("hundred thousand million dozen mille mil hundert tausend".split())  # noqa: SIM905
_AFTER_A_PART: Final = frozenset({"of", "more", "less", "fewer", "higher", "lower", "cheaper", ".", ""})
_AND_ONES: Final = frozenset({"y", "e", "et"})
_JOINED: Final = ONES.keys() | TENS.keys() | MAGNITUDES.keys() | PARTS.keys()


class Amount(NamedTuple):
    """A number read from the tokens up to ``next``: ``values`` the likeliest first, ``step`` the size of the
    last place written. ``scaled``: a magnitude word took part, so the places not written are unknown."""

    values: tuple[float, ...]
    step: float
    next: int
    fraction: bool = False
    scaled: bool = False

    def times(self, factor: float, after: int) -> Amount:
        """The amount with a magnitude applied."""
        values = tuple(value * factor for value in self.values)
        return self._replace(values=values, step=self.step * factor, next=after, scaled=True)


Separators = frozenset[tuple[str, bool]]
"""The commas and points within the numerals of a text, each with whether it groups digits, or parts off
decimals, as far as the text shows it; one may do both."""
COMMAS: Final[Separators] = frozenset({(",", True), (",", False)})
MAY_BE_EITHER: Final = re.compile(r"\d[.,]\d{3}(?!\d)")
"""What a numeral has whose separator may do either."""
_MOST_SHOWN: Final = 2_000  # numerals of a text that are looked at
_SEPARATED: Final = re.compile(r"(?<![\w.,'’])\d++(?:[.,]\d++)++")
_MEASURE: Final = re.compile(r"[ \u00a0\u202f]?([%€£$]|[^\W\d_]{1,12})")
_EITHER: Final = re.compile(r"([1-9]\d{0,2})([.,])(\d{3})")
_GROUPED: Final = re.compile(r"\d{1,3}(?:([.,])\d{3})++(?:(?!\1)([.,])\d++)?")
_ENGLISH: Final = re.compile(r"\b(?:the|is|are|of|and|for|with|you)\b", re.IGNORECASE)
_HAS_DECIMAL_COMMAS: Final = re.compile(
    r"\b(?:und|der|das|ist|sind|wird|ein|eine|les|des|est|sont|une|avec"
    r"|del|los|una|che|della|het|een|och|att|não|uma|jest)\b",
    re.IGNORECASE,
)
_AFTER_DECIMALS: Final = tables.PERCENT_WORDS | MAGNITUDES.keys()


def separators_of(text: str) -> Separators:
    """What a text shows of its separators; its commas may do both where it shows nothing of them and is in a
    language that has decimal commas. Linear."""
    numerals = islice(_SEPARATED.finditer(text), _MOST_SHOWN)
    shown = frozenset(role for numeral in numerals for role in _roles(text, numeral))
    foreign = _HAS_DECIMAL_COMMAS.search(text) and not _ENGLISH.search(text)
    return shown | COMMAS if foreign and shown.isdisjoint(COMMAS) else shown


def _roles(text: str, numeral: re.Match[str]) -> list[tuple[str, bool]]:
    """The separators of a numeral that plainly group digits, or don't. One decimal or two count where they
    are measured: "12,5 mg" shows something, "chapters 2,3" nothing."""
    digits = numeral[0]
    sign = "," if "," in digits else "."
    whole, _, decimals = digits.partition(sign)
    if (grouped := _GROUPED.fullmatch(digits)) is not None:
        parted = [(grouped[2], False)] if grouped[2] else []
        return [(grouped[1], True), *parted] if parted or digits.count(grouped[1]) > 1 else []
    after = _MEASURE.match(text, numeral.end())
    said = after[1] if after else ""
    measured = text[: numeral.start()][-1:] in SIGNS or said == "%" or said in SIGNS or find_unit(said)
    plain = whole == "0" or (len(decimals) <= 2 and (measured or said.casefold() in CURRENCY_WORDS))
    return [(sign, False)] if plain and whole.isdecimal() and decimals.isdecimal() else []


def settled(tokens: list[Token], shown: Separators) -> list[Token]:
    """The tokens, each number whose separator does one thing written so that it can't be taken for the other.

    A comma before three digits groups, unless the text shows decimal commas; after $ and £ always. A point
    may do either until the text shows what it does, and "2.500" even then: hardly anybody writes 2.5 so.
    """
    found = list(tokens)
    commas = {groups for sign, groups in shown if sign == ","}
    points = {groups for sign, groups in shown if sign == "."}
    for i, token in enumerate(tokens):
        match = _EITHER.fullmatch(token.text) if token.kind is Tok.NUMBER else None
        if match is None:
            continue
        whole, sign, part = match.groups()
        if sign == ",":
            groups = False not in commas or (i > 0 and tokens[i - 1].text in ("$", "£"))
            parts = commas == {False} and False not in points
        else:
            groups = points == {True} or (commas == {False} and not points)
            parts = points == {False} and False not in commas and not part.endswith("00")
            parts = parts or tokens[i + 1].low in _AFTER_DECIMALS
        if groups or parts:
            found[i] = token._replace(text=whole + part if groups else f"0{whole}.{part}")
    return found


def read_numeral(text: str) -> tuple[tuple[float, ...], float]:
    """Every reading of a numeral, the likeliest first, and the size of its last place.

    A single point or comma before three digits may group ("1,000") or part ("1.125"), save after a zero.
    """
    text = "".join(c for c in text[:_MAX_DIGITS] if c.isdecimal() or c in ".,").rstrip(".,")
    points, commas = text.count("."), text.count(",")
    sign = "." if text.rfind(".") > text.rfind(",") else ","
    whole, _, part = text.rpartition(sign)
    if points + commas > 1 and not (points and commas):
        whole, part = text.replace(sign, ""), ""
    elif not points + commas:
        whole, part = text, ""
    whole = whole.replace(".", "").replace(",", "") or "0"
    parted, grouped = float(f"{whole}.{part or 0}"), float(whole + part)
    if points + commas == 1 and len(part) == 3 and len(whole) <= 3 and whole[0] != "0":
        return ((parted, grouped), 0.001) if sign == "." else ((grouped, parted), 1.0)
    return (parted,), 10.0 ** -len(part)


def read_amount(tokens: list[Token], i: int) -> Amount | None:
    """The number that begins at token ``i``, in digits or words, magnitude words included; said once more in
    brackets, it is the same one: "twenty-four (24) months"."""
    amount = _amount(tokens, i)
    if amount is None or tokens[amount.next].text != "(":
        return amount
    again = _amount(tokens, amount.next + 1)
    if again is None or tokens[again.next].text != ")" or again.values[0] not in amount.values:
        return amount
    return amount._replace(next=again.next + 1)


def _amount(tokens: list[Token], i: int) -> Amount | None:
    token = tokens[i]
    if token.kind is Tok.NUMBER:
        return _digits(tokens, i)
    if token.text in VULGAR:
        return Amount((VULGAR[token.text],), _PART_STEP, i + 1, fraction=True)
    if token.low in tables.NUMBER_WORDS or (
        token.low in ARTICLES and tokens[i + 1].low in tables.NUMBER_WORDS
    ):
        return _spelled(tokens, i)
    return None


def _digits(tokens: list[Token], i: int) -> Amount:
    token, after = tokens[i], tokens[i + 1]
    values, step = read_numeral(token.text)
    amount = Amount(values, step, i + 1)
    if after.text in VULGAR and after.start - token.end <= 1:  # 2 ½
        amount = Amount((values[0] + VULGAR[after.text],), step, i + 2)
    elif (ratio := _ratio(tokens, i)) is not None:
        amount = ratio
    elif after.start == token.end + 1 and (ratio := _ratio(tokens, i + 1)) is not None:  # 1 1/2
        amount = ratio._replace(values=(values[0] + ratio.values[0],), fraction=False)
    elif (power := _power(tokens, i)) is not None:
        amount = power
    letter = tables.LETTER_MAGNITUDES.get(after.text) if after.start == token.end else None
    if letter and after.text != "mm":
        return amount.times(letter, i + 2)
    return _scaled(tokens, amount)


def _power(tokens: list[Token], i: int) -> Amount | None:
    """ "3²", "10⁶", "1.5 × 10⁻³"."""
    values, step = read_numeral(tokens[i].text)
    base = i + 2 if tokens[i + 1].text in _TIMES and tokens[i + 2].text == "10" else i
    after = base + 1 + (tokens[base + 1].text in _RAISED_SIGNS and touches(tokens, base + 1))
    digits = tokens[after].text.translate(_EXPONENT)
    raised = digits != tokens[after].text and digits.isascii() and digits.isdecimal()
    if not raised or not touches(tokens, after) or len(digits) > _MAX_EXPONENT:
        return None
    power = min(int(digits), _HUGE) * (-1 if tokens[base + 1].text == "⁻" else 1)
    if base > i:
        return Amount(tuple(value * 10.0**power for value in values), step * 10.0**power, after + 1)
    if power < 0:
        small = values[0] >= 1
        return Amount((values[0] ** power,), _PART_STEP * values[0] ** power, after + 1) if small else None
    most = 10.0 ** (_HUGE / max(power, 1))
    return Amount(tuple(min(value, most) ** power for value in values), step, after + 1)


def _ratio(tokens: list[Token], i: int) -> Amount | None:
    """ "3/4": a proper fraction with a small denominator."""
    over, sign, under = tokens[i : i + 3]
    plain = all(token.text.isdecimal() and len(token.text) <= 2 for token in (over, under))
    if sign.text not in ("/", "⁄") or not plain or over.end != sign.start or sign.end != under.start:
        return None
    proper = 0 < int(over.text) < int(under.text)
    return Amount((int(over.text) / int(under.text),), _PART_STEP, i + 3, fraction=True) if proper else None


def _scaled(tokens: list[Token], amount: Amount) -> Amount:
    """The amount with the magnitude words behind it: "5 million", "2 hundred thousand"."""
    j = amount.next + (tokens[amount.next].text == "-" and tokens[amount.next + 1].low in MAGNITUDES)
    for _ in range(2):
        scale = MAGNITUDES.get(tokens[j].low)
        if scale is None:
            break
        j += 1 + (tokens[j + 1].text == "." and tokens[j].low in {"mio", "mrd", "mn", "bn"})
        amount = amount.times(scale, j)
    return amount._replace(fraction=amount.fraction and not amount.scaled)


def _spelled(tokens: list[Token], i: int) -> Amount | None:
    """ "two hundred and five", "half a million", "three quarters", "two and a half"."""
    article = tokens[i].low in ARTICLES
    j = i + article
    total = current = 0.0
    step, seen, scaled = 1.0, False, False
    last = 0  # the last word's value, so that "twenty five" joins and "five twenty" does not
    for _ in range(_MAX_WORDS):
        low, follower = tokens[j].low, tokens[j + 1].low
        tied = tokens[j].start == tokens[j - 1].end or (last >= 20 and follower in ONES)  # "twenty - five"
        if low == "-" and seen and tied and follower in _JOINED:
            pass
        elif low in _AND_ONES and last >= 20 and 1 <= ONES.get(follower, 0) <= 9:
            pass  # "cuarenta y nueve"
        elif low in ONES and not (last and (last < 20 or ONES[low] > 9)):
            current, last = current + ONES[low], ONES[low] or 1
        elif low in TENS and not last:
            current, last = current + TENS[low], TENS[low]
        elif low in PARTS and _is_part(tokens, i, j, seen=seen):
            return _part(tokens, j, current if seen else 1.0)
        elif low in MAGNITUDES and (seen or article or low in _SCALES):
            scale, last = MAGNITUDES[low], 0
            if scale <= 100:
                current = (current or 1) * scale
            else:
                total, current = total + (current or 1) * scale, 0.0
            if scale > 1000:
                scaled, step = True, max(step, float(scale))
        elif low == "and" and seen and follower in {"a", "one"} and tokens[j + 2].low in PARTS:
            value = total + current + 1 / PARTS[tokens[j + 2].low]  # two and a half million
            return _scaled(tokens, Amount((value,), 0.1, j + 3))
        elif not (low == "and" and seen and (current >= 100 or total) and follower in _JOINED):
            break
        seen, j = True, j + 1
    return Amount((total + current,), step, j, scaled=scaled) if seen else None


def _is_part(tokens: list[Token], start: int, j: int, *, seen: bool) -> bool:
    """Is "third", "quarter", "half" at ``j`` a part of a whole, not an ordinal or a part of the year?"""
    low, after = tokens[j].low, tokens[j + 1].low
    if low in _HALVES:
        return after not in {"-", "time"} and not (start and tokens[start - 1].low in tables.ORDINALS)
    if seen:
        return low.endswith("s") or tokens[start].low in {"one", "a", "an"}
    return tokens[start].low in ARTICLES and after in _AFTER_A_PART


def _part(tokens: list[Token], j: int, count: float) -> Amount:
    """ "three quarters", "half a million": ``count`` parts of the word at ``j``."""
    k = j + 1 + (tokens[j + 1].low in {"a", "of"})
    k += tokens[k].low == "a"
    amount = Amount((count / PARTS[tokens[j].low],), 0.1, k)
    if tokens[k].low in MAGNITUDES:
        return _scaled(tokens, amount)
    return amount._replace(next=j + 1, step=_PART_STEP, fraction=True)


_MINUS: Final = frozenset("-−–")
_OPENING: Final = frozenset("(:;,=|")
_PER: Final = frozenset({"per", "pro", "par", "por", "/"})
_EACH: Final = _PER | {"a", "an", "each", "every", "al"}
_DEGREES: Final = frozenset({"°", "º", "degrees", "degree", "grad", "degrés", "grados"})
_SCALE_WORDS: Final = {"c": "°C", "celsius": "°C", "centigrade": "°C", "f": "°F", "fahrenheit": "°F"}
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
    negative = (tokens[i].text in _MINUS and touches(tokens, i + 1) and free) or _is_minus(tokens, i)
    j = i + negative
    if tokens[j + 1].text == "$" and tokens[j].text + "$" in SIGNS:
        currency, j = SIGNS[tokens[j].text + "$"], j + 2
    elif tokens[j].text in SIGNS:
        currency, j = SIGNS[tokens[j].text], j + 1
        j += tokens[j].text in {"$", "."} and touches(tokens, j)
    if currency and tokens[j].text in _MINUS and touches(tokens, j):
        negative, j = True, j + 1
    return negative, currency, j


def _is_minus(tokens: list[Token], i: int) -> bool:
    """Whether "minus" is a sign, and takes nothing from what stands before it."""
    if tokens[i].low != "minus":
        return False
    return not i or tokens[i - 1].text in _OPENING or tokens[i - 1].low in tables.BEFORE_SIGNS


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
        scale = _SCALE_WORDS.get(follower)
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
            if bound is Bound.EXACT:  # "is spread over 12 months"
                break
            return bound, tokens.index(before[-size], max(0, i - _BOUND_WORDS - 1)), after
    return Bound.EXACT, i, after


def read_noun(tokens: list[Token], i: int, after: int) -> str | None:
    """What a bare number counts ("300 people"), or what it is the number of ("section 5")."""
    if (label := label_before(tokens, i)) is not None:
        return label
    k = after + (tokens[after].text == "-")
    # "five American teams" are teams
    named = tokens[k].text[:1].isupper() and tokens[k].kind is Tok.WORD
    k += named and tokens[k + 1].kind is Tok.WORD and tokens[k + 1].low not in tables.NO_NOUN
    token = tokens[k]
    counts = token.kind is Tok.WORD and len(token.low) > 1 and token.low not in tables.NO_NOUN
    return singular(token.low) if counts and token.start - tokens[k - 1].end <= 1 else None


def label_before(tokens: list[Token], i: int) -> str | None:
    """What numbers the thing whose number stands at ``i``: "section" of "section 5", "no" of "No. 7"."""
    j = i - 1 - (i > 1 and tokens[i - 1].text == "." and touches(tokens, i - 1))
    return tokens[j].low if j >= 0 and tokens[j].low in LABELS else None


def singular(word: str) -> str:
    """A plural's singular, near enough to compare two counted nouns."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word
