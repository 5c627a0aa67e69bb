"""Asking models for verdicts within one absolute deadline: retries, second calls, fallbacks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import openai

from guardrail.errors import JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.judges.llm.clients import make_client
from guardrail.judges.llm.endpoint import Endpoint
from guardrail.judges.llm.exchange import ReplyRefused
from guardrail.judges.llm.failures import Failure
from guardrail.judges.llm.hedging import Announcer, Outcome, hedged
from guardrail.judges.llm.question import Prices, Question, ReplyReader, Spent
from guardrail.judges.llm.reply import Answer
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.spending import BudgetExhausted

__all__ = ["Chat", "Question", "ReplyReader", "ReplyRefused", "Spent"]

_PLACE: Final = "judge.llm"


class Chat:
    """The configured model and its fallbacks, asked in order."""

    def __init__(
        self,
        settings: LlmJudgeSettings,
        client: openai.AsyncOpenAI | None = None,
        prices: Prices | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A ``client`` that is given is the first model's, and stays the caller's to close.

        Raises ConfigError when a key is missing. Whichever client it is, its own retries are off: they know
        nothing of deadlines. ``clock`` gives seconds to what looks back: breakers and recent times.
        """
        self._reserve = settings.failover.reserve
        self._owned: list[openai.AsyncOpenAI] = []
        self.endpoints: list[Endpoint] = []
        for number, model in enumerate(settings.models()):
            # A copy takes in the environment once more: those of our own need none.
            theirs = client.with_options(max_retries=0) if number == 0 and client is not None else None
            self.endpoints.append(Endpoint(theirs or self._own(model, number), model, prices, clock))

    def _own(self, settings: LlmJudgeSettings, number: int) -> openai.AsyncOpenAI:
        place = f"{_PLACE}.fallbacks[{number - 1}]" if number else _PLACE
        client = make_client(settings, place)
        self._owned.append(client)
        return client

    async def aclose(self) -> None:
        """Close all connections. No question follows."""
        for client in self._owned:
            await client.close()

    async def ask(self, question: Question, deadline: float) -> list[Answer]:
        """All answers of the call that was used; of a reply that broke off, those that were complete.

        ``deadline`` is in the event loop's time; this returns or raises by then. Raises JudgeUnavailable
        (BudgetExhausted where a budget ended it), JudgeReplyError or, when every model refuses for good,
        JudgeError. ``question.spent`` holds what it took in either case.
        """
        loop = asyncio.get_running_loop()
        announcer = Announcer(question.heard)
        failures: list[tuple[Endpoint, Failure]] = []
        for number, endpoint in enumerate(self.endpoints):
            until = self._until(endpoint, self.endpoints[number + 1 :], deadline)
            outcome = await self._repeat(endpoint, question, until, announcer)
            if not isinstance(outcome, Failure):
                question.spent.answered_by = endpoint.name
                return outcome
            question.spent.models.append(f"{endpoint.name}: {outcome.error}")
            failures.append((endpoint, outcome))
            if loop.time() >= deadline or isinstance(outcome.error, BudgetExhausted):
                break
        raise _joined(failures) from None

    def _until(self, endpoint: Endpoint, others: Sequence[Endpoint], deadline: float) -> float:
        """Till when one model may be tried: a share of the time is kept for those that could follow.

        Where the rest would be too short for it the model gets all: better one fair try than two in vain.
        """
        now = asyncio.get_running_loop().time()
        left = deadline - now
        if not any(other.breaker.would_admit and other.pause_s() < left for other in others):
            return deadline
        until = deadline - left * self._reserve
        typical = endpoint.typical_s()
        return deadline if typical is not None and until - now < typical <= left else until

    async def _repeat(
        self, endpoint: Endpoint, question: Question, until: float, announcer: Announcer
    ) -> Outcome:
        """Calls to one model until one succeeds, retries are used up or no time is left for another."""
        loop = asyncio.get_running_loop()
        retries = 0
        failed: Failure | None = None
        while True:
            voice, outcome = await hedged(
                lambda voice: endpoint.call(question, until, voice),
                announcer,
                endpoint.late_s(),
                lambda: endpoint.slots.free and endpoint.budget.take(),
            )
            if not isinstance(outcome, Failure):
                return announcer.agreed(voice, outcome)
            if failed is not None and isinstance(outcome.error, BudgetExhausted):
                return Failure(
                    BudgetExhausted(f"{failed.error}; not tried again: {outcome.error}"), retry=False
                )
            if not outcome.retry or retries >= endpoint.settings.max_retries:
                return outcome
            wait = endpoint.backoff.seconds(retries, outcome.retry_after)
            if loop.time() + wait >= until:
                # Nothing can come of waiting: say so now, while there is still time for something else.
                error = JudgeUnavailable(f"{outcome.error}; no time is left to try again")
                return Failure(error, retry=False)
            await asyncio.sleep(wait)
            retries += 1
            failed = outcome


def _joined(failures: Sequence[tuple[Endpoint, Failure]]) -> JudgeError:
    """One error for all models: worth asking again if it is for any of them."""
    errors = [failure.error for _, failure in failures]
    if len(errors) == 1:
        return errors[0]
    text = "; ".join(f"{endpoint.name}: {failure.error}" for endpoint, failure in failures)
    if isinstance(errors[-1], BudgetExhausted):
        return BudgetExhausted(text)
    if any(isinstance(error, JudgeUnavailable) for error in errors):
        return JudgeUnavailable(text)
    if any(isinstance(error, JudgeReplyError) for error in errors):
        return JudgeReplyError(text)
    return JudgeError(text)
