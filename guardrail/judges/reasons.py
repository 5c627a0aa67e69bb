"""Reasons in a chat model's words for the verdicts of a judge that writes none, after these verdicts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

from guardrail.events import Usage
from guardrail.judges.base import Around, Judge, JudgeRequest
from guardrail.judges.llm import LlmExplainer
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.spending import BookedCalls, Budget, PriceTable, UsageLedger
from guardrail.judges.streams import closing
from guardrail.verdicts import Judgement

_EXPECTED = (1_200, 60)
"""Tokens of a call that budgets count with: the instructions, a claim and its passages; a sentence."""


class ExplainingJudge(Around):
    """A Judge around the decisions judge. Its judgements know how to have their reasons put into words, which
    whoever takes them asks for where it wants some.
    """

    def __init__(
        self,
        judge: Judge,
        settings: LlmJudgeSettings,
        budget: Budget,
        ledger: UsageLedger,
        prices: PriceTable,
    ) -> None:
        """Takes over ``judge``, and closes it. Raises ConfigError if there is no key."""
        super().__init__(judge)
        self._explainer = LlmExplainer(settings, prices)
        self._model = settings.model
        self._budget = budget
        self._ledger = ledger
        self._prices = prices

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Yields the judge's judgements. Raises what the judge raises."""
        async with closing(self._judge.judge(request)) as judgements:
            async for judgement in judgements:
                # Another judge that answered in its place gives reasons of its own.
                decided = judgement.judge.startswith("decisions:")
                yield replace(judgement, explain=partial(self._reason, request)) if decided else judgement

    async def aclose(self) -> None:
        """Close the judge, and all connections of the model."""
        try:
            await super().aclose()
        finally:
            await self._explainer.aclose()

    async def _reason(self, request: JudgeRequest, judgement: Judgement) -> str:
        """A sentence. What it takes counts for the response and in all budgets. Raises JudgeError."""
        read, written = _EXPECTED
        cost = self._prices.cost_usd(self._model, read, 0, written)
        expected = Usage(judge_calls=1, input_tokens=read, output_tokens=written, cost_usd=cost)
        calls = BookedCalls(request, self._budget, expected, self._ledger, self._model)
        try:
            return await self._explainer.reason(request, judgement, calls)
        finally:
            calls.settle()
