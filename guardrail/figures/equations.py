"""What a text calculates with signs or words ("2 × €5 plus €3 = €13"), and whether that is what it comes to.

A text is read into runs: figures with an operator or an equals sign between each and the next. A run is one
side after the other, and every side with an operator is worked out. Whatever can't be read for certain, such
as a side that goes on with a word, is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, NamedTuple

from guardrail.figures.agreement import base, dimension
from guardrail.figures.model import Bound, Figure, Kind
from guardrail.figures.tables import OPERATORS, UNIT, alternatives, find_unit, same_currency

_GAP: Final = 48  # code points between two figures that belong together
_EQUALS: Final = "= ≈ equals"
_JOINT: Final = re.compile(
    r"(?:\s?[^\W\d_]{2,20}\b){0,3}?(?P<close>[\s)]*)"
    rf"(?P<sign>(?<!\w)(?:{alternatives((*OPERATORS, *_EQUALS.split()))})(?!\w))(?P<open>[\s(]*)"
)
_MARKS: Final = re.compile(r"[\[\]_`]|\*\*|(?<=\S)\*(?=\s)(?!.*\S\s\*)")
_OPEN: Final = re.compile(r"[\s(*_`\[]*\Z")
_CLOSED: Final = re.compile(r"[\s)*_`\]]*")
_GOES_ON: Final = re.compile(
    rf"(?:{alternatives(sign for sign in OPERATORS if not sign.isalpha())})\s?(?=[^\W_]|\()"
)
_CAME_FROM: Final = re.compile(
    r"(?:[×*·+÷/]|(?<=\s)[-−]|\b(?:x|times|plus|minus|multiplied by|divided by))\Z", re.IGNORECASE
)
_REACH: Final = 24
_NAMES_AN_UNKNOWN: Final = re.compile(r"\dx\Z")  # "2x + 3"; of "2x €5" the sign is its own
_BEGINS, _ENDS = "()"
_RANK: Final = {"+": 1, "-": 1, "*": 2, "/": 2}
_MOST: Final = 40  # figures of one run
_ABOUT: Final = 0.05
_EXACT: Final = 1e-6
_NUMERAL: Final = re.compile(r"\d+(?:[.,'’ ]\d+)*")
_POINTED: Final = re.compile(r",\d{1,2}\Z")
_BARE: Final = ("number", "percent")


class Written(NamedTuple):
    """The calculations of a text: their results, whose ``text`` is the whole, each with the figures that went
    into it; those of them that are bare factors; and of figures that stand for a result that one, in
    ``stated`` where they are it and in ``wrong`` where they aren't.
    """

    results: tuple[tuple[Figure, tuple[Figure, ...]], ...] = ()
    factors: tuple[Figure, ...] = ()
    stated: tuple[tuple[Figure, Figure], ...] = ()
    wrong: tuple[tuple[Figure, Figure], ...] = ()

    def right(self, figure: Figure) -> Figure | None:
        """What should stand in a figure's place, whose ``text`` is what it comes from; None where it is right
        or nothing is calculated."""
        return next((other for wrong, other in self.wrong if wrong is figure), None)


@dataclass(frozen=True, slots=True)
class _Value:
    """``amount`` is in the base unit of ``measure``, ``written`` as it is written."""

    amount: float
    written: float
    measure: str
    unit: Figure
    """The figure whose unit it has."""


class _Side(NamedTuple):
    """``tokens`` are figures, operators and brackets; ``whole``: nothing else belongs to it."""

    tokens: list[Figure | str]
    whole: bool = True

    @property
    def figures(self) -> list[Figure]:
        """Its figures."""
        return [token for token in self.tokens if isinstance(token, Figure)]


def written(text: str, figures: Sequence[Figure]) -> Written:
    """The calculations of a text; linear."""
    results: list[tuple[Figure, tuple[Figure, ...]]] = []
    factors: list[Figure] = []
    stated: list[tuple[Figure, Figure]] = []
    wrong: list[tuple[Figure, Figure]] = []
    for sides in _runs(text, figures):
        known = [_worked_out(side) for side in sides]
        for side, values in zip(sides, known, strict=True):
            own = side.figures
            if len(own) > 1 and values and side.whole:
                results.append((_figure(text, own, values[0]), tuple(own)))
                factors += _factors(side)
        for (one, values), (other, others) in pairwise(zip(sides, known, strict=True)):
            if (said := _compared(text, one, values, other, others)) is not None:
                figure, result, agreed = said
                (stated if agreed else wrong).append((figure, result))
    return Written(tuple(results), tuple(factors), tuple(stated), tuple(wrong))


def _runs(text: str, figures: Sequence[Figure]) -> Iterator[list[_Side]]:
    """The runs that calculate, each as its sides."""
    sides: list[_Side] = []
    length = 0
    for at, figure in enumerate(figures):
        before = figures[at - 1]
        joint = _joint(text, before, figure) if at and length < _MOST else None
        if joint is None:
            if at:
                yield from _ended(text, sides, before)
            sides, length = [_begun(text, figure)], 1
            continue
        closed, sign, opened = joint
        sides[-1].tokens.extend(closed)
        if sign == "=":
            sides.append(_Side([*opened, figure]))
        else:
            sides[-1].tokens.extend((sign, *opened, figure))
        length += 1
    if figures:
        yield from _ended(text, sides, figures[-1])


def _begun(text: str, figure: Figure) -> _Side:
    before = text[max(0, figure.start - _REACH) : figure.start]
    opened = _OPEN.search(before)
    opens = opened[0].count("(") if opened else 0
    came_from = _CAME_FROM.search(before[: opened.start()] if opened else before)
    return _Side([*("(" * opens), figure], whole=came_from is None)


def _ended(text: str, sides: list[_Side], last: Figure) -> Iterator[list[_Side]]:
    if len(sides) == 1 and len(sides[0].tokens) < 3:
        return
    closed = _CLOSED.match(text, last.end)
    end = closed.end() if closed else last.end
    if closed:
        sides[-1].tokens.extend(")" * closed[0].count(")"))
    if _GOES_ON.match(text, end):
        sides[-1] = sides[-1]._replace(whole=False)
    yield sides


def _joint(text: str, before: Figure, after: Figure) -> tuple[str, str, str] | None:
    """What stands between two figures that belong together: brackets that close, an operator or "=", brackets
    that open. "2×" and "twice" hold their sign, and "of" is one behind a share."""
    if after.start - before.end > _GAP:
        return None
    between = _MARKS.sub("", text[before.end : after.start].casefold())
    holds = before.unit == "time" and before.kind is Kind.QUANTITY and not before.per
    if holds and not between.strip(" ("):
        return "", "*", "(" * between.count("(")
    if between.strip() == "of" and (before.kind is Kind.PERCENT or before.fraction):
        return "", "*", ""
    found = _JOINT.fullmatch(between)
    if found is None:
        return None
    sign, said = found["sign"], found.start("sign") > len(found["close"])
    if (
        sign in ("-", "–", "/")
        and said
        and not between[found.start("sign") - 1 : found.end("sign") + 1].startswith(" ")
    ):
        return None
    return (
        found["close"].strip().replace(" ", ""),
        OPERATORS.get(sign, "="),
        found["open"].strip().replace(" ", ""),
    )


def _worked_out(side: _Side) -> list[_Value]:
    """What a side comes to, in every reading of its numbers; nothing where that can't be told."""
    found: list[_Value] = []
    for reading in (0, -1) if side.whole else ():
        value = _evaluated(side.tokens, reading)
        if value is None:
            return []
        found.append(value)
    return found


def _evaluated(tokens: Sequence[Figure | str], reading: int) -> _Value | None:
    """The value of an expression. Brackets that are those of the sentence are passed over."""
    unmatched = _unmatched(tokens)
    values: list[_Value] = []
    signs: list[str] = []

    def reduced() -> bool:
        sign, other, one = signs.pop(), values.pop(), values.pop()
        result = _combined(sign, one, other)
        values.extend([] if result is None else [result])
        return result is not None

    for at, token in enumerate(tokens):
        if at in unmatched:
            continue
        if isinstance(token, Figure):
            value = _value(token, reading)
            unknown = _NAMES_AN_UNKNOWN.search(token.text) and tokens[at + 1 : at + 2] not in ([], ["*"])
            if value is None or unknown:
                return None
            values.append(value)
        elif token == _BEGINS:
            signs.append(token)
        elif token == _ENDS:
            while signs[-1] != "(":
                if not reduced():
                    return None
            signs.pop()
        else:
            while signs and signs[-1] != "(" and _RANK[signs[-1]] >= _RANK[token]:
                if not reduced():
                    return None
            signs.append(token)
    while signs:
        if not reduced():
            return None
    return values[0]


def _unmatched(tokens: Sequence[Figure | str]) -> set[int]:
    opened: list[int] = []
    odd: set[int] = set()
    for at, token in enumerate(tokens):
        if token == _BEGINS:
            opened.append(at)
        elif token == _ENDS:
            if opened:
                opened.pop()
            else:
                odd.add(at)
    return odd | set(opened)


def _value(figure: Figure, reading: int) -> _Value | None:
    year = figure.kind is Kind.DATE and bool(figure.values)
    plain = figure.kind in (Kind.NUMBER, Kind.MONEY, Kind.QUANTITY, Kind.PERCENT) and not figure.name
    if not (year or plain) or figure.upper is not None or figure.bound.direction:
        return None
    amount = figure.values[0] if year else base(figure)[reading][0]
    measure = "number" if year or figure.unit == "time" else dimension(figure)
    if measure == "percent" and figure.fraction:
        return _Value(figure.values[reading], figure.values[reading], "number", figure)
    return _Value(amount, figure.values[reading], measure, figure)


def _combined(sign: str, one: _Value, other: _Value) -> _Value | None:
    if sign in "+-":
        way = 1.0 if sign == "+" else -1.0
        if other.measure == "percent" != one.measure:
            share = 1.0 + way * other.written / 100
            return replace(one, amount=one.amount * share, written=one.written * share)
        if one.measure == other.measure and _same_money(one, other):
            if one.measure == "temperature":  # whose zero is none
                return None
            scale = _scale(one)
            amount = one.amount + way * other.amount
            return replace(one, amount=amount, written=amount / scale)
        number = one if one.measure == "number" else other
        if number.measure != "number" or number.unit.noun:  # "€6 plus one child"
            return None
        total, of = one.written + way * other.written, other if one.measure == "number" else one
        return replace(of, amount=total * _scale(of), written=total)
    if sign == "/" and not other.amount:
        return None
    if sign == "/" and one.measure == other.measure:
        ratio = one.amount / other.amount
        return _Value(ratio, ratio, "number", one.unit)
    of, by = (
        (other, one) if sign == "*" and one.measure in _BARE and other.measure != "number" else (one, other)
    )
    factor = by.written / 100 if by.measure == "percent" else by.written
    if by.measure not in _BARE:
        factor = _of_the_rate(of, by)
    result = of.written * factor if sign == "*" else of.written / factor if factor else 0.0
    if by.measure in _BARE or (of.measure == "money" and sign == "*"):
        return replace(of, amount=result * _scale(of), written=result)
    if by.measure == "money" and sign == "*":
        return replace(by, amount=result, written=result)
    return _Value(result, result, "?", of.unit)


def _of_the_rate(rate: _Value, much: _Value) -> float:
    """So much, in the unit that a rate is per: 90 minutes at €20 an hour are 1.5 of them."""
    for of, quantity in ((rate.unit, much), (much.unit, rate)):
        for part in (of.per or "").split("/"):
            unit = find_unit(part)
            if unit is not None and unit.dimension == quantity.measure:
                converted = quantity.amount / unit.factor
                return converted if quantity is much else much.written * converted / (rate.written or 1.0)
    return much.written


def _same_money(one: _Value, other: _Value) -> bool:
    return one.measure != "money" or same_currency(one.unit.unit or "", other.unit.unit or "")


def _scale(value: _Value) -> float:
    """The base units in one of the unit that a value is written in."""
    if value.measure in ("money", "number", "percent", "?"):
        return 1.0
    return UNIT[value.unit.unit or ""].factor


def _compared(
    text: str, one: _Side, values: Sequence[_Value], other: _Side, others: Sequence[_Value]
) -> tuple[Figure, Figure, bool] | None:
    """The figure that stands alone on one of two sides, what the other comes to, and whether it is that."""
    if not values or not others:
        return None
    for side, claimed, calculated, of in ((other, others, values, one), (one, values, others, other)):
        if len(side.figures) == 1 and len(of.figures) > 1:
            agreed = any(_agree(a, b) for a in claimed for b in calculated)
            result = _figure(text, of.figures, calculated[0])
            return side.figures[0], replace(result, values=(_in_unit_of(calculated[0], claimed[0]),)), agreed
    return None


def _agree(claimed: _Value, calculated: _Value) -> bool:
    """Whether a figure is what was calculated, as exactly as it says; also where they can't be compared."""
    figure = claimed.unit
    pairs = [(claimed.written, calculated.written, figure.step)]
    if claimed.measure == calculated.measure and _same_money(claimed, calculated):
        scale = abs(claimed.amount / claimed.written) if claimed.written else 1.0
        pairs = [(claimed.amount, calculated.amount, figure.step * scale)]
    elif not {"number", "?", "percent"} & {claimed.measure, calculated.measure}:
        return True
    if "percent" in (claimed.measure, calculated.measure) and claimed.measure != calculated.measure:
        pairs += [(a, b * 100, step) for a, b, step in pairs] + [(a, b / 100, step) for a, b, step in pairs]
    rough = figure.bound is Bound.ABOUT or figure.scaled or figure.fraction
    return any(
        abs(a - b) <= max(step / 2, (_ABOUT if rough else _EXACT) * abs(b)) * (1 + _EXACT)
        for a, b, step in pairs
    )


def _in_unit_of(calculated: _Value, claimed: _Value) -> float:
    if calculated.measure == claimed.measure and claimed.written:
        return calculated.amount / (claimed.amount / claimed.written or 1.0)
    return calculated.written * (100.0 if claimed.measure == "percent" and calculated.written < 1 else 1.0)


def _figure(text: str, own: Sequence[Figure], value: _Value) -> Figure:
    """What comes out of figures as one: in the unit of the first that has one."""
    start, end = own[0].start, own[-1].end
    unit = (
        value.unit
        if value.measure not in ("number", "?")
        else next((f for f in own if not f.unit), value.unit)
    )
    return replace(
        unit, values=(value.written,), per=None, noun=None, start=start, end=end, text=text[start:end]
    )


def _factors(side: _Side) -> Iterator[Figure]:
    """The bare numbers that something is multiplied with or divided by."""
    tokens = [token for token in side.tokens if token not in ("(", ")")]
    for before, sign, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if sign in ("*", "/"):
            for figure in (before, after) if sign == "*" else (after,):
                if isinstance(figure, Figure) and (
                    dimension(figure) in ("number", "time") or figure.unit == "time"
                ):
                    yield figure


def shown(figure: Figure, right: Figure) -> str:
    """``right``, the way ``figure`` is written: "€42" beside "€52"."""
    numeral = _NUMERAL.search(figure.text)
    value = right.values[0]
    if numeral is None or not figure.values or not figure.values[0]:
        return f"{value:.6g}"
    comma = _POINTED.search(numeral[0]) is not None
    written_as = numeral[0].replace("’", "").replace("'", "").replace(" ", "")
    plain = written_as.replace(".", "").replace(",", ".") if comma else written_as.replace(",", "")
    try:
        value *= float(plain) / figure.values[0]
    except ValueError:
        return f"{value:.6g}"
    whole = abs(value - round(value)) < _EXACT
    said = f"{round(value):,}" if whole else f"{value:,.2f}"
    said = said.translate(str.maketrans(",.", ".,")) if comma else said
    return figure.text[: numeral.start()] + said + figure.text[numeral.end() :]
