"""A judge that has the local one answer when its budget is used up."""

from __future__ import annotations

from dataclasses import replace

from guardrail.judges.base import Judge, Judgement, JudgeReply, JudgeRequest
from guardrail.judges.budgets import BudgetExhausted
from guardrail.judges.usage import total, usage_of


class BudgetFallback:
    """A Judge. What the second one answers names the first, and the budget, in ``degraded_from``."""

    def __init__(self, judge: Judge, local: Judge) -> None:
        """Both become this one's to close."""
        self._judge = judge
        self._local = local

    @property
    def name(self) -> str:
        return self._judge.name

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """The reply of the first, or where that has no budget of the second."""
        try:
            return await self._judge.judge(request)
        except BudgetExhausted as error:
            why = f"{self._judge.name}: {error}"
            spent = usage_of(error)  # on calls that failed until there was room for no other

        def degraded(judgement: Judgement) -> Judgement:
            return replace(
                judgement,
                attempts=judgement.attempts + spent.judge_calls,
                degraded_from=(why, *judgement.degraded_from),
            )

        heard = request.on_judgement
        early = None if heard is None else lambda judgement: heard(degraded(judgement))
        reply = await self._local.judge(replace(request, on_judgement=early))
        return JudgeReply(
            tuple(degraded(judgement) for judgement in reply.judgements), total(spent, reply.usage)
        )

    async def aclose(self) -> None:
        """Close both."""
        try:
            await self._judge.aclose()
        finally:
            await self._local.aclose()
