"""Judges that are a classifier of pairs: premise and hypothesis in, the probability of each label out.

``ClassifierJudge`` is imported when it is first asked for: its runtimes come with the extras ``classifier``
(ONNX) and ``classifier-torch``, and the settings must be readable without either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guardrail.judges.classifier.settings import ClassifierSettings, HhemSettings

if TYPE_CHECKING:
    from guardrail.judges.classifier.judge import ClassifierJudge

__all__ = ["ClassifierJudge", "ClassifierSettings", "HhemSettings"]


def __getattr__(name: str) -> Any:
    if name == "ClassifierJudge":
        from guardrail.judges.classifier.judge import ClassifierJudge

        return ClassifierJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
