"""A claim's figures against the source sentences that speak of the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, takewhile
from typing import Final, NamedTuple

from guardrail.evidence.tokens import term_of
from guardrail.figures.agreement import (
    ALL_WEEK,
    agrees,
    beyond,
    compatible,
    complements,
    days_of_week,
    dimension,
    of_a_sort,
    opposed,
)
from guardrail.figures.arithmetic import By, Reckoning, reckoned
from guardrail.figures.comparing import Contest, compares, compares_two, contest
from guardrail.figures.formulas import compared
from guardrail.figures.model import Bound, Figure, Kind
from guardrail.figures.numbers import COMMAS, MAY_BE_EITHER, Separators, separators_of
from guardrail.figures.opening import opening_hours
from guardrail.figures.owners import Owned
from guardrail.figures.pairing import exchanged
from guardrail.figures.reading import find_figures
from guardrail.figures.source import MANY, FigureSource, Sentence
from guardrail.figures.tables import (
    ADDING,
    COMPARING,
    CONDITIONS,
    DOWNWARD,
    GIVEN,
    LABELS,
    LASTING,
    PARTING,
    PERHAPS_RESULTING,
    PRICING,
    REMAINDER,
    RESULTING,
    STATING,
    SUPPOSING,
    TIERS,
    TOTAL,
    UPWARD,
    find_unit,
)

_NEARNESS: Final = 0.93  # what a word counts less for each word between it and the figure
_ELSEWHERE: Final = 0.3  # of a word that stands by another figure of the same sort
_FRAME: Final = 0.9  # of the claim, that a sentence must say to be at odds with its figure
_MARGIN: Final = 0.15  # of the claim, by which it must say more than any sentence with the claim's figure
_TURNED: Final = 0.4  # the same to doubt it, for an opposite limit
_SAME: Final = 0.95  # the same for the same figure with an opposite limit
_REVERSE: Final = 0.7  # of what the sentence says around its own figure, that the claim must say
_FEW: Final = 3  # words of a claim
_REVERSE_OF_FEW: Final = 0.85
_LOCALITY: Final = 0.7  # what a word counts less there for each word between
_MARGIN_WORDS: Final = 1.5  # the same in words, where there are few
_APART: Final = 0.5  # of the claim, by which a sentence with its figure may say less than one with another
_APART_WORDS: Final = 2.0
_LEAST: Final = 2  # words or figures around a figure that tell what it is of
_VAGUE: Final = ("up to", "until", "within")
_LATER: Final = 4  # figures behind one that may be its operands
_HARDLY_BY_CHANCE: Final = 10  # least bare number that a claim's own figures hardly come to by chance
_CALENDAR: Final = (2.0, 7.0, 12.0, 24.0, 30.0, 52.0, 60.0, 100.0, 365.0, 1000.0)  # what all may count with
_FEW_THINGS: Final = range(2, 13)
_ANNOUNCING: Final = re.compile(r":(?!\d)")
_COMES_TO: Final = re.compile(
    r"\b(?:com(?:es?|ing)|adds?|adding|amounts?)\s(?:up\s|out\s)?(?:to|at)\b", re.IGNORECASE
)
_RECKONING: Final = RESULTING | ADDING | PARTING | SUPPOSING
_OF_ALL: Final = re.compile(r"\b(?:of|among)\s(?:(?:the|all|these|those)\s){0,2}\Z", re.IGNORECASE)
_BORDER: Final = re.compile(r"\A|[,;:|.](?!\d)")
_LISTS: Final = re.compile(r"[:;()]|[.!?](?=\s|$)")
_SEPARATOR: Final = re.compile(r",(?:\s{0,4}(?:and|or)\b)?|\b(?:and|or)\b", re.IGNORECASE)
_PIECE: Final = re.compile(r"\w+|[^\w\s]")
_PRICING: Final = frozenset(map(term_of, PRICING))
_CLOSELY: Final = 32  # figures of a claim that are compared with others and reckoned; the rest are looked up
_ALWAYS: Final = 0.01
_LOOKED_UP: Final = 8  # sentences, for one of them
_FEW_OPERANDS: Final = 8  # of a reckoning in two steps
_GIVEN_REACH: Final = 48  # characters before a figure
_WORDS_OF: Final = re.compile(r"[^\W\d_]+")
_MOST_TOLD: Final = 3  # stretches of the sources that days follow from
_BESIDE: Final = 4  # other figures of a claim that tell what one is of
_OPERANDS_FROM: Final = 4  # near sentences whose figures may be reckoned with
_MOST_LINES: Final = 16
_TOTAL_REACH: Final = 40  # characters before the figure
_UNSAID: Final = frozenset(  # what a claim says of how it reckons, and not of what
    map(
        term_of,
        LASTING
        | PRICING
        | UPWARD
        | DOWNWARD
        | REMAINDER
        | ADDING
        | PARTING
        | RESULTING
        | COMPARING
        | PERHAPS_RESULTING,
    )
)


class State(StrEnum):
    """FOUND: a source has it. DERIVED: the claim spells out how it is reckoned from the sources' figures, or
    they leave no other way. UNCHECKED: it may be reckoned from them. ECHOED: it is the question's, and given
    rather than told. CONFLICT: a source has another figure for the same thing, or the claim's own equation
    comes to another. ABSENT: no source has it, or only of other matters, where a sentence says all the rest
    of the claim and has a figure of the sort."""

    FOUND = "found"
    DERIVED = "derived"
    UNCHECKED = "unchecked"
    ECHOED = "echoed"
    CONFLICT = "conflict"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class FigureCheck:
    """What became of one figure of a claim.

    ``sentence`` is the number of the sentence that decides and ``source`` its figure, whose ``text`` stands
    there verbatim; both None for ABSENT. Of a CONFLICT without a sentence ``source`` is what the claim's own
    equation comes to, and its ``text`` what is reckoned. ``frame`` is how much of what the claim says around
    the figure that sentence says too, 0..1; for ABSENT, the best sentence. ``owned``: it is another thing's
    there, as far as words tell; a CONFLICT where that is sure. ``disputed`` is what another context has
    instead, and the number of its sentence.
    """

    figure: Figure
    state: State
    frame: float
    sentence: int | None = None
    source: Figure | None = None
    operands: tuple[Figure, ...] = ()
    owned: Owned | None = None
    disputed: tuple[int, Figure] | None = None


@dataclass(frozen=True, slots=True)
class _Frame:
    """What a claim says around a figure: terms and other figures, with weights that sum to 1."""

    terms: dict[int, float]
    figures: tuple[tuple[Figure, float], ...]
    told: frozenset[int]  # the terms of the figure's part of the claim, those of other figures included

    def said(self, source: FigureSource, number: int) -> float:
        """The share of the frame that a sentence says."""
        terms = source.terms(number)
        share = sum(weight for term, weight in self.terms.items() if term in terms)
        if self.figures:
            sentence = source.sentence(number)
            share += sum(w for figure, w in self.figures if sentence.backing(figure) is not None)
        return share


class _Said(NamedTuple):
    """What was said before a figure: in the question, in what the claim goes on from, and the checks of the
    claim's figures before it."""

    asked: Sequence[Figure]
    before: Sentence
    checks: Sequence[FigureCheck] = ()


def check_figures(
    claim_text: str,
    source: FigureSource,
    near: Sequence[int],
    question: str = "",
    lead_in: str = "",
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[FigureCheck, ...]:
    """One check for each figure of a claim, in order, until ``stopped()``. Of a claim of very many figures
    those after the first are looked up only.

    ``near``: the numbers of the sentences that evidence search found best, best first; all others are looked
    at for the claim's own figures only. ``question``: its figures may be echoed and reckoned with;
    ``lead_in``, what the claim goes on from: reckoned with.
    """
    claim = Sentence(claim_text, _separators(claim_text, lead_in, source))
    near = list(dict.fromkeys(near))
    if not claim.figures and not compares(claim_text):
        return tuple(_with_parted(claim, _with_formulas(claim, (), source, near), source))
    source.read(stopped)  # as long as it may take, before anything that does not ask
    if stopped():
        return ()
    checks: list[FigureCheck] = []
    said = _Said(source.said(question).figures, source.said(lead_in), checks)
    for number, figure in enumerate(claim.figures):
        if stopped():
            break
        if (right := claim.written.right(figure)) is not None:
            checks.append(FigureCheck(figure, State.CONFLICT, 1.0, source=right))
        elif number < _CLOSELY:
            checks.append(_check(claim, figure, source, near, said, stopped))
        else:
            checks.append(_looked_up(figure, source, near, stopped))
    if stopped():
        return tuple(checks)
    checks = list(_with_inputs(claim, checks))
    checks = list(_with_exchanges(claim, checks, source, near))
    checks = list(_with_hours(claim, checks, source, near))
    if (compared := contest(claim, source, near)) is not None:
        checks = list(_with_contest(claim, checks, compared))
    asked = (lead_in if claim.opens_with_pronoun else "") if lead_in else question
    checks[:_CLOSELY] = [
        _with_owner(claim, check, source, near, (asked, question), stopped) for check in checks[:_CLOSELY]
    ]
    return tuple(_with_parted(claim, _with_formulas(claim, checks, source, near), source))


def _with_formulas(
    claim: Sentence, checks: Sequence[FigureCheck], source: FigureSource, near: Sequence[int]
) -> Sequence[FigureCheck]:
    """The checks, where a source has the formula that figures are part of, or another one for the same."""
    found = list(checks)
    sentences = [(number, source.sentence(number)) for number in near]
    alike = [(n, s.text) for n, s in sentences if not (claim.denials - s.denials) % 2]
    for mine, number, other in compared(claim.text, alike, lambda: (text.text for text in source.texts)):
        parts = [check for check in found if mine.start <= check.figure.start < mine.end]
        text, own = source.texts[number].text[other.start : other.end], claim.text[mine.start : mine.end]
        said = Figure(Kind.IDENTIFIER, own, mine.start, mine.end, key="=")
        theirs = Figure(Kind.IDENTIFIER, text, other.start, other.end, key="=")
        if mine.value == other.value:
            found = [replace(c, state=State.FOUND, sentence=number) if c in parts else c for c in found]
            found.append(FigureCheck(replace(said, name=True), State.FOUND, 1.0, number, theirs))
            continue
        open_ = (State.ABSENT, State.UNCHECKED)
        found = [check for check in found if check not in parts or check.state not in open_]
        found.append(FigureCheck(said, State.CONFLICT, 1.0, number, theirs))
    return sorted(found, key=lambda check: check.figure.start)


def _with_owner(
    claim: Sentence,
    check: FigureCheck,
    source: FigureSource,
    near: Sequence[int],
    asked: tuple[str, str],
    stopped: Callable[[], bool],
) -> FigureCheck:
    """The check of a figure that was found, and is another thing's there, or of a code that is misread.
    ``asked`` is what the claim goes on from, and the question."""
    figure = check.figure
    if check.state is State.ABSENT and figure.kind is Kind.IDENTIFIER and figure.text not in asked[1]:
        number, code = source.things.misread(figure) or (None, None)
        misread = FigureCheck(replace(figure, name=False), State.CONFLICT, 1.0, number, code)
        return check if code is None else misread
    if check.state is not State.FOUND or check.sentence is None:
        return check
    numbers = dict.fromkeys((check.sentence, *near, *source.holding(figure, stopped)))
    unread = takewhile(lambda _: not stopped(), numbers)
    holding = [n for n in unread if n == check.sentence or source.backing(figure, n) is not None]
    owned = source.things.owned(claim, figure, holding, asked[0])
    if owned is None or not owned.owner:
        return replace(check, owned=owned)
    return FigureCheck(figure, State.CONFLICT, 1.0, owned.number, owned.figure, owned=owned)


def _with_parted(
    claim: Sentence, checks: Sequence[FigureCheck], source: FigureSource
) -> Iterator[FigureCheck]:
    """The checks, and one of a name that stands elsewhere than the claim's other one, if that is all there
    is to say: of two things that a claim compares, neither is said of the other."""
    yield from checks
    if not compares_two(claim) and not any(check.owned or check.state is State.CONFLICT for check in checks):
        owned = source.things.parted(claim)
        if owned is not None:
            start = claim.text.index(owned.thing)
            thing = Figure(Kind.IDENTIFIER, owned.thing, start, start + len(owned.thing), name=True)
            yield FigureCheck(thing, State.FOUND, 0.0, owned.number, owned=owned)


def _with_contest(claim: Sentence, checks: Sequence[FigureCheck], found: Contest) -> Sequence[FigureCheck]:
    """The checks, where what a claim compares is so or not: how far two are apart follows from both."""
    both = found.first, found.second
    if not found.so:
        text = claim.text[found.start : found.end]
        words = Figure(Kind.NUMBER, text, found.start, found.end)
        if found.sure:
            said = FigureCheck(words, State.CONFLICT, 1.0, found.number, found.first, both)
        else:
            said = FigureCheck(words, State.UNCHECKED, 0.0, operands=both)
        return sorted((*checks, said), key=lambda check: check.figure.start)

    def follows(check: FigureCheck) -> bool:
        apart = (By.DIFFERENCE, By.CHANGE, By.SHARE)
        unchecked = check.state is State.UNCHECKED and found.sure
        ways = reckoned(check.figure, both) if unchecked else ()
        return any(each.by in apart and _told(claim, check.figure, each) for each in ways)

    return [replace(c, state=State.DERIVED, operands=both) if follows(c) else c for c in checks]


def _separators(text: str, lead_in: str, source: FigureSource) -> Separators | None:
    """What separators do in a claim: its commas may part off decimals, too, where those of a source do."""
    if not MAY_BE_EITHER.search(text):
        return None
    shown = separators_of(f"{lead_in}\n{text}")
    silent = shown.isdisjoint(COMMAS)
    return shown | COMMAS if silent and any((",", False) in s for s in source.separators.values()) else shown


def _with_hours(
    claim: Sentence, checks: Sequence[FigureCheck], source: FigureSource, near: Sequence[int]
) -> Sequence[FigureCheck]:
    """The checks, where the days on which the claim has something open or closed are so, or otherwise."""
    found = list(checks)
    for said in opening_hours(claim, source, near):
        start, end = said.figure.start, said.figure.end
        within = [
            i
            for i, check in enumerate(found)
            if start <= check.figure.start < end and check.figure.kind is not Kind.QUANTITY
        ]
        if within and not said.agreed:
            found[within[0]] = FigureCheck(said.figure, State.CONFLICT, 1.0, said.number, said.sources[0])
        elif within and not (said.alike and all(found[at].state is State.FOUND for at in within)):
            for at in within[1:]:
                if found[at].state is not State.FOUND:
                    found[at] = FigureCheck(found[at].figure, State.DERIVED, 0.0, said.number)
            found[within[0]] = FigureCheck(
                said.figure, State.DERIVED, 0.0, operands=said.sources[:_MOST_TOLD]
            )
        if within and said.agreed and said.otherwise is not None:
            own = replace(found[within[0]], sentence=said.number, source=said.sources[0])
            found[within[0]] = replace(own, disputed=said.otherwise)
    return found


def _with_exchanges(
    claim: Sentence, checks: Sequence[FigureCheck], source: FigureSource, near: Sequence[int]
) -> Iterator[FigureCheck]:
    """The checks, where figures that were found are in conflict, if they stand at each other's things."""
    found = [check for check in checks if check.state is State.FOUND and check.sentence is not None]
    numbers = list(dict.fromkeys((*near, *(c.sentence for c in found if c.sentence is not None))))
    wrong = exchanged(claim, [check.figure for check in found], source, numbers)
    for check in checks:
        number, rival = wrong.get(check.figure, (None, None))
        if rival is None:
            yield check
        else:
            yield replace(check, state=State.CONFLICT, sentence=number, source=rival)


def _with_inputs(claim: Sentence, checks: Sequence[FigureCheck]) -> Iterator[FigureCheck]:
    """The checks, where what another figure may be reckoned from is no longer absent: how many tickets it is
    that cost so much, and other results of the sort. Of a claim that says that it reckons that may be all
    that no source has."""
    unchecked = [check for check in checks if check.state is State.UNCHECKED]
    inputs = {operand for check in unchecked for operand in check.operands}
    measures = {"number", "time", *(dimension(check.figure) for check in unchecked)} if unchecked else set()
    reckons = any(_reckons(claim, check.figure) for check in unchecked)
    for check in checks:
        alike = (reckons or dimension(check.figure) in measures) and check.frame < _FRAME
        spent = check.state is State.ABSENT and (check.figure in inputs or alike)
        yield replace(check, state=State.UNCHECKED) if spent else check


def _looked_up(
    figure: Figure, source: FigureSource, near: list[int], stopped: Callable[[], bool]
) -> FigureCheck:
    """Whether a source has a figure, whatever it says of it."""
    for number in near:
        if (own := source.sentence(number).exactly(figure)) is not None:
            return FigureCheck(figure, State.FOUND, 0.0, number, own)
    for number in source.holding(figure, stopped)[:_LOOKED_UP]:
        if (own := source.sentence(number).exactly(figure)) is not None:
            return FigureCheck(figure, State.FOUND, 0.0, number, own)
    return FigureCheck(figure, State.ABSENT, 0.0)


def _check(
    claim: Sentence,
    figure: Figure,
    source: FigureSource,
    near: list[int],
    said_before: _Said,
    stopped: Callable[[], bool],
) -> FigureCheck:
    frame = _frame(claim, figure)
    found: FigureCheck | None = None
    conflict: FigureCheck | None = None
    turned: FigureCheck | None = None
    best = rivalled = 0.0
    for number in near:
        share = frame.said(source, number)
        best = max(best, share)
        if share > rivalled and any(
            _alike(figure, other) for other in source.sentence(number).figures[:MANY]
        ):
            rivalled = share
        own = source.backing(figure, number)
        said_otherwise = own is not None and _limits_otherwise(claim, figure, source.sentence(number), own)
        rival = _rival(claim, figure, frame, source.sentence(number), own) if share >= _FRAME else None
        if rival is not None:
            mine = claim.limited(figure) if own is not None and rival.end == own.end else figure
            conflict = _better(conflict, FigureCheck(mine, State.CONFLICT, share, number, rival))
        elif own is not None and said_otherwise and share >= _TURNED and not beyond(figure, own):
            limit = source.sentence(number).limited(own)
            turned = _better(turned, FigureCheck(figure, State.UNCHECKED, share, number, limit))
        elif own is not None and not said_otherwise:
            found = _better(found, FigureCheck(figure, State.FOUND, share, number, own))
    if found is None or conflict is not None:
        for number in takewhile(lambda _: not stopped(), source.holding(figure, stopped)):
            own = None if number in near else source.backing(figure, number)
            if own is not None and not _limits_otherwise(claim, figure, source.sentence(number), own):
                share = frame.said(source, number)
                found = _better(found, FigureCheck(figure, State.FOUND, share, number, own))
    if found is None and (parted := _other_half_of_week(figure, frame, source, near)) is not None:
        return parted
    words = max(len(frame.told), 1)
    said = found.frame if found is not None else -1.0
    if conflict is not None and said <= conflict.frame - max(_MARGIN, _MARGIN_WORDS / words):
        reckoned_of = _reckoned(claim, figure, source, near, said_before)
        other = None if conflict.sentence is None else source.sentence(conflict.sentence)
        may_be = _may_be_reckoned(claim, figure, source, near, said_before, True, other)
        return reckoned_of or may_be or conflict
    if turned is not None and said < turned.frame:
        return turned
    apart = rivalled >= _FRAME and said <= rivalled - max(_APART, _APART_WORDS / words)
    if found is None or (apart and not figure.name):
        doubted = rivalled >= _FRAME and not claim.is_difference(figure)
        found = (
            (None if doubted else _given(claim, figure, said_before))
            or _reckoned(claim, figure, source, near, said_before)
            or _of_an_age(claim, figure, source, near)
            or _none(figure, source, near)
            or _of_other_days(claim, figure, source, near)
        )
        if found is None and _says_little(claim, figure, source, near):
            figure = replace(figure, name=True)
        found = found or _may_be_reckoned(claim, figure, source, near, said_before, doubted)
    return found or FigureCheck(_told_apart(figure, source, near), State.ABSENT, best)


def _told_apart(figure: Figure, source: FigureSource, near: list[int]) -> Figure:
    """A figure that no source has. What names a thing ("No. 9", "Gate 4") says as much as any other where the
    sources name others of its kind so."""
    others = (other for number in near for other in source.sentence(number).figures[:MANY])
    numbered = figure.name and figure.noun in LABELS
    told = numbered and any(f.name and f.noun == figure.noun for f in others)
    return replace(figure, name=False) if told else figure


def _says_little(claim: Sentence, figure: Figure, source: FigureSource, near: list[int]) -> bool:
    """Whether a figure that no source has says no more than a word does."""
    return not figure.name and (
        _always(figure) or _is_one(figure) or _counts_few(claim, figure, source, near)
    )


def _always(figure: Figure) -> bool:
    """ "Seven days a week", "24 hours a day"."""
    unit, per = find_unit(figure.unit or ""), find_unit(figure.per or "")
    if figure.kind is not Kind.QUANTITY or unit is None or per is None or unit.dimension != per.dimension:
        return False
    return abs(figure.values[0] * unit.factor - per.factor) <= _ALWAYS * per.factor


def _of_an_age(claim: Sentence, figure: Figure, source: FigureSource, near: list[int]) -> FigureCheck | None:
    """Whether a figure is an age within a span of ages: "a 7-year-old", "aged 5 and 7", of "aged 4 to 15" or
    of "children under 12"."""
    aged = figure.unit in (None, "year") and figure.kind in (Kind.NUMBER, Kind.QUANTITY)
    if not aged or figure.upper is not None or not claim.of_age(figure):
        return None
    for number in near:
        sentence = source.sentence(number)
        for span in sentence.figures[:MANY]:
            years = span.unit in (None, "year") and span.values and sentence.of_age(span)
            if years and _keeps(figure.values[0], span):
                return FigureCheck(figure, State.FOUND, 0.0, number, span)
    return None


def _keeps(age: float, span: Figure) -> bool:
    """Whether an age is within a span of ages or keeps a limit: 8 of "under 12"."""
    if span.upper is not None:
        return span.values[0] <= age <= span.upper
    within = span.bound in (Bound.AT_LEAST, Bound.AT_MOST) and age == span.values[0]
    return within or (age - span.values[0]) * span.bound.direction > 0


def _none(figure: Figure, source: FigureSource, near: list[int]) -> FigureCheck | None:
    """Whether a source says that there is none of what a claim says there is zero of, or that so many months
    are free."""
    if figure.kind is Kind.MONEY and figure.values[:1] == (0.0,):
        for number in near:
            if (spared := source.sentence(number).spared) is not None:
                return FigureCheck(figure, State.FOUND, 0.0, number, spared)
    if figure.kind is not Kind.NUMBER or figure.values[:1] != (0.0,) or figure.upper or not figure.noun:
        return None
    for number in near:
        if (none := source.sentence(number).nones.get(term_of(figure.noun))) is not None:
            return FigureCheck(figure, State.FOUND, 0.0, number, none)
    return None


def _other_half_of_week(
    figure: Figure, frame: _Frame, source: FigureSource, near: list[int]
) -> FigureCheck | None:
    """A conflict where a claim says of weekdays what a source says of weekends, or the other way round."""
    own = days_of_week(figure) if figure.name and figure.kind is Kind.DATE else frozenset()
    for number in near if own else ():
        if (share := frame.said(source, number)) < _FRAME:
            continue
        for other in source.sentence(number).figures[:MANY]:
            if other.name and days_of_week(other) == ALL_WEEK - own:
                return FigureCheck(replace(figure, name=False), State.CONFLICT, share, number, other)
    return None


def _of_other_days(
    claim: Sentence, figure: Figure, source: FigureSource, near: list[int]
) -> FigureCheck | None:
    """Whether the days on which a claim has something closed are those on which no source has it open, or the
    other way round: "closed on Sundays" of "open Monday to Saturday"."""
    own = days_of_week(figure)
    for number in near if own and claim.open is not None else ():
        sentence = source.sentence(number)
        dated = [other for other in sentence.figures[:MANY] if other.kind is Kind.DATE]
        theirs = frozenset[int]().union(*map(days_of_week, dated))
        if sentence.open is None or sentence.open is claim.open or not theirs:
            continue
        if theirs == ALL_WEEK - own or (sentence.open and figure.last is None and not theirs & own):
            return FigureCheck(figure, State.FOUND, 0.0, number, dated[0])
    return None


def _total(claim: Sentence, figure: Figure, before: Sentence) -> FigureCheck | None:
    """Whether a figure is the total of lines above it: of the last figure of its sort in each."""
    lines = before.text.split("\n")[-_MOST_LINES:]
    if len(lines) < _LEAST or not figure.values:
        return None
    if not TOTAL.search(claim.text[max(0, figure.start - _TOTAL_REACH) : figure.end].casefold()):
        return None
    parts: list[Figure] = []
    for line in reversed(lines):
        ends = [f for f in find_figures(line) if f.values and f.upper is None and of_a_sort(figure, f)]
        parts += ends[-1:]
        total = sum(part.values[0] for part in parts)
        if ends and len(parts) >= _LEAST and agrees(figure, replace(parts[0], values=(total,))):
            return FigureCheck(figure, State.DERIVED, 0.0, operands=tuple(reversed(parts)))
    return None


def _is_one(figure: Figure) -> bool:
    """ "One of them", "first": says less than a number."""
    return dimension(figure) == "number" and figure.values[:1] == (1.0,) and not figure.text[0].isdecimal()


def _counts_few(claim: Sentence, figure: Figure, source: FigureSource, near: list[int]) -> bool:
    """Whether a small number counts what the claim goes on to list, or as many things as a source lists."""
    few = figure.kind is Kind.NUMBER and not figure.upper and figure.values[0] in _FEW_THINGS
    if not few or figure.unit or claim.limit(figure).direction:
        return False
    if _ANNOUNCING.search(claim.text, figure.end):
        return True
    if _OF_ALL.search(claim.text[: figure.start][-_TOTAL_REACH:]) and compares(claim.text):
        return True
    parts = (part for number in near for part in _LISTS.split(source.sentence(number).text) if "," in part)
    return any(1 + len(_SEPARATOR.findall(part)) == figure.values[0] for part in parts)


def _better(one: FigureCheck | None, other: FigureCheck) -> FigureCheck:
    return other if one is None or other.frame > one.frame else one


def _frame(claim: Sentence, figure: Figure) -> _Frame:
    rivals = [other for other in claim.figures if _alike(figure, other)]
    spans, told = claim.parts(rivals), claim.told(rivals)
    mine = rivals.index(figure)
    start, end = spans[mine] if spans else (0, len(claim.text))
    at = sum(begin < figure.start for begin, _ in claim.words)
    terms: dict[int, float] = {}
    for i, (begin, term) in enumerate(claim.words):
        if term in claim.terms and not figure.start <= begin < figure.end and _says(figure, term):
            distance = at - 1 - i if i < at else i - at
            weight = _NEARNESS**distance * (1.0 if start <= begin < end else _ELSEWHERE)
            terms[term] = max(terms.get(term, 0.0), weight)
    beside = [
        (max(other.start - figure.end, figure.start - other.end, 0), other)
        for other in claim.figures
        if other is not figure and not other.name and start <= other.start < end
    ]
    beside.sort(key=lambda item: item[0])
    others = [(_apart(other), _NEARNESS ** (distance**0.5)) for distance, other in beside[:_BESIDE]]
    total = sum(terms.values()) + sum(weight for _, weight in others) or 1.0
    return _Frame(
        {term: weight / total for term, weight in terms.items()},
        tuple((other, weight / total) for other, weight in others),
        told[mine] if told else claim.terms,
    )


def _apart(figure: Figure) -> Figure:
    """A figure without its rate where that is a figure of its own: "500 mg every 6 hours"."""
    return replace(figure, per=None) if figure.per and " " in figure.per else figure


def _alike(figure: Figure, other: Figure) -> bool:
    """Whether two figures of a text part it: each is said of something else."""
    return figure.kind is other.kind and dimension(figure) == dimension(other) and figure.name == other.name


def _says(figure: Figure, term: int) -> bool:
    """Whether a word says something beside a figure: "cost" says nothing of a price."""
    return figure.kind is not Kind.MONEY or term not in _PRICING


def _rival(
    claim: Sentence, figure: Figure, frame: _Frame, sentence: Sentence, own: Figure | None
) -> Figure | None:
    """The other figure that a sentence has for the same thing, or None where it isn't plain that it has.

    Of several of a sort, the one whose part of the sentence has the words that tell it from the others.
    """
    unfit = figure.name or len(frame.told) < _LEAST or len(sentence.figures) > MANY
    if unfit or (claim.denials - sentence.denials) % 2:
        return None
    if own is not None and (sides := _opposite(claim, figure, sentence, own)) is not None:
        least = _SAME if complements(*sides) else _REVERSE
        told_back = _said_back(claim, sentence, own, sentence.terms) >= least
        return sentence.limited(own) if told_back else None
    sort = [other for other in sentence.figures if other is own or _alike(figure, other)]
    told = sentence.told(sort) if any(of_a_sort(figure, other) for other in sort) else None
    if told is None or any(compatible(figure, other) for other in sentence.figures if other is not own):
        return None
    telling = [part.difference(*(t for t in told if t is not part)) for part in told]
    chosen = _meant(telling, frame.told, claim.around(figure), None if own is None else sort.index(own))
    if chosen is None or not of_a_sort(figure, rival := sort[chosen]) or sentence.one_of_two(rival):
        return None
    if claim.is_difference(figure) and not sentence.may_be_difference(rival):
        return None
    if any(agrees(mine, rival) for mine in claim.figures):
        return None
    enough = _REVERSE if len(frame.told) > _FEW else _REVERSE_OF_FEW
    return rival if _said_back(claim, sentence, rival, told[chosen]) >= enough else None


def _limits_otherwise(claim: Sentence, figure: Figure, sentence: Sentence, own: Figure) -> bool:
    """Whether a sentence has a claim's figure as the opposite limit, or as none, and that doesn't come to the
    same: it does where one of them denies, where both part all there is in two, and of how long before
    something."""
    if beyond(figure, own):  # save "not for more than 5 days"
        return not claim.denials and not sentence.denials
    sides = _opposite(claim, figure, sentence, own)
    return sides is not None and not complements(*sides) and not (claim.denials - sentence.denials) % 2


def _opposite(
    claim: Sentence, figure: Figure, sentence: Sentence, own: Figure
) -> tuple[Figure, Figure] | None:
    """Both figures with their limits, where these are opposite. "Up to" so long before something is no less
    than at least."""
    if claim.open is not None and sentence.open is not None and claim.open is not sentence.open:
        return None  # closed until then, and open from then on
    mine = replace(figure, bound=claim.limit(figure))
    theirs = replace(own, bound=sentence.limit(own, figure))
    before = claim.ahead(figure) or sentence.ahead(own)
    vague = before and any(f.text.casefold().startswith(_VAGUE) for f in (figure, own))
    return (mine, theirs) if opposed(mine, theirs) and not vague else None


def _meant(
    telling: Sequence[frozenset[int]], told: frozenset[int], clause: frozenset[int], own: int | None
) -> int | None:
    """Which of several figures a sentence says of what a claim says its own of, if it is another and plain.

    ``telling`` are the words that tell each figure's part from the others, ``told`` the claim's, ``clause``
    those of the figure's own clause. A sentence that has the claim's figure (``own``) must say it of
    something else: "adults pay 12 euros, children 5" against "children pay 12", where the clause has no less
    of the other's part. What stands in the first part may be said of all.
    """
    if own is None:
        shared = [len(terms & told) for terms in telling]
        most = max(shared)
        plain = len(telling) == 1 or (most and shared.count(most) == 1)
        return shared.index(most) if plain else None
    least = max(1, len(telling[own] & clause))
    others = [i for i, t in enumerate(telling) if i != own and t and t <= told and len(t & clause) >= least]
    elsewhere = telling[own] and (not telling[own] <= told if own == 0 else telling[own].isdisjoint(told))
    return others[0] if elsewhere and len(others) == 1 else None


def _said_back(claim: Sentence, sentence: Sentence, rival: Figure, part: frozenset[int]) -> float:
    """How much of what the sentence says around its figure, in its part, the claim says too, 0..1; the
    nearest words count most."""
    at = sum(begin < rival.start for begin, _ in sentence.words)
    first, last = sentence.clause(rival)
    whole = said = 0.0
    for i, (begin, term) in enumerate(sentence.words):
        if first <= begin < last and term in part and term in sentence.terms and _says(rival, term):
            weight = _LOCALITY ** (at - 1 - i if i < at else i - at)
            whole += weight
            said += weight * (term in claim.terms)
    return said / whole if whole else 1.0


def _given(claim: Sentence, figure: Figure, said_before: _Said) -> FigureCheck | None:
    """Whether a figure is the question's, and given rather than told."""
    aged = figure.values if claim.of_age(figure) else None
    asked_too = any(agrees(figure, other) or other.values == aged for other in said_before.asked)
    given = asked_too and not figure.name and _is_given(claim, figure)
    return FigureCheck(figure, State.ECHOED, 0.0) if given else None


def _reckoned(
    claim: Sentence, figure: Figure, source: FigureSource, near: list[int], said_before: _Said
) -> FigureCheck | None:
    """Whether the claim spells out how a figure is reckoned, of what the sources or the question have, or the
    sources leave no choice."""
    asked, before, checks = said_before
    if figure.name:
        return None

    def holds(other: Figure) -> bool:
        return _backed(source, other, near) or any(agrees(other, each) for each in asked)

    if (spelled := _spelled_out(claim, figure, before, holds)) is not None:
        return spelled
    known = {check.figure for check in checks if check.state is State.DERIVED}
    sure = [f for f in _own(claim, figure) if f in known or holds(f)]
    sure += [f for f in (*before.figures, *before.unspared) if holds(f)]
    # The claim may leave out per what its figures are: "£28.80 a month instead of £36".
    rates = ((f, next((r for n in near if (r := source.backing(f, n))), None)) for f in sure if not f.per)
    sure += [replace(f, per=rate.per) for f, rate in rates if rate and rate.per and figure.per]
    sure += [r for r, parts in _equations(claim, before) if all(map(holds, parts))]
    for found in reckoned(figure, [*sure, *asked], twice=True):
        tiered = found.by is not By.SUM and any(_on_condition(source, part, near) for part in found.parts)
        if _told(claim, figure, found) and not tiered and not set(found.parts) <= set(asked):
            return FigureCheck(figure, State.DERIVED, 0.0, operands=found.parts)
    for number in near[:_OPERANDS_FROM]:
        if (parts := _without_choice(claim, figure, source, number)) is not None:
            return FigureCheck(figure, State.DERIVED, 0.0, operands=parts)
    return _total(claim, figure, before)


def _may_be_reckoned(
    claim: Sentence,
    figure: Figure,
    source: FigureSource,
    near: list[int],
    said_before: _Said,
    doubted: bool,
    rival: Sentence | None = None,
) -> FigureCheck | None:
    """Whether a figure that no source has may come out of others, or a word says that it is reckoned; both,
    where the sources have another figure there (``doubted``), if it isn't the price of so many."""
    asked, before, checks = said_before
    reckons = _reckons(claim, figure, rival)
    if figure.name or (figure.text[0] == "0" and figure.text[1:2].isdigit()):  # "0184" is no number
        return None
    # How many it is the price of, or for how long: times of day aside.
    counts = (f for f in (*_own(claim, figure), *asked) if f.kind in (Kind.NUMBER, Kind.QUANTITY))
    counted = figure.kind is Kind.MONEY and any(dimension(f) in ("number", "time") for f in counts)
    if doubted and not (reckons or counted):
        return None
    known = {check.figure for check in checks if check.state in (State.DERIVED, State.UNCHECKED)}
    # Figures that no source has don't vouch for each other.
    own = [
        f
        for f in _own(claim, figure)
        if f in known or dimension(f) != dimension(figure) or _backed(source, f, near)
    ]
    around = source.around(near)
    theirs = [f for n in around for f in (*source.sentence(n).figures[:MANY], *source.sentence(n).changes)]
    theirs.sort(key=lambda f: (dimension(f) != dimension(figure)) + (f.kind is not Kind.NUMBER))
    results = (result for result, parts in _equations(claim, before) if figure not in parts)
    near_by = [f for f in (*own, *results, *before.figures, *asked, *theirs) if f.kind is not Kind.ORDINAL]
    named = {*own, *asked}
    likely = max(
        reckoned(figure, near_by), key=lambda each: sum(part in named for part in each.parts), default=None
    ) or next(reckoned(figure, near_by[:_FEW_OPERANDS], twice=True), None)
    parts = likely.parts if likely else ()
    operands = (f for f in near_by if dimension(figure) == "percent" or dimension(f) == dimension(figure))
    reckons = reckons and (bool(parts) or any(operands))
    told = bool(parts) and (reckons or not doubted or not named.isdisjoint(parts))
    # Where it is plain that the sources have another figure for the same, a word alone doesn't excuse it.
    if not told and not (reckons and (counted or not doubted) and rival is None):
        return None
    return FigureCheck(figure, State.UNCHECKED, 0.0, operands=parts)


def _on_condition(source: FigureSource, figure: Figure, near: list[int]) -> bool:
    """Whether a price or an amount holds for some only, where the sources have it: "for the first hour"."""
    for number in near:
        if figure.kind in (Kind.MONEY, Kind.QUANTITY) and (own := source.backing(figure, number)) is not None:
            text = source.sentence(number).text
            start = max(match.end() for match in _BORDER.finditer(text, 0, own.start)) if own.start else 0
            end = _BORDER.search(text, own.end)
            return not _pieces(text[start : end.start() if end else len(text)]).isdisjoint(TIERS)
    return False


def _own(claim: Sentence, figure: Figure) -> list[Figure]:
    """The other figures of a claim that one of it may be reckoned from, all that it is no part of: of an age
    those that tell one."""
    at = claim.figures.index(figure)
    others = [*claim.figures[:at], *claim.figures[at + 1 : at + 1 + _LATER]]
    meant = [full for f in others if (full := claim.meant.get(f.start))]  # "5 minutes and 2 more"
    aged = claim.of_age(figure)
    spent = claim.written.spent
    free = [f for f in (*others, *meant) if f not in spent and (aged or not claim.of_age(f))]
    return [f for f in (*free, *claim.unspared) if not aged or _tells_age(f)]


def _equations(claim: Sentence, before: Sentence) -> Iterator[tuple[Figure, tuple[Figure, ...]]]:
    """What is written out in a claim or before it: what each comes to, and of what."""
    for written in (claim.written, before.written):
        yield from zip(written.results, written.operands, strict=True)


def _spelled_out(
    claim: Sentence, figure: Figure, before: Sentence, holds: Callable[[Figure], bool]
) -> FigureCheck | None:
    """Whether a figure stands in an equation or is what one comes to, whose operands hold."""

    def known(operand: Figure) -> bool:
        if operand.name or holds(operand) or any(_counts_of(claim, operand, f) for f in claim.figures):
            return True
        return operand in factors and (operand.values[0] in _CALENDAR or bool(_share_of(claim, operand)))

    factors = (*claim.written.factors, *before.written.factors)
    stated = next((result for own, result in claim.written.stated if own is figure), None)
    for result, parts in _equations(claim, before):
        within = result.start <= figure.start < result.end and figure in parts
        same = (result.start, result.end) == (stated.start, stated.end) if stated else agrees(figure, result)
        if within or not same:
            continue
        state = State.DERIVED if all(map(known, parts)) else State.UNCHECKED
        return FigureCheck(figure, state, 0.0, operands=(result,) if state is State.DERIVED else parts)
    if figure in factors or any(_counts_the_same(figure, factor) for factor in claim.written.factors):
        return FigureCheck(figure, State.DERIVED if known(figure) else State.UNCHECKED, 0.0)
    return None


def _share_of(claim: Sentence, factor: Figure) -> Figure | None:
    """The percentage of a claim that a factor is: 0.7 of 70%."""
    percents = (f for f in claim.figures if f.kind is Kind.PERCENT and f.values)
    return next((f for f in percents if abs(f.values[0] - 100 * factor.values[0]) < _ALWAYS), None)


def _told(claim: Sentence, figure: Figure, found: Reckoning) -> bool:
    """Whether a claim says that it reckons a figure that way."""
    pieces, differs = _said_around(claim, figure), claim.is_difference(figure)
    result = not pieces.isdisjoint(RESULTING | PERHAPS_RESULTING | ADDING)
    parted = differs or not pieces.isdisjoint(PARTING | COMPARING)
    few = figure.kind is Kind.NUMBER and not figure.fraction and figure.values[0] < _HARDLY_BY_CHANCE
    if found.by is By.SUM:
        listed = _ANNOUNCING.match(claim.text, figure.end) is not None  # "€30: €10 and €20"
        return (result or (listed and all(f.start >= figure.end for f in found.parts))) and not differs
    if found.by is By.DIFFERENCE:
        return parted or not pieces.isdisjoint(RESULTING)
    if found.by is By.CHANGE:
        return parted and _way(pieces) * _change(found) >= 0
    if found.by is By.REST:
        return not pieces.isdisjoint(REMAINDER)
    if len(found.parts) == 1 and found.by is By.PERIOD:
        return bool(figure.per)
    return not differs and (result or not few)


def _change(found: Reckoning) -> float:
    """Whether what is reckoned in percent is a rise, above 0, or a fall."""
    first, *rest = found.parts
    if not rest:
        return (first.upper or 0.0) - first.values[0]
    return first.values[0] - rest[0].values[0]


def _without_choice(
    claim: Sentence, figure: Figure, source: FigureSource, number: int
) -> tuple[Figure, ...] | None:
    """What a figure is reckoned from where one sentence says all the rest of the claim, under no condition,
    and has no other figure that it could be reckoned from."""
    sentence = source.sentence(number)
    matter = claim.terms - _UNSAID
    held = source.terms(number)
    if not matter or not matter <= held or not _pieces(sentence.text).isdisjoint(CONDITIONS):
        return None
    theirs = [f for f in sentence.figures[:MANY] if not f.name]
    if any(f.bound.direction for f in theirs):
        return None
    for found in reckoned(figure, [*theirs, *sentence.changes]):
        measures = {dimension(part) for part in found.parts}
        rivals = [f for f in theirs if dimension(f) in measures and f.kind is not Kind.DATE]
        if len(rivals) <= len(found.parts) and _told(claim, figure, found):
            return found.parts
    return None


def _reckons(claim: Sentence, figure: Figure, rival: Sentence | None = None) -> bool:
    """Whether a word around a figure or before it says that it is reckoned, or supposed; not one that
    ``rival``, a sentence that has another figure for it, says too: "the total liability"."""
    pieces = _said_around(claim, figure) | _pieces(claim.text[: figure.start])
    pieces -= _pieces(rival.text) if rival is not None else frozenset()
    comes_to = _COMES_TO.search(claim.text, max(0, figure.start - _TOTAL_REACH), figure.start) is not None
    comes_to = comes_to and (rival is None or _COMES_TO.search(rival.text) is None)
    return comes_to or claim.is_difference(figure) or not pieces.isdisjoint(_RECKONING)


def _said_around(claim: Sentence, figure: Figure) -> frozenset[str]:
    start, end = claim.clause(figure)
    return _pieces(claim.text[start : figure.start]) | _pieces(claim.text[figure.end : end])


def _is_given(claim: Sentence, figure: Figure) -> bool:
    """Whether a claim takes a figure for given ("for your group of 17", "after 40 days"), rather than to say
    that it is so ("the fee is 14 euros"): of the words before it, which of either is nearer."""
    before = _WORDS_OF.findall(claim.text[max(0, figure.start - _GIVEN_REACH) : figure.start].casefold())
    nearest = next((word for word in reversed(before) if word in GIVEN or word in STATING), None)
    return nearest in GIVEN or (nearest is None and figure.start < _GIVEN_REACH)


def _counts_the_same(figure: Figure, factor: Figure) -> bool:
    """Whether a figure is what a written reckoning multiplies with: "three" of "three tickets: 3 × €5"."""
    counts = dimension(figure) in ("number", "time") and not figure.name
    return counts and agrees(replace(factor, noun=None), figure)


def _counts_of(claim: Sentence, figure: Figure, other: Figure) -> bool:
    """Whether a claim says how many it reckons with: "four wheels: 4 × €18"."""
    factor, counted = (figure, other) if other.noun else (other, figure)
    supposed = factor in claim.written.factors and counted not in claim.written.factors
    return (
        supposed
        and counted.noun is not None
        and _counts_the_same(counted, factor)
        and _is_given(claim, counted)
    )


def _tells_age(figure: Figure) -> bool:
    return figure.kind is Kind.DATE or dimension(figure) == "time"


def _backed(source: FigureSource, figure: Figure, near: list[int]) -> bool:
    """Whether a source has a figure."""
    numbers = chain(near, source.holding(figure)[:_LOOKED_UP])
    return any(source.backing(figure, number) for number in numbers)


def _pieces(text: str) -> frozenset[str]:
    return frozenset(_PIECE.findall(text.casefold()))


def _way(pieces: frozenset[str]) -> int:
    """+1 where words say that something is more, -1 for less, 0 where they say both or neither."""
    return (not pieces.isdisjoint(UPWARD)) - (not pieces.isdisjoint(DOWNWARD))
