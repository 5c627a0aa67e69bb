"""The local judge: deterministic checks, graded overlap and a small verifier, combined and calibrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.judges.local.combiner import load_parameters
    from guardrail.judges.local.features import FEATURES, WORDS
    from guardrail.judges.local.judge import LocalJudge
    from guardrail.judges.local.settings import LocalJudgeSettings
    from guardrail.judges.local.verifier import load_verifier
    from guardrail.judges.local.verifier_files import packaged_folder, read_folder

__all__ = [
    "FEATURES",
    "WORDS",
    "LocalJudge",
    "LocalJudgeSettings",
    "load_parameters",
    "load_verifier",
    "packaged_folder",
    "read_folder",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.judges.local.combiner": ("load_parameters",),
            "guardrail.judges.local.features": ("FEATURES", "WORDS"),
            "guardrail.judges.local.judge": ("LocalJudge",),
            "guardrail.judges.local.settings": ("LocalJudgeSettings",),
            "guardrail.judges.local.verifier": ("load_verifier",),
            "guardrail.judges.local.verifier_files": ("packaged_folder", "read_folder"),
        },
    )
