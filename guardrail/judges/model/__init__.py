"""Models that classify pairs of texts, in process: the local judge's verifier, HHEM, and any other.

The names are imported on first use: settings load without tokens and runtimes, and a runtime is imported when
a model is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.judges.model.classifier import Classifier, load_classifier, start_notes
    from guardrail.judges.model.files import FittedVerifier, Manifest, missing_runtime, read_folder
    from guardrail.judges.model.judge import ClassifierJudge
    from guardrail.judges.model.runtime import default_threads
    from guardrail.judges.model.settings import PRESETS, ClassifierSettings, LabelMeaning
    from guardrail.judges.model.tokens import Pair, SpecialTokens
    from guardrail.judges.model.verifier import Reading, Verifier, load_verifier

__all__ = [
    "PRESETS",
    "Classifier",
    "ClassifierJudge",
    "ClassifierSettings",
    "FittedVerifier",
    "LabelMeaning",
    "Manifest",
    "Pair",
    "Reading",
    "SpecialTokens",
    "Verifier",
    "default_threads",
    "load_classifier",
    "load_verifier",
    "missing_runtime",
    "read_folder",
    "start_notes",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.judges.model.classifier": ("Classifier", "load_classifier", "start_notes"),
            "guardrail.judges.model.files": ("FittedVerifier", "Manifest", "missing_runtime", "read_folder"),
            "guardrail.judges.model.judge": ("ClassifierJudge",),
            "guardrail.judges.model.runtime": ("default_threads",),
            "guardrail.judges.model.settings": ("PRESETS", "ClassifierSettings", "LabelMeaning"),
            "guardrail.judges.model.tokens": ("Pair", "SpecialTokens"),
            "guardrail.judges.model.verifier": ("Reading", "Verifier", "load_verifier"),
        },
    )
