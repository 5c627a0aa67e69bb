"""Graded features of a claim against its contexts: the input of the combiner."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from guardrail.evidence.layout import Layout, Windows
from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.judges.local.alignment import Alignment, align
from guardrail.judges.local.candidates import Candidates, Match
from guardrail.judges.local.claim_view import ClaimView

_ALIGNED_CLAIM_TOKENS: Final = 80
_ALIGNED_SENTENCES: Final = 2


@dataclass(frozen=True, slots=True)
class Aligned:
    """The sentence (its number) that the claim follows most closely, and how."""

    number: int
    alignment: Alignment


def overlap_features(layout: Layout, view: ClaimView, found: Candidates) -> dict[str, float]:
    """Shares of the claim's words, by rarity, in ever larger parts of the contexts; all in 0..1 or
    counts."""
    total = view.weight or 1.0
    passage = found.passages[0] if found.passages else None
    sentence = found.sentences[0] if found.sentences else None
    in_passage = passage.terms if passage else frozenset()
    missing = [weight for term, weight in view.content.items() if term not in in_passage]
    unseen = [weight for term, weight in view.content.items() if term not in found.present]
    asked = view.question & view.content.keys()
    own = {term: weight for term, weight in view.content.items() if term not in asked}
    own_total = sum(own.values())
    return {
        "passage": passage.coverage if passage else 0.0,
        "passage_plain": len(in_passage) / max(1, len(view.content)),
        "sentence": max((match.coverage for match in found.sentences), default=0.0),
        "two_sentences": _two_sentences(view, found, total),
        "anywhere": sum(view.content[term] for term in found.present) / total,
        "passage_own": sum(own[t] for t in in_passage & own.keys()) / own_total if own_total else 1.0,
        "passage_missing_max": max(missing, default=0.0),
        "passage_missing": min(8.0, float(len(missing))),
        "anywhere_missing_max": max(unseen, default=0.0),
        "anywhere_missing": min(8.0, float(len(unseen))),
        "passage_bigrams": _bigrams(layout, view, layout.passages, passage),
        "sentence_bigrams": _bigrams(layout, view, layout.sentences, sentence),
        "precision": _precision(layout, sentence),
        "words": math.log1p(len(view.content)),
        "mean_rarity": total / max(1, len(view.content)),
        "context_words": math.log1p(len(layout.terms)),
        "asked": len(asked) / max(1, len(view.content)),
        "pronoun": float(view.has_pronoun),
    }


def best_alignment(layout: Layout, view: ClaimView, found: Candidates) -> Aligned | None:
    """The candidate sentence that the claim follows most closely; None if none shares a word with it."""
    best: Aligned | None = None
    claim = view.terms[:_ALIGNED_CLAIM_TOKENS]
    for match in found.sentences[:_ALIGNED_SENTENCES]:
        first, last = layout.sentences.first[match.number], layout.sentences.last[match.number]
        aligned = Aligned(match.number, align(claim, layout.terms[first:last]))
        if best is None or aligned.alignment.in_order > best.alignment.in_order:
            best = aligned
    return best


def _two_sentences(view: ClaimView, found: Candidates, total: float) -> float:
    """The share that the best sentence and the one that adds most to it hold together."""
    if not found.sentences:
        return 0.0
    first = found.sentences[0].terms
    union = max(
        (first | other.terms for other in found.sentences), key=lambda t: sum(view.content[x] for x in t)
    )
    return sum(view.content[term] for term in union) / total


def _bigrams(layout: Layout, view: ClaimView, windows: Windows, match: Match | None) -> float:
    """The share of the claim's neighbouring words that are neighbours in the window too."""
    pairs = set(zip(view.terms, view.terms[1:], strict=False))
    if match is None or not pairs:
        return 0.0
    terms = layout.terms[windows.first[match.number] : windows.last[match.number]]
    return len(pairs & set(zip(terms, terms[1:], strict=False))) / len(pairs)


def _precision(layout: Layout, match: Match | None) -> float:
    """The share of the best sentence's words that the claim repeats."""
    if match is None:
        return 0.0
    terms = layout.terms[layout.sentences.first[match.number] : layout.sentences.last[match.number]]
    content = set(terms) - STOP_TERMS
    return len(match.terms & content) / max(1, len(content))
