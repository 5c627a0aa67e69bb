"""The local judge: deterministic checks, graded overlap and a small verifier, combined and calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.judges.local.combiner import FEATURES as FEATURES
    from guardrail.judges.local.combiner import WORDS as WORDS
    from guardrail.judges.local.combiner import load_parameters as load_parameters
    from guardrail.judges.local.combiner import packaged_folder as packaged_folder
    from guardrail.judges.local.judge import LocalJudge as LocalJudge
    from guardrail.judges.local.settings import LocalJudgeSettings as LocalJudgeSettings

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
