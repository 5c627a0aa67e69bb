"""Numerals and number words -> amounts. Digits past the fortieth are left out: nobody compares them."""

from __future__ import annotations

from typing import Final, NamedTuple

from guardrail.figures.tables import (
    ARTICLES,
    LETTER_MAGNITUDES,
    MAGNITUDES,
    NUMBER_WORDS,
    ONES,
    ORDINALS,
    PARTS,
    TENS,
    VULGAR,
)
from guardrail.figures.tokens import Tok, Token

_MAX_DIGITS: Final = 40
_MAX_WORDS: Final = 16
_PART_STEP: Final = 0.001
_HALVES: Final = frozenset({"half", "halves", "hälfte", "moitié", "mitad", "drittel", "viertel"})
_BEGINNERS: Final = frozenset({"hundred", "thousand", "million", "dozen", "mille", "mil", "hundert", "tausend"})


class Amount(NamedTuple):
    """A number read from the tokens up to ``next``.

    ``values`` the likeliest first; ``step`` the size of the last place written; ``digits`` as written, where
    it is nothing else; ``scaled``: a magnitude word took part, so the places not written are unknown.
    """

    values: tuple[float, ...]
    step: float
    next: int
    digits: str = ""
    fraction: bool = False
    scaled: bool = False
    spelled: bool = False

    def times(self, factor: float, after: int) -> Amount:
        """The amount with a magnitude applied."""
        values = tuple(value * factor for value in self.values)
        return self._replace(values=values, step=self.step * factor, next=after, scaled=True)


def read_numeral(text: str) -> tuple[tuple[float, ...], float]:
    """Every reading of a numeral, the likeliest first, and the size of its last place.

    A single point or comma before three digits may group ("1,000") or part ("1.125"): both readings count.
    """
    text = "".join(c for c in text[:_MAX_DIGITS] if c.isdecimal() or c in ".,").rstrip(".,")
    points, commas = text.count("."), text.count(",")
    if not points and not commas:
        return (float(text),), 1.0
    sign = "." if text.rfind(".") > text.rfind(",") else ","
    whole, _, part = text.rpartition(sign)
    if points and commas:
        return _decimal(whole.replace(".", "").replace(",", ""), part)
    if points + commas > 1:
        return (float(text.replace(sign, "")),), 1.0
    parted, step = _decimal(whole, part)
    if len(part) == 3 and 1 <= len(whole) <= 3 and whole[0] != "0":
        grouped = float(whole + part)
        return ((parted[0], grouped), step) if sign == "." else ((grouped, parted[0]), 1.0)
    return parted, step


def _decimal(whole: str, part: str) -> tuple[tuple[float, ...], float]:
    return (float(f"{whole or '0'}.{part or '0'}"),), 10.0 ** -len(part)


def read_amount(tokens: list[Token], i: int) -> Amount | None:
    """The number that begins at token ``i``, in digits or words, magnitude words included."""
    token = tokens[i]
    if token.kind is Tok.NUMBER:
        return _digits(tokens, i)
    if token.kind is Tok.VERSION:
        return _grouped(token, i)
    if token.text in VULGAR:
        return Amount((VULGAR[token.text],), _PART_STEP, i + 1, fraction=True)
    if token.low in NUMBER_WORDS or (token.low in ARTICLES and tokens[i + 1].low in NUMBER_WORDS):
        return _spelled(tokens, i)
    return None


def _grouped(token: Token, i: int) -> Amount | None:
    """ "1.000.000" came as a version: it may group thousands."""
    parts = token.text.split(".")
    if token.text[0].isdecimal() and len(parts[0]) <= 3 and all(len(p) == 3 for p in parts[1:]):
        if token.text.replace(".", "").isdecimal():
            return Amount((float("".join(parts)[:_MAX_DIGITS]),), 1.0, i + 1)
    return None


def _digits(tokens: list[Token], i: int) -> Amount:
    token, after = tokens[i], tokens[i + 1]
    values, step = read_numeral(token.text)
    amount = Amount(values, step, i + 1, token.text)
    part = None if token.end + 1 < after.start else _ratio(tokens, i + 1)
    if after.text in VULGAR and after.start - token.end <= 1:  # 2 ½
        amount = Amount((values[0] + VULGAR[after.text],), step, i + 2)
    elif part is not None and token.text.isdecimal():  # 1 1/2
        amount = Amount((values[0] + part.values[0],), step, part.next)
    elif (ratio := _ratio(tokens, i)) is not None:
        amount = ratio
    adjacent = token.end if amount.next == i + 1 else -1
    factor, after_it = _magnitude(tokens, amount.next, adjacent)
    return amount._replace(digits="").times(factor, after_it) if factor != 1 else amount


def _ratio(tokens: list[Token], i: int) -> Amount | None:
    """ "3/4": a proper fraction with a small denominator."""
    over, sign, under = tokens[i : i + 3]
    if sign.text not in ("/", "⁄") or over.kind is not Tok.NUMBER or under.kind is not Tok.NUMBER:
        return None
    if not (over.text + under.text).isdecimal() or len(over.text) > 2 or len(under.text) > 3:
        return None
    if not over.end == sign.start or sign.end != under.start or not 0 < int(over.text) < int(under.text) <= 100:
        return None
    return Amount((int(over.text) / int(under.text),), _PART_STEP, i + 3, fraction=True)


def _magnitude(tokens: list[Token], j: int, adjacent: int) -> tuple[int, int]:
    """The product of the magnitude words at ``j`` ("million", "hundred thousand"), and what follows them."""
    first = tokens[j]
    if first.start == adjacent and first.text in LETTER_MAGNITUDES and first.text != "mm":
        return LETTER_MAGNITUDES[first.text], j + 1
    j += first.text == "-" and tokens[j + 1].low in MAGNITUDES
    factor = 1
    for _ in range(2):
        scale = MAGNITUDES.get(tokens[j].low)
        if scale is None:
            break
        factor, j = factor * scale, j + 1
        j += tokens[j].text == "." and tokens[j - 1].low in {"mio", "mrd", "mn", "bn"}
    return factor, j


def _spelled(tokens: list[Token], i: int) -> Amount | None:
    """ "two hundred and five", "half a million", "three quarters", "two and a half"."""
    article = tokens[i].low in ARTICLES
    j = i + article
    total = current = 0.0
    step, seen, scaled = 1.0, False, False
    last = 0  # the last word's value, so that "twenty five" joins and "five twenty" does not
    for _ in range(_MAX_WORDS):
        low, follower = tokens[j].low, tokens[j + 1].low
        if low == "-" and seen and tokens[j].start == tokens[j - 1].end and _goes_on(follower):
            pass
        elif low in ONES and not (last and (last < 20 or ONES[low] > 9)):
            current, last = current + ONES[low], ONES[low] or 1
        elif low in TENS and not last:
            current, last = current + TENS[low], TENS[low]
        elif low in PARTS and _is_part(tokens, i, j, article=article, seen=seen):
            return _part(tokens, j, current if seen else 1.0)
        elif low in MAGNITUDES and (seen or article or low in _BEGINNERS):
            scale = MAGNITUDES[low]
            if scale <= 100:
                current = (current or 1) * scale
            else:
                total, current = total + (current or 1) * scale, 0.0
            last = 0
            if scale > 1000:
                scaled, step = True, max(step, float(scale))
        elif low == "and" and seen and follower in {"a", "one"} and tokens[j + 2].low in PARTS:
            factor, after = _magnitude(tokens, j + 3, -1)  # two and a half million
            value = (total + current + 1 / PARTS[tokens[j + 2].low]) * factor
            return Amount((value,), 0.1 * factor, after, scaled=factor > 1, spelled=True)
        elif not (low == "and" and seen and (current >= 100 or total) and _goes_on(follower)):
            break
        seen, j = True, j + 1
    return Amount((total + current,), step, j, scaled=scaled, spelled=True) if seen else None


def _goes_on(word: str) -> bool:
    return word in ONES or word in TENS or word in MAGNITUDES or word in PARTS


def _is_part(tokens: list[Token], start: int, j: int, *, article: bool, seen: bool) -> bool:
    """Is "third", "quarter", "half" at ``j`` a part of a whole, not an ordinal or a part of the year?"""
    low, after = tokens[j].low, tokens[j + 1].low
    if low in _HALVES:
        before = tokens[start - 1].low if start else ""
        return before not in ORDINALS and after not in {"-", "time"}
    if seen:
        return low.endswith("s") or tokens[start].low in {"one", "a", "an"}
    return article and after == "of"


def _part(tokens: list[Token], j: int, count: float) -> Amount:
    """ "three quarters", "half a million": ``count`` parts of the word at ``j``."""
    value, k = count / PARTS[tokens[j].low], j + 1
    k += tokens[k].low in {"a", "of"}
    k += tokens[k].low == "a" and tokens[k - 1].low == "of"
    if tokens[k].low in MAGNITUDES:
        factor, after = _magnitude(tokens, k, -1)
        return Amount((value * factor,), factor / 10, after, scaled=True, spelled=True)
    return Amount((value,), _PART_STEP, j + 1, fraction=True, spelled=True)
