"""The prepared contexts of one response: passages, search, and the check of quotes.

A quote is found exactly, or after folding what copying changes: white space, kinds of quotation marks, dashes
and hyphens, case, and invisible characters (soft hyphen, zero-width space, byte order mark).
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar, cast

from guardrail.events import Context, Evidence, Span
from guardrail.evidence.layout import Layout, Stopped
from guardrail.evidence.sentences import SpeakerTurns, find_turns
from guardrail.evidence.shown import ShownTable, ShownText
from guardrail.evidence.tokens import STOP_TERMS, words


@dataclass(frozen=True, slots=True)
class Passage:
    """A window of a context: ``context.text[start:end] == text`` (code points)."""

    context_id: str
    start: int
    end: int
    text: str
    score: float = 0.0


_INVISIBLE: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_FOLD: Final[dict[int, int | None]] = {
    **dict.fromkeys(map(ord, "‘’‚‛′`´"), ord("'")),
    **dict.fromkeys(map(ord, "“”„‟″«»"), ord('"')),
    **dict.fromkeys(map(ord, "‐‑‒–—―−"), ord("-")),
    **dict.fromkeys(map(ord, _INVISIBLE), None),
    ord("İ"): ord("i"),  # the only character whose lower case is two
}
_VISIBLE_RUN: Final = re.compile(rf"[^\s{_INVISIBLE}]+")
_WRAPPING: Final = " \t\n\r\"'“”‘’«»…"


_ASKED_EVERY_S: Final = 0.02
_UNASKED: Final = 50  # contexts


def _shown(contexts: Sequence[Context], stopped: Callable[[], bool]) -> Iterator[ShownText]:
    """The contexts as readers see them. Raises Stopped once ``stopped()``."""
    for number, context in enumerate(contexts):
        if number % _UNASKED == 0 and stopped():
            raise Stopped
        yield ShownText(context.text)


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """The span (code points of ``text``) of ``quote``, or None. Linear in both lengths."""
    quote = quote.strip()
    if not quote:
        return None
    at = text.find(quote)
    if at >= 0:
        return at, at + len(quote)
    haystack = _fold(text)
    for candidate in (quote, _unwrapped(quote)):
        needle = _fold(candidate)
        at = haystack.find(needle) if needle else -1
        if at >= 0:
            first = at - haystack.count(" ", 0, at)
            length = len(needle) - needle.count(" ")
            return _visible_span(text, first, length)
    return None


def _unwrapped(quote: str) -> str:
    bare = quote.strip(_WRAPPING)
    while bare.endswith("...") or bare.startswith("..."):
        bare = bare.removesuffix("...").removeprefix("...").strip(_WRAPPING)
    return bare


def as_copied(text: str) -> str:
    """``text`` without what copying changes, except case; runs of white space as one space."""
    return " ".join(text.translate(_FOLD).split())


def _fold(text: str) -> str:
    """Each visible character of ``text`` as one character; runs of white space as one space."""
    return as_copied(text).lower()


def _visible_span(text: str, first: int, length: int) -> tuple[int, int]:
    """The span in ``text`` of ``length`` visible characters, from visible character number ``first``."""
    seen, start, last = 0, -1, first + length - 1
    for run in _VISIBLE_RUN.finditer(text):
        upto = seen + run.end() - run.start()
        if start < 0 and upto > first:
            start = run.start() + first - seen
        if upto > last:
            return start, run.start() + last - seen + 1
        seen = upto
    raise AssertionError("the folded text has as many visible characters as the text")


_K1: Final = 1.2
_B: Final = 0.75
_T = TypeVar("_T")


class EvidenceIndex:
    """What the claims of one response are checked against.

    Creating one is cheap: the first search builds the index, once, in whichever thread comes first. Building
    is pure CPU work (about 1 ms per 1,000 words): call ``search``, ``passages`` and ``layout`` off the event
    loop. ``release`` drops what was built; the next search builds it again.
    """

    __slots__ = (
        "_kept",
        "_layout",
        "_lock",
        "_shown",
        "_turns",
        "contexts",
    )

    passage_words: ClassVar = 110
    overlap_words: ClassVar = 40
    """Of neighbouring passages."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts: tuple[Context, ...] = tuple(contexts)
        self._layout: Layout | None = None
        self._shown: tuple[ShownText, ...] | None = None
        self._turns: dict[int, SpeakerTurns] = {}
        self._kept: dict[type, object] = {}
        self._lock = threading.Lock()

    @property
    def layout(self) -> Layout:
        """The built arrays, for judges that compare more than passages; positions refer to ``shown``."""
        while (layout := self._layout) is None:  # released meanwhile
            self.prepare()
        return layout

    def prepare(self, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Build the layout, unless ``stopped()``, which is asked all the while; returns whether it is built.

        Whoever is asked may let other work go first, so nobody waits for the lock without asking.
        """
        while self._layout is None:
            if not self._lock.acquire(timeout=_ASKED_EVERY_S):
                if stopped():
                    return False
                continue
            try:
                if self._layout is None:
                    shown = self._read_contexts(stopped)
                    self._layout = Layout(shown, self.passage_words, self.overlap_words, stopped)
            except Stopped:
                return False
            finally:
                self._lock.release()
        return True

    def _read_contexts(self, stopped: Callable[[], bool] = lambda: False) -> tuple[ShownText, ...]:
        shown = self._shown
        if shown is None:  # two threads may both read: they read the same
            shown = self._shown = tuple(_shown(self.contexts, stopped))
        return shown

    def shown(self, context: int) -> str:
        """The text of a context, by its number, as readers see it; ``layout`` and ``turns`` use its
        positions.
        """
        return self._read_contexts()[context].text

    def tables(self) -> Iterator[tuple[int, ShownTable]]:
        """The tables of all contexts, each with the number of its context."""
        for number, shown in enumerate(self._read_contexts()):
            for table in shown.tables:
                yield number, table

    def raw_span(self, context: int, start: int, end: int) -> Span:
        """The span in the context's text of ``shown(context)[start:end]``, which is not empty."""
        return self._read_contexts()[context].raw_span(start, end)

    def quote(self, context: int, start: int, end: int) -> Evidence:
        """``shown(context)[start:end]`` as evidence, as written in the context."""
        given = self.contexts[context]
        span = self.raw_span(context, start, end)
        return Evidence(context_id=given.id, quote=given.text[slice(*span)], span=span)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """All passages of all contexts, in order."""
        return tuple(self._passage(number) for number in range(len(self.layout.passages)))

    def search(self, query: str, k: int = 3, *, first: frozenset[str] = frozenset()) -> list[Passage]:
        """The ``k`` passages that match ``query`` best (BM25 over all passages), best first.

        Leaves out passages that share no word with the query. Function words only count if the query has no
        others. Passages of contexts with an id in ``first`` come first, as long as they fill no more than
        half of ``k``, rounded up.
        """
        terms = {term for _, term, _ in words(query)}
        if not first:
            return [self._passage(number, score) for number, score in self.rank(terms, k)]
        ranked = self.rank(terms, len(self.layout.passages))
        of = self.layout.passages.context
        ahead = [found for found in ranked if self.contexts[of[found[0]]].id in first][: (k + 1) // 2]
        taken = {number for number, _ in ahead}
        chosen = [*ahead, *(found for found in ranked[: k + len(ahead)] if found[0] not in taken)][:k]
        return [self._passage(number, score) for number, score in chosen]

    def rank(self, terms: set[int], k: int) -> list[tuple[int, float]]:
        """Like ``search``, by terms and to passage numbers, best first; ties in text order."""
        layout = self.layout
        passages = len(layout.passages)
        if not passages:
            return []
        spans = zip(layout.passages.first, layout.passages.last, strict=True)
        lengths = [last - first for first, last in spans]
        average = sum(lengths) / passages
        scores: dict[int, float] = {}
        for term in terms - STOP_TERMS or terms:
            frequency: dict[int, int] = {}
            for position in layout.positions(term):
                for number in layout.passages.holding(position):
                    frequency[number] = frequency.get(number, 0) + 1
            rarity = math.log(1.0 + (passages - len(frequency) + 0.5) / (len(frequency) + 0.5))
            for number, count in frequency.items():
                damping = _K1 * (1.0 - _B + _B * lengths[number] / average)
                gain = rarity * count * (_K1 + 1.0) / (count + damping)
                scores[number] = scores.get(number, 0.0) + gain
        return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]

    def locate(self, quote: str, context_id: str | None = None) -> Evidence | None:
        """The quote as evidence with its span, or None if no context contains it.

        White space, kinds of quotation marks and dashes, and case may differ; ``Evidence.quote`` is the text
        as written in the context. ``context_id`` is only the first one to search: a judge that gives the
        wrong context for a real quote has not invented it.
        """
        preferred = [context for context in self.contexts if context.id == context_id]
        others = [context for context in self.contexts if context.id != context_id]
        for context in (*preferred, *others):
            span = find_quote(context.text, quote)
            if span is not None:
                return Evidence(context_id=context.id, quote=context.text[span[0] : span[1]], span=span)
        return None

    def turns(self, context: int) -> SpeakerTurns:
        """The turns of a context, by its number; empty if it is not a conversation."""
        found = self._turns.get(context)
        if found is None:  # two threads may both search: they find the same
            found = self._turns[context] = find_turns(self.shown(context))
        return found

    def kept(self, kind: type[_T], make: Callable[[], _T]) -> _T:
        """What ``make`` once made of these contexts; concurrent threads get the same result."""
        found = self._kept.get(kind)
        if found is None:
            found = self._kept.setdefault(kind, make())
        return cast("_T", found)

    def release(self) -> None:
        """Drop what was built; safe while others search."""
        self._layout = None
        self._shown = None
        self._turns = {}
        self._kept = {}

    def _passage(self, number: int, score: float = 0.0) -> Passage:
        passages = self.layout.passages
        context = self.contexts[passages.context[number]]
        start, end = passages.start[number], passages.end[number]
        start, end = self.raw_span(passages.context[number], start, end)
        return Passage(context.id, start, end, context.text[start:end], score)
