"""What of a claim is looked for in the contexts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from guardrail.evidence.tokens import STOP_TERMS, term_of, words
from guardrail.judges.local.rarity import Rarity

_TEXTS_REMEMBERED: Final = 512
_CLOSING_WEIGHT: Final = 0.35
PRONOUNS: Final = frozenset(
    term_of(word)
    for word in "it its he him his she her they them their this that these those".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class ClaimView:
    """The tokens of one claim. ``content`` maps each term that says what the claim is about to its rarity.

    ``terms`` has one entry a token of ``text``. ``hints`` are terms of the
    question and the lead-in, for finding the place that the claim speaks of, never for supporting it.
    ``weight`` is the sum of all rarities of ``content``.
    """

    text: str
    terms: tuple[int, ...]
    content: dict[int, float]
    hints: dict[int, float]
    weight: float

    def share(self, terms: frozenset[int]) -> float:
        """How much of the claim's content ``terms`` hold, by rarity, 0..1."""
        total = self.weight
        return sum(self.content[term] for term in terms & self.content.keys()) / total if total else 0.0


def view_of(text: str, question: str, lead_in: str, rarity: Rarity) -> ClaimView:
    """The view of a claim; linear in its length."""
    tokens = words(text)
    terms = tuple(term for _, term, _ in tokens)
    content = {term: rarity.of(term) for term in terms if term not in STOP_TERMS}
    if not content:  # "He did." has nothing else to go by
        content = dict.fromkeys(terms, _CLOSING_WEIGHT)
    asked = _topic_of(question) | _topic_of(lead_in)
    return ClaimView(
        text=text,
        terms=terms,
        content=content,
        hints={term: rarity.of(term) for term in asked if term not in content},
        weight=sum(content.values()),
    )


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def _topic_of(text: str) -> frozenset[int]:
    """What a question or lead-in is about: the claims of a response share it."""
    return frozenset(term for _, term, _ in words(text)) - STOP_TERMS
