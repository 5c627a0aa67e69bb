"""Negation, antonyms and strength: small words that turn a sentence round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from guardrail.evidence.tokens import stem, term_of
from guardrail.judges.local.antonyms import ANTONYMS

_NEGATORS: Final = frozenset(
    term_of(word)
    for word in """
    not no never without neither nor none nobody nothing nowhere cannot except hardly barely scarcely fail
    lack refuse deny unable exclude instead
    """.split()  # noqa: SIM905
)
_STRONG: Final = frozenset(
    term_of(word)
    for word in """
    all every always only never must entirely completely solely guarantee none any exclusively
    """.split()  # noqa: SIM905
)
_HEDGES: Final = frozenset(
    term_of(word)
    for word in """
    may might can could some sometimes often usually possibly perhaps likely mostly generally typically partly
    several suggest appear seem
    """.split()  # noqa: SIM905
)
_NEGATIVE_PREFIXES: Final = ("un", "in", "im", "il", "ir", "non", "dis")


@dataclass(frozen=True, slots=True)
class Opposition:
    """Two words, one of the claim and one of its source, that say the opposite."""

    claim_word: str
    source_word: str


def negations(terms: Iterable[int]) -> int:
    """How many words of the terms negate."""
    return sum(term in _NEGATORS for term in terms)


def strengthened(claim: frozenset[int], source: frozenset[int]) -> tuple[int, int]:
    """``(absolutes, hedges)``: absolutes of the claim that the source lacks, hedges of it the claim
    drops."""
    return len((claim & _STRONG) - source), len((source & _HEDGES) - claim)


def opposition(claim: Sequence[str], source: Sequence[str]) -> Opposition | None:
    """The first word of the claim whose antonym, and not itself, stands in the source."""
    by_stem = {stem(word): word for word in source}
    claimed = {stem(word) for word in claim}
    for word in claim:
        stemmed = stem(word)
        if stemmed in by_stem:
            continue
        for other in _opposites(stemmed):
            if other in by_stem and other not in claimed:
                return Opposition(word, by_stem[other])
    # "harmful" of the claim where the source says "harmless" is in the list; "unsafe" is built from "safe".
    for other, word in by_stem.items():
        if other in claimed:
            continue
        for prefix in _NEGATIVE_PREFIXES:
            positive = other.removeprefix(prefix)
            if positive != other and len(positive) > 3 and positive in claimed and positive not in by_stem:
                return Opposition(next(w for w in claim if stem(w) == positive), word)
    return None


def _opposites(stemmed: str) -> list[str]:
    found = list(ANTONYMS.get(stemmed, ()))
    for prefix in _NEGATIVE_PREFIXES:
        positive = stemmed.removeprefix(prefix)
        if positive != stemmed and len(positive) > 3:
            found.append(positive)
    return found
