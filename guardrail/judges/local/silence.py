"""Whether the contexts are as silent as a claim says."""

from __future__ import annotations

from typing import Final

from guardrail.claims.phrases import words
from guardrail.claims.silence import Silence
from guardrail.evidence.index import EvidenceIndex
from guardrail.evidence.tokens import STOP_TERMS, term_of
from guardrail.evidence.tokens import words as words_of
from guardrail.judges.local.rarity import Rarity

_IDLE: Final = STOP_TERMS | {term_of(word) for word in words("idle_topics")}
_MENTIONED: Final = 0.55  # of a topic, by rarity, in one sentence


def mentioned(silence: Silence, evidence: EvidenceIndex, rarity: Rarity) -> int | None:
    """A sentence that speaks of one of the topics that the documents are said to be silent on; None where
    none does."""
    layout = evidence.layout
    for topic in silence.topics:
        terms = {term for _, term, _ in words_of(topic)} - _IDLE
        total = sum(rarity.of(term) for term in terms)
        held: dict[int, float] = {}
        for term in terms:
            for number in layout.sentences.holding_any(layout.positions(term)):
                held[number] = held.get(number, 0.0) + rarity.of(term)
        best = max(held, key=lambda number: held[number], default=None)
        if best is not None and held[best] >= _MENTIONED * total:
            return best
    return None
