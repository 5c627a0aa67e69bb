"""The local judge: deterministic checks, graded overlap and a small verifier, combined and calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.judges.local.combiner import FEATURES, WORDS, load_parameters, packaged_folder
    from guardrail.judges.local.judge import LocalJudge
    from guardrail.judges.local.settings import LocalJudgeSettings

__all__ = [
    "FEATURES",
    "WORDS",
    "LocalJudge",
    "LocalJudgeSettings",
    "load_parameters",
    "packaged_folder",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.judges.local.combiner": ("FEATURES", "WORDS", "load_parameters", "packaged_folder"),
            "guardrail.judges.local.judge": ("LocalJudge",),
            "guardrail.judges.local.settings": ("LocalJudgeSettings",),
        },
    )
