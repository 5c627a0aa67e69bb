"""Asking models for verdicts within one absolute deadline: retries, then fallbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import openai

from guardrail.awake import awake
from guardrail.calls import Failure
from guardrail.errors import JudgeError, JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.judges.llm.endpoint import ModelEndpoint, OwnClients, Prices, Question
from guardrail.judges.llm.reply import Answer
from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.spending import BudgetExhausted

_PLACE: Final = "judge.llm"

# The share of the time left that is reserved for the fallbacks while an earlier model is asked.
_RESERVE: Final = 0.4


class Chat:
    """Asks the configured model and then its fallbacks, in order."""

    def __init__(
        self,
        settings: LlmJudgeSettings,
        client: openai.AsyncOpenAI | None = None,
        prices: Prices | None = None,
        clock: Callable[[], float] = awake,
        reserve: float = _RESERVE,
    ) -> None:
        """A given ``client`` is used for the first model, and the caller closes it.

        Raises ConfigError if a key is missing. The clients' own retries are off, because they ignore
        deadlines. ``clock`` gives seconds to breakers and recent times. ``reserve`` is the share of the time
        left that is reserved for the models after the current one.
        """
        self._reserve = reserve
        self._owned: list[OwnClients] = []
        self.endpoints: list[ModelEndpoint] = []
        for number, model in enumerate(settings.models()):
            # Only the caller's client needs a copy, which reads the environment again.
            theirs = client.with_options(max_retries=0) if number == 0 and client is not None else None
            self.endpoints.append(ModelEndpoint(theirs or self._own(model, number), model, prices, clock))

    def _own(self, settings: LlmJudgeSettings, number: int) -> OwnClients:
        place = f"{_PLACE}.fallbacks[{number - 1}]" if number else _PLACE
        clients = OwnClients(settings, place)
        self._owned.append(clients)
        return clients

    async def aclose(self) -> None:
        """Close all connections. No question may follow."""
        for clients in self._owned:
            await clients.aclose()

    async def ask(self, question: Question, deadline: float) -> list[Answer]:
        """All answers of the call that was used; if its reply broke off, those that were complete.

        ``deadline`` is in the event loop's time; this returns or raises by then. Raises JudgeUnavailable
        (BudgetExhausted if a budget ended it), JudgeReplyError or, if every model refuses permanently,
        JudgeError. ``question.spent`` has the usage in any case.
        """
        loop = asyncio.get_running_loop()
        failures: list[tuple[ModelEndpoint, Failure]] = []
        for number, endpoint in enumerate(self.endpoints):
            until = self._until(endpoint, self.endpoints[number + 1 :], deadline)
            outcome = await endpoint.ask(question, until)
            if not isinstance(outcome, Failure):
                question.spent.answered_by = endpoint.name
                return outcome
            question.spent.models.append(f"{endpoint.name}: {outcome.error}")
            failures.append((endpoint, outcome))
            if loop.time() >= deadline or isinstance(outcome.error, BudgetExhausted):
                break
        raise _joined(failures) from None

    def _until(self, endpoint: ModelEndpoint, others: Sequence[ModelEndpoint], deadline: float) -> float:
        """Until when to try one model: a share of the time is reserved for models that could follow.

        If that would leave it too little, the model gets all the time: one fair try is better than two that
        can't succeed.
        """
        now = asyncio.get_running_loop().time()
        left = deadline - now
        if not any(other.caller.breaker.would_admit and other.caller.pause_s() < left for other in others):
            return deadline
        until = deadline - left * self._reserve
        typical = endpoint.caller.typical_s()
        return deadline if typical is not None and until - now < typical <= left else until


def _joined(failures: Sequence[tuple[ModelEndpoint, Failure]]) -> JudgeError:
    """One error for all models, which may be retried if any of theirs may."""
    errors = [failure.error for _, failure in failures]
    if len(errors) == 1:
        return errors[0]
    text = "; ".join(f"{endpoint.name}: {failure.error}" for endpoint, failure in failures)
    if isinstance(errors[-1], BudgetExhausted):
        return BudgetExhausted(text)
    if any(isinstance(error, JudgeUnavailable) for error in errors):
        return JudgeUnavailable(text)
    if all(isinstance(error, JudgeRefused) for error in errors):
        return JudgeRefused(text)
    if any(isinstance(error, JudgeReplyError) for error in errors):
        return JudgeReplyError(text)
    return JudgeError(text)
