"""A claim's figures against the source sentences that speak of the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
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
from guardrail.figures.arithmetic import Cues, derived
from guardrail.figures.model import Bound, Figure, Kind
from guardrail.figures.opening import opening_hours
from guardrail.figures.owners import Owned
from guardrail.figures.pairing import exchanged
from guardrail.figures.reading import find_figures
from guardrail.figures.source import MANY, FigureSource, Sentence
from guardrail.figures.tables import (
    COMPARING,
    DOWNWARD,
    LASTING,
    PRICING,
    RATES,
    RECKONING,
    RECKONING_HINTS,
    RECKONING_TIMES,
    REMAINDER,
    TOTAL,
    UPWARD,
    find_unit,
)

_NEARNESS: Final = 0.93  # what a word counts less for each word between it and the figure
_ELSEWHERE: Final = 0.3  # of a word that stands by another figure of the same sort
_FRAME: Final = 0.9  # of the claim, that a sentence must say to be at odds with its figure
_MARGIN: Final = 0.15  # of the claim, by which it must say more than any sentence with the claim's figure
_SAME: Final = 0.95  # the same for the same figure with an opposite limit
_REVERSE: Final = 0.7  # of what the sentence says around its own figure, that the claim must say
_FEW: Final = 3  # words of a claim
_REVERSE_OF_FEW: Final = 0.85
_LOCALITY: Final = 0.7  # what a word counts less there for each word between
_MARGIN_WORDS: Final = 1.5  # the same in words, where there are few
_LEAST: Final = 2  # words or figures around a figure that tell what it is of
_LATER: Final = 4  # figures behind one that may be its operands
_FEW_THINGS: Final = range(2, 13)
_ANNOUNCING: Final = re.compile(r":(?!\d)")
_LISTS: Final = re.compile(r"[:;()]|[.!?](?=\s|$)")
_SEPARATOR: Final = re.compile(r",(?:\s{0,4}(?:and|or)\b)?|\b(?:and|or)\b", re.IGNORECASE)
_PIECE: Final = re.compile(r"\w+|[^\w\s]")
_PRICING: Final = frozenset(map(term_of, PRICING))
_CLOSELY: Final = 32  # figures of a claim that are compared with others and reckoned; the rest are looked up
_MOST: Final = 1000  # that are looked up
_OF: Final = re.compile(r"\sof\s(?:(?:all|the|its|their|our)\s){0,2}")
_INSTEAD: Final = re.compile(r"\W{1,4}(?:instead\sof|rather\sthan|(?:and\s)?not)\s\W{0,3}", re.IGNORECASE)
_ALWAYS: Final = 0.01
_LOOKED_UP: Final = 8  # sentences, for one of them
_MOST_OF_A_SORT: Final = 32  # figures of a sentence whose parts are told apart
_MOST_TOLD: Final = 3  # stretches of the sources that days follow from
_BESIDE: Final = 4  # other figures of a claim that tell what one is of
_OPERANDS_FROM: Final = 4  # near sentences whose figures may be reckoned with
_ENOUGH: Final = 0.5  # of the words around a length of time or a rest, that the sources must say of it
_CHANGED: Final = re.compile(
    r"\bfrom\s(?:\w{1,12}\s){0,2}\Z|\b(?:after|against|compared\sto|up|down)\s(?:\w{1,8}\s){0,2}\Z",
    re.IGNORECASE,
)
_CHANGED_REACH: Final = 32
_THAN: Final = re.compile(r"\bthan\b|\bcompared\b", re.IGNORECASE)
_MOST_LINES: Final = 16
_TOTAL_REACH: Final = 40  # characters before the figure
_UNSAID: Final = frozenset(map(term_of, LASTING | PRICING | UPWARD | DOWNWARD | REMAINDER))


class State(StrEnum):
    """FOUND: a source has it. DERIVED: it is reckoned from figures of the sources. ECHOED: it is the
    question's. CONFLICT: a source has another figure for the same thing, or the claim's own equation comes to
    another. ABSENT: no source has it."""

    FOUND = "found"
    DERIVED = "derived"
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
    there, as far as words tell; a CONFLICT where that is sure.
    """

    figure: Figure
    state: State
    frame: float
    sentence: int | None = None
    source: Figure | None = None
    operands: tuple[Figure, ...] = ()
    owned: Owned | None = None


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
    """What was said before a claim, and what the figure was reckoned from that stands instead of another."""

    asked: Sequence[Figure]
    before: Sentence
    question: str
    operands: tuple[Figure, ...] = ()


def check_figures(
    claim_text: str,
    source: FigureSource,
    near: Sequence[int],
    question: str = "",
    lead_in: str = "",
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[FigureCheck, ...]:
    """One check for each figure of a claim, in order, until ``stopped()``. Of a claim of very many figures
    those after the first are looked up only, and past ``_MOST`` are taken for absent.

    ``near``: the numbers of the sentences that evidence search found best, best first; all others are looked
    at for the claim's own figures only. ``question``: its figures may be echoed and reckoned with;
    ``lead_in``, what the claim goes on from: reckoned with.
    """
    claim = Sentence(claim_text)
    if not claim.figures:
        return tuple(_with_parted(claim, (), source))
    near = list(dict.fromkeys(near))
    said = _Said(find_figures(question), Sentence(lead_in), question)
    checks: list[FigureCheck] = []
    for number, figure in enumerate(claim.figures):
        if stopped():
            break
        if (right := claim.written.right(figure)) is not None:
            checks.append(FigureCheck(figure, State.CONFLICT, 1.0, source=right))
        elif number < _CLOSELY:
            beside = checks[-1] if checks and checks[-1].state is State.DERIVED else None
            instead = beside and _INSTEAD.fullmatch(claim_text, beside.figure.end, figure.start)
            said = said._replace(operands=beside.operands if beside and instead else ())
            checks.append(_check(claim, figure, source, near, said, stopped))
        elif number < _MOST:
            checks.append(_looked_up(figure, source, near, stopped))
        else:
            checks.append(FigureCheck(figure, State.ABSENT, 0.0))
    checks = list(_with_counts(checks, source, near))
    checks = list(_with_exchanges(claim, checks, source, near))
    checks = list(_with_hours(claim, checks, source, near))
    asked = (lead_in if claim.opens_with_pronoun else "") if lead_in else question
    checks[:_CLOSELY] = [
        _with_owner(claim, check, source, near, (asked, question)) for check in checks[:_CLOSELY]
    ]
    return tuple(_with_parted(claim, checks, source))


def _with_owner(
    claim: Sentence, check: FigureCheck, source: FigureSource, near: Sequence[int], asked: tuple[str, str]
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
    numbers = dict.fromkeys((check.sentence, *near, *source.holding(figure)))
    holding = [n for n in numbers if n == check.sentence or source.backing(figure, n) is not None]
    owned = source.things.owned(claim, figure, holding, asked[0])
    if owned is None or not owned.owner:
        return replace(check, owned=owned)
    return FigureCheck(figure, State.CONFLICT, 1.0, owned.number, owned.figure, owned=owned)


def _with_parted(
    claim: Sentence, checks: Sequence[FigureCheck], source: FigureSource
) -> Iterator[FigureCheck]:
    """The checks, and one of a name that stands elsewhere than the claim's other one, if that is all there
    is to say."""
    yield from checks
    if not any(check.owned or check.state is State.CONFLICT for check in checks):
        owned = source.things.parted(claim)
        if owned is not None:
            start = claim.text.index(owned.thing)
            thing = Figure(Kind.IDENTIFIER, owned.thing, start, start + len(owned.thing), name=True)
            yield FigureCheck(thing, State.FOUND, 0.0, owned.number, owned=owned)


def _with_hours(
    claim: Sentence, checks: Sequence[FigureCheck], source: FigureSource, near: Sequence[int]
) -> Sequence[FigureCheck]:
    """The checks, where the days on which the claim has something open or closed are so, or otherwise."""
    found = list(checks)
    for said in opening_hours(claim, source, near):
        start, end = said.figure.start, said.figure.end
        within = [i for i, check in enumerate(found) if start <= check.figure.start < end]
        if within and not said.agreed:
            found[within[0]] = FigureCheck(said.figure, State.CONFLICT, 1.0, said.number, said.sources[0])
        elif within and not (said.alike and all(found[at].state is State.FOUND for at in within)):
            for at in within[1:]:
                if found[at].state is not State.FOUND:
                    found[at] = FigureCheck(found[at].figure, State.DERIVED, 0.0, said.number)
            found[within[0]] = FigureCheck(
                said.figure, State.DERIVED, 0.0, operands=said.sources[:_MOST_TOLD]
            )
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


def _with_counts(
    checks: Sequence[FigureCheck], source: FigureSource, near: Sequence[int]
) -> Iterator[FigureCheck]:
    """The checks, where a count that a price was multiplied with is no longer absent, if a source says that
    price of what is counted: "two bicycles cost 12 euros"."""
    spent = [check.operands for check in checks if check.state is State.DERIVED and len(check.operands) > 1]
    for check in checks:
        figure = check.figure
        counts = check.state is State.ABSENT and figure.kind is Kind.NUMBER and figure.noun
        prices = [p for parts in spent if figure in parts for p in parts if p is not figure] if counts else []
        priced = any(
            price in source.sentence(number).figures[:MANY]
            and term_of(figure.noun or "") in source.sentence(number).around(price)
            for price in prices
            for number in near[:_OPERANDS_FROM]
        )
        yield replace(check, state=State.DERIVED, operands=tuple(prices[:1])) if priced else check


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
    best = 0.0
    for number in near:
        share = frame.said(source, number)
        best = max(best, share)
        own = source.backing(figure, number)
        said_otherwise = own is not None and _limits_otherwise(claim, figure, source.sentence(number), own)
        rival = _rival(claim, figure, frame, source.sentence(number), own) if share >= _FRAME else None
        if rival is not None:
            conflict = _better(conflict, FigureCheck(figure, State.CONFLICT, share, number, rival))
        elif own is not None and not said_otherwise:
            found = _better(found, FigureCheck(figure, State.FOUND, share, number, own))
    if found is None or conflict is not None:
        for number in source.holding(figure, stopped):
            own = None if number in near else source.backing(figure, number)
            if own is not None and not _limits_otherwise(claim, figure, source.sentence(number), own):
                share = frame.said(source, number)
                found = _better(found, FigureCheck(figure, State.FOUND, share, number, own))
    if found is None and (parted := _other_half_of_week(figure, frame, source, near)) is not None:
        return parted
    words = max(len(frame.told), 1)
    said = found.frame if found is not None else -1.0
    if conflict is not None and said <= conflict.frame - max(_MARGIN, _MARGIN_WORDS / words):
        return _derived(claim, figure, source, near, said_before, True) or conflict
    if found is None:
        doubted = best >= _FRAME and not claim.is_difference(figure)
        found = _derived(claim, figure, source, near, said_before, doubted)
    if found is None:
        found = (
            _of_an_age(claim, figure, source, near)
            or _none(figure, source, near)
            or _of_other_days(claim, figure, source, near)
        )
    found = found or _total(claim, figure, said_before.before)
    if found is None and _says_little(claim, figure, source, near):
        figure = replace(figure, name=True)
    return found or FigureCheck(figure, State.ABSENT, best)


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
    if not few or figure.unit or figure.bound.direction:
        return False
    if _ANNOUNCING.search(claim.text, figure.end):
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
    if own is not None and figure.bound.direction * own.bound.direction < 0:
        if claim.ahead(figure) or sentence.ahead(own):
            return None
        least = _SAME if complements(figure, own) else _REVERSE
        return own if _said_back(claim, sentence, own, sentence.terms) >= least else None
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
    denied = (claim.denials - sentence.denials) % 2
    if not opposed(figure, own) or complements(figure, own) or denied:
        return False
    return not (claim.ahead(figure) or sentence.ahead(own))


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


def _derived(
    claim: Sentence,
    figure: Figure,
    source: FigureSource,
    near: list[int],
    said_before: _Said,
    doubted: bool,
) -> FigureCheck | None:
    """Whether a figure is the question's, or reckoned; where it is doubted, out of the claim's own only."""
    asked, before, question, meant_before = said_before
    spent = claim.written.spent
    others = (r for r in claim.written.results if not r.start <= figure.start < r.end)
    results = (*others, *before.written.results)  # those that it is no part of
    if figure in claim.written.factors:
        return FigureCheck(figure, State.DERIVED, 0.0)
    stated = next((result for own, result in claim.written.stated if own is figure), None)
    if (result := stated or next((r for r in results if agrees(figure, r)), None)) is not None:
        return FigureCheck(figure, State.DERIVED, 0.0, operands=(result,))
    counted = any(_counts_the_same(figure, factor) for factor in claim.written.factors)
    multiplied = FigureCheck(figure, State.DERIVED, 0.0) if counted else None
    if figure.name or (doubted and figure.kind is Kind.NUMBER and not (figure.fraction or figure.per)):
        return multiplied
    echo = next((other for other in asked if agrees(figure, other)), None)
    if echo is not None and not doubted:  # a question may lead: "It costs 14 euros, doesn't it?"
        return FigureCheck(figure, State.ECHOED, 0.0)
    # What stands after it may be reckoned from it, unless a source has it.
    at = claim.figures.index(figure)
    behind = claim.figures[at + 1 : at + 1 + _LATER]
    later = [f for f in behind if _backed(source, f, near)]
    own = [*claim.figures[:at], *later]
    # "5 minutes and 2 more"
    meant = [full for f in own if f not in spent and (full := claim.meant.get(f.start))]
    meant += claim.unspared
    aged = claim.of_age(figure)  # from dates and durations alone, not from how many there are
    free = [f for f in (*own, *meant) if f not in spent and (aged or not claim.of_age(f))]
    echoed = [f for f in asked if _alike(figure, f) or not any(_replaces(other, f) for other in own)]
    mine = [*free, *results, *before.figures, *before.unspared, *echoed, *meant_before]
    mine = [f for f in mine if _tells_age(f)] if aged else mine
    used = {(f.kind, f.values) for f in spent}
    cues = _cues(claim, figure, question)
    for numbers in (near[:2], *([number] for number in near[2:_OPERANDS_FROM])):
        theirs = [f for number in numbers for f in source.sentence(number).figures[:MANY]]
        theirs = [f for f in theirs if (f.kind, f.values) not in used and (not aged or _tells_age(f))]
        changes = [*own, *(f for number in numbers for f in source.sentence(number).changes)]
        operands = derived(figure, mine, theirs, cues, (*later, *meant), changes)
        if operands is not None and not (doubted and len(operands) > 1 and set(operands).isdisjoint(mine)):
            return FigureCheck(figure, State.DERIVED, 0.0, operands=operands)
    return multiplied


def _counts_the_same(figure: Figure, factor: Figure) -> bool:
    """Whether a figure is what a written reckoning multiplies with: "three" of "three tickets: 3 × €5"."""
    counts = dimension(figure) in ("number", "time") and not figure.name
    return counts and agrees(replace(factor, noun=None), figure)


def _tells_age(figure: Figure) -> bool:
    return figure.kind is Kind.DATE or dimension(figure) == "time"


def _backed(source: FigureSource, figure: Figure, near: list[int]) -> bool:
    """Whether a source has a figure."""
    numbers = chain(near, source.holding(figure)[:_LOOKED_UP])
    return any(source.backing(figure, number) for number in numbers)


def _replaces(own: Figure, asked: Figure) -> bool:
    """Whether a claim goes on with another number of what the question has so many of: 60 pages of 160."""
    counted = own.unit or own.noun
    alike = own.kind is asked.kind and counted is not None and counted == (asked.unit or asked.noun)
    return alike and own.values != asked.values


def _pieces(text: str) -> frozenset[str]:
    return frozenset(_PIECE.findall(text.casefold()))


def _way(pieces: frozenset[str]) -> int:
    """+1 where words say that something is more, -1 for less, 0 where they say both or neither."""
    return (not pieces.isdisjoint(UPWARD)) - (not pieces.isdisjoint(DOWNWARD))


def _cues(claim: Sentence, figure: Figure, question: str) -> Cues:
    """What a figure's clause says of how it came about, the figure itself aside ("more than 50")."""
    start, end = claim.clause(figure)
    ahead = _pieces(claim.text[start : figure.start])
    pieces = ahead | _pieces(claim.text[figure.end : end])
    timed = figure.kind is Kind.TIME and not pieces.isdisjoint(RECKONING_TIMES)
    hints = ahead if figure.kind is Kind.NUMBER else pieces  # "8 and 10 come to" says nothing of the 10
    behind = _PIECE.search(claim.text, figure.end)
    spoken = pieces if figure.per else pieces | _pieces(question)
    periods = {RATES[piece] for piece in spoken & RATES.keys()}
    units = (find_unit(piece) for piece in spoken if piece.isalpha() and len(piece) > 2)
    periods |= {unit.name for unit in units if unit is not None and unit.dimension == "time"}
    share = figure.fraction or figure.kind is Kind.PERCENT
    after = next((f for f in claim.figures if f.start >= figure.end), None) if share else None
    whole = after is not None and _OF.fullmatch(claim.text, figure.end, after.start)
    return Cues(
        reckoned=timed or not pieces.isdisjoint(RECKONING),
        hinted=figure.fraction or not hints.isdisjoint(RECKONING_HINTS),
        compared=not pieces.isdisjoint(COMPARING),
        apart=behind is not None and behind.group().casefold() in COMPARING,
        way=_way(pieces),
        periods=frozenset(periods),
        often=any(f.unit == "time" and f.per and f is not figure for f in claim.figures),
        whole=after if whole else None,
    )
