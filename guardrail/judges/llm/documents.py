"""Which sentences of the contexts a call shows: all of them, or, when they are too many, the closest."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from guardrail.claims.model import Claim
from guardrail.evidence.index import EvidenceIndex, Passage
from guardrail.judges.llm.sentences import Sentences, numbered


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of a context as it goes into the prompt: numbered lines. ``label`` is d1, d2, …"""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What is shown: ``numbers`` of sentences. ``partial``: some of the contexts' are not.

    ``uncovered`` are the ids of claims of which not one passage fitted: they can't be judged.
    """

    shown: tuple[Shown, ...]
    numbers: Container[int]
    partial: bool = False
    uncovered: frozenset[str] = frozenset()


def select(
    index: EvidenceIndex, sentences: Sentences, claims: dict[str, Claim], max_chars: int, per_claim: int
) -> Selection:
    """All sentences in their order when they have at most ``max_chars`` characters with their numbers, else
    those of the best passages.

    The first form is the same in every call of a response, so that a provider's prefix cache can serve it.
    """
    if sum(len(context.text) for context in index.contexts) <= max_chars:
        lines = {number: _line(sentences, number) for number in range(1, len(sentences) + 1)}
        if sum(len(line) + 1 for line in lines.values()) <= max_chars:
            return Selection(tuple(_shown(sentences, lines)), range(1, len(sentences) + 1))
    return _closest(index, sentences, claims, max_chars, per_claim)


def _line(sentences: Sentences, number: int) -> str:
    return numbered(number, sentences.text(number))


def _shown(sentences: Sentences, lines: dict[int, str]) -> Iterable[Shown]:
    """Lines by runs of neighbours. Contexts keep their labels whether or not others are shown."""
    run: list[str] = []
    last = 0
    for number, line in sorted(lines.items()):
        if run and (number != last + 1 or sentences.position(number) != sentences.position(last)):
            yield Shown(f"d{sentences.position(last) + 1}", "\n".join(run))
            run = []
        run.append(line)
        last = number
    if run:
        yield Shown(f"d{sentences.position(last) + 1}", "\n".join(run))


def _closest(
    index: EvidenceIndex, sentences: Sentences, claims: dict[str, Claim], max_chars: int, per_claim: int
) -> Selection:
    """The best passage of every claim, then the second best, and so on, as long as they fit."""
    # Of contexts that share an id the first counts.
    positions = {context.id: at for at, context in reversed(list(enumerate(index.contexts)))}
    ranked = {claim_id: _search(index, claim, per_claim) for claim_id, claim in claims.items()}
    chosen: dict[int, str] = {}
    told: set[str] = set()  # texts of passages: what is said twice is shown once
    left = max_chars

    def take(passage: Passage) -> bool:
        nonlocal left
        if passage.text in told:
            return True
        numbers = sentences.overlapping(positions[passage.context_id], passage.start, passage.end)
        lines = {number: _line(sentences, number) for number in numbers if number not in chosen}
        size = sum(len(line) + 1 for line in lines.values())
        if size > left:
            return False
        told.add(passage.text)
        chosen.update(lines)
        left -= size
        return True

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
        tuple(_shown(sentences, chosen)),
        frozenset(chosen),
        partial=True,
        uncovered=frozenset(claims.keys() - covered),
    )


def _search(index: EvidenceIndex, claim: Claim, k: int) -> Sequence[Passage]:
    """The claim's own words first; with its lead-in for claims that say "it" where the contexts name it.

    What the claim cites is looked at first.
    """
    cited = frozenset(by for citation in claim.citations for by in citation.context_ids)
    own = index.search(claim.prose.text, k, first=cited)
    if not claim.lead_in:
        return own
    wider = index.search(f"{claim.lead_in} {claim.prose.text}", k, first=cited)
    mixed = {
        (passage.context_id, passage.start): passage
        for pair in zip_longest(own, wider)
        for passage in pair
        if passage is not None
    }
    return list(mixed.values())[:k]
