"""The local judge: deterministic checks, graded overlap and a small verifier, combined and calibrated."""

from guardrail.judges.local.judge import LocalJudge
from guardrail.judges.local.settings import LocalJudgeSettings

__all__ = ["LocalJudge", "LocalJudgeSettings"]
