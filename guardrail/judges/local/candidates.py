"""Which sentences of the contexts a claim is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from guardrail.evidence.layout import Layout
from guardrail.judges.local.claim_view import ClaimView

_HINT_WEIGHT: Final = 0.2
_CITED_WEIGHT: Final = 0.25
_LENGTH_PENALTY: Final = 0.002  # a token; settles ties for the sentence that says little else
_LEAST: Final = 3  # sentences that are wanted where few share a word with the claim


@dataclass(frozen=True, slots=True)
class Match:
    """A sentence and what of the claim stands in it: ``coverage`` is the share by rarity, 0..1."""

    number: int
    terms: frozenset[int]
    coverage: float
    rank: float


@dataclass(frozen=True, slots=True)
class Candidates:
    """Best first. ``present`` are the content terms of the claim that stand anywhere in the contexts."""

    sentences: tuple[Match, ...]
    present: frozenset[int]

    @property
    def shared(self) -> bool:
        """Whether any of the sentences holds a word of the claim."""
        return any(match.terms for match in self.sentences)


def find_candidates(
    layout: Layout, view: ClaimView, most: int, *, cited: frozenset[int] = frozenset()
) -> Candidates:
    """The best ``most`` sentences for a claim, by the rarity-weighted share of its words that they hold;
    those of ``cited`` contexts, by their numbers, ahead of others that hold as much.

    Where fewer than three hold any of its words, those that have most of the question's come after them, and
    where none does, those that come first, as a retriever ranks: an answer may use words of its own. Time
    grows with the number of occurrences of the claim's words in the contexts.
    """
    sentences = layout.sentences
    held: dict[int, list[int]] = {}
    present = set()
    for term in view.content:
        positions = layout.positions(term)
        if positions:
            present.add(term)
        for number in sentences.holding_any(positions):
            held.setdefault(number, []).append(term)
    hints: dict[int, float] = {}
    for term, weight in view.hints.items():
        for number in sentences.holding_any(layout.positions(term)):
            hints[number] = hints.get(number, 0.0) + weight
    total = view.weight or 1.0
    hint_total = sum(view.hints.values()) or 1.0
    ranked = []
    for number, terms in held.items():
        coverage = sum([view.content[term] for term in terms]) / total
        rank = coverage - _LENGTH_PENALTY * (sentences.last[number] - sentences.first[number])
        rank += _HINT_WEIGHT * hints.get(number, 0.0) / hint_total
        if sentences.context[number] in cited:
            rank += _CITED_WEIGHT
        ranked.append((-rank, number, coverage))
    ranked.sort()
    best = [Match(n, frozenset(held[n]), coverage, -rank) for rank, n, coverage in ranked[:most]]
    if len(best) < _LEAST:
        likely = sorted(hints.keys() - held.keys(), key=lambda number: (-hints[number], number))
        if not best:
            likely += [n for n in range(min(_LEAST, len(sentences))) if n not in hints]
        best += [Match(n, frozenset(), 0.0, -1.0) for n in likely[: min(_LEAST, most) - len(best)]]
    return Candidates(tuple(best), frozenset(present))
