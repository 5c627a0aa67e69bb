"""A judge whose calls are bounded by budgets and booked in the ledger."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from guardrail.errors import JudgeError
from guardrail.events import Usage
from guardrail.judges.base import Judge, JudgeReply, JudgeRequest
from guardrail.judges.budgets import Budget, Reservation
from guardrail.judges.ledger import UsageLedger
from guardrail.judges.pricing import PriceTable
from guardrail.judges.usage import less, told_usage, total

_CHARS_PER_TOKEN = 4
_PROMPT_TOKENS = 600
_OUTPUT_TOKENS_PER_CLAIM = 60


class MeteredJudge:
    """A Judge around one that is paid by the token.

    ``judge`` raises BudgetExhausted, and asks nobody, where a budget has no room for the call. More calls for
    the same request each have to find room likewise (``JudgeRequest.admit``).
    """

    def __init__(
        self,
        judge: Judge,
        model: str,
        *,
        budget: Budget,
        ledger: UsageLedger,
        prices: PriceTable,
        max_context_chars: int,
    ) -> None:
        """``judge`` becomes this one's to close; ``max_context_chars`` is the most it sends of contexts.

        ``prices`` are for what a call of ``model`` is expected to cost. What it did cost the judge tells:
        only it knows which model answered, and 0 may be that model's price.
        """
        self._judge = judge
        self._model = model
        self._budget = budget
        self._ledger = ledger
        self._prices = prices
        self._max_context_chars = max_context_chars

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def ledger(self) -> UsageLedger:
        """Where the usage is booked; several judges may share it."""
        return self._ledger

    async def judge(self, request: JudgeRequest) -> JudgeReply:
        """The judge's reply, booked. Raises what the judge raises, and BudgetExhausted."""
        if not request.claims:
            return JudgeReply(())
        expected = self._expected(request)
        calls = _Calls(self._budget, request, expected)
        try:
            reply = await self._judge.judge(replace(request, admit=calls.admit))
        except (JudgeError, asyncio.CancelledError) as error:
            lost = told_usage(error)
            if lost is None and isinstance(error, asyncio.CancelledError):
                # An early verdict or the deadline ends calls that are under way, and those are billed too.
                lost = Usage(judge_calls=1)
            if lost is not None:
                calls.settle(lost)
                self._ledger.add(request.tenant, self._model, lost)
            raise
        calls.settle(reply.usage)
        self._book(request, reply)
        return reply

    async def aclose(self) -> None:
        """Log what is not logged yet, and close the judge."""
        self._ledger.flush()
        await self._judge.aclose()

    def _expected(self, request: JudgeRequest) -> Usage:
        """About what a call takes: English has four characters to the token."""
        contexts = sum(len(context.text) for context in request.evidence.contexts)
        chars = min(contexts, self._max_context_chars) + len(request.question)
        chars += sum(len(claim.prose.text) + len(claim.lead_in) for claim in request.claims.values())
        read = _PROMPT_TOKENS + chars // _CHARS_PER_TOKEN
        written = _OUTPUT_TOKENS_PER_CLAIM * len(request.claims)
        cost = self._prices.cost_usd(self._model, read, 0, written)
        return Usage(judge_calls=1, input_tokens=read, output_tokens=written, cost_usd=cost)

    def _book(self, request: JudgeRequest, reply: JudgeReply) -> None:
        """Under the models that answered, where judgements tell their share; the rest under the main one."""
        shares: dict[str, Usage] = {}
        for judgement in reply.judgements:
            if judgement.usage is not None and judgement.judge != self.name:
                model = judgement.judge.partition(":")[2] or judgement.judge
                shares[model] = total(shares.get(model, Usage()), judgement.usage)
        for model, share in shares.items():
            self._ledger.add(request.tenant, model, share)
        self._ledger.add(request.tenant, self._model, less(reply.usage, total(*shares.values())))


class _Calls:
    """The room in the budget of all calls that are made for one request."""

    def __init__(self, budget: Budget, request: JudgeRequest, expected: Usage) -> None:
        """Takes the room of the first call. Raises BudgetExhausted."""
        self._budget = budget
        self._request = request
        self._expected = expected
        self._reserved: list[Reservation] = [budget.reserve(request, expected)]
        self._admitted = 0

    def admit(self) -> None:
        """Take room for one more call, or raise BudgetExhausted."""
        if self._admitted == len(self._reserved):
            self._reserved.append(self._budget.reserve(self._request, self._expected))
        self._admitted += 1

    def settle(self, told: Usage) -> None:
        """Book what all of them took, as of the last one: no sooner forgotten than it was spent."""
        *others, last = self._reserved
        for reservation in others:
            self._budget.settle(reservation, Usage())
        self._budget.settle(last, _assumed(told, self._expected))


def _assumed(told: Usage, expected: Usage) -> Usage:
    """What budgets count: a server that tells no tokens of the calls it got is taken to bill the expected."""
    calls = told.judge_calls
    if calls <= 0 or told.input_tokens:
        return told
    return told.model_copy(
        update={
            "input_tokens": expected.input_tokens * calls,
            "output_tokens": max(told.output_tokens, expected.output_tokens * calls),
            "cost_usd": max(told.cost_usd, expected.cost_usd * calls),
        }
    )
