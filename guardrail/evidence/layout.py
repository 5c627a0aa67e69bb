"""The built form of an evidence index: tokens, sentences, passages and postings, as arrays.

Ten bytes per token (twelve from 65,536 on) and twenty per sentence and passage: about 19 KB for 8 KB of text.
Everything is addressed by token number, counted over all contexts in order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from guardrail.evidence.sentences import sentences_of
from guardrail.evidence.shown import ShownText
from guardrail.evidence.tokens import tokenize

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

    def trim(self) -> None:
        """Release spare capacity: nothing is added from now on."""
        for column in self.__slots__:
            setattr(self, column, getattr(self, column)[:])

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


_UNASKED: Final = 200  # sentences


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
        # Slices are exact; grown arrays have spare capacity.
        self.terms, self.starts = self.terms[:], self.starts[:]
        self.sentences.trim()
        self.passages.trim()
        tokens = len(self.terms)
        self.order = array(
            "H" if tokens <= 0xFFFF else "I", sorted(range(tokens), key=self.terms.__getitem__)
        )

    def positions(self, term: int) -> array[int]:
        """The numbers of all tokens with this term, ascending."""
        low = bisect_left(self.order, term, key=self.terms.__getitem__)
        high = bisect_right(self.order, term, lo=low, key=self.terms.__getitem__)
        return self.order[low:high]

    def contains(self, term: int) -> bool:
        """Whether the term occurs anywhere in the contexts."""
        at = bisect_left(self.order, term, key=self.terms.__getitem__)
        return at < len(self.order) and self.terms[self.order[at]] == term

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
            if spans % _UNASKED == 0 and stopped():
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
