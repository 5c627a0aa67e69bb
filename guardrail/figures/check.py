"""A claim's figures against the source sentences that speak of the same.

    each figure    spelled out wrongly ──────────────────────────────────► CONFLICT
                   past the first 32, which are only looked up ──────────► FOUND │ ABSENT
                   near sentences: which have it, which have another one
                     another one, and nowhere else is as much said of it
                         calculated? ──► DERIVED │ UNCHECKED, else ──────► CONFLICT
                     a sentence has it, of the same matter ──────────────► FOUND
                     else, the first that holds:
                         given in the question ──────────────────────────► ECHOED
                         calculated from what holds ─────────────────────► DERIVED
                         perhaps calculated ─────────────────────────────► UNCHECKED
                         nothing ────────────────────────────────────────► ABSENT
    all of them    revised, as ``_REVISIONS`` lists it: what only shows beside the others

What holds throughout: the checks are in the order of the claim; a figure has one, and what a revision adds is
a stretch of the claim that has none of its own; ``stopped`` is asked before each figure and each sentence, so
that a claim of any length ends in time; two figures that differ are no conflict unless both sentences say
nearly the same around them (``conflicts``); what comes out of other figures proves nothing unless the claim
says that it calculates (``calculation``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from guardrail.figures.agreement import (
    agrees,
    beyond,
    complements,
    days_of_week,
    dimension,
    keeps,
)
from guardrail.figures.arithmetic import By, calculations
from guardrail.figures.calculation import (
    ANNOUNCING,
    NEARLY_EQUAL,
    ClaimFigure,
    derived,
    is_given,
    perhaps_derived,
    says_calculated,
    says_it_calculates,
)
from guardrail.figures.comparing import compares, compares_two, contest, limited
from guardrail.figures.conflicts import (
    FRAME_SAID,
    Frame,
    are_of_one_sort,
    conflicting_figure,
    exchanged,
    frame_of,
    opposite_limits,
)
from guardrail.figures.formulas import compared, formulas
from guardrail.figures.model import Figure, FigureCheck, Kind, State
from guardrail.figures.numbers import COMMAS, MAY_BE_EITHER, Separators, separators_of
from guardrail.figures.source import DAY_PART, MANY, MEETING, OPENING, FigureSource, Sentence
from guardrail.figures.tables import LABELS, find_unit

_CLOSELY: Final = (
    32  # figures of a claim that are compared with others and calculated; the rest are looked up
)
_LOOKED_UP: Final = 8  # sentences, for one of those
_LESS_SAID: Final = 0.15  # of the frame, that a sentence with the claim's figure must say less than one with
_LESS_SAID_WORDS: Final = 1.5  # another, to leave a conflict; in words, where there are few
_OTHER_MATTER: Final = 0.5  # by which a sentence with the claim's figure speaks of something else than one
_OTHER_MATTER_WORDS: Final = 2.0  # with another
_OTHER_DAYS: Final = re.compile(
    r"\b(?:daily|every\sday|all\syear|always|other\sdays|late|early|round\sthe\sclock)\b", re.IGNORECASE
)
_FEW_THINGS: Final = range(2, 13)
_OF_ALL: Final = re.compile(r"\b(?:of|among)\s(?:(?:the|all|these|those)\s){0,2}\Z", re.IGNORECASE)
_OF_ALL_REACH: Final = 40  # characters before the figure
_LISTS: Final = re.compile(r"[:;()]|[.!?](?=\s|$)")
_SEPARATOR: Final = re.compile(r",(?:\s{0,4}(?:and|or)\b)?|\b(?:and|or)\b", re.IGNORECASE)
_TURNED: Final = 0.4  # of the frame, that is enough to doubt a figure that is there as the opposite limit


@dataclass(frozen=True, slots=True)
class _Compared:
    """A claim and what it is compared with."""

    claim: Sentence
    source: FigureSource
    near: Sequence[int]
    question: str
    lead_in: str
    stopped: Callable[[], bool]


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
    at for the claim's own figures only. ``question``: its figures may be echoed and calculated with;
    ``lead_in``, what the claim goes on from: calculated with.
    """
    claim = Sentence(claim_text, _separators(claim_text, lead_in, source))
    about = _Compared(claim, source, list(dict.fromkeys(near)), question, lead_in, stopped)
    if not claim.figures and not compares(claim_text):
        return tuple(_with_parted_name(about, _with_formulas(about, ())))
    source.read(stopped)  # as long as it may take, before anything that does not ask
    if stopped():
        return ()
    checks: list[FigureCheck] = []
    asked, before = source.said(question).figures, source.said(lead_in)
    for number, figure in enumerate(claim.figures):
        if stopped():
            break
        if (right := claim.written.right(figure)) is not None:
            checks.append(FigureCheck(figure, State.CONFLICT, 1.0, source=right))
        elif number < _CLOSELY:
            own = ClaimFigure(figure, claim, source, about.near, asked, before, checks)
            checks.append(_check(own, stopped))
        else:
            checks.append(_looked_up(figure, about))
    if not stopped():
        for revised in _REVISIONS:
            checks = list(revised(about, checks))
    return tuple(checks)


def _separators(text: str, lead_in: str, source: FigureSource) -> Separators | None:
    """What separators do in a claim: its commas may part off decimals, too, where those of a source do."""
    if not MAY_BE_EITHER.search(text):
        return None
    shown = separators_of(f"{lead_in}\n{text}")
    silent = shown.isdisjoint(COMMAS)
    return shown | COMMAS if silent and any((",", False) in s for s in source.separators.values()) else shown


# ---------------------------------------------------------------------------------------------- one figure


def _looked_up(figure: Figure, about: _Compared) -> FigureCheck:
    """Whether a source has a figure, whatever it says of it."""

    def numbers() -> Iterator[int]:
        yield from about.near
        yield from about.source.holding(figure, about.stopped)[:_LOOKED_UP]

    for number in numbers():
        if (there := about.source.sentence(number).exactly(figure)) is not None:
            return FigureCheck(figure, State.FOUND, 0.0, number, there)
    return FigureCheck(figure, State.ABSENT, 0.0)


def _check(own: ClaimFigure, stopped: Callable[[], bool]) -> FigureCheck:
    """What becomes of one figure, as drawn above."""
    claim, figure, source = own.claim, own.figure, own.source
    frame, meant = frame_of(claim, figure), claim.meant.get(figure.start)
    often = meant if meant is not None and meant.unit == "time" else None  # "every 12 hours": twice a day
    found: FigureCheck | None = None
    conflict: FigureCheck | None = None
    turned: FigureCheck | None = None
    most_said = said_with_another = 0.0
    for number, sentence in own.sentences():
        share = frame.share_said(source, number)
        most_said = max(most_said, share)
        if share > said_with_another and any(are_of_one_sort(figure, f) for f in sentence.figures[:MANY]):
            said_with_another = share
        there = source.backing(figure, number)
        if there is None and often is not None and len(sentence.frequencies) == 1:
            there = source.backing(often, number)
        otherwise = there is not None and _is_limit_otherwise(claim, figure, sentence, there)
        another = conflicting_figure(claim, figure, frame, sentence, there) if share >= FRAME_SAID else None
        if another is not None:
            mine = claim.limited(figure) if there is not None and another.end == there.end else figure
            conflict = _improved(conflict, FigureCheck(mine, State.CONFLICT, share, number, another))
        elif there is not None and otherwise and share >= _TURNED and not beyond(figure, there):
            limit = sentence.limited(there)
            turned = _improved(turned, FigureCheck(figure, State.UNCHECKED, share, number, limit))
        elif there is not None and not otherwise:
            found = _improved(found, FigureCheck(figure, State.FOUND, share, number, there))
    if found is None or conflict is not None:
        found = _best_elsewhere(own, frame, found, stopped)
    words = max(len(frame.told), 1)
    said = found.frame if found is not None else -1.0
    if conflict is not None and said <= conflict.frame - max(_LESS_SAID, _LESS_SAID_WORDS / words):
        rival = None if conflict.sentence is None else source.sentence(conflict.sentence)
        return derived(own) or perhaps_derived(own, True, rival) or conflict
    if turned is not None and said < turned.frame:
        return turned
    another_there = said_with_another >= FRAME_SAID
    other_matter = said <= said_with_another - max(_OTHER_MATTER, _OTHER_MATTER_WORDS / words)
    if found is not None and (figure.name or not (another_there and other_matter)):
        return found
    return _explained(own, another_there and not claim.is_difference(figure), most_said)


def _best_elsewhere(
    own: ClaimFigure, frame: Frame, found: FigureCheck | None, stopped: Callable[[], bool]
) -> FigureCheck | None:
    """``found``, or the check of a sentence that is none of the near ones and says more around the figure."""
    for number in takewhile(lambda _: not stopped(), own.source.holding(own.figure, stopped)):
        there = None if number in own.near else own.source.backing(own.figure, number)
        if there is not None and not _is_limit_otherwise(
            own.claim, own.figure, own.source.sentence(number), there
        ):
            share = frame.share_said(own.source, number)
            found = _improved(found, FigureCheck(own.figure, State.FOUND, share, number, there))
    return found


def _explained(own: ClaimFigure, doubted: bool, most_said: float) -> FigureCheck:
    """The check of a figure that no source has of the same matter; ``doubted``: they have another one there.
    ``most_said`` is how much of its frame the best sentence says."""
    explained = (None if doubted else _echoed(own)) or derived(own)
    if explained is None and _says_little(own):
        own = replace(own, figure=replace(own.figure, name=True))
    explained = explained or perhaps_derived(own, doubted)
    return explained or FigureCheck(_named_as_others(own), State.ABSENT, most_said)


def _echoed(own: ClaimFigure) -> FigureCheck | None:
    """The check of a figure that is the question's, and given rather than told."""
    figure, claim = own.figure, own.claim
    aged = figure.values if claim.of_age(figure) else None
    asked_too = any(
        agrees(figure, other) or other.values == aged or _keeps(figure, other) for other in own.asked
    )
    given = asked_too and not figure.name and is_given(claim, figure)
    return FigureCheck(figure, State.ECHOED, 0.0) if given else None


def _keeps(limit: Figure, given: Figure) -> bool:
    """Whether what is given keeps a limit of the claim: "over four years" is "more than three"."""
    alike = dimension(limit) == dimension(given) and given.bound.direction in (0, limit.bound.direction)
    return alike and bool(limit.values and given.values) and keeps(limit, given)


def _named_as_others(own: ClaimFigure) -> Figure:
    """A figure that no source has. What names a thing ("No. 9", "Gate 4") says as much as any other where the
    sources name others of its kind so."""
    figure = own.figure
    numbered = figure.name and figure.noun in LABELS
    others = numbered and any(
        other.name and other.noun == figure.noun
        for _, text in own.sentences()
        for other in text.figures[:MANY]
    )
    return replace(figure, name=False) if others else figure


def _says_little(own: ClaimFigure) -> bool:
    """Whether a figure that no source has says no more than a word does: "seven days a week", "one of them",
    "three plans" where three are listed."""
    return not own.figure.name and (_means_always(own.figure) or _is_word_one(own.figure) or _counts_few(own))


def _means_always(figure: Figure) -> bool:
    """ "Seven days a week", "24 hours a day"."""
    unit, per = find_unit(figure.unit or ""), find_unit(figure.per or "")
    if figure.kind is not Kind.QUANTITY or unit is None or per is None or unit.dimension != per.dimension:
        return False
    return abs(figure.values[0] * unit.factor - per.factor) <= NEARLY_EQUAL * per.factor


def _is_word_one(figure: Figure) -> bool:
    """ "One of them", "first"."""
    return dimension(figure) == "number" and figure.values[:1] == (1.0,) and not figure.text[0].isdecimal()


def _counts_few(own: ClaimFigure) -> bool:
    """Whether a small number counts what the claim goes on to list, or as many things as a source lists."""
    figure, claim = own.figure, own.claim
    few = figure.kind is Kind.NUMBER and not figure.upper and figure.values[0] in _FEW_THINGS
    if not few or figure.unit or claim.limit(figure).direction:
        return False
    if ANNOUNCING.search(claim.text, figure.end):
        return True
    if _OF_ALL.search(claim.text[: figure.start][-_OF_ALL_REACH:]) and compares(claim.text):
        return True
    parts = (part for _, text in own.sentences() for part in _LISTS.split(text.text) if "," in part)
    return any(1 + len(_SEPARATOR.findall(part)) == figure.values[0] for part in parts)


def _is_limit_otherwise(claim: Sentence, figure: Figure, sentence: Sentence, there: Figure) -> bool:
    """Whether a sentence has a claim's figure as the opposite limit, or as none, and that doesn't come to the
    same: it does where one of them denies, where both part all there is in two, and of how long before
    something."""
    if beyond(figure, there):  # save "not for more than 5 days"
        return not claim.denials and not sentence.denials
    sides = opposite_limits(claim, figure, sentence, there)
    return sides is not None and not complements(*sides) and not claim.denies_unlike(sentence)


def _improved(one: FigureCheck | None, other: FigureCheck) -> FigureCheck:
    return other if one is None or other.frame > one.frame else one


# ----------------------------------------------------------------------------------------------- all of them


def _with_inputs(about: _Compared, checks: Sequence[FigureCheck]) -> Iterator[FigureCheck]:
    """What another figure may be calculated from is no longer absent: how many tickets it is that cost so
    much, and other results of the sort. Of a claim that says that it calculates that may be all that no
    source has."""
    unchecked = [check for check in checks if check.state is State.UNCHECKED]
    inputs = {operand for check in unchecked for operand in check.operands}
    measures = {"number", "time", *(dimension(check.figure) for check in unchecked)} if unchecked else set()
    calculates = any(says_calculated(about.claim, check.figure) for check in unchecked)
    for check in checks:
        alike = (calculates or dimension(check.figure) in measures) and check.frame < FRAME_SAID
        spent = check.state is State.ABSENT and (check.figure in inputs or alike)
        yield replace(check, state=State.UNCHECKED) if spent else check


def _with_exchanges(about: _Compared, checks: Sequence[FigureCheck]) -> Iterator[FigureCheck]:
    """Figures that were found are in conflict, if they stand at each other's things."""
    found = [check for check in checks if check.state is State.FOUND and check.sentence is not None]
    numbers = list(dict.fromkeys((*about.near, *(c.sentence for c in found if c.sentence is not None))))
    wrong = exchanged(about.claim, [check.figure for check in found], about.source, numbers)
    for check in checks:
        number, rival = wrong.get(check.figure, (None, None))
        if rival is None:
            yield check
        else:
            yield replace(check, state=State.CONFLICT, sentence=number, source=rival)


def _with_comparison(about: _Compared, checks: Sequence[FigureCheck]) -> Sequence[FigureCheck]:
    """What the claim compares is so or not: how far two are apart follows from both."""
    found = contest(about.claim, about.source, about.near)
    if found is None:
        return checks
    both = found.first, found.second
    if not found.so:
        text = about.claim.text[found.start : found.end]
        words = Figure(Kind.NUMBER, text, found.start, found.end)
        if found.sure:
            said = FigureCheck(words, State.CONFLICT, 1.0, found.number, found.first, both)
        else:
            said = FigureCheck(words, State.UNCHECKED, 0.0, operands=both)
        return sorted((*checks, said), key=_start)

    def follows(check: FigureCheck) -> bool:
        apart = (By.DIFFERENCE, By.CHANGE, By.SHARE)
        unchecked = check.state is State.UNCHECKED and found.sure
        ways = calculations(check.figure, both) if unchecked else ()
        return any(each.by in apart and says_it_calculates(about.claim, check.figure, each) for each in ways)

    return [replace(c, state=State.DERIVED, operands=both) if follows(c) else c for c in checks]


def _with_limits(about: _Compared, checks: Sequence[FigureCheck]) -> Sequence[FigureCheck]:
    """What the claim calls unlimited has a figure in the sources, which may be of another group or time."""
    if (found := limited(about.claim, about.source, about.near)) is None:
        return checks
    start, end, number, figure = found
    said = Figure(Kind.NUMBER, about.claim.text[start:end], start, end)
    return sorted((*checks, FigureCheck(said, State.UNCHECKED, 1.0, number, figure)), key=_start)


def _with_opening_days(about: _Compared, checks: Sequence[FigureCheck]) -> Iterator[FigureCheck]:
    """The days on which something is open tell those on which it is closed, where one sentence alone tells:
    of "open from Tuesday to Sunday" it is closed on Mondays, and not on Sundays."""
    claim, source = about.claim, about.source
    timed = any(f.kind is Kind.TIME for f in claim.figures) or DAY_PART.search(claim.text)
    if timed or claim.open is None or not any(days_of_week(check.figure) for check in checks):
        yield from checks
        return
    told = [(n, s) for n in about.near if (s := source.sentence(n)).open is not None]
    spans = [f for f in told[0][1].figures[:MANY] if days_of_week(f)] if len(told) == 1 else []
    if len(spans) != 1 or spans[0].last is None:
        yield from checks
        return
    (number, sentence), opening, days = told[0], spans[0], days_of_week(spans[0])
    opens = next((at for at, term in sentence.words if term in OPENING), 0)
    parted = MEETING.search(sentence.text, min(opens, opening.end), max(opens, opening.start))
    unsure = not sentence.open or sentence.denials or parted or _OTHER_DAYS.search(sentence.text)
    same = not claim.denials and claim.terms - OPENING <= sentence.terms
    for check in checks:
        mine = days_of_week(check.figure)
        apart = mine and (mine <= days or mine.isdisjoint(days)) and not any(d.day for d in check.figure.days)
        if unsure or not apart or any(n != number for n in source.holding(check.figure, about.stopped)):
            yield check
        elif (mine <= days) is not claim.open:
            yield FigureCheck(check.figure, State.CONFLICT, 1.0, number, opening) if same else check
        else:
            yield check if claim.open else FigureCheck(check.figure, State.FOUND, 1.0, number, opening)


def _with_owners(about: _Compared, checks: Sequence[FigureCheck]) -> Iterator[FigureCheck]:
    """What was found is in conflict if it is another thing's there, and so is a code that is misread."""
    if about.lead_in:
        goes_on_from = about.lead_in if about.claim.opens_with_pronoun else ""
    else:
        goes_on_from = about.question
    for number, check in enumerate(checks):
        yield _with_owner(about, check, goes_on_from) if number < _CLOSELY else check


def _with_owner(about: _Compared, check: FigureCheck, goes_on_from: str) -> FigureCheck:
    figure, source = check.figure, about.source
    if check.state is State.ABSENT and figure.kind is Kind.IDENTIFIER and figure.text not in about.question:
        number, code = source.things.misread(figure) or (None, None)
        misread = FigureCheck(replace(figure, name=False), State.CONFLICT, 1.0, number, code)
        return check if code is None else misread
    if check.state is not State.FOUND or check.sentence is None:
        return check
    numbers = dict.fromkeys((check.sentence, *about.near, *source.holding(figure, about.stopped)))
    unread = takewhile(lambda _: not about.stopped(), numbers)
    holding = [n for n in unread if n == check.sentence or source.backing(figure, n) is not None]
    owned = source.things.owned(about.claim, figure, holding, goes_on_from)
    if owned is None or not owned.owner:
        return replace(check, owned=owned)
    return FigureCheck(figure, State.CONFLICT, 1.0, owned.number, owned.figure, owned=owned)


def _with_formulas(about: _Compared, checks: Sequence[FigureCheck]) -> Sequence[FigureCheck]:
    """A source has the formula that figures are part of, or another one for the same."""
    claim, source = about.claim, about.source
    found = list(checks)
    if not formulas(claim.text):
        return checks
    sentences = [(number, source.sentence(number)) for number in about.near]
    alike = [(n, s.text) for n, s in sentences if not claim.denies_unlike(s)]
    for mine, number, other in compared(claim.text, alike, lambda: (text.text for text in source.texts)):
        parts = [check for check in found if mine.start <= check.figure.start < mine.end]
        text, own = source.texts[number].text[other.start : other.end], claim.text[mine.start : mine.end]
        said = Figure(Kind.IDENTIFIER, own, mine.start, mine.end, key="=")
        theirs = Figure(Kind.IDENTIFIER, text, other.start, other.end, key="=")
        if mine.value == other.value:
            found = [_found_in(source, number, check) if check in parts else check for check in found]
            found.append(FigureCheck(replace(said, name=True), State.FOUND, 1.0, number, theirs))
            continue
        open_ = (State.ABSENT, State.UNCHECKED)
        found = [check for check in found if check not in parts or check.state not in open_]
        found.append(FigureCheck(said, State.CONFLICT, 1.0, number, theirs))
    return sorted(found, key=_start)


def _found_in(source: FigureSource, number: int, check: FigureCheck) -> FigureCheck:
    """The check of a figure that a sentence has, with what stands there."""
    there = source.backing(check.figure, number)
    return replace(check, state=State.FOUND, sentence=number, source=there)


def _with_parted_name(about: _Compared, checks: Sequence[FigureCheck]) -> Iterator[FigureCheck]:
    """A name that stands elsewhere than the claim's other one is one more, if that is all there is to say: of
    two things that a claim compares, neither is said of the other."""
    yield from checks
    claim = about.claim
    if not compares_two(claim) and not any(check.owned or check.state is State.CONFLICT for check in checks):
        owned = about.source.things.parted(claim)
        if owned is not None:
            start = claim.text.index(owned.thing)
            thing = Figure(Kind.IDENTIFIER, owned.thing, start, start + len(owned.thing), name=True)
            yield FigureCheck(thing, State.FOUND, 0.0, owned.number, owned=owned)


def _start(check: FigureCheck) -> int:
    return check.figure.start


_REVISIONS: Final[Sequence[Callable[[_Compared, Sequence[FigureCheck]], Iterable[FigureCheck]]]] = (
    _with_inputs,
    _with_exchanges,
    _with_comparison,
    _with_limits,
    _with_opening_days,
    _with_owners,
    _with_formulas,
    _with_parted_name,
)
"""In this order, each on what the one before leaves."""
