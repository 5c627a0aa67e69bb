"""Formulas that a claim turns around: "v = t/s" of "v = s/t", "b² + 4ac" of "b² − 4ac", "4/3" of "3/4".

A formula is multiplied out into a sum of products, so that the same one in another order, or solved for
another of its letters, is the same. One that the sources lack is at odds with one that they have of the same
letters and with the same left side; it says nothing where they have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from guardrail.figures.tables import SIGNS, find_unit, words

Product = frozenset[tuple[str, int]]
"""Letters, and what stands in brackets below a line, with their powers."""
Sum = dict[Product, float]

_MAY: Final = re.compile(r"[^\W_)²³]?[=≤≥<>≈≠/×·*+−²³-]\s?[-−√(]{0,2}(?:[^\W_]|[∇∫∂∑∏])")
_TOKEN: Final = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)?)"
    r"|(?P<letters>(?:[^\W\d_⁰¹²³⁴-⁹₀-₉]+|[∇∫∂∑∏∞])(?:_\w{1,8}|[₀-₉]{1,3}|\d{1,2}(?!\w))?(?:[′'](?!\w{2}))?)"
    r"|(?P<power>\^?[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})|(?P<sign>[=<>≤≥≈≠+−*×·/()√-])|(?P<other>\S)"
)
_PLAIN: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉", "0123456789-0123456789", "^⁺_")
_SUBSCRIPT: Final = re.compile(r"([^\W\d_])(\d)")
_RELATIONS: Final = frozenset("=<>≤≥≈≠")
_TURNED: Final = {">": "<", "≥": "≤"}
_NO_LETTERS: Final = words("no_letters")
_FUNCTIONS: Final = frozenset("sin cos tan log ln exp max min lim".split())  # noqa: SIM905
_LETTERS: Final = 3  # of a run of them that is a product
_MOST_TOKENS: Final = 60
_MOST_TERMS: Final = 24
_MOST_FORMULAS: Final = 50  # of a text
_LONGEST: Final = 1_000  # of a text, in characters
_MOST_LOOKED_AT: Final = 500  # sentences that may have formulas
_ROUNDED: Final = 0.001  # by which two numbers may differ of which one is rounded: 6.28 and 6.283
_DEPTH: Final = 4
_ONE: Final[Product] = frozenset()


class FoundFormula(NamedTuple):
    """A formula and where it stands: what it comes to, whatever the order; its ``sides``, none of what isn't
    said to be equal to anything; its letters, or the numbers of a mere ratio. ``products``: it says that one
    product is another, so that it is the same for whatever letter it is solved."""

    start: int
    end: int
    value: tuple[str, frozenset[tuple[Product, str]]]
    sides: tuple[frozenset[tuple[Product, str]], ...]
    letters: frozenset[str]
    products: bool

    def is_at_odds_with(self, other: FoundFormula) -> bool:
        """Whether both can't hold: their letters and one side of them are the same, and they differ by more
        than rounding."""
        rounded = self.value[0] == other.value[0] and _close(self.value[1], other.value[1])
        if self.letters != other.letters or rounded or len(self.sides) != len(other.sides):
            return False
        if not self.sides or (self.products and other.products):
            return True
        return any(a == b for a, b in zip(self.sides, other.sides, strict=True))


def _close(one: frozenset[tuple[Product, str]], other: frozenset[tuple[Product, str]]) -> bool:
    ours, theirs = dict(one), dict(other)
    return ours.keys() == theirs.keys() and all(
        abs(float(count) - float(theirs[product])) <= _ROUNDED * abs(float(count))
        for product, count in ours.items()
    )


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class _TooMuchError(Exception):
    """More terms than a formula in an answer has."""


@lru_cache(maxsize=4096)
def formulas(text: str) -> tuple[FoundFormula, ...]:
    """The formulas of a text, in order; none of one that is too long."""
    if len(text) > _LONGEST or not _MAY.search(text):
        return ()
    tokens = [_Token(m.lastgroup or "", m[0], *m.span()) for m in _TOKEN.finditer(text)]
    found: list[FoundFormula] = []
    at = 0
    while at < len(tokens) and len(found) < _MOST_FORMULAS:
        reader = _FormulaReader(tokens, at)
        try:
            formula = reader.formula() if _begins(tokens, at) else None
        except _TooMuchError:
            formula = None
        if formula is not None:
            found.append(formula)
        at = max(at + 1, reader.at if formula is not None else 0)
    return tuple(found)


def compared(
    claim: str, near: Sequence[tuple[int, str]], others: Callable[[], Iterable[str]]
) -> Iterator[tuple[FoundFormula, int, FoundFormula]]:
    """Each formula of a claim that one of the sentences ``near`` has, with that one and its sentence's
    number; or else with one that it is at odds with there, unless it stands in ``others()``."""
    for mine in formulas(claim):
        theirs = [(number, other) for number, text in near for other in formulas(text)]
        same = next(((n, other) for n, other in theirs if mine.value == other.value), None)
        rival = next(((n, other) for n, other in theirs if mine.is_at_odds_with(other)), None)
        if same is not None:
            yield mine, *same
        elif rival is not None:
            elsewhere = islice((text for text in others() if _MAY.search(text)), _MOST_LOOKED_AT)
            if not any(mine.value == other.value for text in elsewhere for other in formulas(text)):
                yield mine, *rival


def _begins(tokens: Sequence[_Token], at: int) -> bool:
    """Whether a formula may begin here: not within a word, a date or a path."""
    token = tokens[at]
    joined = at > 0 and tokens[at - 1].end == token.start and tokens[at - 1].text not in "(,;:"
    return not joined and (token.kind in ("number", "letters") or token.text in ("(", "-", "−", "√"))


class _FormulaReader:
    """Reads one formula from a token on, by descent."""

    def __init__(self, tokens: Sequence[_Token], at: int) -> None:
        self._tokens = tokens
        self._first = self.at = at
        self._last = min(len(tokens), at + _MOST_TOKENS)
        self._letters: set[str] = set()
        self._signs: list[str] = []
        self._spaced = self._related = False

    def formula(self) -> FoundFormula | None:
        left = self._sum(0)
        if left is None:
            return None
        sign = self._tokens[self.at].text if self.at < self._last else ""
        right = None
        if sign in _RELATIONS and sign:
            back, self.at = self.at, self.at + 1
            self._related = True
            right = self._sum(0)
            if right is None:
                self.at, sign = back, ""
        else:
            sign = ""
        start, end = self._tokens[self._first].start, self._tokens[self.at - 1].end
        follower = self._tokens[self.at] if self.at < len(self._tokens) else None
        if follower is not None and follower.start == end and follower.text not in ".,;:)?!":
            return None
        if not self._letters:
            return self._ratio(start, end) if right is None else None
        sums = not {"+", "-", "−"}.isdisjoint(self._signs)
        if right is None and not (sums and "²" in self._signs):
            return None
        if right is not None and self._converts():
            return None
        products = right is not None and _is_product(left) and _is_product(right)
        if products and right is not None and _ONE in right:
            return None  # a plain number, with its limit
        sides = () if right is None else (_fixed(left), _fixed(right))
        sort = _TURNED.get(sign, "=" if sign == "≈" else sign)
        value = sort, _fixed(_value(left, sign, right))
        return FoundFormula(start, end, value, sides, frozenset(self._letters), products)

    def _converts(self) -> bool:
        """Whether it tells a rate of exchange or a unit in another one: "1 oz = 28 g"."""
        own = self._tokens[self._first : self.at]
        names = [token.text for token in own if token.kind == "letters"]
        at = next(number for number, token in enumerate(own) if token.text in _RELATIONS)
        counted = own[0].kind == "number" and at + 1 < len(own) and own[at + 1].kind == "number"
        return counted and all(name in SIGNS or find_unit(name) is not None for name in names)

    def _ratio(self, start: int, end: int) -> FoundFormula | None:
        over, *rest = self._tokens[self._first : self.at]
        if len(rest) != 2 or rest[0].text != "/" or over.end != rest[0].start or rest[1].start != rest[0].end:
            return None
        ratio = _fixed({frozenset({(over.text, 1), (rest[1].text, -1)}): 1.0})
        digits = frozenset({over.text, rest[1].text})
        return FoundFormula(start, end, ("/", ratio), (), digits, products=False)

    def _sum(self, depth: int) -> Sum | None:
        total: Sum = {}
        sign = self._sign("-−+")
        factor = -1.0 if sign in ("-", "−") else 1.0
        while True:
            term = self._product(depth)
            if term is None:
                return None
            for product, count in term.items():
                total[product] = total.get(product, 0.0) + factor * count
            back = self.at
            sign = self._sign("-−+")
            if not sign or not self._operand_follows():
                self.at = back
                return {product: count for product, count in total.items() if count} or {_ONE: 0.0}
            self._signs.append(sign)
            factor = -1.0 if sign in ("-", "−") else 1.0

    def _product(self, depth: int) -> Sum | None:
        found = self._power(depth)
        while found is not None:
            back = self.at
            sign = self._sign("*×·/")
            if sign and not self._operand_follows():
                self.at = back
                return found
            if not sign and not self._is_beside():
                return found
            factor = self._power(depth)
            if factor is None:
                return None
            found = _times(found, _inverse(factor) if sign == "/" else factor)
        return None

    def _power(self, depth: int) -> Sum | None:
        token = self._tokens[self.at] if self.at < self._last else None
        if token is None or depth > _DEPTH:
            return None
        self.at += 1
        if token.text in ("(", "√"):
            inner = self._sum(depth + 1) if token.text == "(" else self._power(depth + 1)
            if inner is None or (token.text == "(" and self._sign(")") != ")"):
                return None
            found = inner if token.text == "(" else {frozenset({(f"√{_shown(inner)}", 1)}): 1.0}
        elif token.kind == "number":
            found = {_ONE: float(token.text.replace(",", "."))}
        elif token.kind == "letters" and _is_letters(token.text):
            name = _SUBSCRIPT.sub(r"\1_\2", token.text.translate(_PLAIN))
            self._spaced = self._spaced or name == "∫"
            single = len(token.text) <= _LETTERS and name.isalpha() and name not in _FUNCTIONS
            names = list(name) if single else [name]
            self._letters.update(names)
            *others, last = names
            before = _product_of(others)
            return _times(before, self._raised({frozenset({(last, 1)}): 1.0}))
        else:
            return None
        return self._raised(found)

    def _raised(self, found: Sum) -> Sum:
        token = self._tokens[self.at] if self.at < self._last else None
        if token is not None and token.text in ("'", "′") and token.start == self._tokens[self.at - 1].end:
            self.at += 1
            return {frozenset({(f"({_shown(found)})'", 1)}): 1.0}
        if token is None or token.kind != "power" or token.start != self._tokens[self.at - 1].end:
            return found
        self.at += 1
        self._signs.append("²")
        power = int(token.text.translate(_PLAIN) or 1)
        base, result = (found if power > 0 else _inverse(found)), {_ONE: 1.0}
        for _ in range(min(abs(power), _MOST_TERMS)):
            result = _times(result, base)
        return result

    def _sign(self, signs: str) -> str:
        token = self._tokens[self.at] if self.at < self._last else None
        if token is None or token.kind != "sign" or token.text not in signs:
            return ""
        self.at += 1
        return token.text

    def _operand_follows(self) -> bool:
        token = self._tokens[self.at] if self.at < self._last else None
        if token is None:
            return False
        return token.kind == "number" or token.text in ("(", "√") or _is_letters(token.text)

    def _is_beside(self) -> bool:
        """Whether what follows is multiplied without a sign: "4ac", "2(a + b)", "π r²"."""
        token = self._tokens[self.at] if self.at < self._last else None
        before = self._tokens[self.at - 1]
        if token is None or (token.kind not in ("number", "letters") and token.text not in ("(", "√")):
            return False
        if token.start == before.end:
            return token.kind != "letters" or _is_letters(token.text)
        if self._spaced:  # "∫ u dv"
            return token.kind == "letters" and _is_letters(token.text)
        within = not before.text.isascii() or (
            self._related and before.kind in ("letters", "power", "number")
        )
        return within and len(token.text) == 1 and token.kind == "letters" and token.text not in _NO_LETTERS


def _is_letters(text: str) -> bool:
    """Whether a run of letters is one or several of a formula, or the name of a function, and no word."""
    name = text.partition("_")[0].rstrip("₀₁₂₃₄₅₆₇₈₉0123456789′'")
    return name in _FUNCTIONS or len(name) == 1 or (len(name) <= _LETTERS and name not in _NO_LETTERS)


def _product_of(names: Sequence[str]) -> Sum:
    found: Sum = {_ONE: 1.0}
    for name in names:
        found = _times(found, {frozenset({(name, 1)}): 1.0})
    return found


def _times(one: Sum, other: Sum) -> Sum:
    if len(one) * len(other) > _MOST_TERMS:
        raise _TooMuchError
    found: Sum = {}
    for a, x in one.items():
        for b, y in other.items():
            powers = dict(a)
            for name, power in b:
                powers[name] = powers.get(name, 0) + power
            product = frozenset((name, power) for name, power in powers.items() if power)
            found[product] = found.get(product, 0.0) + x * y
    return found


def _inverse(found: Sum) -> Sum:
    if len(found) == 1:
        [(product, count)] = found.items()
        if count:
            return {frozenset((name, -power) for name, power in product): 1.0 / count}
    return {frozenset({(_shown(found), -1)}): 1.0}


def _shown(found: Sum) -> str:
    """A name for what can't be multiplied out."""
    return "+".join(sorted(f"{count:g}{sorted(product)}" for product, count in found.items()))


def _is_product(found: Sum) -> bool:
    """Whether something is one product, of letters and numbers alone."""
    return len(found) == 1 and not any("+" in name or "(" in name for product in found for name, _ in product)


def _fixed(found: Sum) -> frozenset[tuple[Product, str]]:
    """A sum that can be compared, the same for 1/3 and what 3 is divided by."""
    return frozenset((product, f"{count:.9g}") for product, count in found.items())


def _value(left: Sum, sign: str, right: Sum | None) -> Sum:
    """What a formula comes to, the same whatever letter it is solved for."""
    if right is None:
        return left
    if sign in _TURNED:
        left, right = right, left
    if sign not in ("=", "≈", "≠"):
        return _minus(left, right)
    if len(left) == len(right) == 1:
        ways = (_times(left, _inverse(right)), _times(right, _inverse(left)))
    else:
        ways = (_minus(left, right), _minus(right, left))
    return min(ways, key=_shown)


def _minus(one: Sum, other: Sum) -> Sum:
    found = dict(one)
    for product, count in other.items():
        found[product] = found.get(product, 0.0) - count
    return {product: count for product, count in found.items() if count}
