"""Whether a figure of a claim is calculated from others, surely or perhaps.

Some pair of the sources' figures comes to nearly any number, so what comes out proves nothing by itself.
DERIVED therefore needs one of these:

- the claim spells the calculation out, or what it goes on from does, with operands that hold;
- the claim has the operands itself, they hold, and a word says what it does with them ("so you save …");
- one sentence says all the rest of the claim and has no other figure that it could be calculated from;
- it is the total of the lines above it.

An operand *holds* where a source or the question has it. Whatever else comes out, or is said to, is
UNCHECKED: the verifier and the reader of the verdict have to see for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from guardrail.evidence.tokens import term_of
from guardrail.figures.agreement import agrees, dimension, of_a_sort
from guardrail.figures.arithmetic import By, Calculation, calculations
from guardrail.figures.model import Figure, FigureCheck, Kind, State
from guardrail.figures.reading import find_figures
from guardrail.figures.source import MANY, FigureSource, Sentence
from guardrail.figures.tables import COMPARING, PRICING, TOTAL, words

_ADDING: Final = words("adding")
_PARTING: Final = words("parting")
_RESULTING: Final = words("resulting")
_PERHAPS_RESULTING: Final = words("perhaps_resulting")
_SUPPOSING: Final = words("supposing")
_REMAINDER: Final = words("remainder")
_UPWARD: Final = words("more", "rising", "upward")
_DOWNWARD: Final = words("less", "falling", "downward")
_TIERS: Final = words("tiers")
_CONDITIONS: Final = words("tiers", "conditions")
_GIVEN: Final = words("given")
_STATING: Final = words("stating")
_LOOKED_UP: Final = 8  # sentences beside the near ones, for a figure that another is calculated from
_LATER: Final = 4  # figures behind one that may be its operands
_HARDLY_BY_CHANCE: Final = 10  # least bare number that a claim's own figures hardly come to by chance
_CALENDAR: Final = (2.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 100.0, 365.0, 1000.0)  # what all may count with
NEARLY_EQUAL: Final = 0.01
_FEW_OPERANDS: Final = 8  # of a calculation in two steps
_OPERANDS_FROM: Final = 4  # near sentences whose figures may be calculated with
_GIVEN_REACH: Final = 48  # characters before a figure
_TOTAL_REACH: Final = 40
_MOST_LINES: Final = 16
_FEWEST_LINES: Final = 2
_CALCULATING: Final = _RESULTING | _ADDING | _PARTING | _SUPPOSING
#: What a claim says of how it calculates, and not of what.
_HOW_IT_CALCULATES: Final = frozenset(
    map(term_of, _RESULTING | _ADDING | _PARTING | _PERHAPS_RESULTING | _REMAINDER | _UPWARD | _DOWNWARD)
).union(map(term_of, COMPARING | PRICING | words("lasting")))
ANNOUNCING: Final = re.compile(r":(?!\d)")
_COMES_TO: Final = re.compile(
    r"\b(?:com(?:es?|ing)|adds?|adding|amounts?)\s(?:up\s|out\s)?(?:to|at)\b", re.IGNORECASE
)
_BORDER: Final = re.compile(r"\A|[,;:|.](?!\d)")
_PIECE: Final = re.compile(r"\w+|[^\w\s]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_COUNTS: Final = (Kind.NUMBER, Kind.QUANTITY)


@dataclass(frozen=True, slots=True)
class ClaimFigure:
    """One figure of a claim, with what it is compared with.

    ``near`` are the numbers of the sentences that evidence search found, best first; ``asked`` the question's
    figures, ``before`` what the claim goes on from, and ``checks`` those of the claim's figures before it.
    """

    figure: Figure
    claim: Sentence
    source: FigureSource
    near: Sequence[int]
    asked: Sequence[Figure]
    before: Sentence
    checks: Sequence[FigureCheck]

    def sentences(self) -> Iterator[tuple[int, Sentence]]:
        """The near sentences with their numbers, best first."""
        return ((number, self.source.sentence(number)) for number in self.near)

    def is_backed(self, figure: Figure) -> bool:
        """Whether a source has ``figure``, of whatever."""
        numbers = chain(self.near, self.source.holding(figure)[:_LOOKED_UP])
        return any(self.source.backing(figure, number) for number in numbers)

    def derived(self, operands: tuple[Figure, ...] = ()) -> FigureCheck:
        """DERIVED from ``operands``."""
        return FigureCheck(self.figure, State.DERIVED, 0.0, operands=operands)

    def unchecked(self, operands: tuple[Figure, ...] = ()) -> FigureCheck:
        """UNCHECKED: it may come of ``operands``."""
        return FigureCheck(self.figure, State.UNCHECKED, 0.0, operands=operands)


def derived(own: ClaimFigure) -> FigureCheck | None:
    """The check of a figure that is surely calculated from what the sources or the question have."""
    figure, claim, before, asked = own.figure, own.claim, own.before, own.asked
    if figure.name:
        return None

    def holds(other: Figure) -> bool:
        return own.is_backed(other) or any(agrees(other, each) for each in asked)

    if (spelled := _spelled_out(own, holds)) is not None:
        return spelled
    known = {check.figure for check in own.checks if check.state is State.DERIVED}
    operands = [f for f in _own_operands(claim, figure) if f in known or holds(f)]
    operands += [f for f in (*before.figures, *before.unspared) if holds(f)]
    # The claim may leave out per what its figures are: "£28.80 a month instead of £36".
    rates = (
        (f, next((r for n in own.near if (r := own.source.backing(f, n))), None))
        for f in operands
        if not f.per
    )
    operands += [replace(f, per=rate.per) for f, rate in rates if rate and rate.per and figure.per]
    operands += [result for result, parts in _equations(own) if all(map(holds, parts))]
    for found in calculations(figure, [*operands, *asked], twice=True):
        tiered = found.by is not By.SUM and any(_holds_on_condition(own, part) for part in found.parts)
        if says_it_calculates(claim, figure, found) and not tiered and not set(found.parts) <= set(asked):
            return own.derived(found.parts)
    for number in own.near[:_OPERANDS_FROM]:
        if (parts := _operands_without_choice(own, number)) is not None:
            return own.derived(parts)
    return _total_of_lines(own)


def perhaps_derived(own: ClaimFigure, doubted: bool, rival: Sentence | None = None) -> FigureCheck | None:
    """The check of a figure that no source has, and that may come out of others, or a word says that it is
    calculated; both, where the sources have another figure there (``doubted``), if it isn't the price of so
    many. ``rival`` is the sentence that has another figure for the same, where that is plain."""
    figure, claim, asked = own.figure, own.claim, own.asked
    calculates = says_calculated(claim, figure, rival)
    if figure.name or (figure.text[0] == "0" and figure.text[1:2].isdigit()):  # "0184" is not a number
        return None
    # How many it is the price of, or for how long: times of day aside.
    counts = (f for f in (*_own_operands(claim, figure), *asked) if f.kind in _COUNTS)
    counted = figure.kind is Kind.MONEY and any(dimension(f) in ("number", "time") for f in counts)
    if doubted and not (calculates or counted):
        return None
    trusted = _trusted_operands(own)
    operands = list(_possible_operands(own, trusted))
    named = {*trusted, *asked}
    likely = max(
        calculations(figure, operands),
        key=lambda each: sum(part in named for part in each.parts),
        default=None,
    ) or next(calculations(figure, operands[:_FEW_OPERANDS], twice=True), None)
    parts = likely.parts if likely else ()
    fitting = (f for f in operands if dimension(figure) == "percent" or dimension(f) == dimension(figure))
    calculates = calculates and (bool(parts) or any(fitting))
    told = bool(parts) and (calculates or not doubted or not named.isdisjoint(parts))
    # Where it is plain that the sources have another figure for the same, a word alone doesn't excuse it.
    if not told and not (calculates and (counted or not doubted) and rival is None):
        return None
    return own.unchecked(parts)


def is_given(claim: Sentence, figure: Figure) -> bool:
    """Whether a claim takes a figure for given ("for your group of 17", "after 40 days"), rather than to say
    that it is so ("the fee is 14 euros"): of the words before it, which of either is nearer."""
    before = _WORD.findall(claim.text[max(0, figure.start - _GIVEN_REACH) : figure.start].casefold())
    nearest = next((word for word in reversed(before) if word in _GIVEN or word in _STATING), None)
    return nearest in _GIVEN or (nearest is None and figure.start < _GIVEN_REACH)


# --------------------------------------------------------------------------------------------------- operands


def _own_operands(claim: Sentence, figure: Figure) -> list[Figure]:
    """The other figures of a claim that one of it may be calculated from, all that it is not part of: of an
    age those that tell one."""
    at = claim.figures.index(figure)
    others = [*claim.figures[:at], *claim.figures[at + 1 : at + 1 + _LATER]]
    meant = [full for f in others if (full := claim.meant.get(f.start))]  # "5 minutes and 2 more"
    aged = claim.of_age(figure)
    spent = {figure for _, operands in claim.written.results for figure in operands}
    free = [f for f in (*others, *meant) if f not in spent and (aged or not claim.of_age(f))]
    return [f for f in (*free, *claim.unspared) if not aged or f.kind is Kind.DATE or dimension(f) == "time"]


def _trusted_operands(own: ClaimFigure) -> list[Figure]:
    """Those of the claim's own. Figures of one sort that no source has don't vouch for each other."""
    calculated = (State.DERIVED, State.UNCHECKED)
    known = {check.figure for check in own.checks if check.state in calculated}
    return [
        f
        for f in _own_operands(own.claim, own.figure)
        if f in known or dimension(f) != dimension(own.figure) or own.is_backed(f)
    ]


def _possible_operands(own: ClaimFigure, trusted: Sequence[Figure]) -> Iterator[Figure]:
    """All that a figure may come out of: ``trusted`` ones of the claim, figures of what it goes on from, of
    the question and of the sentences around the near ones, there those of its own sort first."""
    figure, source = own.figure, own.source
    texts = map(source.sentence, source.around(own.near))
    theirs = [f for text in texts for f in (*text.figures[:MANY], *text.changes)]
    theirs.sort(key=lambda f: (dimension(f) != dimension(figure)) + (f.kind is not Kind.NUMBER))
    results = (result for result, parts in _equations(own) if figure not in parts)
    for operand in (*trusted, *results, *own.before.figures, *own.asked, *theirs):
        if operand.kind is not Kind.ORDINAL:
            yield operand


def _holds_on_condition(own: ClaimFigure, operand: Figure) -> bool:
    """Whether a price or an amount holds for some only, where the sources have it: "for the first hour"."""
    if operand.kind not in (Kind.MONEY, Kind.QUANTITY):
        return False
    for number, sentence in own.sentences():
        if (there := own.source.backing(operand, number)) is not None:
            text = sentence.text
            start = max(match.end() for match in _BORDER.finditer(text, 0, there.start)) if there.start else 0
            end = _BORDER.search(text, there.end)
            return not _pieces(text[start : end.start() if end else len(text)]).isdisjoint(_TIERS)
    return False


# ------------------------------------------------------------------- what is spelled out, or leaves no choice


def _equations(own: ClaimFigure) -> Iterator[tuple[Figure, tuple[Figure, ...]]]:
    """What is written out in a claim or before it: what each comes to, and of what."""
    yield from (*own.claim.written.results, *own.before.written.results)


def _spelled_out(own: ClaimFigure, holds: Callable[[Figure], bool]) -> FigureCheck | None:
    """The check of a figure that stands in an equation or is what one comes to: DERIVED where the operands
    hold."""
    figure, claim = own.figure, own.claim
    factors = (*claim.written.factors, *own.before.written.factors)

    def known(operand: Figure) -> bool:
        if operand.name or holds(operand) or any(_counts_what(claim, operand, f) for f in claim.figures):
            return True
        return operand in factors and (operand.values[0] in _CALENDAR or _is_percentage_of(claim, operand))

    stated = next((result for mine, result in claim.written.stated if mine is figure), None)
    for result, parts in _equations(own):
        within = result.start <= figure.start < result.end and figure in parts
        same = (result.start, result.end) == (stated.start, stated.end) if stated else agrees(figure, result)
        if within or not same:
            continue
        return own.derived((result,)) if all(map(known, parts)) else own.unchecked(parts)
    if figure in factors or any(_counts_the_same(figure, factor) for factor in claim.written.factors):
        return own.derived() if known(figure) else own.unchecked()
    return None


def _is_percentage_of(claim: Sentence, factor: Figure) -> bool:
    """Whether a factor is a percentage of a claim: 0.7 of 70%."""
    percents = (f.values[0] for f in claim.figures if f.kind is Kind.PERCENT and f.values)
    return any(abs(percent - 100 * factor.values[0]) < NEARLY_EQUAL for percent in percents)


def _counts_the_same(figure: Figure, factor: Figure) -> bool:
    """Whether a figure is what a written calculation multiplies with: "three" of "three tickets: 3 × €5"."""
    counts = dimension(figure) in ("number", "time") and not figure.name
    return counts and agrees(replace(factor, noun=None), figure)


def _counts_what(claim: Sentence, figure: Figure, other: Figure) -> bool:
    """Whether a claim says how many of what it calculates with: "four wheels: 4 × €18"."""
    factor, counted = (figure, other) if other.noun else (other, figure)
    supposed = factor in claim.written.factors and counted not in claim.written.factors
    return (
        supposed
        and counted.noun is not None
        and _counts_the_same(counted, factor)
        and is_given(claim, counted)
    )


def _operands_without_choice(own: ClaimFigure, number: int) -> tuple[Figure, ...] | None:
    """What a figure is calculated from where one sentence says all the rest of the claim, under no condition,
    and has no other figure that it could be calculated from."""
    sentence = own.source.sentence(number)
    matter = own.claim.terms - _HOW_IT_CALCULATES
    held = own.source.terms(number)
    if not matter or not matter <= held or not _pieces(sentence.text).isdisjoint(_CONDITIONS):
        return None
    theirs = [f for f in sentence.figures[:MANY] if not f.name]
    if any(f.bound.direction for f in theirs):
        return None
    for found in calculations(own.figure, [*theirs, *sentence.changes]):
        measures = {dimension(part) for part in found.parts}
        rivals = [f for f in theirs if dimension(f) in measures and f.kind is not Kind.DATE]
        if len(rivals) <= len(found.parts) and says_it_calculates(own.claim, own.figure, found):
            return found.parts
    return None


def _total_of_lines(own: ClaimFigure) -> FigureCheck | None:
    """The check of the total of the lines above it: of the last figure of its sort in each."""
    figure, text = own.figure, own.claim.text
    lines = own.before.text.split("\n")[-_MOST_LINES:]
    if len(lines) < _FEWEST_LINES or not figure.values:
        return None
    if not TOTAL.search(text[max(0, figure.start - _TOTAL_REACH) : figure.end].casefold()):
        return None
    parts: list[Figure] = []
    for line in reversed(lines):
        ends = [f for f in find_figures(line) if f.values and f.upper is None and of_a_sort(figure, f)]
        parts += ends[-1:]
        total = sum(part.values[0] for part in parts)
        if ends and len(parts) >= _FEWEST_LINES and agrees(figure, replace(parts[0], values=(total,))):
            return own.derived(tuple(reversed(parts)))
    return None


# --------------------------------------------------------------------- what a claim says of how it calculates


def says_it_calculates(claim: Sentence, figure: Figure, found: Calculation) -> bool:
    """Whether a claim says that it calculates a figure that way."""
    pieces, differs = _pieces_around(claim, figure), claim.is_difference(figure)
    result = not pieces.isdisjoint(_RESULTING | _PERHAPS_RESULTING | _ADDING)
    parted = differs or not pieces.isdisjoint(_PARTING | COMPARING)
    few = figure.kind is Kind.NUMBER and not figure.fraction and figure.values[0] < _HARDLY_BY_CHANCE
    if found.by is By.SUM:
        listed = ANNOUNCING.match(claim.text, figure.end) is not None  # "€30: €10 and €20"
        return (result or (listed and all(f.start >= figure.end for f in found.parts))) and not differs
    if found.by is By.DIFFERENCE:
        return parted or not pieces.isdisjoint(_RESULTING)
    if found.by is By.CHANGE:
        return parted and _said_direction(pieces) * _change(found) >= 0
    if found.by is By.REST:
        return not pieces.isdisjoint(_REMAINDER)
    if len(found.parts) == 1 and found.by is By.PERIOD:
        return bool(figure.per)
    return not differs and (result or not few)


def says_calculated(claim: Sentence, figure: Figure, rival: Sentence | None = None) -> bool:
    """Whether a word around a figure or before it says that it is calculated, or supposed; not one that
    ``rival``, a sentence that has another figure for it, says too: "the total liability"."""
    pieces = _pieces_around(claim, figure) | _pieces(claim.text[: figure.start])
    pieces -= _pieces(rival.text) if rival is not None else frozenset()
    comes_to = _COMES_TO.search(claim.text, max(0, figure.start - _TOTAL_REACH), figure.start) is not None
    comes_to = comes_to and (rival is None or _COMES_TO.search(rival.text) is None)
    return comes_to or claim.is_difference(figure) or not pieces.isdisjoint(_CALCULATING)


def _change(found: Calculation) -> float:
    """Whether what is calculated in percent is a rise, above 0, or a fall."""
    first, *rest = found.parts
    return first.values[0] - rest[0].values[0] if rest else (first.upper or 0.0) - first.values[0]


def _said_direction(pieces: frozenset[str]) -> int:
    """+1 where words say that something is more, -1 for less, 0 where they say both or neither."""
    return (not pieces.isdisjoint(_UPWARD)) - (not pieces.isdisjoint(_DOWNWARD))


def _pieces_around(claim: Sentence, figure: Figure) -> frozenset[str]:
    start, end = claim.clause(figure)
    return _pieces(claim.text[start : figure.start]) | _pieces(claim.text[figure.end : end])


def _pieces(text: str) -> frozenset[str]:
    """The words and signs of a text, in lower case."""
    return frozenset(_PIECE.findall(text.casefold()))
