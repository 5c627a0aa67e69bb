"""The prepared contexts of one response: passages, search, and the check of quotes.

A quote is found exactly, or after folding what copying changes: white space, kinds of quotation marks, dashes
and hyphens, case, and invisible characters (soft hyphen, zero-width space, byte order mark).
"""

from __future__ import annotations

import math
import re
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import ClassVar, Final, TypeVar, cast

from guardrail.events import Context, Evidence, Span
from guardrail.evidence.sentences import SpeakerTurns, find_turns, sentences_of
from guardrail.evidence.shown import ShownTable, ShownText
from guardrail.evidence.tokens import STOP_TERMS, terms_of, tokenize


@dataclass(frozen=True, slots=True)
class Passage:
    """A window of a context: ``context.text[start:end] == text`` (code points)."""

    context_id: str
    start: int
    end: int
    text: str


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


# -------------------------------------------------------------------------------------------- the built form
#
# Tokens, sentences, passages and postings, as arrays: ten bytes per token (twelve from 65,536 on) and twenty
# per sentence and passage, about 19 KB for 8 KB of text. Everything is addressed by token number, counted
# over all contexts in order.

_SENTENCE_MAX_TOKENS: Final = 60
_SENTENCE_STRIDE_TOKENS: Final = 40
_SENTENCE_MAX_CHARS: Final = 4_000
"""Ten times what so many words take. Text such as "1/1/1/…" is one token however long it is, and whoever
reads a sentence reads all of it, for every claim."""
_SNAP_TOKENS: Final = 30


class Windows:
    """Pieces of the contexts, in order: ``first``/``last`` are token numbers (half-open), ``start``/``end``
    code points of the context, ``context`` its number. Both borders ascend.
    """

    __slots__ = ("context", "end", "first", "last", "start")

    def __init__(self) -> None:
        self.context, self.first, self.last = array("I"), array("I"), array("I")
        self.start, self.end = array("I"), array("I")

    def __len__(self) -> int:
        return len(self.first)

    def add(self, context: int, first: int, last: int, start: int, end: int) -> None:
        """Append one window."""
        self.context.append(context)
        self.first.append(first)
        self.last.append(last)
        self.start.append(start)
        self.end.append(end)

    def holding(self, position: int) -> list[int]:
        """The numbers of the windows that contain a token: one, or several where they overlap."""
        found = []
        at = bisect_right(self.first, position) - 1
        while at >= 0 and self.last[at] > position:
            found.append(at)
            at -= 1
        return found

    def holding_any(self, positions: Sequence[int]) -> list[int]:
        """The numbers of the windows that contain at least one of the tokens; ``positions`` must ascend.

        A window that begins no later than one token and contains a later one contains both: each step looks
        only at windows that begin after those of the previous step.
        """
        first, last = self.first, self.last
        count = len(first)
        found: list[int] = []
        seen, unseen_from = -1, 0  # the newest window checked, and the first token of the next
        for position in positions:
            if position < unseen_from:
                continue
            newest = at = bisect_right(first, position, seen + 1) - 1
            while at > seen and last[at] > position:
                found.append(at)
                at -= 1
            seen = newest
            if seen + 1 == count:
                break
            unseen_from = first[seen + 1]
        return found


_UNASKED_SENTENCES: Final = 200


class Stopped(Exception):
    """Nobody wants it any more."""


class Layout:
    """Read-only once built, so threads may share it.

    Arrays with one entry per token: ``terms``, ``starts`` (code point in its context), and ``order`` (token
    numbers sorted by term, then position). ``context_first`` has the first token of each context, and the
    number of tokens at its end.
    """

    __slots__ = ("context_first", "order", "passages", "sentences", "starts", "terms")

    def __init__(
        self,
        texts: Iterable[ShownText],
        passage_words: int,
        overlap_words: int,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Raises Stopped once ``stopped()``, which is asked every few milliseconds of work."""
        self.terms, self.starts = array("I"), array("I")
        self.context_first = array("I", [0])
        self.sentences, self.passages = Windows(), Windows()
        for number, text in enumerate(texts):
            self._add_context(number, text, passage_words, overlap_words, stopped)
        tokens = len(self.terms)
        self.order = array(
            "H" if tokens <= 0xFFFF else "I", sorted(range(tokens), key=self.terms.__getitem__)
        )

    def positions(self, term: int) -> array[int]:
        """The numbers of all tokens with this term, ascending."""
        low = bisect_left(self.order, term, key=self.terms.__getitem__)
        high = bisect_right(self.order, term, lo=low, key=self.terms.__getitem__)
        return self.order[low:high]

    def _add_context(
        self,
        number: int,
        shown: ShownText,
        passage_words: int,
        overlap_words: int,
        stopped: Callable[[], bool],
    ) -> None:
        base = len(self.terms)
        text = shown.text
        terms, starts = tokenize(text)
        tokens = len(terms)
        self.terms.extend(terms)
        self.starts.extend(starts)
        self.context_first.append(base + tokens)
        sentence_firsts: list[int] = []  # numbers within this context
        for spans, (begin, end) in enumerate(_spans(shown), number):
            if spans % _UNASKED_SENTENCES == 0 and stopped():
                raise Stopped
            first, last = bisect_left(starts, begin), bisect_left(starts, end)
            if first == last:
                continue  # no word in it: a rule, a row of dashes
            sentence_firsts.append(first)
            for piece_first, piece_last in _pieces(first, last, starts):
                start = starts[piece_first]
                if piece_first == first and start - begin < _SENTENCE_MAX_CHARS:
                    start = begin
                stop = min(end if piece_last == last else starts[piece_last], start + _SENTENCE_MAX_CHARS)
                self.sentences.add(
                    number, base + piece_first, base + piece_last, start, _right_stripped(text, stop)
                )
        for first, last in _windows(tokens, sentence_firsts, passage_words, overlap_words):
            start = 0 if first == 0 else starts[first]
            stop = starts[last] if last < tokens else len(text)
            self.passages.add(number, base + first, base + last, start, _right_stripped(text, stop))


def _spans(shown: ShownText) -> Iterator[tuple[int, int]]:
    """The sentences of a context; the lines of a table are one each, whatever stands in their cells."""
    at = 0
    for start, end in (*shown.lines, (len(shown.text), len(shown.text))):
        for first, last in sentences_of(shown.text[at:start]):
            yield at + first, at + last
        if start < end:
            yield start, end
        at = end


def _pieces(first: int, last: int, starts: Sequence[int]) -> list[tuple[int, int]]:
    """A sentence as it is, or cut into overlapping pieces: text without punctuation has no sentences."""
    pieces = []
    while True:
        longest = bisect_left(starts, starts[first] + _SENTENCE_MAX_CHARS, first + 1, last)
        end = min(longest, first + _SENTENCE_MAX_TOKENS)
        pieces.append((first, end))
        if end == last:
            return pieces
        first = min(first + _SENTENCE_STRIDE_TOKENS, end)


def _windows(tokens: int, sentence_firsts: list[int], size: int, overlap: int) -> list[tuple[int, int]]:
    """Windows of at least ``size`` tokens (except the last) that overlap by at least ``overlap``.

    Borders move outwards to nearby sentence borders.
    """
    windows: list[tuple[int, int]] = []
    begin = 0
    while begin < tokens:
        end = min(tokens, begin + size)
        at = bisect_right(sentence_firsts, begin) - 1
        near = at >= 0 and begin - sentence_firsts[at] <= _SNAP_TOKENS
        first = sentence_firsts[at] if near and begin else begin
        at = bisect_left(sentence_firsts, end)
        after = sentence_firsts[at] if at < len(sentence_firsts) else tokens
        last = after if after - end <= _SNAP_TOKENS else end
        windows.append((first, last))
        if last >= tokens:
            break
        begin += size - overlap
    return windows


def _right_stripped(text: str, end: int) -> int:
    while end > 0 and text[end - 1].isspace():
        end -= 1
    return end


# ------------------------------------------------------------------------------------------------- the index

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
        """The contexts as readers see them. Raises Stopped once ``stopped()``."""
        shown = self._shown
        if shown is None:  # two threads may both read: they read the same
            read: list[ShownText] = []
            for number, context in enumerate(self.contexts):
                if number % _UNASKED == 0 and stopped():
                    raise Stopped
                read.append(ShownText(context.text))
            shown = self._shown = tuple(read)
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
        ranked = self._ranked(terms_of(query))
        of = self.layout.passages.context
        ahead = [number for number in ranked if self.contexts[of[number]].id in first][: (k + 1) // 2]
        return [self._passage(number) for number in islice(dict.fromkeys((*ahead, *ranked)), k)]

    def _ranked(self, terms: frozenset[int]) -> list[int]:
        """The numbers of the passages that have any of the terms, the best first; ties in text order."""
        layout = self.layout
        passages = len(layout.passages)
        if not passages:
            return []
        spans = zip(layout.passages.first, layout.passages.last, strict=True)
        lengths = [last - first for first, last in spans]
        average = sum(lengths) / passages
        scores: dict[int, float] = {}
        for term in terms - STOP_TERMS or terms:
            holding = map(layout.passages.holding, layout.positions(term))
            frequency = Counter(chain.from_iterable(holding))
            rarity = math.log(1.0 + (passages - len(frequency) + 0.5) / (len(frequency) + 0.5))
            for number, count in frequency.items():
                damping = _K1 * (1.0 - _B + _B * lengths[number] / average)
                gain = rarity * count * (_K1 + 1.0) / (count + damping)
                scores[number] = scores.get(number, 0.0) + gain
        return sorted(scores, key=lambda number: (-scores[number], number))

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

    def _passage(self, number: int) -> Passage:
        passages = self.layout.passages
        context = self.contexts[passages.context[number]]
        start, end = passages.start[number], passages.end[number]
        start, end = self.raw_span(passages.context[number], start, end)
        return Passage(context.id, start, end, context.text[start:end])
