"""A claim laid along one sentence of its source: what is kept, in which order, and what is put in its
place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from guardrail.evidence.stopwords import STOP_TERMS


@dataclass(frozen=True, slots=True)
class Alignment:
    """``runs`` are ``(claim token, source token, length)`` of equal stretches, in order.

    ``in_order`` and ``longest`` are shares of the claim's tokens, 0..1. ``swaps`` are stretches of words in
    the claim that stand where the source has others: ``(claim tokens, source tokens)``, as half-open
    ranges.
    """

    runs: tuple[tuple[int, int, int], ...]
    in_order: float
    longest: float
    swaps: tuple[tuple[range, range], ...]
    source: tuple[int, ...]

    @property
    def source_span(self) -> tuple[int, int]:
        """The stretch of the source from its first to its last aligned token; empty if none is."""
        if not self.runs:
            return 0, 0
        return self.runs[0][1], self.runs[-1][1] + self.runs[-1][2]


class Aligner:
    """Lays one claim along many sentences; what only depends on the claim is prepared once."""

    __slots__ = ("_claim", "_matcher")

    def __init__(self, claim: Sequence[int]) -> None:
        """``claim`` are the terms of the claim."""
        self._claim = claim
        self._matcher = SequenceMatcher(None, (), claim, autojunk=False)

    def align(self, source: Sequence[int]) -> Alignment:
        """Align with a sentence. Quadratic in the worst case: callers bound both lengths."""
        self._matcher.set_seq1(source)
        return _alignment(self._claim, source, self._matcher)


def _alignment(claim: Sequence[int], source: Sequence[int], matcher: SequenceMatcher[int]) -> Alignment:
    runs = tuple((b, a, size) for a, b, size in matcher.get_matching_blocks() if size)
    length = len(claim) or 1
    swaps = []
    at_claim = at_source = 0
    for number, (in_claim, in_source, size) in enumerate((*runs, (len(claim), len(source), 0))):
        gap_claim, gap_source = range(at_claim, in_claim), range(at_source, in_source)
        # Before the first and after the last run the source goes on by itself: only what is between counts,
        # or what has one side anchored and is as short as the claim's own gap.
        if gap_claim and gap_source:
            if number == 0:
                gap_source = gap_source[-len(gap_claim) - 1 :]
            elif number == len(runs):
                gap_source = gap_source[: len(gap_claim) + 1]
            if _says_something(claim, gap_claim) and _says_something(source, gap_source):
                swaps.append((gap_claim, gap_source))
        at_claim, at_source = in_claim + size, in_source + size
    return Alignment(
        runs,
        sum(size for _, _, size in runs) / length,
        max((size for _, _, size in runs), default=0) / length,
        tuple(swaps),
        tuple(source),
    )


def _says_something(terms: Sequence[int], stretch: range) -> bool:
    return any(terms[i] not in STOP_TERMS for i in stretch)
