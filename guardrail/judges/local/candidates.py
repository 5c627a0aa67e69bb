"""Which sentences and passages of the contexts a claim is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from guardrail.evidence.layout import Layout, Windows
from guardrail.judges.local.claim_view import ClaimView

_HINT_WEIGHT: Final = 0.2
_LENGTH_PENALTY: Final = 0.002  # a token; settles ties for the sentence that says little else
_TOGETHER: Final = 3  # sentences that are wanted where few share a word with the claim


@dataclass(frozen=True, slots=True)
class Match:
    """A sentence or passage and what of the claim stands in it: ``coverage`` is the share by rarity,
    0..1."""

    number: int
    terms: frozenset[int]
    coverage: float
    rank: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """Best first. ``present`` are the content terms of the claim that stand anywhere in the contexts."""

    sentences: tuple[Match, ...]
    passages: tuple[Match, ...]
    present: frozenset[int]

    @property
    def shared(self) -> bool:
        """Whether any of the sentences holds a word of the claim."""
        return any(match.terms for match in self.sentences)


def find_candidates(
    layout: Layout, view: ClaimView, sentences: int, passages: int, *, in_other_words: bool = False
) -> Candidates:
    """The best of both for a claim, by the rarity-weighted share of its words that they hold.

    ``in_other_words``: where fewer than three sentences hold any of them, those that have most of the
    question's come after them; and where none does, those that come first, as a retriever ranks. Time grows
    with the number of occurrences of the claim's words in the contexts.
    """
    in_sentence: dict[int, list[int]] = {}
    in_passage: dict[int, list[int]] = {}
    present = set()
    for term in view.content:
        positions = layout.positions(term)
        if positions:
            present.add(term)
        for windows, found in ((layout.sentences, in_sentence), (layout.passages, in_passage)):
            for number in windows.holding_any(positions):
                found.setdefault(number, []).append(term)
    hints: dict[int, float] = {}
    for term, weight in view.hints.items():
        for number in layout.sentences.holding_any(layout.positions(term)):
            hints[number] = hints.get(number, 0.0) + weight
    best = _best(layout.sentences, in_sentence, view, hints, sentences)
    if in_other_words and len(best) < _TOGETHER:
        likely = sorted(hints.keys() - in_sentence.keys(), key=lambda number: (-hints[number], number))
        if not best:
            likely += [n for n in range(min(_TOGETHER, len(layout.sentences))) if n not in hints]
        wanted = min(_TOGETHER, sentences) - len(best)
        best += tuple(Match(number, frozenset(), 0.0, -1.0) for number in likely[:wanted])
    return Candidates(
        best,
        _best(layout.passages, in_passage, view, {}, passages),
        frozenset(present),
    )


def _best(
    windows: Windows, found: dict[int, list[int]], view: ClaimView, hints: dict[int, float], k: int
) -> tuple[Match, ...]:
    total = view.weight or 1.0
    hint_total = sum(view.hints.values()) or 1.0
    ranked = []
    content, first, last = view.content, windows.first, windows.last
    for number, terms in found.items():
        coverage = sum([content[term] for term in terms]) / total
        rank = coverage - _LENGTH_PENALTY * (last[number] - first[number])
        if hints:
            rank += _HINT_WEIGHT * hints.get(number, 0.0) / hint_total
        ranked.append((-rank, number, coverage))
    ranked.sort()
    return tuple(Match(n, frozenset(found[n]), coverage, -rank) for rank, n, coverage in ranked[:k])
