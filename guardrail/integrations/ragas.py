"""The guard as metrics of Ragas, in the place of those of ``ragas.metrics`` and its ``collections``.

::

    result = await Faithfulness().ascore(user_input=question, response=answer, retrieved_contexts=contexts)
    evaluate(dataset, metrics=[Faithfulness()])

Ragas has two interfaces, with a ``Faithfulness`` for each. Here one is for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import convert_to_messages
from langchain_core.outputs import LLMResult
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable
from pydantic import BaseModel
from ragas.callbacks import ChainType, new_group
from ragas.dataset_schema import SingleTurnSample
from ragas.llms import BaseRagasLLM, InstructorBaseRagasLLM
from ragas.metrics.base import MetricOutputType, MetricType, SingleTurnMetric
from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult

from guardrail.errors import ConfigError
from guardrail.evals.explanation import explain
from guardrail.evals.scores import MEANING, score_value, statements
from guardrail.events import ResponseVerdict
from guardrail.inputs import ContextLike
from guardrail.integrations.chat_models import ChatModel, Messages, Reply
from guardrail.integrations.evaluating import (
    CONCURRENCY,
    EvaluatingGuard,
    HasGuard,
    JudgeLike,
    with_own_ids,
)
from guardrail.integrations.langchain import chat_model_of
from guardrail.log_events import EventLog

VERDICTS: Final = "verdicts"
"""The step of a metric, in the traces of an evaluation, that has the verdict."""
_COLUMNS: Final = {"user_input", "response", "retrieved_contexts", "retrieved_context_ids:optional"}
_log = EventLog(__name__)


class Faithfulness(HasGuard, SingleTurnMetric, BaseMetric):
    """How much of an answer its contexts support, claim by claim, from 0 to 1; NaN without a score.

    ``llm``, of Ragas or LangChain, is the model of the LLM judge; without it the local judge is asked, which
    needs no key. ``evaluate(llm=…)`` is told to metrics of Ragas only. The other arguments are those of
    ``EvaluatingGuard``. Raises ConfigError if settings are wrong.
    """

    def __init__(
        self,
        llm: Any = None,
        name: str = "faithfulness",
        allowed_values: tuple[float, float] = (0.0, 1.0),
        *,
        judge: JudgeLike | None = None,
        settings: str | Path | None = None,
        score: str = "ragas",
        concurrency: int = CONCURRENCY,
    ) -> None:
        SingleTurnMetric.__init__(self, {MetricType.SINGLE_TURN: _COLUMNS}, name)
        BaseMetric.__init__(self, name, allowed_values)
        self.llm, self.output_type = llm, MetricOutputType.CONTINUOUS
        model = None if llm is None else _chat_model(llm)
        self._guard = EvaluatingGuard(judge, settings, llm=model, concurrency=concurrency, score=score)

    def init(self, run_config: Any) -> None:
        """Hands the configuration of a run to a model that takes one."""
        if isinstance(self.llm, BaseRagasLLM):
            self.llm.set_run_config(run_config)

    def get_prompts(self) -> dict[str, str]:
        """``system`` and ``user`` of an LLM judge; their variables are ours, such as $claims."""
        return self._guard.prompts()

    def set_prompts(self, **prompts: str) -> None:
        """Change prompts of an LLM judge. Raises ConfigError for an unknown one, or a missing variable."""
        for name, text in prompts.items():
            if not isinstance(text, str):
                raise ConfigError(f"{name}: give a text, as get_prompts() does, not a {type(text).__name__}")
        self._guard = self._guard.with_prompts(prompts)

    async def ascore(
        self, user_input: str, response: str, retrieved_contexts: Sequence[ContextLike]
    ) -> MetricResult:
        """Score an answer; Ragas has ``score``, ``batch_score`` and ``abatch_score`` on top of this.

        In the result, ``reason`` says why there is no score, or names the claims that are not supported, and
        ``traces["output"]`` is the ``verdict.response`` event as a dictionary, with the ``statements`` that
        were counted. A context is a text, or a mapping with ``id`` and ``text``. Raises ValueError for what
        is empty, InputError for what can't be an answer, and JudgeUnavailable if the judge could say nothing
        of it.
        """
        given = {"response": response, "user_input": user_input, "retrieved_contexts": retrieved_contexts}
        if empty := [name for name, each in given.items() if not each]:
            raise ValueError(f"{empty[0]} is missing: an answer is scored with its question and contexts")
        verdict = await self._guard.acheck(user_input, retrieved_contexts, response)
        scored = score_value(self._guard.score, verdict)
        why = explain(verdict) if scored.reason is None else f"{scored.reason}\n{explain(verdict)}"
        return MetricResult(
            value=math.nan if scored.value is None else scored.value,
            reason=why,
            traces={"input": given, "output": {**verdict.model_dump(mode="json"), **_statements(verdict)}},
        )

    async def _single_turn_ascore(self, sample: SingleTurnSample, callbacks: Any) -> float:
        """The score of a sample, for ``ragas.evaluate``; the verdict is in the traces of the evaluation,
        ``result.traces[i][name]["verdicts"]["output"]``.
        """
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


faithfulness: Final = Faithfulness()
"""As ``ragas.metrics`` has one, for those who import that."""


class FaithfulnesswithHHEM(Faithfulness):
    """``Faithfulness`` with HHEM-2.1-Open as the judge, which needs the extra ``classifier-torch``.

    An ``llm``, by which Ragas cuts answers into statements, is not asked, as the log says. The classifier
    runs on a GPU where torch has one, in batches of its own: another ``device`` or ``batch_size`` than Ragas'
    default raises ConfigError.
    """

    def __init__(
        self,
        llm: Any = None,
        name: str = "faithfulness_with_hhem",
        device: str = "cpu",
        batch_size: int = 10,
        **options: Any,
    ) -> None:
        for argument, given, default in (("device", device, "cpu"), ("batch_size", batch_size, 10)):
            if given != default:
                raise ConfigError(f"{argument}: the judge finds it by itself; leave it out")
        if llm is not None:
            _log.info("ragas.llm_not_asked", metric=name)
        super().__init__(None, name, judge={"kind": "hhem"}, **options)


class _Form(BaseModel):
    """The LLM judge's reply, for models that fill in a form."""

    v: list[str]


def _chat_model(llm: Any) -> ChatModel:
    if isinstance(llm, Runnable):
        return chat_model_of(llm)
    if isinstance(llm, BaseRagasLLM):
        return ChatModel(getattr(llm, "langchain_llm", llm), _prompt, llm.generate_text, llm.generate, _text)
    if not isinstance(llm, InstructorBaseRagasLLM):
        raise TypeError(f"llm: give a model of Ragas or LangChain, not a {type(llm).__name__}; or judge=…")
    blocks = getattr(llm, "is_async", True) is False
    return ChatModel(
        llm,
        lambda given: "\n\n".join(text for _, text in given),
        lambda prompt: llm.generate(prompt, _Form),
        None if blocks else lambda prompt: llm.agenerate(prompt, _Form),
        lambda form: (form.model_dump_json(), getattr(getattr(form, "_raw_response", None), "usage", None)),
    )


def _prompt(given: Messages) -> ChatPromptValue:
    return ChatPromptValue(messages=convert_to_messages(given))


def _text(result: LLMResult) -> Reply:
    first = result.generations[0][0]
    usage = getattr(getattr(first, "message", None), "usage_metadata", None)
    return first.text, usage or (result.llm_output or {}).get("token_usage")


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
