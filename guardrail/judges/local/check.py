"""One claim against the contexts of its response: candidates, comparisons, features, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from guardrail.claims.model import Claim
from guardrail.events import Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judgement
from guardrail.judges.local.candidates import Candidates, find_candidates
from guardrail.judges.local.claim_view import ClaimView, view_of
from guardrail.judges.local.combiner import Parameters
from guardrail.judges.local.compare import Comparison, compare_all
from guardrail.judges.local.details import ValueCheck, check_values, settled_terms
from guardrail.judges.local.features import comparison_features, detail_features, overlap_features
from guardrail.judges.local.rarity import Rarity
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.source import Source
from guardrail.judges.local.verdict import Lines, decide

NAME: Final = "local"
_NOTHING_SHARED: Final = 0.01


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything found out about one claim. ``compared`` holds at least one sentence."""

    view: ClaimView
    found: Candidates
    compared: Sequence[Comparison]
    values: Sequence[ValueCheck]
    features: dict[str, float]


class ClaimChecker:
    """Pure CPU work without state of its own, so threads may share one."""

    def __init__(self, settings: LocalJudgeSettings, parameters: Parameters) -> None:
        self._settings = settings
        self._combiner = parameters.combiner
        self._rarity = Rarity(parameters.rarity)
        high = parameters.supported_at if settings.supported_at is None else settings.supported_at
        low = settings.partially_supported_at
        self._lines = Lines(high, min(high, parameters.partially_supported_at if low is None else low))

    def check(self, claim_id: str, claim: Claim, question: str, evidence: EvidenceIndex) -> Judgement:
        """The judgement of one claim."""
        examined = self.examine(claim, question, evidence)
        if examined is None:
            empty = not evidence.layout.terms
            reason = (
                "There is no context to support it." if empty else "No source shares a word with the claim."
            )
            return Judgement(
                claim_id, Verdict.UNSUPPORTED, 1.0 - _NOTHING_SHARED, _NOTHING_SHARED, NAME, reasoning=reason
            )
        support = self._combiner.probability(examined.features)
        outcome = decide(
            examined.view, examined.found, examined.compared, examined.values, support, self._lines
        )
        return Judgement(
            claim_id,
            outcome.verdict,
            outcome.confidence,
            outcome.support,
            NAME,
            outcome.evidence,
            outcome.conflicting_contexts,
            outcome.reasoning,
        )

    def examine(self, claim: Claim, question: str, evidence: EvidenceIndex) -> Examination | None:
        """What is found out about a claim before anything fitted has its say; None if no word is shared."""
        source = Source(evidence)
        layout = source.layout
        view = view_of(claim, question, self._rarity)
        settings = self._settings
        found = find_candidates(layout, view, settings.sentences_per_claim, settings.passages_per_claim)
        if not found.sentences:
            return None
        compared = compare_all(view, source, found.sentences)
        values = check_values(view, source, self._to_search(source, found))
        features = overlap_features(layout, view, found, settled_terms(view, values))
        features |= comparison_features(compared, view)
        features |= detail_features(values, layout, view, found)
        return Examination(view, found, compared, values, features)

    def _to_search(self, source: Source, found: Candidates) -> list[int]:
        """The sentences in which values are looked for: the candidates, and all of the best passage."""
        numbers = [match.number for match in found.sentences]
        if found.passages:
            layout = source.layout
            best = found.passages[0].number
            position, last = layout.passages.first[best], layout.passages.last[best]
            while position < last:
                holding = layout.sentences.holding(position)
                numbers.extend(holding)
                position = max((layout.sentences.last[n] for n in holding), default=position + 1)
        return numbers
