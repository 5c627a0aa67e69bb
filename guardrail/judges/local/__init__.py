"""The local judge: deterministic checks and graded overlap, a small calibrated combiner, no model file."""

from guardrail.judges.local.judge import LocalJudge
from guardrail.judges.local.settings import LocalJudgeSettings

__all__ = ["LocalJudge", "LocalJudgeSettings"]
