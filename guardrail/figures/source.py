"""The sentences that a claim's figures are compared with, read when they are needed."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise, takewhile
from typing import Final, NamedTuple

from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import term_of, words
from guardrail.figures.agreement import agrees, keys, opposed
from guardrail.figures.arithmetic import Written, written
from guardrail.figures.digits import digits_of, written_digits
from guardrail.figures.model import Figure, Kind
from guardrail.figures.reading import find_figures, may_hold_figures
from guardrail.figures.tables import AHEAD, FILLERS, NEGATIONS, PRONOUNS

_MEETING: Final = re.compile(
    r"[,;–—](?:\s{0,4}(?:and|or|but|while|whereas)\b)?|\b(?:and|or|but|while|whereas)\b", re.IGNORECASE
)
_SILENT: Final = STOP_TERMS | frozenset(map(term_of, FILLERS))
_OR_REACH: Final = 24
_OR_BEFORE: Final = re.compile(r"\bor\s\W{0,3}\Z")
_OR_AFTER: Final = re.compile(r"\s?\W{0,2}or\b")
_PRONOUNS: Final = frozenset(map(term_of, PRONOUNS))
MANY: Final = 200  # figures of one sentence that are looked at one by one
_LIKELY: Final = 8
_AGE_REACH: Final = 32
_AGED: Final = re.compile(r"\bage[ds]?\b(?:[\s\d,]|and|or|of|between|from)*+\Z", re.IGNORECASE)
_OLD: Final = re.compile(r"(?:-|\s)?(?:years?)?(?:-|\s)?olds?\b|\s?years of age", re.IGNORECASE)
_MAX_KEY: Final = 64
_ELLIPTIC: Final = (Kind.MONEY, Kind.QUANTITY)
_READ_WHOLLY: Final = 60_000  # characters of sentences with figures
_HOLDING: Final = 200  # sentences with a claim's figure that are looked at
_OPENING: Final = 2  # terms within which a sentence's subject is a pronoun, if it is one
_NEGATIONS: Final = frozenset(map(term_of, NEGATIONS))
_NO_LETTER: Final = re.compile(r"[\W_]+")
_WORD_AFTER: Final = re.compile(r"in\s{1,4}advance\b|[^\W\d_]+", re.IGNORECASE)


class SourceText(NamedTuple):
    """One sentence, list item or table row of a context: ``context[start:end] == text`` (code points)."""

    context_id: str
    start: int
    end: int
    text: str


class Sentence:
    """A text with its figures and its words."""

    silent: Final = _SILENT
    """The terms that say nothing."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures, in order."""
        return find_figures(self.text) if may_hold_figures(self.text) else ()

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
        found = next((other for other in agreeing if not opposed(figure, other)), None)
        found = found or next(iter(agreeing), None)
        if found is None and figure.kind in _ELLIPTIC:
            meant = ((other, self.meant.get(other.start)) for other in likely)
            found = next((other for other, full in meant if full and agrees(figure, full)), None)
        return found

    def exactly(self, figure: Figure) -> Figure | None:
        """A figure that backs ``figure`` and means exactly the same; cheaper than ``backing``."""
        likely = (f for key in keys(figure) for f in self._by_key.get(key, ())[:_LIKELY])
        return next((other for other in likely if agrees(figure, other)), None)

    @cached_property
    def meant(self) -> dict[int, Figure]:
        """What bare numbers mean, by where they begin: "adults 12 euros, children 5" are 5 euros."""
        found: dict[int, Figure] = {}
        for before, figure in pairwise(self.figures):
            bare = figure.kind is Kind.NUMBER and not (figure.noun or figure.name or figure.upper)
            before = found.get(before.start, before)
            if bare and before.kind in _ELLIPTIC and not before.per:
                found[figure.start] = replace(figure, kind=before.kind, unit=before.unit)
        return found

    @cached_property
    def written(self) -> Written:
        """The reckonings that are written out."""
        return written(self.text, self.figures[:MANY])

    @cached_property
    def tokens(self) -> list[tuple[int, int]]:
        """``(start, term)`` of every word and number."""
        return [(start, term) for start, term, _ in words(self.text)]

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

    def ahead(self, figure: Figure) -> bool:
        """Whether a figure says how long before something."""
        after = _WORD_AFTER.search(self.text, figure.end)
        return after is not None and after.group().casefold() in AHEAD

    def of_age(self, figure: Figure) -> bool:
        """Whether a figure is of years of age."""
        before, after = self.text[max(0, figure.start - _AGE_REACH) : figure.start], self.text[figure.end :]
        return bool(_AGED.search(before) or _OLD.match(after[:_AGE_REACH]))

    def told(self, figures: Sequence[Figure]) -> list[frozenset[int]] | None:
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
        left = _MEETING.search(self.text, before, figure.start) if before >= 0 else None
        right = _MEETING.search(self.text, figure.end, after) if after >= 0 else None
        return left.start() if left else 0, right.start() if right else len(self.text)

    def around(self, figure: Figure) -> frozenset[int]:
        """What is said around a figure, up to the next comma or "and" on either side."""
        borders = [match.span() for match in _MEETING.finditer(self.text)]
        start = max((end for _, end in borders if end <= figure.start), default=0)
        end = min((begin for begin, _ in borders if begin >= figure.end), default=len(self.text))
        return frozenset(term for at, term in self._outside([figure]) if start <= at < end) - _SILENT

    def parts(self, figures: Sequence[Figure]) -> list[tuple[int, int]] | None:
        """The stretch of text that belongs to each figure: they meet at the first comma or "and" between two.
        None where two figures have none between them."""
        cuts = [0]
        for first, second in pairwise(figures):
            meeting = _MEETING.search(self.text, first.end, max(first.end, second.start))
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
        self._by_key: dict[Hashable, list[int]] = {}
        self._next = 0  # the first sentence whose figures are not in ``_by_key``
        self._length = 0
        self._lock = threading.Lock()

    def sentence(self, number: int) -> Sentence:
        """A sentence, read."""
        sentence = self._read.get(number)
        if sentence is None:
            sentence = self._read[number] = Sentence(self.texts[number].text)
        return sentence

    def terms(self, number: int) -> frozenset[int]:
        """What a sentence speaks of; one that opens with a pronoun also of what the one before does."""
        sentence = self.sentence(number)
        first = number == 0 or self.texts[number - 1].context_id != self.texts[number].context_id
        if first or not sentence.opens_with_pronoun:
            return sentence.terms
        return sentence.terms | self.sentence(number - 1).terms

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
        with self._lock:
            self._read_on(stopped)
        found = {number for key in keys(figure) for number in self._by_key.get(key, ())}
        if self._next < len(self.texts) and not stopped():
            if figure.key:
                found.update(self._naming(_NO_LETTER.sub("", figure.key), self._next, stopped))
            found.update(n for digits in written_digits(figure) for n in self._by_digits.get(digits, ()))
        return sorted(found)[:_HOLDING]

    def _naming(self, key: str, first: int, stopped: Callable[[], bool]) -> list[int]:
        numbers = takewhile(lambda _: not stopped(), range(first, len(self.texts)))
        return list(islice((n for n in numbers if key in self.sentence(n).folded), _HOLDING))

    def _read_on(self, stopped: Callable[[], bool]) -> None:
        """Read all sentences, up to so many characters that have figures."""
        while self._next < len(self.texts) and self._length < _READ_WHOLLY and not stopped():
            sentence = self.sentence(self._next)
            for key in {key for figure in sentence.figures for key in keys(figure)}:
                self._by_key.setdefault(key, []).append(self._next)
            self._length += len(sentence.text) if sentence.figures else 0
            self._next += 1

    @cached_property
    def _by_digits(self) -> dict[str, list[int]]:
        """The sentences past those that are read, by the digits that they have."""
        index: dict[str, list[int]] = {}
        for number in range(self._next, len(self.texts)):
            for digits in digits_of(self.texts[number].text):
                index.setdefault(digits, []).append(number)
        return index


def _parted(figure: Figure, text: str) -> Figure | None:
    """An identifier where a text writes it in other pieces."""
    pattern = r"[\W_]{0,2}".join(map(re.escape, figure.key[:_MAX_KEY]))
    match = re.search(pattern, text, re.IGNORECASE)
    return match and replace(figure, text=match.group(), start=match.start(), end=match.end())
