"""Offline evaluation: answers that are complete, judged by the same engine as streams, and scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guardrail.lazy import face

if TYPE_CHECKING:
    from guardrail.evals.evaluation import aevaluate as aevaluate
    from guardrail.evals.evaluation import evaluate as evaluate
    from guardrail.evals.formats import read_samples as read_samples
    from guardrail.evals.results import BadSample as BadSample
    from guardrail.evals.results import Evaluation as Evaluation
    from guardrail.evals.results import EvaluationResult as EvaluationResult
    from guardrail.evals.results import Sample as Sample
    from guardrail.evals.results import ScoreSummary as ScoreSummary
    from guardrail.evals.results import ScoreValue as ScoreValue
    from guardrail.evals.results import TraceStep as TraceStep
    from guardrail.evals.results import read_results as read_results

if not TYPE_CHECKING:  # a type checker sees the names above, and no others
    __getattr__, __dir__, __all__ = face(__name__)
