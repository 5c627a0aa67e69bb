"""The numbered sentences of a response's contexts, which a model reads and names as evidence.

The numbers run through all contexts, from 1, and depend on nothing else, so they are the same in every call
for a response. Whatever number a model names, the quote is cut from the context itself.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from guardrail.events import Context, Evidence
from guardrail.evidence.sentences import sentence_spans

MAX_SENTENCE_CHARS: Final = 600
"""Longer ones (a text without punctuation) are cut at a blank where there is one."""

_CODE_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_RULE: Final = re.compile(r"[-=_*#|`~:+.>\s]*+")
# What looks like one of our numbers, even if blanks or invisible characters hide it.
_NUMBER_LIKE: Final = re.compile(r"\[(?=[\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]{0,4}\d)")


class Sentences:
    """The sentences of ``contexts``: prose by the sentence, lists, tables and code by the line.

    Making one is a linear pass over the texts, CPU work.
    """

    __slots__ = ("_context", "_end", "_first", "_start", "contexts")

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = contexts
        self._context, self._start, self._end = array("I"), array("I"), array("I")
        self._first = array("I")  # of each context, the number of its first sentence
        for position, context in enumerate(contexts):
            self._first.append(len(self._start) + 1)
            for start, end in _spans(context.text):
                if _RULE.fullmatch(context.text, start, end):
                    continue  # it separates, and says nothing
                self._context.append(position)
                self._start.append(start)
                self._end.append(end)

    def __len__(self) -> int:
        return len(self._start)

    def of_context(self, position: int) -> range:
        """The numbers of the sentences of the context that stands at ``position``."""
        last = position + 1 == len(self._first)
        return range(self._first[position], len(self) + 1 if last else self._first[position + 1])

    def overlapping(self, position: int, start: int, end: int) -> range:
        """The numbers of that context's sentences that share a character with ``[start, end)``."""
        numbers = self.of_context(position)
        low, high = numbers.start - 1, numbers.stop - 1
        return range(
            bisect_right(self._end, start, low, high) + 1, bisect_left(self._start, end, low, high) + 1
        )

    def text(self, number: int) -> str:
        """A sentence as it stands in its context."""
        at = number - 1
        return self.contexts[self._context[at]].text[self._start[at] : self._end[at]]

    def position(self, number: int) -> int:
        """The position of a sentence's context among the contexts."""
        return self._context[number - 1]

    def evidence(self, numbers: Sequence[int]) -> tuple[Evidence, ...]:
        """The quotes that existing ``numbers`` stand for, in the order of the text, neighbours joined."""
        joined: list[tuple[int, int]] = []
        for number in sorted(set(numbers)):
            first, last = joined[-1] if joined else (0, 0)
            if joined and number == last + 1 and self.position(number) == self.position(first):
                joined[-1] = (first, number)
            else:
                joined.append((number, number))
        return tuple(self._quote(first, last) for first, last in joined)

    def _quote(self, first: int, last: int) -> Evidence:
        context = self.contexts[self.position(first)]
        span = (self._start[first - 1], self._end[last - 1])
        return Evidence(context_id=context.id, quote=context.text[span[0] : span[1]], span=span)


def numbered(number: int, sentence: str) -> str:
    """A sentence as a line of the prompt, ``[12] …``. Only a number of ours can begin a line like this."""
    return f"[{number}] {defuse_numbers(' '.join(sentence.split()))}"


def defuse_numbers(text: str) -> str:
    """``text`` changed so that nothing in it can be taken for the number of a sentence."""
    return _NUMBER_LIKE.sub("［", text)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for start, end, code in _regions(text):
        if code:
            spans = list(_lines(text, start, end))
        else:
            starts, ends = sentence_spans(text[start:end])
            spans = [(start + a, start + b) for a, b in zip(starts, ends, strict=True)]
        for begin, stop in spans:
            yield from _cut(text, begin, stop)


def _regions(text: str) -> Iterator[tuple[int, int, bool]]:
    """The pieces of ``text`` and whether each is code; Markdown's code fences belong to the code."""
    begin, code = 0, False
    for fence in _CODE_FENCE.finditer(text):
        if code:
            line_end = text.find("\n", fence.end())
            stop = len(text) if line_end < 0 else line_end
        else:
            stop = fence.start()
        yield begin, stop, code
        begin, code = stop, not code
    yield begin, len(text), code


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        found = text.find("\n", start, end)
        stop = end if found < 0 else found
        line = text[start:stop]
        if line.strip():
            yield start + len(line) - len(line.lstrip()), start + len(line.rstrip())
        start = stop + 1


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > MAX_SENTENCE_CHARS:
        at = text.rfind(" ", start + MAX_SENTENCE_CHARS // 2, start + MAX_SENTENCE_CHARS)
        stop = at if at > start else start + MAX_SENTENCE_CHARS
        yield start, stop
        start = stop + (stop == at)
    if start < end:
        yield start, end
