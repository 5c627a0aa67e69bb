"""Opening hours: on which days a text has something open or closed, and from when until when.

A claim's days are looked up one by one in what the sources say of them, however either writes it: "closed on
Mondays" of "Mon: closed", "open until 6 on Saturday" of "Sat and Sun 9 am to 1 pm". A day is at odds where a
source of the same thing has it otherwise and none has it so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from guardrail.evidence.tokens import term_of
from guardrail.figures.agreement import ALL_WEEK, days_of_week
from guardrail.figures.model import Figure, Kind
from guardrail.figures.source import MANY, FigureSource, Sentence
from guardrail.figures.tables import CLOSED, OPEN, OPENING, alternatives

_SAYING: Final = re.compile(
    rf"(?:(?P<not>(?:\b(?:not|never|no\slonger)|n['’]t)\s(?:\w{{1,12}}\s)?))?"
    rf"\b(?:(?P<closed>{alternatives(CLOSED)})|(?P<open>{alternatives(OPEN | {'opening'})})"
    r"|(?P<daily>daily|every\sday|(?:all|any)\sdays?|seven\sdays\sa\sweek|24/7))\b",
    re.IGNORECASE,
)
_UNTIL: Final = re.compile(r"\b(?:until|till|til|to|by|before)\s(?:\w{1,8}\s)?\Z", re.IGNORECASE)
_FROM: Final = re.compile(r"\b(?:from|since|as of)\s(?:\w{1,8}\s)?\Z", re.IGNORECASE)
_AFTER: Final = re.compile(r"\bafter\s(?:\w{1,8}\s)?\Z", re.IGNORECASE)
_AT: Final = re.compile(r"\bat\s(?:\w{1,8}\s)?\Z|\A\s{0,3}\Z", re.IGNORECASE)
_IS_OPEN_AT: Final = re.compile(
    r"(?:\b(?:is|are|be|was|were|stays?|remains?)|['’](?:s|re))\s(?:\w{1,10}\s)?open\b[^.;:]{0,16}\bat\s\Z",
    re.IGNORECASE,
)
_EXCEPT: Final = re.compile(
    r"\b(?:except|but not|excluding|apart from|save)\s(?:\w{1,8}\s)?\Z", re.IGNORECASE
)
_PARTS: Final = re.compile(r"[;|\n•]|[.!?](?:\s|\Z)|,|\b(?:and|but|while|whereas)\b", re.IGNORECASE)
_AND: Final = re.compile(r"\s{0,3}(?:,|&|/|\+|,?\s{0,3}\b(?:and|or)\b)\s{0,3}(?:on\s)?", re.IGNORECASE)
_STRONG: Final = re.compile(r"[;|\n•]|[.!?](?:\s|\Z)|\b(?:but|while|whereas)\b", re.IGNORECASE)
_HOURS: Final = re.compile(r"\bhours?\b|\bopening\b", re.IGNORECASE)
_REACH: Final = 28
_BACK: Final = 8  # sentences in which the thing may be named that hours are of
_AROUND: Final = 12  # sentences that may name a thing whose hours are those of all
_MOST: Final = 24  # sentences that are looked up
_LONGEST: Final = 2_000
_ENOUGH_DAYS: Final = 4  # on which something is open, that it is closed on the others
_IDLE: Final = frozenset(map(term_of, OPENING))

Span = tuple[tuple[float, ...], tuple[float, ...]]
"""The readings of when it begins and ends, in minutes; empty where that is not said."""


@dataclass(slots=True)
class DayEntry:
    """What a text says of some days: closed, or open, with the hours that it gives. ``start`` and ``end`` are
    the stretch that says so."""

    start: int
    end: int
    days: frozenset[int] = frozenset()
    closed: bool = False
    open: bool = False
    hours: list[Span] = field(default_factory=list)
    moments: list[tuple[float, ...]] = field(default_factory=list)  # readings of times within its hours
    times: list[Figure] = field(default_factory=list)
    named: list[Figure] = field(default_factory=list)
    odd: bool = False

    @property
    def told(self) -> bool:
        """Whether it says anything of its days."""
        return self.closed or self.open or bool(self.hours or self.moments)


class _Event(NamedTuple):
    start: int
    end: int
    days: frozenset[int] = frozenset()
    figure: Figure | None = None
    closed: bool = False
    opened: bool = False


class Compared(NamedTuple):
    """What a claim says of its days, the sentence that decides, and what the sources say of them, each as a
    figure that has the whole stretch; ``agreed``: all of the days are so, and ``alike``: the sources name
    the same days and hours. ``otherwise``: what another context says of a day, with its sentence."""

    figure: Figure
    number: int
    sources: tuple[Figure, ...]
    agreed: bool
    alike: bool = False
    otherwise: tuple[int, Figure] | None = None


def entries(sentence: Sentence) -> list[DayEntry]:
    """What a sentence says of weekdays; nothing of one that is too long or too odd. Linear."""
    if len(sentence.text) > _LONGEST:
        return []
    found: list[DayEntry] = []
    current: DayEntry | None = None
    text, events = sentence.text, _events(sentence)
    for at, event in enumerate(events):
        between = text[events[at - 1].end : event.start] if at else ""
        left_out = _EXCEPT.search(text, max(0, event.start - _REACH), event.start)
        if left_out and event.days and current is not None:
            current.days -= event.days
            shut = current.open or bool(current.hours)
            found.append(DayEntry(left_out.start(), event.end, event.days, closed=shut))
            continue
        follower = events[at + 1] if at + 1 < len(events) else None
        bound = (
            follower is not None
            and bool(follower.days)
            and not _PARTS.search(text, event.end, follower.start)
        )
        if current is None or _parts(current, event, between, bound=bound):
            current = DayEntry(event.start, event.end)
            found.append(current)
        _take(current, text, event)
    return [entry for entry in found if entry.days and entry.told and not entry.odd]


def _events(sentence: Sentence) -> list[_Event]:
    """Days, times and words that open or close, in order and apart; days that are listed are one."""
    text = sentence.text
    found = [
        _Event(f.start, f.end, days_of_week(f), f)
        for f in sentence.figures[:MANY]
        if (f.kind is Kind.DATE and days_of_week(f)) or f.kind is Kind.TIME or _is_hour(f)
    ]
    for match in _SAYING.finditer(text):
        if match["daily"]:
            found.append(_Event(*match.span(), days=ALL_WEEK))
        else:
            closed = bool(match["closed"]) is not bool(match["not"])
            found.append(_Event(*match.span(), closed=closed, opened=not closed))
    events: list[_Event] = []
    for event in sorted(found, key=lambda each: (each.start, -each.end)):
        last = events[-1] if events else None
        if last is not None and event.start < last.end:
            continue
        if last is not None and last.days and event.days and _AND.fullmatch(text, last.end, event.start):
            events[-1] = last._replace(end=event.end, days=last.days | event.days)
        else:
            events.append(event)
    return events


def _is_hour(figure: Figure) -> bool:
    """ "9-18", and "9" where a time stands."""
    bare = figure.kind is Kind.NUMBER and not figure.noun and not figure.unit and bool(figure.values)
    hours = (figure.values[0], figure.upper or 0.0) if bare else (-1.0,)
    return (figure.upper is not None or figure.hour) and all(0 <= hour <= 24 for hour in hours)


def _parts(entry: DayEntry, event: _Event, between: str, *, bound: bool) -> bool:
    """Whether an event begins what is said of other days; ``bound`` to days that follow it."""
    if _STRONG.search(between):
        return True
    if event.days or not (entry.days and entry.told):
        return bool(event.days and entry.days and entry.told)
    apart = _PARTS.search(between) is not None
    if event.figure is not None:
        return apart and (bound or entry.closed)
    return apart or (event.closed and (entry.open or bool(entry.hours)))


def _take(entry: DayEntry, text: str, event: _Event) -> None:
    entry.start, entry.end = min(entry.start, event.start), max(entry.end, event.end)
    figure = event.figure
    if event.days:
        entry.days |= event.days
        entry.named += [figure] if figure is not None else []
    elif figure is not None:
        before = text[max(0, figure.start - _REACH) : figure.start]
        within = entry.open and figure.upper is None and _IS_OPEN_AT.search(before) is not None
        span = None if within else _span(figure, before, entry)
        if within:
            entry.moments.append(_readings(figure, figure.values))
            entry.times.append(figure)
        if span is not None:
            entry.hours.append(span)
            entry.times.append(figure)
        if entry.closed:
            entry.closed, entry.open, entry.odd = False, True, entry.odd or span is None
    else:
        entry.closed, entry.open = event.closed, event.opened


def _span(figure: Figure, before: str, entry: DayEntry) -> Span | None:
    """From when until when a time stands for; None where that is not plain."""
    first = _readings(figure, figure.values)
    if figure.upper is not None:
        return None if entry.closed else (first, _readings(figure, (figure.upper,)))
    if entry.closed:  # "closes at 6", "closed after 6", "closed until 3"
        if _AFTER.search(before) or (_AT.search(before) and not entry.days):
            return (), first
        return (first, ()) if _UNTIL.search(before) else None
    if _UNTIL.search(before):
        return (), first
    return (first, ()) if _FROM.search(before) or (entry.open and _AT.search(before)) else None


def _readings(figure: Figure, values: Iterable[float]) -> tuple[float, ...]:
    if figure.kind is Kind.TIME:
        return tuple(values)
    return tuple(
        hour * 60.0 for value in values for hour in ((value, value + 12) if value <= 12 else (value,))
    )


def _agree(claim: DayEntry, source: DayEntry) -> bool | None:
    """Whether two say the same of a day; None where that can't be told."""
    if claim.closed or source.closed:
        return claim.closed is source.closed
    found = [_told(mine, source.hours) for mine in claim.hours]
    found += [_is_within(moment, source.hours) for moment in claim.moments]
    return False if False in found else None if None in found else True


def _is_within(moment: Iterable[float], hours: Sequence[Span]) -> bool | None:
    """Whether a time is one of ``hours``; None where these aren't told from beginning to end."""
    whole = [(begin[0], end[0] if end[0] > begin[0] else end[-1]) for begin, end in hours if begin and end]
    return any(begin <= at < end for at in moment for begin, end in whole) if whole else None


def _told(mine: Span, hours: Sequence[Span]) -> bool | None:
    """Whether one of ``hours`` is ``mine``; None where an end of it isn't told.

    "Opens at 7" and "closes at 9" tell one end each, and say nothing of the other.
    """
    whole = [theirs for theirs in hours if all(theirs)]
    if all(mine) and whole:
        return any(_meet(mine[0], begin) and _meet(mine[1], end) for begin, end in whole)
    found: list[bool | None] = []
    for own, theirs in zip(mine, zip(*hours, strict=True) if hours else ((), ()), strict=True):
        if own:
            told = [times for times in theirs if times]
            found.append(any(_meet(own, times) for times in told) if told else None)
    return False if False in found else None if None in found else True


def _meet(one: Iterable[float], other: Iterable[float]) -> bool:
    return not set(one).isdisjoint(other)


def opening_hours(claim: Sentence, source: FigureSource, near: Sequence[int]) -> Iterator[Compared]:
    """What a claim says of days on which something is open or closed, as far as the sources say it or
    otherwise."""
    said = [entry for entry in entries(claim) if entry.open or entry.closed or _only_hours(claim, entry)]
    if not said:
        return
    known = list(_known(claim, said, source, near))
    for entry in said:
        backing = [_backing(entry, day, known, source) for day in sorted(entry.days)]
        wrong = next((found for found in backing if found is not None and not found.agreed), None)
        right = [found for found in backing if found is not None and found.agreed]
        if wrong is not None:
            stretch = _stretch(source.sentence(wrong.number), wrong.entry)
            yield Compared(_stretch(claim, entry), wrong.number, (stretch,), agreed=False)
        elif len(right) == len(backing) and not _falls_short(entry, right):
            stretches = (_stretch(source.sentence(found.number), found.entry) for found in right)
            whole = bool(entry.hours) and all(begin and end for begin, end in entry.hours)
            alike = whole and all(found.entry.days == entry.days for found in right)
            told = tuple(dict.fromkeys(stretches))
            odd = next((found.otherwise for found in right if found.otherwise is not None), None)
            other = (odd[0], _stretch(source.sentence(odd[0]), odd[1])) if odd is not None else None
            yield Compared(_stretch(claim, entry), right[0].number, told, True, alike, other)


def _falls_short(entry: DayEntry, found: Sequence[_Backing]) -> bool:
    """Whether a span of days ends within one of the sources: "Monday to Friday" of "Monday to Saturday"."""
    spans = any(figure.last is not None for figure in entry.named)
    return spans and any(entry.days < each.entry.days for each in found)


class _Backing(NamedTuple):
    agreed: bool
    number: int
    entry: DayEntry
    otherwise: tuple[int, DayEntry] | None = None


def _backing(
    entry: DayEntry, day: int, known: Sequence[tuple[int, DayEntry]], source: FigureSource
) -> _Backing | None:
    """What the sources say of a day: that it is so if any says so, and who says otherwise; that it is closed,
    too, if it is none of those on which it is open."""
    of_day = [(_agree(entry, other), number, other) for number, other in known if day in other.days]
    if not of_day and entry.closed:
        opened = [(number, other) for number, other in known if not other.closed]
        days = frozenset[int]().union(*(other.days for _, other in opened))
        return _Backing(True, *opened[0]) if len(days) >= _ENOUGH_DAYS else None
    agreed = next((found for found in of_day if found[0]), None)
    wrong = next((found for found in of_day if found[0] is False), None)
    decides = agreed or wrong
    if decides is None:
        return None
    backing = {source.texts[number].context_id for so, number, _ in of_day if so}
    odd = next(
        (each[1:] for each in of_day if each[0] is False and source.texts[each[1]].context_id not in backing),
        None,
    )
    return _Backing(agreed is not None, *decides[1:], odd)


def _only_hours(claim: Sentence, entry: DayEntry) -> bool:
    """Whether a line says nothing but when: "Mon–Fri: 9–17"."""
    return bool(entry.hours) and len(claim.terms - _IDLE) <= 1


def _known(
    claim: Sentence, said: Iterable[DayEntry], source: FigureSource, near: Sequence[int]
) -> Iterator[tuple[int, DayEntry]]:
    """What the sources say of the days of the thing that the claim is about: of those that share most words
    with it, or, where none does, of what hours are given of in general."""
    figures = [figure for entry in said for figure in entry.named]
    numbers = list(dict.fromkeys((*near, *(n for f in figures for n in source.holding(f)))))[:_MOST]
    subject = claim.terms - _IDLE
    found: list[tuple[int, bool, int, DayEntry]] = []
    for number in numbers:
        if own := entries(source.sentence(number)):
            terms, general = _subject(source, number)
            general = general and (not subject or _spoken_of(subject, source, number))
            found += ((len(terms & subject), general, number, entry) for entry in own)
    most = max((shared for shared, *_ in found), default=0)
    for shared, general, number, entry in found:
        if shared == most and (most or general):
            yield number, entry


def _spoken_of(subject: frozenset[int], source: FigureSource, number: int) -> bool:
    """Whether the sentences around one name a claim's thing."""
    context = source.texts[number].context_id
    around = range(max(0, number - _AROUND), min(len(source.texts), number + _AROUND))
    return any(
        source.texts[at].context_id == context and not subject.isdisjoint(source.sentence(at).terms)
        for at in around
    )


def _subject(source: FigureSource, number: int) -> tuple[frozenset[int], bool]:
    """What the hours of a sentence are of, and whether they are hours in general."""
    context = source.texts[number].context_id
    general = False
    for at in range(number, max(-1, number - _BACK), -1):
        if source.texts[at].context_id != context:
            break
        sentence = source.sentence(at)
        general = general or _HOURS.search(sentence.text) is not None
        if terms := sentence.terms - _IDLE:
            return terms, general
    return frozenset(), True


def _stretch(sentence: Sentence, entry: DayEntry) -> Figure:
    """The stretch that says of days when they are open, as a figure."""
    figure = next(iter((*entry.named, *entry.times)), None)
    start, end = entry.start, entry.end
    stretch = Figure(Kind.DATE, sentence.text[start:end], start, end) if figure is None else figure
    return replace(stretch, text=sentence.text[start:end], start=start, end=end, name=False)
