"""The guard as an evaluator of LlamaIndex, in the place of its ``FaithfulnessEvaluator``.

::

    evaluator = FaithfulnessEvaluator()
    result = evaluator.evaluate_response(response=query_engine.query(question))

An answer passes if every claim of it is SUPPORTED.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llama_index.core import Settings, evaluation
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import LLM, ChatMessage, ChatResponse, CustomLLM, MockLLM
from llama_index.core.prompts import BasePromptTemplate, PromptTemplate

from guardrail.errors import ConfigError
from guardrail.evals.explanation import explain
from guardrail.evals.scores import score_value
from guardrail.events import ResponseVerdict
from guardrail.inputs import ContextLike
from guardrail.integrations.evaluating import (
    CONCURRENCY,
    EvaluatingGuard,
    HasGuard,
    JudgeLike,
    with_own_ids,
)
from guardrail.log_events import EventLog

if TYPE_CHECKING:
    from guardrail.integrations.chat_models import ChatModel, Messages, Reply

_log = EventLog(__name__)
_PROMPTS: Final = {"eval_template": "system", "user_template": "user"}
"""Our prompts under names in LlamaIndex' manner."""


class EvaluationResult(evaluation.EvaluationResult):
    """LlamaIndex's result with the verdict that it comes from: claims with severity, evidence and more.

    Results are equal if all fields of LlamaIndex are: a verdict has times.
    """

    verdict: ResponseVerdict | None = None

    def __eq__(self, other: object) -> bool:
        fields = evaluation.EvaluationResult.model_fields
        return isinstance(other, evaluation.EvaluationResult) and all(
            getattr(self, name) == getattr(other, name) for name in fields
        )


class FaithfulnessEvaluator(HasGuard, evaluation.BaseEvaluator):
    """Evaluates whether an answer is supported by its contexts, claim by claim.

    ``llm`` is the model of the LLM judge, or ``Settings.llm`` if the application has set that; else the
    local judge is asked, which needs no key. ``eval_template`` is the LLM judge's system prompt, with our
    variables; there is no use for a ``refine_template``. The other arguments are those of
    ``EvaluatingGuard``; the score of LlamaIndex is 1.0 or 0.0.

    In a result, ``passing`` says whether every claim is supported, ``feedback`` why, and ``verdict`` has all
    details. It is ``invalid_result``, with ``passing`` None, if the answer states nothing, or if a claim
    could not be judged and no other one fails the answer. An answer that can't be judged at all raises
    InputError or JudgeUnavailable; with ``raise_error`` one that fails raises ValueError. Raises ConfigError
    if settings are wrong.
    """

    def __init__(
        self,
        llm: LLM | None = None,
        raise_error: bool = False,
        eval_template: str | BasePromptTemplate | None = None,
        refine_template: str | BasePromptTemplate | None = None,
        *,
        judge: JudgeLike | None = None,
        settings: str | Path | None = None,
        score: str = "llama_index",
        concurrency: int = CONCURRENCY,
    ) -> None:
        if refine_template is not None:
            raise ConfigError("refine_template: one call sees all that an answer is judged by; leave it out")
        self._raise_error = raise_error
        theirs = Settings._llm  # Settings.llm would make one
        if (llm, judge, settings) == (None,) * 3 and not isinstance(theirs, MockLLM | None):  # a mock is none
            llm = theirs
            _log.info("llama_index.settings_llm", llm=type(llm).__name__)
        model = None if llm is None else _chat_model(llm)
        self._guard = EvaluatingGuard(judge, settings, llm=model, concurrency=concurrency, score=score)
        if eval_template is not None:
            if isinstance(eval_template, str):
                eval_template = PromptTemplate(eval_template)
            self._update_prompts({"eval_template": eval_template})

    def evaluate(
        self, query: Any = None, response: Any = None, contexts: Any = None, **options: Any
    ) -> EvaluationResult:
        """Like ``aevaluate``. Within a running event loop, too, which then stands still."""
        return self._guard.run(lambda: self.aevaluate(query, response, contexts, **options))

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[ContextLike] | None = None,
        sleep_time_in_seconds: float = 0,
        reference: str | None = None,
    ) -> EvaluationResult:
        """Evaluate an answer.

        Raises ValueError if ``response`` or ``contexts`` is missing. A ``reference``, which batches give all
        evaluators, is no evidence.
        """
        del reference
        if response is None or contexts is None:
            missing = "response" if response is None else "contexts"
            raise ValueError(f"{missing}: missing; an answer is evaluated against its contexts")
        await asyncio.sleep(sleep_time_in_seconds)
        verdict = await self._guard.acheck(query or "", contexts, response)
        given = {"query": query, "response": response, "contexts": [_text(each) for each in contexts]}
        passing = score_value("llama_index", verdict)
        if self._raise_error and passing.passed is False:
            raise ValueError(f"The response is invalid: {explain(verdict)}")
        return EvaluationResult(
            **given,
            passing=passing.passed,
            score=score_value(self._guard.score, verdict).value,
            feedback=explain(verdict),
            invalid_result=passing.passed is None,
            invalid_reason=passing.reason if passing.passed is None else None,
            verdict=verdict,
        )

    def evaluate_response(
        self, query: str | None = None, response: Response | None = None, **options: Any
    ) -> EvaluationResult:
        """Evaluate what a query engine answered; evidence names its source nodes by their ids."""
        return self.evaluate(query, *_parts(response), **options)

    async def aevaluate_response(
        self, query: str | None = None, response: Response | None = None, **options: Any
    ) -> EvaluationResult:
        """Like ``evaluate_response``."""
        return await self.aevaluate(query, *_parts(response), **options)

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        """``eval_template`` and ``user_template`` of an LLM judge, with our variables, such as $claims."""
        ours = self._guard.prompts()
        return {name: PromptTemplate(ours[our]) for name, our in _PROMPTS.items() if our in ours}

    def _update_prompts(self, prompts: dict[str, BasePromptTemplate]) -> None:
        known = self._get_prompts()
        if unknown := sorted(prompts.keys() - known.keys()):
            there_are = f"there are {' and '.join(known)}" if known else "this judge asks no LLM"
            raise ConfigError(f"{unknown[0]}: {there_are}")
        texts = {_PROMPTS[name]: prompt.get_template() for name, prompt in prompts.items()}
        self._guard = self._guard.with_prompts(texts)


def _chat_model(llm: LLM) -> ChatModel:
    if not isinstance(llm, LLM):
        raise TypeError(f"llm: give an LLM of llama_index.core, not a {type(llm).__name__}; or give judge=…")
    from guardrail.integrations.chat_models import ChatModel  # loads the client, which others don't need

    aask = None if isinstance(llm, CustomLLM) else partial(_aask, llm)  # its own would hold up the event loop
    return ChatModel(llm, _messages, partial(_ask, llm), aask, _reply)


def _ask(llm: LLM, given: list[ChatMessage]) -> ChatResponse:
    return llm.chat(given)  # whose bound method can't be pickled


async def _aask(llm: LLM, given: list[ChatMessage]) -> ChatResponse:
    return await llm.achat(given)


def _messages(given: Messages) -> list[ChatMessage]:
    return [ChatMessage(role=role, content=text) for role, text in given]


def _reply(response: ChatResponse) -> Reply:
    told = getattr(response.raw, "usage", None) or response.additional_kwargs
    return response.message.content, told or response.message.additional_kwargs


def _parts(response: Response | None) -> tuple[str | None, Sequence[ContextLike] | None]:
    if response is None:
        return None, None
    nodes = response.source_nodes
    return response.response, with_own_ids((node.node_id, node.get_content()) for node in nodes)


def _text(context: ContextLike) -> str:
    return context if isinstance(context, str) else str(dict(context)["text"])
