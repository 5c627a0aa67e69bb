"""Models that classify pairs of texts, here or on a server: the local judge's verifier, HHEM, any other.

The names are imported on first use: settings load without tokens and runtimes, and a runtime is imported when
a model is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.judges.model.classifier import Classifier as Classifier
    from guardrail.judges.model.classifier import load_classifier as load_classifier
    from guardrail.judges.model.classifier import start_notes as start_notes
    from guardrail.judges.model.judge import ClassifierJudge as ClassifierJudge
    from guardrail.judges.model.runtime import default_threads as default_threads
    from guardrail.judges.model.settings import PRESETS as PRESETS
    from guardrail.judges.model.settings import ClassifierSettings as ClassifierSettings
    from guardrail.judges.model.settings import LabelMeaning as LabelMeaning
    from guardrail.judges.model.settings import ServerSettings as ServerSettings
    from guardrail.judges.model.tokens import Pair as Pair
    from guardrail.judges.model.tokens import SpecialTokens as SpecialTokens
    from guardrail.judges.model.verifier import FittedVerifier as FittedVerifier
    from guardrail.judges.model.verifier import Manifest as Manifest
    from guardrail.judges.model.verifier import Reading as Reading
    from guardrail.judges.model.verifier import Verifier as Verifier
    from guardrail.judges.model.verifier import load_verifier as load_verifier
    from guardrail.judges.model.verifier import missing_runtime as missing_runtime
    from guardrail.judges.model.verifier import read_folder as read_folder
    from guardrail.judges.model.verifier import served_verifier as served_verifier

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
