"""The guard as an evaluator of LlamaIndex, in the place of its ``FaithfulnessEvaluator``.

::

    evaluator = LlamaIndexFaithfulnessEvaluator()
    result = evaluator.evaluate_response(response=query_engine.query(question))

An answer passes if every claim of it is SUPPORTED.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate

from guardrail.errors import InputError, JudgeError
from guardrail.evals.explanation import explain
from guardrail.evals.scores import score_value
from guardrail.events import ResponseVerdict
from guardrail.inputs import ContextLike
from guardrail.integrations.evaluating import (
    CONCURRENCY,
    EvaluatingGuard,
    JudgeLike,
    with_own_ids,
)


class LlamaIndexEvaluationResult(EvaluationResult):
    """LlamaIndex's result with the verdict that it comes from: claims with severity, evidence and more."""

    verdict: ResponseVerdict | None = None


class LlamaIndexFaithfulnessEvaluator(BaseEvaluator):
    """Evaluates whether an answer is supported by its contexts, claim by claim.

    ``judge`` is a ``guardrail.Judge``, or the section ``judge`` of the settings as a dictionary; the local
    judge by default, which needs no key. ``settings`` is the path of a settings file. ``score`` names a
    published score (``guardrail.evals.scores.SCORES``); that of LlamaIndex is 1.0 or 0.0. ``concurrency``
    answers are judged at a time.

    In a result, ``passing`` says whether every claim is supported, ``feedback`` why, and ``verdict`` has all
    details. It is ``invalid_result``, with ``passing`` None, if the answer states nothing, or if a claim
    could not be judged and no other one fails the answer. An answer that can't be judged at all is invalid,
    too; with ``raise_error`` its error is raised. Raises ConfigError if settings are wrong.
    """

    def __init__(
        self,
        judge: JudgeLike | None = None,
        *,
        settings: str | Path | None = None,
        score: str = "llama_index",
        raise_error: bool = False,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._raise_error = raise_error
        self._guard = EvaluatingGuard(judge, settings, concurrency=concurrency, score=score)

    def close(self) -> None:
        """Close the judge that was opened here; the next evaluation opens it again."""
        self._guard.close()

    async def aclose(self) -> None:
        """Like ``close``."""
        await self._guard.aclose()

    def evaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        **others: Any,
    ) -> LlamaIndexEvaluationResult:
        """Evaluate an answer. Works within a running event loop, too, which then stands still.

        Raises ValueError if ``response`` or ``contexts`` is missing, and TypeError for unknown arguments. A
        ``reference`` is allowed, because batches give all evaluators the same, and no evidence.
        """
        _check_names(others)
        return self._evaluate(query, response, contexts)

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        sleep_time_in_seconds: float = 0,
        **others: Any,
    ) -> LlamaIndexEvaluationResult:
        """Like ``evaluate``."""
        _check_names(others)
        await asyncio.sleep(sleep_time_in_seconds)
        return await self._aevaluate(query, response, contexts)

    def evaluate_response(
        self, query: str | None = None, response: Response | None = None, **others: Any
    ) -> LlamaIndexEvaluationResult:
        """Evaluate what a query engine answered; evidence names its source nodes by their ids."""
        _check_names(others)
        return self._evaluate(query, *_parts(response))

    async def aevaluate_response(
        self,
        query: str | None = None,
        response: Response | None = None,
        sleep_time_in_seconds: float = 0,
        **others: Any,
    ) -> LlamaIndexEvaluationResult:
        """Like ``evaluate_response``."""
        _check_names(others)
        await asyncio.sleep(sleep_time_in_seconds)
        return await self._aevaluate(query, *_parts(response))

    # ------------------------------------------------------------------------------------- prompts

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        """``system`` and ``user`` of an LLM judge; their variables are ours, such as $claims."""
        return {name: PromptTemplate(text) for name, text in self._guard.prompts().items()}

    def _update_prompts(self, prompts: dict[str, BasePromptTemplate]) -> None:
        self._guard = self._guard.with_prompts(
            {name: prompt.get_template() for name, prompt in prompts.items()}
        )

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}

    # -------------------------------------------------------------------------------------- inside

    def _evaluate(
        self, query: str | None, response: str | None, contexts: Sequence[ContextLike] | None
    ) -> LlamaIndexEvaluationResult:
        response, contexts = _required(response, contexts)
        try:
            outcome: ResponseVerdict | Exception = self._guard.check(query or "", contexts, response)
        except (InputError, JudgeError) as error:
            outcome = error
        return self._result(query, response, contexts, outcome)

    async def _aevaluate(
        self, query: str | None, response: str | None, contexts: Sequence[ContextLike] | None
    ) -> LlamaIndexEvaluationResult:
        response, contexts = _required(response, contexts)
        try:
            outcome: ResponseVerdict | Exception = await self._guard.acheck(query or "", contexts, response)
        except (InputError, JudgeError) as error:
            outcome = error
        return self._result(query, response, contexts, outcome)

    def _result(
        self,
        query: str | None,
        response: str,
        contexts: Sequence[ContextLike],
        outcome: ResponseVerdict | Exception,
    ) -> LlamaIndexEvaluationResult:
        given = {"query": query, "response": response, "contexts": [_text(each) for each in contexts]}
        if isinstance(outcome, Exception):
            if self._raise_error:
                raise outcome
            return LlamaIndexEvaluationResult(**given, invalid_result=True, invalid_reason=str(outcome))
        passing = score_value("llama_index", outcome)
        return LlamaIndexEvaluationResult(
            **given,
            passing=passing.passed,
            score=score_value(self._guard.score, outcome).value,
            feedback=explain(outcome),
            invalid_result=passing.passed is None,
            invalid_reason=passing.reason if passing.passed is None else None,
            verdict=outcome,
        )


def _check_names(others: Mapping[str, Any]) -> None:
    unknown = [name for name in others if name != "reference"]
    if unknown:
        raise TypeError(f"{unknown[0]}: unknown argument; what it asks for would not be done")


def _required(
    response: str | None, contexts: Sequence[ContextLike] | None
) -> tuple[str, Sequence[ContextLike]]:
    if response is None or contexts is None:
        missing = "response" if response is None else "contexts"
        raise ValueError(f"{missing}: missing; an answer is evaluated against its contexts")
    return response, contexts


def _parts(response: Response | None) -> tuple[str | None, Sequence[ContextLike] | None]:
    if response is None:
        return None, None
    nodes = response.source_nodes
    return response.response, with_own_ids((node.node_id, node.get_content()) for node in nodes)


def _text(context: ContextLike) -> str:
    return context if isinstance(context, str) else str(dict(context)["text"])
