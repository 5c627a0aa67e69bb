"""Which sentences and passages of the contexts a claim is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from guardrail.evidence.layout import Layout, Windows
from guardrail.judges.local.claim_view import ClaimView

_HINT_WEIGHT: Final = 0.2
_LENGTH_PENALTY: Final = 0.002  # a token; settles ties for the sentence that says little else


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


def find_candidates(layout: Layout, view: ClaimView, sentences: int, passages: int) -> Candidates:
    """The best of both for a claim, by the rarity-weighted share of its words that they hold.

    Time grows with the number of occurrences of the claim's words in the contexts.
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
    return Candidates(
        _best(layout.sentences, in_sentence, view, hints, sentences),
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
