"""Models that classify pairs of texts, in process: the local judge's verifier, HHEM, and any other.

The names are imported when they are first asked for: settings are read without tokens and runtimes, and a
runtime is imported when a model is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

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

_HOME: Final = {
    "classifier": ("Classifier", "load_classifier", "start_notes"),
    "files": ("FittedVerifier", "Manifest", "missing_runtime", "read_folder"),
    "judge": ("ClassifierJudge",),
    "runtime": ("default_threads",),
    "settings": ("PRESETS", "ClassifierSettings", "LabelMeaning"),
    "tokens": ("Pair", "SpecialTokens"),
    "verifier": ("Reading", "Verifier", "load_verifier"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
