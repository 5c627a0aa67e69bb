"""Graded features of a claim against its contexts: the input of the combiner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from guardrail.evidence.layout import Layout, Windows
from guardrail.evidence.stopwords import STOP_TERMS
from guardrail.judges.local.candidates import Candidates, Match
from guardrail.judges.local.claim_view import ClaimView
from guardrail.judges.local.compare import Comparison, Turn
from guardrail.judges.local.details import State, ValueCheck
from guardrail.judges.local.polarity import absolutes


def overlap_features(
    layout: Layout, view: ClaimView, found: Candidates, settled: frozenset[int]
) -> dict[str, float]:
    """Shares of the claim's words, by rarity, in ever larger parts of the contexts; all in 0..1 or counts.

    ``settled`` are words of values that the contexts have, in whatever form: they count as found.
    """
    passage = found.passages[0] if found.passages else None
    sentence = found.sentences[0] if found.sentences else None
    in_passage = (passage.terms if passage else frozenset()) | settled
    anywhere = found.present | settled
    missing = [weight for term, weight in view.content.items() if term not in in_passage]
    unseen = [weight for term, weight in view.content.items() if term not in anywhere]
    asked = view.question & view.content.keys()
    own = {term: weight for term, weight in view.content.items() if term not in asked}
    own_total = sum(own.values())
    by_sentence = [match.terms | settled for match in found.sentences]
    return {
        "passage": view.share(in_passage),
        "passage_plain": len(in_passage & view.content.keys()) / max(1, len(view.content)),
        "sentence": max((view.share(terms) for terms in by_sentence), default=0.0),
        "three_sentences": view.share(_together(view, by_sentence)),
        "two_sentences": max((view.share(by_sentence[0] | terms) for terms in by_sentence), default=0.0),
        "anywhere": view.share(anywhere),
        "passage_own": sum(own[t] for t in in_passage & own.keys()) / own_total if own_total else 1.0,
        "passage_missing_max": max(missing, default=0.0),
        "passage_missing": min(8.0, float(len(missing))),
        "anywhere_missing_max": max(unseen, default=0.0),
        "anywhere_missing": min(8.0, float(len(unseen))),
        "passage_bigrams": _bigrams(layout, view, layout.passages, passage),
        "sentence_bigrams": _bigrams(layout, view, layout.sentences, sentence),
    }


def comparison_features(compared: Sequence[Comparison], view: ClaimView) -> dict[str, float]:
    """How closely the best sentence is followed, and what turns the claim round. ``compared`` is not
    empty."""
    best = max(compared, key=lambda c: c.coverage + 0.5 * c.alignment.in_order)
    turned = max((c.coverage for c in compared if c.turn), default=0.0)
    clean = max((c.coverage for c in compared if not c.turn), default=0.0)
    return {
        "in_order": best.alignment.in_order,
        "longest": best.alignment.longest,
        "swapped": min(4.0, best.swapped),
        "claim_negates": float(best.negated > 0),
        "source_negates": float(best.negated < 0),
        "antonym": float(best.turn is Turn.ANTONYM),
        "other_name": float(best.turn is Turn.NAME),
        "turned_ahead": turned - clean,
        "absolutes": float(absolutes(frozenset(view.terms), best.sentence.known)),
    }


def detail_features(
    checks: Sequence[ValueCheck], layout: Layout, view: ClaimView, found: Candidates
) -> dict[str, float]:
    """What became of the claim's values and names."""
    names = [view.terms[i] for i in view.name_tokens if view.terms[i] not in STOP_TERMS]
    passage = found.passages[0].terms if found.passages else frozenset()
    conflicts = [check.frame for check in checks if check.state is State.CONFLICT]
    return {
        "values_absent": float(sum(check.state is State.ABSENT for check in checks)),
        "values_conflicting": float(len(conflicts)),
        "value_conflict": max(conflicts, default=0.0),
        "value_frame": min((check.frame for check in checks if check.state is State.FOUND), default=1.0),
        "names_not_in_passage": min(4.0, float(sum(term not in passage for term in names))),
        "names_nowhere": min(4.0, float(sum(not layout.contains(term) for term in names))),
    }


def _bigrams(layout: Layout, view: ClaimView, windows: Windows, match: Match | None) -> float:
    """The share of the claim's neighbouring words that are neighbours in the window too."""
    pairs = set(pairwise(view.terms))
    if match is None or not pairs:
        return 0.0
    terms = layout.terms[windows.first[match.number] : windows.last[match.number]]
    return len(pairs & set(pairwise(terms))) / len(pairs)


def _together(view: ClaimView, sentences: Sequence[frozenset[int]]) -> frozenset[int]:
    """What the best sentence holds with the two that add most to it, one after the other."""
    held: frozenset[int] = sentences[0] if sentences else frozenset()
    for _ in range(2):
        held = max((held | terms for terms in sentences), key=view.share, default=held)
    return held
