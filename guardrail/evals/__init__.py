"""Offline evaluation: answers that are complete, judged by the same engine as streams, and scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.evals.evaluation import aevaluate, evaluate
    from guardrail.evals.formats import read_samples
    from guardrail.evals.results import (
        BadSample,
        Evaluation,
        EvaluationResult,
        Sample,
        ScoreSummary,
        ScoreValue,
        TraceStep,
        read_results,
    )

__all__ = [
    "BadSample",
    "Evaluation",
    "EvaluationResult",
    "Sample",
    "ScoreSummary",
    "ScoreValue",
    "TraceStep",
    "aevaluate",
    "evaluate",
    "read_results",
    "read_samples",
]

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__ = face(
        __name__,
        {
            "guardrail.evals.evaluation": ("aevaluate", "evaluate"),
            "guardrail.evals.formats": ("read_samples",),
            "guardrail.evals.results": (
                "BadSample",
                "Evaluation",
                "EvaluationResult",
                "Sample",
                "ScoreSummary",
                "ScoreValue",
                "TraceStep",
                "read_results",
            ),
        },
    )
