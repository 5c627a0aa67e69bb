"""The guard as metrics of Ragas, in the place of its ``Faithfulness``, which Ragas has twice.

``RagasFaithfulness`` is for the calls of ``ragas.metrics.collections`` and for experiments::

    result = await RagasFaithfulness().ascore(
        user_input=question, response=answer, retrieved_contexts=contexts
    )

``RagasSingleTurnFaithfulness`` is for ``ragas.evaluate`` and its samples::

    evaluate(dataset, metrics=[RagasSingleTurnFaithfulness()])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragas.callbacks import ChainType, new_group
from ragas.dataset_schema import SingleTurnSample
from ragas.metrics.base import MetricType, SingleTurnMetric
from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult

from guardrail.evals.explanation import explain
from guardrail.evals.scores import MEANING, score_value, statements
from guardrail.events import ResponseVerdict
from guardrail.inputs import ContextLike
from guardrail.integrations.evaluating import (
    CONCURRENCY,
    EvaluatingGuard,
    JudgeLike,
    with_own_ids,
)

VERDICTS = "verdicts"
"""The step of a metric, in the traces of an evaluation, that has the verdict."""


class RagasFaithfulness(BaseMetric):
    """How much of an answer its contexts support, claim by claim, from 0 to 1.

    ``judge`` is a ``guardrail.Judge``, or the section ``judge`` of the settings as a dictionary; the local
    judge by default, which needs no key. ``settings`` is the path of a settings file. ``score`` names a
    published score (``guardrail.evals.scores.SCORES``). ``concurrency`` answers are judged at a time.
    Raises ConfigError if settings are wrong.
    """

    def __init__(
        self,
        judge: JudgeLike | None = None,
        name: str = "faithfulness",
        *,
        settings: str | Path | None = None,
        score: str = "ragas",
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._guard = EvaluatingGuard(judge, settings, concurrency=concurrency, score=score)
        super().__init__(name=name)

    def close(self) -> None:
        """Close the judge that was opened here; the next answer opens it again."""
        self._guard.close()

    async def aclose(self) -> None:
        """Like ``close``."""
        await self._guard.aclose()

    async def ascore(
        self, response: str, retrieved_contexts: Sequence[ContextLike], user_input: str = ""
    ) -> MetricResult:
        """Score an answer; Ragas has ``score``, ``batch_score`` and ``abatch_score`` on top of this.

        In the result, ``value`` is None where there is no score, ``reason`` says why, or names the claims
        that are not supported, and ``traces["output"]`` is the ``verdict.response`` event as a dictionary,
        with the ``statements`` that were counted. A context is a text, or a mapping with ``id`` and
        ``text``. Raises InputError for what can't be an answer, and JudgeUnavailable if the judge could say
        nothing of it.
        """
        verdict = await self._guard.acheck(user_input, retrieved_contexts, response)
        scored = score_value(self._guard.score, verdict)
        why = explain(verdict) if scored.reason is None else f"{scored.reason}\n{explain(verdict)}"
        given = {
            "user_input": user_input,
            "response": response,
            "retrieved_contexts": list(retrieved_contexts),
        }
        return MetricResult(
            value=scored.value,
            reason=why,
            traces={"input": given, "output": {**verdict.model_dump(mode="json"), **_statements(verdict)}},
        )


class RagasSingleTurnFaithfulness(SingleTurnMetric):
    """The same for ``ragas.evaluate``, ``single_turn_score`` and ``single_turn_ascore``.

    Ragas takes a number here and means over those that are not NaN: an answer without a score is NaN. The
    verdict is in the traces of the evaluation, ``result.traces[i][name]["verdicts"]["output"]``.
    """

    def __init__(
        self,
        judge: JudgeLike | None = None,
        name: str = "faithfulness",
        *,
        settings: str | Path | None = None,
        score: str = "ragas",
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._guard = EvaluatingGuard(judge, settings, concurrency=concurrency, score=score)
        columns = {
            "response",
            "retrieved_contexts",
            "retrieved_context_ids:optional",
            "user_input:optional",
        }
        super().__init__(_required_columns={MetricType.SINGLE_TURN: columns}, name=name)

    def init(self, run_config: Any) -> None:
        """Nothing to do: the judge opens with the first answer, beside the event loop."""

    def close(self) -> None:
        """Close the judge that was opened here; the next answer opens it again."""
        self._guard.close()

    async def aclose(self) -> None:
        """Like ``close``."""
        await self._guard.aclose()

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        if sample.response is None or sample.retrieved_contexts is None:
            missing = "response" if sample.response is None else "retrieved_contexts"
            raise ValueError(f"{missing}: missing; an answer is scored against its contexts")
        step, _ = new_group(
            VERDICTS,
            inputs={"data": sample.to_dict()},
            callbacks=callbacks or [],
            metadata={"type": ChainType.RAGAS_PROMPT},
        )
        try:
            verdict = await self._guard.acheck(sample.user_input or "", _contexts(sample), sample.response)
        except Exception as error:
            step.on_chain_error(error)
            raise
        scored = score_value(self._guard.score, verdict)
        told = {"value": scored.value, "reason": scored.reason, "verdict": verdict.model_dump(mode="json")}
        step.on_chain_end({"output": {**told, **_statements(verdict)}})
        return math.nan if scored.value is None else scored.value


def _statements(verdict: ResponseVerdict) -> dict[str, Any]:
    """What was counted, in Ragas' words: 1 is supported, None could not be checked."""
    told = [
        {"statement": each.text, "verdict": MEANING[each.verdict].binary, "reason": each.reasoning}
        for each in statements(verdict)
    ]
    return {"statements": told}


def _contexts(sample: SingleTurnSample) -> list[ContextLike]:
    """The documents, under their ids if each has its own."""
    texts, ids = sample.retrieved_contexts, sample.retrieved_context_ids
    if ids is None or len(ids) != len(texts):
        return list(texts)
    return with_own_ids(zip(map(str, ids), texts, strict=True))
