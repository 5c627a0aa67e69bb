"""Long contexts -> windows that a model can read, overlapping, whole sentences where that is possible."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from guardrail.evidence.sentences import sentence_spans


@dataclass(frozen=True, slots=True)
class Window:
    """``text[start:end]`` of context number ``context`` (code points)."""

    context: int
    start: int
    end: int


class TokenisedText:
    """A text with its tokens and sentences, to be cut into windows of any size."""

    def __init__(self, text: str, starts: Sequence[int], ends: Sequence[int]) -> None:
        """``starts`` and ``ends`` are those of the tokens, in code points, ascending."""
        self._starts, self._ends = starts, ends
        begins, _ = sentence_spans(text)
        # Numbers of the tokens that sentences begin with.
        self._sentences = [bisect_left(starts, begin) for begin in begins]

    def windows(self, budget: int, overlap: int) -> Iterator[tuple[int, int]]:
        """Spans of at most ``budget`` tokens (at least 4) which together hold every token.

        A window ends where a sentence does, if that leaves it at least half full; the next one begins up to
        ``overlap`` tokens earlier, with a sentence if one begins there.
        """
        overlap = min(overlap, budget // 4)
        first, tokens = 0, len(self._starts)
        while first < tokens:
            last = min(tokens, first + budget)
            if last < tokens:
                last = self._sentence_at_or_before(last, least=first + (budget + 1) // 2) or last
            yield self._starts[first], self._ends[last - 1]
            if last == tokens:
                return
            shared = last - overlap
            first = self._sentence_at_or_after(shared, below=last) if overlap else last

    def _sentence_at_or_before(self, token: int, least: int) -> int | None:
        at = bisect_left(self._sentences, token + 1) - 1
        return self._sentences[at] if at >= 0 and self._sentences[at] >= least else None

    def _sentence_at_or_after(self, token: int, below: int) -> int:
        at = bisect_left(self._sentences, token)
        found = self._sentences[at] if at < len(self._sentences) else below
        return found if found < below else token
