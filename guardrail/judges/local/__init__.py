"""The local judge: deterministic checks, graded overlap, a small verifier, and a calibrated combiner of all."""

from guardrail.judges.local.judge import LocalJudge
from guardrail.judges.local.settings import LocalJudgeSettings

__all__ = ["LocalJudge", "LocalJudgeSettings"]
