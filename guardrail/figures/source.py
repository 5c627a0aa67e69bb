"""The sentences that a claim's figures are compared with, read when they are needed.

Of texts that are too long to be read, a cheap index of the ways to write a figure's digits tells which
sentences may have it.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, islice, pairwise, takewhile
from typing import Final, NamedTuple

from guardrail.evidence.tokens import STOP_TERMS, term_of, words
from guardrail.figures.agreement import agrees, base, dimension, is_plain, keys, opposed
from guardrail.figures.equations import Written, written
from guardrail.figures.model import Bound, Figure, Kind
from guardrail.figures.numbers import MAY_BE_EITHER, Separators, separators_of
from guardrail.figures.owners import Things
from guardrail.figures.reading import find_figures, may_hold_figures
from guardrail.figures.tables import (
    CLOSED,
    COMPARING,
    DAY_PARTS,
    FILLERS,
    ONES,
    OPEN,
    TENS,
    UNIT,
    alternatives,
)
from guardrail.figures.tables import words as listed

_NUMERAL: Final = re.compile(r"\d++(?:[.,'’]\d++)*+")
_PART: Final = re.compile(r"[.,'’]")
_WORD: Final = re.compile(r"[^\W\d_]++")
_WORDS: Final = {word: str(number).strip("0") for word, number in {**ONES, **TENS}.items() if number}
_LONGEST: Final = 40
_HOURS: Final = (0, 12)


def digits_of(text: str) -> set[str]:
    """The digits of every numeral of a text and of its parts, and those of number words, without zeros before
    and after: "1,200" and "twelve" have 12. Linear."""
    found = {_WORDS[word] for word in _WORD.findall(text.casefold()) if word in _WORDS}
    for numeral in set(_NUMERAL.findall(text)):
        parts = _PART.split(numeral)
        found.update(part.strip("0") for part in ("".join(parts), *parts) if len(part) <= _LONGEST)
    return found


def written_digits(figure: Figure) -> set[str]:
    """The digits that ``digits_of`` finds where a text has this figure, in any unit."""
    found = {f"{value:.10g}" for value in _amounts(figure)}
    return {digits for text in found if "e" not in text and (digits := text.replace(".", "").strip("0-"))}


def _amounts(figure: Figure) -> Iterator[float]:
    for day in (*figure.days, *((figure.last,) if figure.last else ())):
        yield from (float(part) for part in (day.day, day.year) if part)
    if figure.kind is Kind.TIME:
        yield from (time // 60 - before for time in figure.values for before in _HOURS)
        return
    yield from figure.values
    if figure.upper is not None:
        yield figure.upper
    measure = dimension(figure)
    for unit in UNIT.values():
        if figure.kind is Kind.QUANTITY and unit.dimension == measure:
            yield from ((reading[0] - unit.zero) / unit.factor for reading in base(figure))


MEETING: Final = re.compile(
    r"[,;–—](?:\s{0,4}(?:and|or|but|while|whereas)\b)?|\b(?:and|or|but|while|whereas)\b", re.IGNORECASE
)
"""Where the parts of a sentence that are of different figures meet."""
_SILENT: Final = STOP_TERMS | frozenset(map(term_of, FILLERS))
_OR_REACH: Final = 24
_OR_BEFORE: Final = re.compile(r"\bor\s\W{0,3}\Z")
_OR_AFTER: Final = re.compile(r"\s?\W{0,2}or\b")
_LIMIT: Final = re.compile(
    r"\b(min(?:imum|\.)?|max(?:imum|\.)?)(?:\s[^\W\d]{2,16}){0,2}:?\s\Z", re.IGNORECASE
)
_LIMIT_AFTER: Final = re.compile(r"(?:\s[^\W\d]{2,16}){0,2}\sat\s(?:the\s)?(most|least)\b", re.IGNORECASE)
_LIMIT_REACH: Final = 48
_OR_ELSE: Final = re.compile(r"[^\d.;:]{0,32}\bor\s")
_WORD_BEFORE: Final = re.compile(r"([^\W\d_]+)\s(?:(?:the|on|at)\s)?\Z", re.IGNORECASE)
_PRONOUNS: Final = frozenset(map(term_of, listed("pronouns")))
MANY: Final = 200  # figures of one sentence that are looked at one by one
_LIKELY: Final = 8
_AGE_REACH: Final = 32
_CHILDREN: Final = "child|children|kids?|sons?|daughters?|boys?|girls?"
_AGED: Final = re.compile(
    rf"\b(?:age[ds]?\b|(?:{_CHILDREN})\s(?:of\b|\())(?:[\s\d,]|and|or|of|between|from)*+\Z",
    re.IGNORECASE,
)
_YOUNG: Final = re.compile(rf"\b(?:{_CHILDREN}|adults?)\s\Z", re.IGNORECASE)
_OLD: Final = re.compile(r"(?:-|\s)?(?:years?)?(?:-|\s)?olds?\b|\s?years of age", re.IGNORECASE)
_MAX_KEY: Final = 64
_AHEAD: Final = listed("ahead") | {"in advance"}
_BEGINNING: Final = listed("beginning")
_ENDING: Final = listed("ending")
_ELLIPTIC: Final = (Kind.MONEY, Kind.QUANTITY)
_READ_WHOLLY: Final = 60_000  # characters of sentences with figures,
_READ_FIGURES: Final = 6_000  # and figures of them, a tenth of a millisecond each
_SAID: Final = 8  # texts that claims go on from; the question is one of them
_HOLDING: Final = 200  # sentences with a claim's figure that are looked at
_CENTRES: Final = 2  # sentences whose neighbours may have what a figure is calculated from
_BESIDE: Final = (-1, 1, -2, 2, -3, 3, -4, 4)
_OPENING: Final = 2  # terms within which a sentence's subject is a pronoun, if it is one
_NEGATIONS: Final = frozenset(map(term_of, listed("negations")))
_DENIALS: Final = _NEGATIONS - {term_of("except")}  # "except" leaves days out
_MONTHS: Final = 12  # of a year
_SPARED: Final = re.compile(r"\s(?:are\s|is\s|for\s)?free\b", re.IGNORECASE)
_FROM: Final = re.compile(r"\bfrom\s\W{0,3}\Z", re.IGNORECASE)
_NO_LETTER: Final = re.compile(r"[\W_]+")
_WORD_AFTER: Final = re.compile(r"in\s{1,4}advance\b|[^\W\d_]+", re.IGNORECASE)


OPENING: Final = frozenset(map(term_of, OPEN | CLOSED))
"""The terms that say whether something is open."""
_EVERY: Final = re.compile(r"\bevery\s\Z", re.IGNORECASE)
_NOT_ALL_DAY: Final = re.compile(r"\b(?:while|awake|often|from|between|until|if|instead)\b", re.IGNORECASE)
_IN: Final = {"h": (24, "day"), "day": (7, "week"), "month": (12, "year")}
"""How many of a unit are in which other."""
_EVERY_REACH: Final = 8
DAY_PART: Final = re.compile(rf"\b({alternatives(DAY_PARTS)})s?\b", re.IGNORECASE)
#: What stands between the parts of a day at each of which something is taken.
_AND_THEN: Final = re.compile(
    r"(?:,\s(?:and\s)?|\sand\s)(?:(?:a|an|one|once|two|half|\d+)\s(?:[\w-]+\s){0,3})?(?:(?:in\sthe|at|with|the)\s)?",
    re.IGNORECASE,
)
_DIFFERENCE_REACH: Final = 40
_APART_BEHIND: Final = re.compile(
    r"(?:\s{1,3}(?:a|an|per|each)\s\w{1,12})?(?:\s{1,3}points?)?"
    rf"(?:[\s-]{{1,3}}(?:{alternatives(listed('more', 'less', 'apart'))})\b|\s{{1,3}}on\stop\b)",
    re.IGNORECASE,
)
_APART_BEFORE: Final = re.compile(
    rf"\b(?:{alternatives(listed('extra'))}|(?:{alternatives(COMPARING)})\sby)"
    r"(?:\s(?:of|is|are|the|a|an|you)){0,2}\s{0,3}\Z",
    re.IGNORECASE,
)
_ADDS: Final = re.compile(r"\b(?:plus|on\stop|add|adds|added|minus|rebate)\b", re.IGNORECASE)


class SourceText(NamedTuple):
    """One sentence, list item or table row of a context: ``context[start:end] == text`` (code points).
    ``before`` is what stands between it and the sentence before: a space, or the end of a line."""

    context_id: str
    start: int
    end: int
    text: str
    before: str = "\n"


class Sentence:
    """A text with its figures and its words."""

    def __init__(self, text: str, shown: Separators | None = None) -> None:
        """``shown``: what separators do where the text stands; None: what it shows itself."""
        self.text = text
        self._shown = shown

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures, in order."""
        return find_figures(self.text, self._shown) if may_hold_figures(self.text) else ()

    @cached_property
    def _by_key(self) -> dict[Hashable, list[Figure]]:
        found: dict[Hashable, list[Figure]] = {}
        for figure in self.figures:
            for key in keys(figure):
                found.setdefault(key, []).append(figure)
        return found

    def backing(self, figure: Figure) -> Figure | None:
        """The first figure that backs ``figure``, rather one that isn't its opposite limit.

        Of more than ``MANY``, those that mean exactly the same."""
        likely = self.figures[:MANY]
        if len(self.figures) > MANY:
            likely += tuple(f for key in keys(figure) for f in self._by_key.get(key, ())[:MANY])
        agreeing = [other for other in likely if agrees(figure, other)]
        agreeing.sort(key=lambda other: not is_plain(figure, other))
        found = next((other for other in agreeing if not opposed(figure, other)), None)
        found = found or next(iter(agreeing), None)
        if found is None and figure.kind in _ELLIPTIC:
            meant = ((other, self.meant.get(other.start)) for other in likely)
            found = next((other for other, full in meant if full and agrees(figure, full)), None)
            if found is None and self.daily is not None and figure.per and agrees(figure, self.daily):
                found = self.daily
        return found

    def exactly(self, figure: Figure) -> Figure | None:
        """A figure that backs ``figure`` and means exactly the same; cheaper than ``backing``."""
        likely = (f for key in keys(figure) for f in self._by_key.get(key, ())[:_LIKELY])
        return next((other for other in likely if agrees(figure, other)), None)

    @cached_property
    def open(self) -> bool | None:
        """Whether it says of something that it is open, or that it is closed, or denies the other; None for
        neither and both."""
        words = set(_WORD_AFTER.findall(self.text.casefold()))
        opened, closed = not OPEN.isdisjoint(words), not CLOSED.isdisjoint(words)
        denied = sum(term in _DENIALS for _, term in self.words) % 2 == 1
        return None if opened is closed else opened is not denied

    @cached_property
    def meant(self) -> dict[int, Figure]:
        """What figures mean besides, by where they begin: "adults 12 euros, children 5" are 5 euros, and
        "every 12 hours" is twice a day."""
        found: dict[int, Figure] = {}
        for before, figure in pairwise(self.figures):
            bare = figure.kind is Kind.NUMBER and not (figure.noun or figure.name or figure.upper)
            before = found.get(before.start, before)
            if bare and before.kind in _ELLIPTIC and not before.per:
                found[figure.start] = replace(figure, kind=before.kind, unit=before.unit)
        for figure in self.frequencies if len(self.frequencies) == 1 and not self._by_time else ():
            count, per = _IN.get(figure.unit or "", (0, ""))
            times = count / figure.values[0] if figure.values[0] else 0.0
            if figure.upper is None and times >= 1 and times.is_integer():
                found[figure.start] = replace(figure, values=(times,), unit="time", per=per)
        return found

    @cached_property
    def _by_time(self) -> bool:
        """Whether it may say when rather than how often, or not so: "every 2 hours from 8:00", "never"."""
        timed = any(f.kind in (Kind.TIME, Kind.DATE) for f in self.figures[:MANY])
        return timed or self.denials > 0 or _NOT_ALL_DAY.search(self.text) is not None

    @cached_property
    def frequencies(self) -> list[Figure]:
        """The figures that say how often: "every 8 hours", "twice a day"."""
        quantities = (f for f in self.figures[:MANY] if f.kind is Kind.QUANTITY)
        return [
            f
            for f in quantities
            if (f.unit == "time" and f.per)
            or _EVERY.search(self.text[max(0, f.start - _EVERY_REACH) : f.start])
        ]

    @cached_property
    def daily(self) -> Figure | None:
        """How often a day, where it names the parts of the day: "one in the morning and one at bedtime"."""
        told = list(DAY_PART.finditer(self.text))
        parts = {DAY_PARTS[match[1].casefold()] for match in told}
        if not 1 < len(told) == len(parts) or self.frequencies or self._by_time:
            return None
        if not all(_AND_THEN.fullmatch(self.text, a.end(), b.start()) for a, b in pairwise(told)):
            return None
        start, end = told[0].start(), told[-1].end()
        times = (float(len(parts)),)
        return Figure(Kind.QUANTITY, self.text[start:end], start, end, values=times, unit="time", per="day")

    @cached_property
    def changes(self) -> tuple[Figure, ...]:
        """The ranges that say from what to what something went: "was raised from 40 to 60"."""
        ranges = (f for f in self.figures[:MANY] if f.upper is not None)
        spans = [f for f in ranges if _FROM.search(self.text[max(0, f.start - _OR_REACH) : f.start])]
        told = spans and not COMPARING.isdisjoint(_WORD_AFTER.findall(self.text.casefold()))
        return tuple(spans) if told else ()

    @cached_property
    def unspared(self) -> tuple[Figure, ...]:
        """What is left of a year of which so many months are free."""
        months = (f for f in self.figures[:MANY] if f.unit == "month" and f.upper is None)
        spared = (f for f in months if f.values[0] < _MONTHS and _SPARED.match(self.text, f.end))
        return tuple(replace(f, values=(_MONTHS - f.values[0],)) for f in spared)

    @cached_property
    def written(self) -> Written:
        """The calculations that are written out."""
        return written(self.text, self.figures[:MANY])

    @cached_property
    def spelled(self) -> list[tuple[int, int, str]]:
        """``(start, term, text)`` of every word and number."""
        return words(self.text)

    @cached_property
    def tokens(self) -> list[tuple[int, int]]:
        """The same without their texts."""
        return [(start, term) for start, term, _ in self.spelled]

    @cached_property
    def words(self) -> list[tuple[int, int]]:
        """The tokens that are not within a figure; figures that name things are words."""
        return self._outside([figure for figure in self.figures if not figure.name])

    def _outside(self, figures: Sequence[Figure]) -> list[tuple[int, int]]:
        found, at = [], 0
        for start, term in self.tokens:
            while at < len(figures) and figures[at].end <= start:
                at += 1
            if at == len(figures) or start < figures[at].start:
                found.append((start, term))
        return found

    @cached_property
    def terms(self) -> frozenset[int]:
        """The terms that say something."""
        return frozenset(term for _, term in self.words) - _SILENT

    @cached_property
    def denials(self) -> int:
        """How many words deny."""
        return sum(term in _NEGATIONS for _, term in self.words)

    def denies_unlike(self, other: Sentence) -> bool:
        """Whether it denies what another one says, or says what that one denies."""
        return (self.denials - other.denials) % 2 == 1

    @cached_property
    def folded(self) -> str:
        """Letters and digits alone, in lower case."""
        return _NO_LETTER.sub("", self.text.casefold())

    @property
    def opens_with_pronoun(self) -> bool:
        """Whether the subject may be that of the sentence before."""
        return any(term in _PRONOUNS for _, term in self.words[:_OPENING])

    def one_of_two(self, figure: Figure) -> bool:
        """Whether the sentence leaves open which of two figures it is: "the third or fourth century"."""
        return bool(_OR_BEFORE.search(self.text[: figure.start][-_OR_REACH:])) or bool(
            _OR_AFTER.match(self.text[figure.end : figure.end + _OR_REACH])
        )

    def limit(self, figure: Figure, meant: Figure | None = None) -> Bound:
        """How a figure is a limit: as it is read, as a "minimum stay" is, and of days and times whether
        something begins or ends then; of one that is an end of a span, which that ``meant`` is."""
        if figure.kind not in (Kind.DATE, Kind.TIME):
            said = _LIMIT.search(self.text[max(0, figure.start - _LIMIT_REACH) : figure.start])
            said = said or _LIMIT_AFTER.match(self.text[figure.end : figure.end + _LIMIT_REACH])
            if figure.bound is Bound.EXACT and said is None:  # "a minimum of 2 nights or 3 nights"
                before = next((f for f in reversed(self.figures) if f.end <= figure.start), None)
                beside = before and before.noun == figure.noun and before.unit == figure.unit
                told = before and beside and _OR_ELSE.fullmatch(self.text, before.end, figure.start)
                return self.limit(before) if before and told else Bound.EXACT
            if said is None or figure.bound is not Bound.EXACT:
                return figure.bound
            return Bound.AT_LEAST if said[1][:3].casefold() in ("min", "lea") else Bound.AT_MOST
        if figure.last is not None or figure.upper is not None:
            if meant is None:
                return Bound.EXACT
            ends = figure.days[:1] if figure.last else figure.values[:1]
            begins = any(end in (meant.days if figure.last else meant.values) for end in ends)
            return Bound.AT_LEAST if begins else Bound.AT_MOST
        stands = _WORD_BEFORE.search(self.text[max(0, figure.start - _OR_REACH) : figure.start].casefold())
        word = stands[1] if stands else ""
        if word in _BEGINNING:
            return Bound.OVER if word == "after" else Bound.AT_LEAST
        return (Bound.UNDER if word == "before" else Bound.AT_MOST) if word in _ENDING else Bound.EXACT

    def limited(self, figure: Figure) -> Figure:
        """A figure with the word that makes it a limit."""
        before = self.text[max(0, figure.start - _LIMIT_REACH) : figure.start]
        dated = figure.kind in (Kind.DATE, Kind.TIME)
        said = (_WORD_BEFORE if dated else _LIMIT).search(before)
        if said is None or (dated and said[1].casefold() not in _BEGINNING | _ENDING):
            return figure
        start = figure.start - len(before) + said.start()
        return replace(figure, start=start, text=self.text[start : figure.end])

    def ahead(self, figure: Figure) -> bool:
        """Whether a figure says how long before something."""
        after = _WORD_AFTER.search(self.text, figure.end)
        return after is not None and after.group().casefold() in _AHEAD

    def of_age(self, figure: Figure) -> bool:
        """Whether a figure is of years of age."""
        before, after = self.text[max(0, figure.start - _AGE_REACH) : figure.start], self.text[figure.end :]
        limits = figure.bound.direction and figure.unit is None and _YOUNG.search(before)
        return bool(_AGED.search(before) or _OLD.match(after[:_AGE_REACH]) or limits)

    def said_beside(self, figures: Sequence[Figure]) -> list[frozenset[int]] | None:
        """What is said in the part of each figure, figures of other sorts included; None as for ``parts``."""
        spans, outside = self.parts(figures), self._outside(figures)
        if spans is None:
            return None
        within = [{term for start, term in outside if first <= start < last} for first, last in spans]
        return [frozenset(terms) - _SILENT for terms in within]

    def clause(self, figure: Figure) -> tuple[int, int]:
        """The stretch around a figure up to where it meets those of the figures beside it, of any kind."""
        before = max((f.end for f in self.figures if f.end <= figure.start and not f.name), default=-1)
        after = min((f.start for f in self.figures if f.start >= figure.end and not f.name), default=-1)
        left = MEETING.search(self.text, before, figure.start) if before >= 0 else None
        right = MEETING.search(self.text, figure.end, after) if after >= 0 else None
        return left.start() if left else 0, right.start() if right else len(self.text)

    def around(self, figure: Figure) -> frozenset[int]:
        """What is said around a figure, up to the next comma or "and" on either side."""
        borders = [match.span() for match in MEETING.finditer(self.text)]
        start = max((end for _, end in borders if end <= figure.start), default=0)
        end = min((begin for begin, _ in borders if begin >= figure.end), default=len(self.text))
        return frozenset(term for at, term in self._outside([figure]) if start <= at < end) - _SILENT

    def is_difference(self, figure: Figure) -> bool:
        """Whether a figure says how far two are apart ("$30 more"): it is not a price or length itself."""
        if figure.kind not in (*_ELLIPTIC, Kind.NUMBER, Kind.PERCENT):
            return False
        before, behind = self._beside(figure)
        return _APART_BEHIND.match(behind) is not None or _APART_BEFORE.search(before) is not None

    def may_be_difference(self, figure: Figure) -> bool:
        """Whether a figure may say how far two are apart: "$5 per person on top", "$3 are added"."""
        return self.is_difference(figure) or any(_ADDS.search(text) for text in self._beside(figure))

    def _beside(self, figure: Figure) -> tuple[str, str]:
        start, end = figure.start, figure.end
        return self.text[max(0, start - _DIFFERENCE_REACH) : start], self.text[end : end + _DIFFERENCE_REACH]

    def parts(self, figures: Sequence[Figure]) -> list[tuple[int, int]] | None:
        """The stretch of text that belongs to each figure: they meet at the first comma or "and" between two.
        None where two figures have none between them."""
        cuts = [0]
        for first, second in pairwise(figures):
            meeting = MEETING.search(self.text, first.end, max(first.end, second.start))
            if meeting is None:
                return None
            cuts.append(meeting.start())
        return list(pairwise([*cuts, len(self.text)]))


class FigureSource:
    """The sentences of a response's contexts, each read when a claim first asks for it and kept; threads may
    share one. Of very long contexts not all are read: those past the limit are found by their digits."""

    def __init__(self, sentences: Sequence[SourceText]) -> None:
        self.texts = sentences
        self._read: dict[int, Sentence] = {}
        self._said: OrderedDict[str, Sentence] = OrderedDict()
        self._by_key: dict[Hashable, list[int]] = {}
        self._next = 0  # the first sentence whose figures are not in ``_by_key``
        self._digits: dict[str, list[int]] = {}
        self._digits_read = 0  # the first sentence that is not in it
        self._length = self._figures = 0  # of the sentences before it that have figures
        self._lock = threading.Lock()

    def sentence(self, number: int) -> Sentence:
        """A sentence, read."""
        sentence = self._read.get(number)
        if sentence is None:
            given = self.texts[number]
            either = MAY_BE_EITHER.search(given.text)
            shown = self.separators[given.context_id] if either else None
            sentence = self._read[number] = Sentence(given.text, shown)
        return sentence

    def said(self, text: str) -> Sentence:
        """What claims of the response go on from, the question and what leads in to them, read and kept: many
        claims have the same."""
        with self._lock:
            sentence = self._said.setdefault(text, Sentence(text))
            self._said.move_to_end(text)
            if len(self._said) > _SAID:
                self._said.popitem(last=False)
        return sentence

    @cached_property
    def separators(self) -> dict[str, Separators]:
        """What separators do in each context."""
        texts: dict[str, list[str]] = {}
        for sentence in self.texts:
            texts.setdefault(sentence.context_id, []).append(sentence.text)
        return {context: separators_of("\n".join(parts)) for context, parts in texts.items()}

    def terms(self, number: int) -> frozenset[int]:
        """What a sentence speaks of; one that opens with a pronoun also of what the one before does."""
        sentence = self.sentence(number)
        first = number == 0 or self.texts[number - 1].context_id != self.texts[number].context_id
        if first or not sentence.opens_with_pronoun:
            return sentence.terms
        return sentence.terms | self.sentence(number - 1).terms

    def around(self, numbers: Sequence[int]) -> list[int]:
        """The numbers of sentences, and those of their contexts beside the first of them."""
        beside = (n + step for n in numbers[:_CENTRES] for step in _BESIDE if 0 <= n + step < len(self.texts))
        found = {n: self.texts[n].context_id for n in (*numbers, *beside)}
        ids = {self.texts[n].context_id for n in numbers}
        return [n for n, context_id in found.items() if context_id in ids]

    def has_more_figures_than(self, most: int) -> bool:
        """Whether its sentences have; no more of them are read than tells it."""
        found = accumulate(len(self.sentence(number).figures) for number in range(len(self.texts)))
        return any(count > most for count in found)

    @cached_property
    def things(self) -> Things:
        """What the sentences speak of."""
        return Things(self)

    def backing(self, figure: Figure, number: int) -> Figure | None:
        """A sentence's figure that backs a claim's; identifiers may be parted otherwise ("CO 2")."""
        sentence = self.sentence(number)
        own = sentence.backing(figure)
        if own is None and figure.upper is not None:
            ends = [replace(figure, values=(end,), upper=None) for end in (figure.values[0], figure.upper)]
        elif own is None and figure.last is not None:
            ends = [replace(figure, days=(end,), last=None) for end in (figure.days[0], figure.last)]
        else:
            ends = []
        if ends:
            first, second = map(sentence.backing, ends)
            return None if second is None or (first is second and figure.last is not None) else first
        if own is None and figure.kind is Kind.IDENTIFIER and figure.key in sentence.folded:
            return _parted(figure, sentence.text)
        return own

    def holding(self, figure: Figure, stopped: Callable[[], bool] = lambda: False) -> list[int]:
        """The numbers of the sentences that may have a figure of the same meaning anywhere; fewer once
        ``stopped()``, which is asked for each sentence that is read."""
        if figure.kind is Kind.IDENTIFIER:
            return self._naming(figure.key, 0, stopped)
        self.read(stopped)
        found = {number for key in keys(figure) for number in self._by_key.get(key, ())}
        if self._next < len(self.texts) and not stopped():
            if figure.key:
                found.update(self._naming(_NO_LETTER.sub("", figure.key), self._next, stopped))
            by_digits = self._by_digits(stopped)
            found.update(n for digits in written_digits(figure) for n in by_digits.get(digits, ()))
        return sorted(found)[:_HOLDING]

    def _naming(self, key: str, first: int, stopped: Callable[[], bool]) -> list[int]:
        numbers = takewhile(lambda _: not stopped(), range(first, len(self.texts)))
        return list(islice((n for n in numbers if key in self.sentence(n).folded), _HOLDING))

    def read(self, stopped: Callable[[], bool]) -> None:
        """Read all sentences, up to so many characters that have figures, and so many figures, until
        ``stopped()``, which is asked for each, and may take its time."""
        while self._next < len(self.texts) and not self._enough and not stopped():
            with self._lock:
                number = self._next
                if number == len(self.texts) or self._enough:
                    return
                sentence = self.sentence(number)
                for key in {key for figure in sentence.figures for key in keys(figure)}:
                    self._by_key.setdefault(key, []).append(number)
                self._length += len(sentence.text) if sentence.figures else 0
                self._figures += len(sentence.figures)
                self._next += 1

    @property
    def _enough(self) -> bool:
        return self._length >= _READ_WHOLLY or self._figures >= _READ_FIGURES

    def _by_digits(self, stopped: Callable[[], bool]) -> dict[str, list[int]]:
        """The sentences past those that are read, by the digits that they have; some once ``stopped()``."""
        while self._digits_read < len(self.texts) and not stopped():
            with self._lock:
                number = max(self._next, self._digits_read)
                if number < len(self.texts):
                    for digits in digits_of(self.texts[number].text):
                        self._digits.setdefault(digits, []).append(number)
                self._digits_read = number + 1
        return self._digits


def _parted(figure: Figure, text: str) -> Figure | None:
    """An identifier where a text writes it in other pieces."""
    pattern = r"[\W_]{0,2}".join(map(re.escape, figure.key[:_MAX_KEY]))
    match = re.search(pattern, text, re.IGNORECASE)
    return match and replace(figure, text=match.group(), start=match.start(), end=match.end())
