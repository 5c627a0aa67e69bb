"""Classifiers of pairs in process: any model for the classifier judge, and the local judge's verifier.

``ClassifierJudge`` is imported when it is first asked for: its runtimes come with the extras ``classifier``
(ONNX) and ``classifier-torch``, and the settings must be readable without either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guardrail.judges.model.settings import ClassifierSettings, LabelMeaning

if TYPE_CHECKING:
    from guardrail.judges.model.judge import ClassifierJudge

__all__ = ["ClassifierJudge", "ClassifierSettings", "LabelMeaning"]


def __getattr__(name: str) -> Any:
    if name == "ClassifierJudge":
        from guardrail.judges.model.judge import ClassifierJudge

        return ClassifierJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
