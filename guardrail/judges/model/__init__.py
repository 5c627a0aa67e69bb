"""Models that classify pairs of texts, here or on a server: the local judge's verifier, HHEM, any other.

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
    from guardrail.judges.model.settings import (
        PRESETS,
        ClassifierSettings,
        LabelMeaning,
        ServerSettings,
    )
    from guardrail.judges.model.tokens import Pair, SpecialTokens
    from guardrail.judges.model.verifier import Reading, Verifier, load_verifier, served_verifier

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
    "ServerSettings",
    "SpecialTokens",
    "Verifier",
    "default_threads",
    "load_classifier",
    "load_verifier",
    "missing_runtime",
    "read_folder",
    "served_verifier",
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
            "guardrail.judges.model.settings": (
                "PRESETS",
                "ClassifierSettings",
                "LabelMeaning",
                "ServerSettings",
            ),
            "guardrail.judges.model.tokens": ("Pair", "SpecialTokens"),
            "guardrail.judges.model.verifier": ("Reading", "Verifier", "load_verifier", "served_verifier"),
        },
    )
