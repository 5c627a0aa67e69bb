"""The names that OpenTelemetry's and OpenInference's conventions give to evaluations, in one place.

Those of OpenTelemetry are of its conventions for generative AI, which are in development and live in a
repository of their own (open-telemetry/semantic-conventions-genai, events). Those of OpenInference are of its
specification of annotations and evaluations.
"""

from __future__ import annotations

from typing import Final

EVALUATION: Final = "gen_ai.evaluation.result"
"""The event."""
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"
RESPONSE_ID: Final = "gen_ai.response.id"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
ERROR_TYPE: Final = "error.type"

SPAN_KIND: Final = "openinference.span.kind"
EVALUATOR: Final = "EVALUATOR"
"""The kind of a span that carries evaluations of another span, which it links to."""
OPENINFERENCE: Final = "evaluations.{index}.evaluation.{field}"
"""``field``: name, score, label, explanation, annotator_kind, identifier, metadata (JSON as text)."""

FAITHFULNESS: Final = "faithfulness"
"""What our evaluations are called; a published score beside it is ``faithfulness.NAME``."""


def openinference(index: int, field: str) -> str:
    """The attribute of a span for one field of its evaluation number ``index``, from 0."""
    return OPENINFERENCE.format(index=index, field=field)
