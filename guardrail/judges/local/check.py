"""One claim against the contexts of its response: features, findings, verdict."""

from __future__ import annotations

from typing import Final

from guardrail.claims.model import Claim
from guardrail.events import Evidence, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judgement
from guardrail.judges.local.candidates import find_candidates
from guardrail.judges.local.claim_view import view_of
from guardrail.judges.local.combiner import Parameters
from guardrail.judges.local.features import best_alignment, overlap_features
from guardrail.judges.local.polarity import negations, opposition
from guardrail.judges.local.rarity import Rarity
from guardrail.judges.local.settings import LocalJudgeSettings

_NAME: Final = "local"


class ClaimChecker:
    """Pure CPU work without state of its own, so threads may share one."""

    def __init__(self, settings: LocalJudgeSettings, parameters: Parameters) -> None:
        self._settings = settings
        self._parameters = parameters
        self._rarity = Rarity(parameters.rarity)
        self._supported_at = settings.supported_at or parameters.supported_at
        self._partial_at = settings.partially_supported_at or parameters.partially_supported_at

    def check(self, claim_id: str, claim: Claim, question: str, evidence: EvidenceIndex) -> Judgement:
        """The judgement of one claim."""
        layout = evidence.layout
        view = view_of(claim, question, self._rarity)
        found = find_candidates(
            layout, view, self._settings.sentences_per_claim, self._settings.passages_per_claim
        )
        if not found.sentences:
            reason = "there is no context" if not layout.terms else "no source has any word of the claim"
            return Judgement(
                claim_id, Verdict.UNSUPPORTED, 0.99, 0.01, _NAME, reasoning=f"Unsupported: {reason}."
            )
        features = overlap_features(layout, view, found)
        aligned = best_alignment(layout, view, found)
        assert aligned is not None
        context = evidence.contexts[layout.sentences.context[aligned.number]]
        start, end = layout.sentences.start[aligned.number], layout.sentences.end[aligned.number]
        quote = context.text[start:end]
        first, last = layout.sentences.first[aligned.number], layout.sentences.last[aligned.number]
        source_terms = frozenset(layout.terms[first:last])
        numbers = [
            s
            for s, t in zip(view.surfaces, view.terms, strict=True)
            if s[0].isdigit() and t not in source_terms
        ]
        opposed = opposition(view.surfaces, quote.split(), frozenset(view.terms), source_terms)
        mismatch = (negations(view.terms) > 0) != (negations(source_terms) > 0)
        features |= {
            "in_order": aligned.alignment.in_order,
            "numbers_missing": float(len(numbers)),
            "negation_mismatch": float(mismatch),
            "antonym": float(opposed is not None),
        }
        support = self._parameters.combiner.probability(features)
        proof = (Evidence(context_id=context.id, quote=quote, span=(start, end)),)
        if features["sentence"] >= 0.6 and (numbers or opposed or mismatch):
            what = (
                f"'{numbers[0]}'"
                if numbers
                else "the negation"
                if mismatch
                else f"'{opposed and opposed.claim_word}'"
            )
            return Judgement(
                claim_id, Verdict.CONTRADICTED, 0.8, min(support, 0.2), _NAME, proof, (),
                f"The source says otherwise about {what}.",
            )  # fmt: skip
        if support >= self._supported_at:
            return Judgement(
                claim_id, Verdict.SUPPORTED, support, support, _NAME, proof, (), "The source says so."
            )
        verdict = Verdict.PARTIALLY_SUPPORTED if support >= self._partial_at else Verdict.UNSUPPORTED
        return Judgement(
            claim_id, verdict, 1 - support, support, _NAME, proof, (), "The source says only part of it."
        )
