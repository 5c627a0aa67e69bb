"""What the local judge is compared with: word overlap, words and figures alone, a verifier alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

from guardrail.claims import Claim
from guardrail.errors import ConfigError
from guardrail.evidence import EvidenceIndex
from guardrail.evidence.tokens import STOP_TERMS, words
from guardrail.judges import Judge, Judgement, JudgeRequest, Verdict
from guardrail.judges.local import LocalJudge, LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import packaged_folder
from guardrail.judges.local.settings import VerifierSettings
from guardrail.judges.model import load_verifier
from training.calibrate import unfitted

Scoring = Callable[[Claim, str, EvidenceIndex], float]
"""Claim, question and contexts -> a score of support, 0..1."""


class ScoringJudge:
    """A Judge that calls supported what has a score above one half."""

    def __init__(self, name: str, score: Scoring) -> None:
        self.name = name
        self._score = score

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """On the event loop: nothing else runs in a benchmark."""
        for claim_id, claim in request.claims.items():
            support = self._score(claim, request.question, request.evidence)
            verdict = Verdict.SUPPORTED if support > 0.5 else Verdict.UNSUPPORTED
            yield Judgement(claim_id, verdict, max(support, 1.0 - support), support, self.name)

    async def aclose(self) -> None:
        """Nothing is held."""


def overlap(claim: Claim, _question: str, evidence: EvidenceIndex) -> float:
    """The share of the claim's distinct words (but stop words) in the passage that holds most of them."""
    terms = {term for _, term, _ in words(claim.prose.text)}
    terms = terms - STOP_TERMS or terms
    layout = evidence.layout
    passages = zip(layout.passages.first, layout.passages.last, strict=True)
    held = (len(terms & set(layout.terms[first:last])) for first, last in passages)
    return max(held, default=0) / max(1, len(terms))


def verifier_alone(folder: Path) -> Scoring:
    """The highest support over all windows that the judge would read; 0 where it can read none.

    Raises ConfigError where the folder holds no verifier.
    """
    verifier = load_verifier(folder)
    checker = ClaimChecker(LocalJudgeSettings(), unfitted(verifier.fitted()), verifier)

    def score(claim: Claim, question: str, evidence: EvidenceIndex) -> float:
        examined = checker.examine(claim, question, evidence)
        return max((each.reading.support for each in examined.read), default=0.0) if examined else 0.0

    return score


def baselines(settings: LocalJudgeSettings, untrained: Path | None) -> list[Judge]:
    """The plainest first; ``untrained`` is what ``training.export --base`` wrote. Raises ConfigError."""
    folder = settings.verifier.path or packaged_folder()
    if folder is None:
        raise ConfigError("the package has no verifier; name its folder in judge.local.verifier.path")
    alone = settings.model_copy(update={"verifier": VerifierSettings(enabled=False)})
    return [
        ScoringJudge("word overlap", overlap),
        _Named("words and figures alone", LocalJudge(alone)),
        *([ScoringJudge("untrained model", verifier_alone(untrained))] if untrained else []),
        ScoringJudge("verifier alone", verifier_alone(folder)),
    ]


class _Named:
    """A judge by another name."""

    def __init__(self, name: str, judge: Judge) -> None:
        self.name = name
        self.judge = judge.judge
        self.aclose = judge.aclose
