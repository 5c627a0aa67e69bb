"""Rows of data under the local judge's own code: its features and its judgements."""

from __future__ import annotations

from typing import Final

from guardrail.claims.model import Claim
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import Judgement
from guardrail.judges.local.check import ClaimChecker, Examination
from guardrail.judges.local.combiner import Parameters
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.verifier import Verifier
from training.rows import Row

MODEL: Final = "model_"
"""How the names of the verifier's features begin."""


class Examiner(ClaimChecker):
    """A judge's checker that remembers what it found out about the latest claim. For one thread."""

    def __init__(
        self, parameters: Parameters, verifier: Verifier | None = None,
        settings: LocalJudgeSettings | None = None,
    ) -> None:  # fmt: skip
        """As ``ClaimChecker``: with parameters that name no verifier its features are found out only."""
        super().__init__(settings or LocalJudgeSettings(), parameters, verifier)
        self._latest: Examination | None = None
        self._reads = verifier is not None

    def examine(self, claim: Claim, question: str, evidence: EvidenceIndex) -> Examination | None:
        """As ``ClaimChecker``."""
        self._latest = super().examine(claim, question, evidence)
        return self._latest

    def features(self, row: Row) -> dict[str, float] | None:
        """What the combiner would be given; None where claim and contexts share no word, or the verifier
        could read none of it."""
        self.examine(row.as_claim(), row.question, row.index())
        return self.latest_features()

    def latest_features(self) -> dict[str, float] | None:
        """Those of the claim that was judged or examined last."""
        if self._latest is None or (self._reads and self._latest.verification is None):
            return None
        return self._latest.features

    def judge(self, row: Row, evidence: EvidenceIndex) -> Judgement:
        """The judgement of the row's claim; ``evidence`` is the row's index."""
        return self.check("c", row.as_claim(), row.question, evidence)
