"""Numerals and number words -> amounts.

text2num (fast, small) was tried for the words. It needs a pass of its own over tokens of its own, one
language at a time, and knows no "half", "dozen" or "three quarters"; it would save thirty lines here.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

from guardrail.values.tokens import Tok, Token

_ONES: Final = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
    "eighteen": 18, "nineteen": 19,
    "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9, "zehn": 10,
    "elf": 11, "zwölf": 12,
    "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "sept": 7, "huit": 8, "neuf": 9, "dix": 10, "onze": 11,
    "douze": 12,
    "quinze": 15, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8, "nueve": 9,
    "diez": 10,
}  # fmt: skip
_TENS: Final = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
    "ninety": 90,
    "zwanzig": 20, "dreißig": 30, "dreissig": 30, "vierzig": 40, "fünfzig": 50, "vingt": 20, "trente": 30,
    "quarante": 40,
    "cinquante": 50, "soixante": 60, "veinte": 20, "treinta": 30, "cuarenta": 40, "cincuenta": 50,
}  # fmt: skip
#: Words that multiply what stands before them.
MAGNITUDES: Final = {
    "hundred": 100, "hundert": 100, "thousand": 1000, "tausend": 1000, "mille": 1000, "mil": 1000,
    "lakh": 100_000, "lakhs": 100_000,
    "crore": 10_000_000, "crores": 10_000_000, "million": 10**6, "millions": 10**6, "mio": 10**6,
    "millionen": 10**6, "mn": 10**6, "mln": 10**6,
    "millones": 10**6, "millón": 10**6, "billion": 10**9, "billions": 10**9, "bn": 10**9, "bln": 10**9,
    "mrd": 10**9, "milliarde": 10**9,
    "milliarden": 10**9, "milliard": 10**9, "milliards": 10**9, "trillion": 10**12, "tn": 10**12, "dozen": 12,
    "dozens": 12, "dutzend": 12,
}  # fmt: skip
#: Letters right after a numeral ("5M", "10k"). Lower-case "m" means million with money only.
LETTER_MAGNITUDES: Final = {
    "k": 1000,
    "K": 1000,
    "M": 10**6,
    "B": 10**9,
    "bn": 10**9,
    "Bn": 10**9,
    "MM": 10**6,
    "mm": 10**6,
    "T": 10**12,
}
_PARTS: Final = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4,
    "fifth": 5, "fifths": 5,
    "sixth": 6, "sixths": 6, "seventh": 7, "sevenths": 7, "eighth": 8, "eighths": 8, "ninth": 9, "ninths": 9,
    "tenth": 10, "tenths": 10,
    "hälfte": 2, "drittel": 3, "viertel": 4, "moitié": 2, "mitad": 2, "tercio": 3,
}  # fmt: skip
VULGAR: Final = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5),
    "⅘": (4, 5), "⅙": (1, 6),
    "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8),
}  # fmt: skip
_ORDINAL_ONES: Final = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10,
    "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16,
    "seventeenth": 17,
    "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50,
    "hundredth": 100,
}  # fmt: skip
#: "twice" and its kin: how many times.
ADVERBS: Final = {
    "once": 1,
    "twice": 2,
    "thrice": 3,
    "double": 2,
    "doubled": 2,
    "triple": 3,
    "tripled": 3,
    "quadruple": 4,
    "quadrupled": 4,
    "threefold": 3,
    "twofold": 2,
    "fourfold": 4,
    "fivefold": 5,
    "tenfold": 10,
}
ORDINALS: Final = _ORDINAL_ONES
NUMBER_WORDS: Final = frozenset({*_ONES, *_TENS, *_PARTS, *MAGNITUDES}) - {
    "mio",
    "mn",
    "tn",
    "bn",
    "bln",
    "mln",
    "mrd",
    "mil",
}
#: Words that may continue a spelled number but never begin one.
_MAX_WORDS: Final = 16
_MAX_DIGITS: Final = 40
_ONE: Final = Decimal(1)


class Amount(NamedTuple):
    """A number read from tokens ``[i, next)``.

    ``readings`` the likeliest first; ``step`` the size of the last place written; ``scaled``: a magnitude
    word took part, so the places not written are unknown.
    """

    readings: tuple[Decimal, ...]
    step: Decimal
    next: int
    key: str = ""
    fraction: bool = False
    scaled: bool = False
    spelled: bool = False


def read_numeral(text: str) -> tuple[tuple[Decimal, ...], Decimal]:
    """Every reading of a numeral, the likeliest first, and the size of its last place.

    A single point or comma before three digits may group ("1,000") or part ("1.125"): both readings count.
    """
    if text.isdigit():
        return (Decimal(text[:_MAX_DIGITS]),), _ONE
    digits = "".join(c if c.isdigit() or c in ".," else "" for c in text)[: _MAX_DIGITS + 10]
    if digits.startswith("."):
        return (Decimal("0" + digits),), Decimal(1).scaleb(1 - len(digits))
    points, commas = digits.count("."), digits.count(",")
    if not points and not commas:
        return (Decimal(digits),), _ONE
    if points and commas:
        sign = "." if digits.rfind(".") > digits.rfind(",") else ","
        whole, _, part = digits.rpartition(sign)
        whole = whole.replace(".", "").replace(",", "")
        return _decimal(whole, part)
    sign = "." if points else ","
    if points + commas > 1:
        return (Decimal(digits.replace(sign, "")),), _ONE
    whole, _, part = digits.partition(sign)
    if len(part) == 3 and 1 <= len(whole) <= 3 and whole[0] != "0":
        grouped = Decimal(whole + part)
        parted, step = _decimal(whole, part)
        return ((parted[0], grouped), step) if sign == "." else ((grouped, parted[0]), _ONE)
    return _decimal(whole, part)


def _decimal(whole: str, part: str) -> tuple[tuple[Decimal, ...], Decimal]:
    return (Decimal(f"{whole or '0'}.{part or '0'}"),), Decimal(1).scaleb(-len(part))


def read_amount(tokens: list[Token], i: int) -> Amount | None:
    """The number that begins at token ``i``, in digits or words, magnitude words included."""
    token = tokens[i]
    if token.kind is Tok.NUMBER:
        return _from_digits(tokens, i)
    if token.kind is Tok.VERSION:
        return _grouped(token, i)
    if token.text in VULGAR:
        top, bottom = VULGAR[token.text]
        return Amount((Decimal(top) / bottom,), Decimal("0.001"), i + 1, token.text, fraction=True)
    if token.kind is Tok.WORD and token.low in NUMBER_WORDS:
        return _from_words(tokens, i)
    if token.low in {"a", "an", "ein", "eine", "un", "une", "una"} and tokens[i + 1].low in NUMBER_WORDS:
        return _from_words(tokens, i)
    return None


def _grouped(token: Token, i: int) -> Amount | None:
    """ "1.000.000" came as a version: it may group thousands."""
    parts = token.text.split(".")
    if all(p.isdigit() for p in parts) and 1 <= len(parts[0]) <= 3 and all(len(p) == 3 for p in parts[1:]):
        return Amount((Decimal("".join(parts)[:_MAX_DIGITS]),), _ONE, i + 1)
    return None


def _from_digits(tokens: list[Token], i: int) -> Amount:
    token = tokens[i]
    readings, step = read_numeral(token.text)
    j, fraction, scaled = i + 1, False, False
    after = tokens[j]
    if after.text in VULGAR and after.start - token.end <= 1:  # 2 ½
        top, bottom = VULGAR[after.text]
        readings, j = (readings[0] + Decimal(top) / bottom,), j + 1
    elif after.text in "/⁄" and after.text and after.start == token.end:
        below = tokens[j + 1]
        if (
            below.kind is Tok.NUMBER
            and below.start == after.end
            and below.text.isdigit()
            and 0 < int(below.text[:9]) <= 100
            and token.text.isdigit()
            and int(token.text[:9]) < int(below.text[:9])
        ):
            readings, step, fraction, j = (readings[0] / int(below.text),), Decimal("0.001"), True, j + 2
    elif (
        after.kind is Tok.NUMBER
        and tokens[j + 1].text == "/"
        and after.start - token.end == 1
        and token.text.isdigit()
    ):
        part = _from_digits(tokens, j)  # 1 1/2
        if part.fraction:
            readings, j = (readings[0] + part.readings[0],), part.next
    factor, j = _magnitude(tokens, j, token.end if j == i + 1 else -1)
    if factor != 1:
        readings, step, scaled = tuple(r * factor for r in readings), step * factor, True
    return Amount(readings, step, j, token.text if j == i + 1 else "", fraction, scaled)


def _magnitude(tokens: list[Token], j: int, adjacent: int) -> tuple[int, int]:
    """The product of the magnitude words at ``j`` ("million", "hundred thousand"), and what follows them."""
    factor, first = 1, tokens[j]
    if first.start == adjacent and first.text in LETTER_MAGNITUDES and first.text != "mm":
        return LETTER_MAGNITUDES[first.text], j + 1
    if first.text == "-" and tokens[j + 1].low in MAGNITUDES:
        j += 1
    for _ in range(2):
        scale = MAGNITUDES.get(tokens[j].low) if tokens[j].kind is Tok.WORD else None
        if scale is None:
            break
        factor, j = factor * scale, j + 1
        if tokens[j].text == "." and tokens[j - 1].low in {"mio", "mrd", "mn", "bn"}:
            j += 1
    return factor, j


def _from_words(tokens: list[Token], i: int) -> Amount | None:
    """A spelled number: "two hundred and five", "half a million", "three quarters", "two and a half"."""
    start, j = i, i
    article = tokens[j].low in {"a", "an", "ein", "eine", "un", "une", "una"}
    if article:
        j += 1
    total, current, seen, scaled, step = Decimal(0), Decimal(0), False, False, _ONE
    previous = 0  # the last ones or tens word, so that "twenty five" joins and "five twenty" does not
    for _ in range(_MAX_WORDS):
        low = tokens[j].low
        if tokens[j].kind is not Tok.WORD:
            joined = (
                low == "-"
                and seen
                and tokens[j + 1].kind is Tok.WORD
                and tokens[j + 1].start == tokens[j].end
            )
            follower = tokens[j + 1].low
            if joined and (follower in _ONES or follower in MAGNITUDES or follower in _PARTS):
                j += 1
                continue
            break
        if low in _ONES and not (previous and (previous < 20 or _ONES[low] > 9)):
            current, previous = current + _ONES[low], _ONES[low] or 1
        elif low in _TENS and not previous:
            current, previous = current + _TENS[low], _TENS[low]
        elif low in _PARTS and _is_part(tokens, start, j, article, seen):
            return _part(tokens, j, current if seen else _ONE)
        elif low in MAGNITUDES and (
            seen
            or article
            or low in {"hundred", "thousand", "million", "dozen", "mille", "mil", "hundert", "tausend"}
        ):
            scale = MAGNITUDES[low]
            if scale in (100, 12):
                current = (current or _ONE) * scale
            else:
                total, current = total + (current or _ONE) * scale, Decimal(0)
            scaled, step, previous = (
                scaled or scale > 1000,
                max(step, Decimal(scale if scale > 1000 else 1)),
                0,
            )
        elif low == "and" and seen:
            follower = tokens[j + 1].low
            if follower in {"a", "one"} and tokens[j + 2].low in _PARTS:  # two and a half
                part = Decimal(1) / _PARTS[tokens[j + 2].low]
                scale, after = _magnitude(tokens, j + 3, -1)
                return Amount(
                    ((total + current + part) * scale,),
                    Decimal("0.1") * scale,
                    after,
                    scaled=scale > 1,
                    spelled=True,
                )
            if (current >= 100 or total) and (follower in _ONES or follower in _TENS):
                j += 1
                continue
            break
        else:
            break
        seen, j = True, j + 1
    if not seen:
        return None
    return Amount((total + current,), step, j, scaled=scaled, spelled=True)


def _is_part(tokens: list[Token], start: int, j: int, article: bool, seen: bool) -> bool:
    """Is "third", "quarter", "half" at ``j`` a part of a whole, not an ordinal or a part of the year?"""
    low = tokens[j].low
    if (
        low in {"second", "quarter", "quarters"}
        and tokens[j + 1].low not in {"of", "century"}
        and not (article or seen)
    ):
        return False
    if low in {"half", "halves", "hälfte", "moitié", "mitad", "drittel", "viertel"}:
        return tokens[start - 1].low not in ORDINALS and tokens[j + 1].text != "-" if start else True
    if seen:
        return low.endswith("s") or tokens[start].low in {"one", "a", "an"}
    return article and tokens[j + 1].low == "of"


def _part(tokens: list[Token], j: int, count: Decimal) -> Amount:
    """ "three quarters", "half a million": ``count`` parts of the word at ``j``."""
    value = count / _PARTS[tokens[j].low]
    after = j + 1
    skip = (
        after
        + (tokens[after].low in {"a", "of"})
        + (tokens[after].low == "of" and tokens[after + 1].low == "a")
    )
    if tokens[skip].low in MAGNITUDES:
        factor, after = _magnitude(tokens, skip, -1)
        return Amount((value * factor,), Decimal(factor) / 10, after, scaled=True, spelled=True)
    return Amount((value,), Decimal("0.001"), after, fraction=True, spelled=True)
