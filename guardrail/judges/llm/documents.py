"""Which text of the contexts a call shows: all of it, or, when that is too long, the closest passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from guardrail.claims.model import Claim
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.model import Passage


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of a context as it goes into the prompt. ``label`` (d1, d2, …) stands for the context's id."""

    label: str
    context_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What is shown. ``partial``: some text of the contexts is not.

    ``uncovered`` are the ids of claims of which not one passage fitted: they can't be judged.
    """

    shown: tuple[Shown, ...]
    partial: bool = False
    uncovered: frozenset[str] = frozenset()


def select(index: EvidenceIndex, claims: dict[str, Claim], max_chars: int, per_claim: int) -> Selection:
    """All contexts in their order when they have at most ``max_chars`` characters, else the best passages.

    The first form is the same in every call of a response, so that a provider's prefix cache can serve it.
    """
    if sum(len(context.text) for context in index.contexts) <= max_chars:
        return Selection(
            tuple(
                Shown(f"d{number}", context.id, context.text)
                for number, context in enumerate(index.contexts, 1)
                if context.text.strip()
            )
        )
    return _closest(index, claims, max_chars, per_claim)


def _closest(index: EvidenceIndex, claims: dict[str, Claim], max_chars: int, per_claim: int) -> Selection:
    """The best passage of every claim, then the second best, and so on, as long as they fit."""
    ranked = {claim_id: _search(index, claim, per_claim) for claim_id, claim in claims.items()}
    chosen: dict[str, Passage] = {}  # by text: what is said twice is shown once
    left = max_chars

    def take(passage: Passage) -> bool:
        nonlocal left
        if passage.text not in chosen and len(passage.text) <= left:
            chosen[passage.text] = passage
            left -= len(passage.text)
        return passage.text in chosen

    covered = set()
    for row in zip_longest(*ranked.values()):
        for claim_id, passage in zip(ranked, row, strict=True):
            if passage is not None and take(passage):
                covered.add(claim_id)
    nothing_found = {claim_id for claim_id, passages in ranked.items() if not passages}
    if nothing_found:
        # A claim that shares no word with any context, perhaps because it is in another language, is judged
        # by as much of the contexts as fits.
        for passage in index.passages:
            if take(passage):
                covered |= nothing_found
    return Selection(
        tuple(_merged(index, chosen.values())), partial=True, uncovered=frozenset(claims.keys() - covered)
    )


def _search(index: EvidenceIndex, claim: Claim, k: int) -> Sequence[Passage]:
    """The claim's own words first; with its lead-in for claims that say "it" where the contexts name it."""
    own = index.search(claim.text, k)
    if not claim.lead_in:
        return own
    wider = index.search(f"{claim.lead_in} {claim.text}", k)
    mixed = {
        (passage.context_id, passage.start): passage
        for pair in zip_longest(own, wider)
        for passage in pair
        if passage is not None
    }
    return list(mixed.values())[:k]


def _merged(index: EvidenceIndex, passages: Iterable[Passage]) -> Iterable[Shown]:
    """Passages in the order of the contexts, those that overlap or touch joined."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for passage in passages:
        spans.setdefault(passage.context_id, []).append((passage.start, passage.end))
    for number, context in enumerate(index.contexts, 1):
        # Of contexts that share an id the first that holds the passages counts.
        joined: list[tuple[int, int]] = []
        for start, end in sorted(spans.pop(context.id, ())):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        for start, end in joined:
            yield Shown(f"d{number}", context.id, context.text[start:end])
