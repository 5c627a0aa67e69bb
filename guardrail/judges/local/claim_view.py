"""What of a claim is compared with the contexts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from guardrail.claims.model import Claim
from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.evidence.tokens import term_of, words
from guardrail.judges.local.clauses import Clause, clauses_of
from guardrail.judges.local.rarity import Rarity
from guardrail.judges.local.source import facts_of, tokens_within
from guardrail.values import Value, ValueKind

_TEXTS_REMEMBERED: Final = 512
_CLOSING_WEIGHT: Final = 0.35


_ANTECEDENT: Final = 0.6
PRONOUNS: Final = frozenset(
    term_of(word)
    for word in "it its he him his she her they them their this that these those".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class ClaimView:
    """The tokens of one claim. ``content`` maps each term that says what the claim is about to its rarity.

    ``starts``, ``terms`` and ``surfaces`` are parallel: one entry a token of ``text``. ``hints`` are terms
    of the question and the lead-in, for finding the place the claim speaks of, never for supporting it.
    ``antecedents`` are those of the lead-in, where the claim has a pronoun that may stand for them.
    ``name_tokens`` and ``value_tokens`` are the numbers of the tokens that belong to names and other
    values. ``weight`` is the sum of all rarities.
    """

    text: str
    starts: tuple[int, ...]
    terms: tuple[int, ...]
    surfaces: tuple[str, ...]
    content: dict[int, float]
    hints: dict[int, float]
    question: frozenset[int]
    antecedents: dict[int, float]
    values: tuple[Value, ...]
    name_tokens: frozenset[int]
    value_tokens: frozenset[int]
    clauses: tuple[Clause, ...]
    weight: float

    def share(self, terms: frozenset[int]) -> float:
        """How much of the claim's content ``terms`` hold, by rarity, 0..1."""
        total = self.weight
        return sum(self.content[term] for term in terms & self.content.keys()) / total if total else 0.0


def view_of(claim: Claim, question: str, rarity: Rarity) -> ClaimView:
    """The view of a claim; linear in its length."""
    tokens = words(claim.prose.text)
    terms = tuple(term for _, term, _ in tokens)
    starts = tuple(start for start, _, _ in tokens)
    values = facts_of(claim.prose.text).values
    content = {term: rarity.of(term) for term in terms if term not in STOP_TERMS}
    if not content:  # "He did." has nothing else to go by
        content = dict.fromkeys(terms, _CLOSING_WEIGHT)
    asked = _topic_of(question)
    lead_in = _topic_of(claim.lead_in)
    antecedents = {term: _ANTECEDENT * rarity.of(term) for term in lead_in}
    return ClaimView(
        text=claim.prose.text,
        starts=starts,
        terms=terms,
        surfaces=tuple(surface for _, _, surface in tokens),
        content=content,
        hints={term: rarity.of(term) for term in asked | lead_in if term not in content},
        question=asked,
        antecedents={} if PRONOUNS.isdisjoint(terms) else antecedents,
        values=values,
        name_tokens=_tokens_of((v for v in values if v.kind is ValueKind.NAME), starts),
        value_tokens=_tokens_of((v for v in values if v.kind is not ValueKind.NAME), starts),
        clauses=clauses_of(claim.prose.text, starts, terms),
        weight=sum(content.values()),
    )


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def _topic_of(text: str) -> frozenset[int]:
    """What a question or lead-in is about: the claims of a response share it."""
    return frozenset(term for _, term, _ in words(text)) - STOP_TERMS


def _tokens_of(values: Iterable[Value], starts: tuple[int, ...]) -> frozenset[int]:
    return frozenset(i for value in values for i in tokens_within(starts, value.start, value.end))
