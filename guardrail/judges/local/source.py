"""The sentences of the contexts as the checks read them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from guardrail.events import Evidence
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import CITATION, term_of
from guardrail.judges.local.clauses import Clause, clauses_of
from guardrail.values import Value, ValueSet, extract

_SENTENCES_REMEMBERED: Final = 4096

NUMBER_WORDS: Final = frozenset(
    term_of(word)
    for word in """
    zero half quarter third fourth fifth sixth seventh eighth ninth tenth first second once twice thrice
    single double triple dozen thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty
    thirty forty fifty sixty seventy eighty ninety hundred thousand million billion noon midday midnight
    january february march april june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday one two three four five six seven eight nine ten eleven
    twelve
    """.split()  # noqa: SIM905
)


class Facts(NamedTuple):
    """The checkable values of a text, in their order and by kind."""

    values: tuple[Value, ...]
    matcher: ValueSet


@lru_cache(maxsize=_SENTENCES_REMEMBERED)
def facts_of(text: str) -> Facts:
    """The values of a sentence. Remembered over responses: good contexts are retrieved often."""
    masked = CITATION.sub(lambda match: " " * len(match.group()), text) if "[" in text else text
    values = tuple(extract(masked))
    return Facts(values, ValueSet(values))


class Reading:
    """A sentence as text, read as far as it was needed. ``starts`` (offsets) and ``terms`` are parallel.

    Remembered over claims and responses: good contexts are retrieved often. Threads that read the same
    sentence at once only repeat work.
    """

    __slots__ = ("_clauses", "known", "starts", "terms", "text")

    def __init__(self, text: str, starts: tuple[int, ...], terms: tuple[int, ...]) -> None:
        """``known`` are the distinct terms."""
        self.text, self.starts, self.terms = text, starts, terms
        self.known = frozenset(terms)
        self._clauses: tuple[Clause, ...] | None = None

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """What it denies and what it charges for."""
        if self._clauses is None:
            self._clauses = clauses_of(self.text, self.starts, self.terms)
        return self._clauses


_readings: dict[str, Reading] = {}  # process-wide; emptied when full


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a context; offsets are relative to ``text``."""

    number: int
    context_id: str
    start: int
    text: str
    reading: Reading

    @property
    def starts(self) -> tuple[int, ...]:
        """Where its tokens begin."""
        return self.reading.starts

    @property
    def terms(self) -> tuple[int, ...]:
        """The terms of its tokens."""
        return self.reading.terms

    @property
    def known(self) -> frozenset[int]:
        """Its distinct terms."""
        return self.reading.known

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """What it denies and what it charges for."""
        return self.reading.clauses

    @property
    def facts(self) -> Facts:
        """Its checkable values."""
        return facts_of(self.text)

    @property
    def evidence(self) -> Evidence:
        """The sentence as a quote with its span."""
        return Evidence(
            context_id=self.context_id, quote=self.text, span=(self.start, self.start + len(self.text))
        )

    def words(self, first: int, last: int) -> str:
        """The text from token ``first`` to token ``last`` (exclusive), without what follows the last."""
        return words_between(self.text, self.starts, first, last)


def words_between(text: str, starts: Sequence[int], first: int, last: int) -> str:
    """``text`` from token ``first`` to ``last`` (exclusive), trailing punctuation left out."""
    end = starts[last] if last < len(starts) else len(text)
    return text[starts[first] : end].rstrip(" \t\n\r.,;:!?)(\"'“”…|")


def is_number(surface: str, term: int) -> bool:
    """Whether a token is a figure or a number in words."""
    return surface[:1].isdigit() or term in NUMBER_WORDS


def tokens_within(starts: Sequence[int], start: int, end: int) -> range:
    """The tokens that begin in ``[start, end)``."""
    return range(bisect_left(starts, start), bisect_left(starts, end))


class Source:
    """The contexts of one response, read sentence by sentence. Made for one claim; nothing is copied
    twice."""

    __slots__ = ("_evidence", "_known", "layout")

    def __init__(self, evidence: EvidenceIndex) -> None:
        self._evidence = evidence
        self._known: dict[int, Sentence] = {}
        self.layout = evidence.layout

    def sentence(self, number: int) -> Sentence:
        """The sentence with this number."""
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._read(number)
        return known

    def _read(self, number: int) -> Sentence:
        layout = self.layout
        windows = layout.sentences
        context = self._evidence.contexts[windows.context[number]]
        start, end = windows.start[number], windows.end[number]
        first, last = windows.first[number], windows.last[number]
        text = context.text[start:end]
        reading = _readings.get(text)
        if reading is None or len(reading.terms) != last - first:
            starts = tuple(at - start for at in layout.starts[first:last])
            reading = Reading(text, starts, tuple(layout.terms[first:last]))
            if len(_readings) >= _SENTENCES_REMEMBERED:
                _readings.clear()
            _readings[text] = reading
        return Sentence(number, context.id, start, text, reading)
