"""What the local judge is compared with: words and figures alone, and its verifier alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from guardrail.errors import ConfigError
from guardrail.judges import Judge, Judgement, JudgeRequest, Verdict
from guardrail.judges.local import LocalJudge, LocalJudgeSettings
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import packaged_folder
from guardrail.judges.model import load_verifier
from training.calibrate import unfitted


class VerifierAlone:
    """A Judge that goes by the highest support over all windows that the local judge would read; 0 where it
    can read none."""

    name = "verifier alone"

    def __init__(self, folder: Path) -> None:
        """Raises ConfigError where the folder holds no verifier."""
        verifier = load_verifier(folder)
        self._checker = ClaimChecker(LocalJudgeSettings(), unfitted(verifier.fitted()), verifier)

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """On the event loop: nothing else runs in a benchmark."""
        for claim_id, claim in request.claims.items():
            examined = self._checker.examine(claim, request.question, request.evidence)
            read = examined.read if examined else ()
            support = max((each.reading.support for each in read), default=0.0)
            verdict = Verdict.SUPPORTED if support > 0.5 else Verdict.UNSUPPORTED
            yield Judgement(claim_id, verdict, max(support, 1.0 - support), support, self.name)

    async def aclose(self) -> None:
        """Nothing is held."""


class _Named:
    """A judge by another name."""

    def __init__(self, name: str, judge: Judge) -> None:
        self.name = name
        self.judge = judge.judge
        self.aclose = judge.aclose


def baselines(settings: LocalJudgeSettings) -> list[Judge]:
    """The plainest first. Raises ConfigError."""
    folder = settings.verifier.path or packaged_folder()
    if folder is None:
        raise ConfigError("the package has no verifier; name its folder in judge.local.verifier.path")
    by_words = settings.verifier.model_copy(update={"enabled": False})
    words = LocalJudge(settings.model_copy(update={"verifier": by_words}))
    return [_Named("words and figures alone", words), VerifierAlone(folder)]
