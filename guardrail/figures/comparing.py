"""Two things that a claim compares or adds, and what the sources give for each: "Duo is $9 more than Solo".

Any number comes out of some pair of many; here both operands are known by what they are of, and a difference
has a direction. Where a claim names one thing only, that tells the direction still.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import product
from typing import Final, NamedTuple

from guardrail.evidence.tokens import term_of
from guardrail.figures.agreement import base, dimension, same_rate
from guardrail.figures.arithmetic import PERIODS, comes_to
from guardrail.figures.model import Figure, Kind
from guardrail.figures.source import FigureSource, Sentence, is_amount
from guardrail.figures.tables import ADDED, LESS, MORE, PRICING, SPEEDS, alternatives, same_currency

_REACH: Final = 80  # code points in which a thing is named
_BEHIND: Final = 40  # code points behind a difference in which its word stands
_ENOUGH: Final = 0.5  # of the words that tell a thing from the other
_MOST: Final = 8  # figures of one thing
_FEW: Final = 6  # amounts, one of which is compared with where a claim doesn't say with what
_MANY_OTHERS: Final = 32  # that are looked at for the opposite
_MOST_SENTENCES: Final = 8
_SAYS_NOTHING: Final = frozenset(map(term_of, PRICING | MORE | LESS | {"expensive", "much", "many"}))

_EACH: Final = r"(?:\s{1,3}(?:a|an|per|each)\s\w{1,12})?(?:\s{1,3}points?)?"
_MORE_OR_LESS: Final = re.compile(
    rf"{_EACH}\s{{1,3}}(?:(?P<more>{alternatives(MORE)})|(?P<less>{alternatives(LESS)}))\b", re.IGNORECASE
)
_AS_MUCH: Final = re.compile(r"\s{1,3}as\s\w{1,16}\b|\s{1,3}the\s\w{1,16}\sof\b", re.IGNORECASE)
_THAN: Final = re.compile(r"\bthan\b|\bcompared\s(?:to|with)\b", re.IGNORECASE)
_AS: Final = re.compile(r"\bas\b|\bof\b", re.IGNORECASE)
_BESIDE: Final = re.compile(r"\b(?:compared|relative)\s(?:to|with)\b", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"\b(?:difference|gap)\s(?:\w{1,16}\s){0,3}between\b", re.IGNORECASE)
_AND: Final = re.compile(r"\band\b", re.IGNORECASE)
_TOGETHER: Final = re.compile(rf"\b(?:{alternatives(ADDED)})\b", re.IGNORECASE)
_END: Final = re.compile(r"[,;:()?]|\.(?!\d)|\b(?:while|whereas|because|since|so|but)\b", re.IGNORECASE)
_VERB: Final = re.compile(r"\b(?:is|are|was|were|comes|amounts|of)\b", re.IGNORECASE)
_Span = tuple[int, int]


class Relation(Enum):
    """What a claim's figure is of its two: by how much the first is MORE or LESS than the second, how far
    they are APART, how many TIMES as much the first is, or both TOGETHER."""

    MORE = "more"
    LESS = "less"
    APART = "apart"
    TIMES = "times"
    TOGETHER = "together"


_OPPOSITE: Final = {Relation.MORE: Relation.LESS, Relation.LESS: Relation.MORE}


class Compared(NamedTuple):
    """What came of a comparison: the operands if it holds (``added``: as a sum); whether the sources' figures
    make it ``wrong``, because they give the opposite direction or the figure is itself one of the two; and
    whether it can't be ``reckoned``, because one thing, which alone is named, has the opposite direction."""

    operands: tuple[Figure, ...] = ()
    wrong: bool = False
    reckoned: bool = True
    added: bool = False


def compared(
    claim: Sentence, figure: Figure, source: FigureSource, near: Sequence[int], before: Sequence[Figure]
) -> Compared:
    """What the sources' figures of the two things that a claim names make of its figure.

    ``before``: the figures that were said before the claim, of which one may be the first thing's ("That is
    $30 less than the other")."""
    said = _sides(claim, figure)
    plain = (
        figure.values and figure.upper is None and dimension(figure) != "temperature"
    )  # whose zero is far off
    if said is None or not plain:
        return Compared()
    way, sides = said
    measure = None if figure.kind is Kind.PERCENT or way is Relation.TIMES else dimension(figure)
    first, second = (
        [f for f in claim.figures if start <= f.start < end and f is not figure and _fits(f, figure, measure)]
        for start, end in sides
    )
    named = [_naming(claim, figure, span) for span in sides]
    told = [named[0] - named[1], named[1] - named[0]]
    pool = list(_pool(figure, source, near, measure, way)) if told[0] else []
    if not named[1] and way in _OPPOSITE:
        rest = [*before, *(f for f, _ in pool)]
        return _with_any(figure, way, first or _best(pool, told[0], told[1])[:_MOST], rest, measure)
    first = first or _best(pool, told[0], told[1])
    second = second or _best(pool, told[1], told[0])
    if not first and way is not Relation.TOGETHER:
        first = [f for f in before if _fits(f, figure, measure)]
    wrong = False
    for one, other in product(first[:_MOST], second[:_MOST]):
        if one is other or dimension(one) != dimension(other) or not same_rate(one, other):
            continue
        if _holds(figure, way, one, other):
            operands = (one, other) if way is not Relation.LESS else (other, one)
            return Compared(operands, added=way is Relation.TOGETHER)
        opposite = _OPPOSITE.get(way)
        share = figure.kind is Kind.PERCENT  # "25% less" is not "25% more" the other way round
        wrong = wrong or (
            opposite is not None
            and (_holds(figure, opposite, one, other) or (share and _holds(figure, opposite, other, one)))
        )
    named_both = bool(first and second) and way in _OPPOSITE and figure.kind is not Kind.PERCENT
    its_own = named_both and any(_equal(figure, f) for f in (*first[:_MOST], *second[:_MOST]))
    return Compared(wrong=wrong or its_own)


def _with_any(
    figure: Figure, way: Relation, first: Sequence[Figure], rest: Sequence[Figure], measure: str | None
) -> Compared:
    """A comparison of one thing, which alone is named, with any of few others."""
    others = [f for f in rest if f not in first and _fits(f, figure, measure)][:_MANY_OTHERS]
    pairs = [(a, b) for a, b in product(first, others) if dimension(a) == dimension(b) and same_rate(a, b)]
    right = next((pair for pair in pairs if _holds(figure, way, *pair)), None)
    if right is not None:
        few = len({(f.values, f.unit) for f in others}) <= _FEW
        return Compared() if not few else Compared(right if way is Relation.MORE else right[::-1])
    return Compared(reckoned=not any(_holds(figure, _OPPOSITE[way], *pair) for pair in pairs))


def _sides(claim: Sentence, figure: Figure) -> tuple[Relation, tuple[_Span, _Span]] | None:
    """What a figure says of two stretches of its claim."""
    text, (start, end) = claim.text, (figure.start, figure.end)
    if (said := _MORE_OR_LESS.match(text, end, end + _BEHIND)) is not None:
        way = _way(figure, said["more"] or "", said["less"] or "")
        return None if way is None else _than(claim, figure, said.end(), way)
    if figure.unit == "time" and figure.kind is Kind.QUANTITY and (said := _AS_MUCH.match(text, end)):
        return _than(
            claim, figure, said.end() - len("of") * said.group().casefold().endswith("of"), Relation.TIMES
        )
    if figure.kind is Kind.PERCENT or figure.unit == "time":
        return None
    said = _BETWEEN.search(text, max(0, start - 2 * _REACH), end + _REACH)
    if said is not None and not said.start() <= start < said.end():
        return _apart(text, said.end())
    return _joined(text, start, end) if figure.kind is Kind.MONEY else None


def _way(figure: Figure, more: str, less: str) -> Relation | None:
    """The direction that a word gives; what is faster takes less time, and "20% faster" may be either."""
    if (more or less).casefold() in SPEEDS:
        if figure.kind is Kind.PERCENT:
            return None
        if dimension(figure) == "time":
            return Relation.LESS if more else Relation.MORE
    return Relation.MORE if more else Relation.LESS


def _than(
    claim: Sentence, figure: Figure, at: int, way: Relation
) -> tuple[Relation, tuple[_Span, _Span]] | None:
    """More or less, or so many times as much, "than" what is named next, or "compared with" it before."""
    text, start = claim.text, max(0, figure.start - _REACH)
    than = (_AS if way is Relation.TIMES else _THAN).search(text, at, _end(text, at, _BEHIND))
    if than is None:
        beside = _BESIDE.search(text, max(0, start - _REACH), figure.start)
        if beside is None:
            return way, ((_begin(text, figure.start), figure.start), (at, at))
        last = _end(text, beside.end(), _REACH)
        return (way, ((last, figure.start), (beside.end(), last))) if last < figure.start else None
    last = _end(text, than.end(), _REACH)
    if text[last : last + 1] == "(":  # "than the family ticket ($32)"
        close = text.find(")", last, last + _BEHIND)
        last = max(last, close)
    near = (_begin(text, figure.start), than.start())  # "$5 more on Sundays than on Mondays"
    return way, (near if _naming(claim, figure, near) else (start, than.start()), (than.end(), last))


def _apart(text: str, at: int) -> tuple[Relation, tuple[_Span, _Span]] | None:
    """The difference between two."""
    last = _end(text, at, 2 * _REACH)
    both = _AND.search(text, at, last)
    verb = _VERB.search(text, both.end(), last) if both is not None else None
    return None if both is None else (
        Relation.APART, ((at, both.start()), (both.end(), verb.start() if verb is not None else last))
    )  # fmt: skip


def _joined(text: str, start: int, end: int) -> tuple[Relation, tuple[_Span, _Span]] | None:
    """One with another, in the clause of an amount of money."""
    first, last = _begin(text, start), _end(text, end, _REACH)
    joined = [m for m in _TOGETHER.finditer(text, first, last) if not start <= m.start() < end]
    if len(joined) != 1:
        return None
    return Relation.TOGETHER, ((first, joined[0].start()), (joined[0].end(), last))


def _begin(text: str, at: int) -> int:
    """Where the clause begins, or so many code points before."""
    first = max(0, at - _REACH)
    return max((end.end() for end in _END.finditer(text, first, at)), default=first)


def _end(text: str, at: int, reach: int) -> int:
    """Where the clause ends, or ``reach`` code points on."""
    end = _END.search(text, at, at + reach)
    return end.start() if end is not None else min(len(text), at + reach)


def _naming(claim: Sentence, figure: Figure, span: _Span) -> frozenset[int]:
    """The terms of a stretch that name a thing; those of other figures are among them ("the 3-day pass")."""
    within = (token for token in claim.tokens if span[0] <= token[0] < span[1])
    said = (term for at, term in within if not figure.start <= at < figure.end)
    return frozenset(said) - Sentence.silent - _SAYS_NOTHING


def _fits(figure: Figure, claimed: Figure, measure: str | None) -> bool:
    """Whether a figure may be one of the two that another is the difference, the ratio or the sum of."""
    if not is_amount(figure) or (measure is not None and dimension(figure) != measure):
        return False
    money = measure == "money"
    return not money or same_currency(figure.unit or "", claimed.unit or "")


def _pool(
    figure: Figure, source: FigureSource, near: Sequence[int], measure: str | None, way: Relation
) -> Iterator[tuple[Figure, frozenset[int]]]:
    """The sources' figures that may be of one thing, each with the terms of its part of the sentence."""
    for number in near[:_MOST_SENTENCES]:
        sentence = source.sentence(number)
        leaning = source.terms(number) - sentence.terms
        for amount, terms in sentence.amounts:
            apart = way is not Relation.TOGETHER and sentence.is_difference(amount)
            if not apart and _fits(amount, figure, measure):
                yield amount, terms | leaning


def _best(
    pool: Sequence[tuple[Figure, frozenset[int]]], mine: frozenset[int], other: frozenset[int]
) -> list[Figure]:
    """The figures whose parts have most of what names one thing, and less of the other's; if none has, as
    much: "A holds 24 people and B holds 60" says of both what they do."""
    if not mine:
        return []
    unlike = max(len(other), 1)
    shares = [(len(terms & mine) / len(mine), len(terms & other) / unlike, figure) for figure, terms in pool]
    fitting = [(share, others, figure) for share, others, figure in shares if share >= max(_ENOUGH, others)]
    fitting = [each for each in fitting if each[0] > each[1]] or fitting
    most = max((share for share, _, _ in fitting), default=0.0)
    return [figure for share, _, figure in fitting if share == most]


def _holds(figure: Figure, way: Relation, first: Figure, second: Figure) -> bool:
    """Whether a figure says rightly what two amounts are to each other."""
    one, other = base(first)[0][0], base(second)[0][0]
    if way is Relation.TIMES:
        return comes_to(figure, one / other, figure.values[0])
    target, rate = base(figure)[0][0], _rate(figure, first)
    if way is Relation.TOGETHER:
        return comes_to(figure, (one + other) * rate, target)
    difference = one - other if way is not Relation.LESS else other - one
    if way is Relation.APART:
        difference = abs(difference)
    if figure.kind is Kind.PERCENT:
        return difference > 0 and comes_to(figure, 100 * difference / other, target)
    return difference > 0 and comes_to(figure, difference * rate, target)


def _rate(figure: Figure, amount: Figure) -> float:
    """What an amount per month comes to per year, where a claim says so much a year; NaN, which comes to
    nothing, where the two are per what can't be converted."""
    if same_rate(figure, amount):
        return 1.0
    ours, theirs = PERIODS.get(figure.per or ""), PERIODS.get(amount.per or "")
    return ours / theirs if ours and theirs else math.nan


def _equal(one: Figure, other: Figure) -> bool:
    return dimension(one) == dimension(other) and base(one)[0] == base(other)[0]
