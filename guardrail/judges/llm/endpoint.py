"""One model on one server: what it takes, how it has fared of late, and how calls are made to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

import openai

from guardrail.errors import JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.judges.llm.circuit_breaker import CircuitBreaker
from guardrail.judges.llm.concurrency import AdaptiveLimit, Slots
from guardrail.judges.llm.connection import server_of
from guardrail.judges.llm.dialect import Dialect
from guardrail.judges.llm.exchange import Exchange, NotAnApi, Progress, ReplyRefused, Stalled
from guardrail.judges.llm.failures import Backoff, Failure, describe
from guardrail.judges.llm.hedging import HedgingBudget, Outcome, Voice
from guardrail.judges.llm.question import Prices, Question
from guardrail.judges.llm.recent_times import RecentTimes
from guardrail.judges.llm.reply import Answer
from guardrail.judges.llm.settings import LlmJudgeSettings

# What a server may ask of all calls by a Retry-After to one of them: it may change its mind earlier.
_LONGEST_PAUSE_S: Final = 60.0
_MIN_TIMED: Final = 5


class Endpoint:
    """Calls to one model. All its state is shared by the questions that are put to it at the same time."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        settings: LlmJudgeSettings,
        prices: Prices | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``client`` must not retry by itself. ``clock`` is the breaker's, and that of what was recent."""
        self.name = f"llm:{settings.model}"
        self.settings = settings
        self.backoff = Backoff(settings)
        self.budget = HedgingBudget(settings.hedging.max_share)
        self.breaker = CircuitBreaker(settings.circuit_breaker, self.name, clock)
        self.limit = AdaptiveLimit(settings.concurrency, settings.max_concurrency)
        self.slots = Slots(lambda: self.limit.limit, settings.concurrency.max_queue)
        self._client = client
        self._prices = prices
        self._clock = clock
        self._dialect = Dialect(settings)
        self._headers = {name: value.get_secret_value() for name, value in settings.extra_headers.items()}
        self._first = RecentTimes(clock=clock)  # from the call to its first verdict
        self._whole = RecentTimes(clock=clock)  # to its end
        self._paused_until = 0.0

    def typical_s(self) -> float | None:
        """What a call of late needed to its first verdict, in seconds; None when too few were timed."""
        return self._first.quantile(0.5, _MIN_TIMED)

    def late_s(self) -> float | None:
        """The time in seconds from which on a call is late and a second one may be sent; None: never."""
        hedging = self.settings.hedging
        return self._first.quantile(hedging.quantile, hedging.min_samples) if hedging.enabled else None

    def pause_s(self) -> float:
        """For how many seconds the server has asked not to be called."""
        return max(0.0, self._paused_until - self._clock())

    def hopeless(self, response_id: str, seconds: float) -> Failure | None:
        """Why a call can't succeed within ``seconds``, so that none is wasted; None when it may."""
        if not self.breaker.would_admit:
            return _given_up("its recent calls failed, and it is left alone for a while")
        pause = self.pause_s()
        if pause >= seconds:
            return _given_up("the server asked to wait; no time is left to try again")
        return self._too_late(seconds - pause - self._queueing_s(response_id))

    def _too_late(self, seconds: float) -> Failure | None:
        typical = self.typical_s()
        if typical is None or typical <= seconds:
            return None
        return _given_up("the time left is shorter than what it needs at present")

    def _queueing_s(self, response_id: str) -> float:
        """How long a call would wait for its turn, by what calls took of late."""
        if self.slots.free:
            return 0.0
        whole = self._whole.quantile(0.5, _MIN_TIMED) or 0.0
        return whole * (self.slots.ahead(response_id) + 1) / self.limit.limit

    async def call(self, question: Question, until: float, voice: Voice) -> Outcome:
        """One call, and more only where the server refuses an argument that can be left out.

        ``until`` is in the event loop's time. What was complete when the reply broke off is an outcome too.
        """
        loop = asyncio.get_running_loop()
        if loop.time() >= until:
            return _out_of_time(question)
        hopeless = self.hopeless(question.response_id, until - loop.time())
        if hopeless is not None:
            return hopeless
        try:
            async with asyncio.timeout_at(until):
                if self.pause_s():
                    await asyncio.sleep(self.backoff.seconds(0, self.pause_s()))
                await self.slots.acquire(question.response_id)
        except TimeoutError:
            return _out_of_time(question)
        except JudgeUnavailable as error:
            return Failure(error, retry=False)
        try:
            # The wait may have been longer than it looked.
            too_late = self._too_late(until - loop.time())
            return too_late or await self._call_in_turn(question, until, voice)
        finally:
            self.slots.release()

    async def _call_in_turn(self, question: Question, until: float, voice: Voice) -> Outcome:
        while True:
            try:
                if question.admit is not None:
                    question.admit()
            except JudgeUnavailable as error:
                return Failure(error, retry=False)
            admission = self.breaker.admit()
            if admission is None:
                return _given_up("its recent calls failed, and it is left alone for a while")
            began_in, begun = self.limit.round, asyncio.get_running_loop().time()
            attempt = _Attempt(question, voice)
            arguments = self._dialect.arguments(question.schema)
            try:
                outcome = await self._attempt(attempt, arguments, until)
                if outcome is None:  # another form of the same question is worth asking
                    continue
                self._learn(attempt, outcome, begun, began_in)
                failed = attempt.failure
                admission.record(ok=None if attempt.cut_short else not (failed and failed.fault))
                return outcome
            finally:
                admission.record(ok=None)
                question.spent.add(self.settings.model, attempt.progress.usage, self._prices)

    async def _attempt(self, attempt: _Attempt, arguments: dict[str, Any], until: float) -> Outcome | None:
        """One HTTP call. None: the server refused an argument, which is left out from now on."""
        limit_ms = self.settings.attempt_timeout_ms
        begun = asyncio.get_running_loop().time()
        own = None if limit_ms is None else begun + limit_ms / 1000
        try:
            async with asyncio.timeout_at(until if own is None else min(own, until)) as scope:
                return await self._exchange(attempt, arguments)
        except TimeoutError:
            if not scope.expired():
                raise
        if own is not None and own < until:
            error = JudgeUnavailable(f"a call took longer than {limit_ms} ms")
            return attempt.broke_off(Failure(error, retry=True, fault=True, overload=True))
        # The fault is the server's only if it had as long as nearly all of its calls take.
        long = self._first.quantile(0.95, _MIN_TIMED)
        fair = long is None or until - begun >= long
        attempt.cut_short = not fair
        out_of_time = _out_of_time(attempt.question).error
        return attempt.broke_off(Failure(out_of_time, retry=False, fault=fair, overload=fair))

    async def _exchange(self, attempt: _Attempt, arguments: dict[str, Any]) -> Outcome | None:
        attempt.question.spent.sent()
        self.budget.called()
        stall_ms = self.settings.stream.stall_timeout_ms
        exchange = Exchange(self._client, attempt.progress, attempt.read, stall_ms)
        try:
            await exchange.run(
                {
                    "model": self.settings.model,
                    "messages": list(attempt.question.messages),
                    "extra_headers": self._headers,
                    "extra_body": self.settings.extra_body or None,
                }
                | arguments
            )
            answers = attempt.finish()
        except openai.APIStatusError as error:
            if self._dialect.adapt(error, arguments):
                return None
            return attempt.broke_off(_refused(describe(error), self._dialect.remedy(error, arguments)))
        except openai.APIError as error:
            return attempt.broke_off(describe(error, server_of(str(self._client.base_url))))
        except NotAnApi as error:
            return attempt.broke_off(Failure(error, retry=True, fault=True))
        except JudgeReplyError as error:
            return attempt.broke_off(Failure(error, retry=not isinstance(error, ReplyRefused)))
        except JudgeUnavailable as error:
            late = isinstance(error, Stalled)
            return attempt.broke_off(Failure(error, retry=True, fault=True, overload=late))
        if arguments.get("stream") and not attempt.progress.streamed:
            self._dialect.take_whole_replies()
        return answers

    def _learn(self, attempt: _Attempt, outcome: Outcome, begun: float, began_in: int) -> None:
        now = asyncio.get_running_loop().time()
        failure = attempt.failure
        if failure is None:
            first = attempt.progress.first_token_at if attempt.progress.streamed else None
            demand = self.slots.in_flight + self.slots.waiting
            self.limit.succeeded(began_in, demand, None if first is None else first - begun)
            self._whole.add(now - begun)
        elif failure.overload:
            self.limit.overloaded(began_in)
        if not isinstance(outcome, Failure):
            self._first.add((attempt.first_answer_at or now) - begun)
        if failure is not None and failure.retry_after:
            until = self._clock() + min(failure.retry_after, _LONGEST_PAUSE_S)
            self._paused_until = max(self._paused_until, until)


class _Attempt:
    """One call's reply, as far as it has come."""

    def __init__(self, question: Question, voice: Voice) -> None:
        self.question = question
        self.progress = Progress()
        self.first_answer_at: float | None = None  # event loop's time
        self.failure: Failure | None = None
        self.cut_short = False
        self._voice = voice
        self._reader = question.reader()
        self._answers: list[Answer] = []

    def read(self, text: str) -> None:
        answers = self._reader.feed(text)
        if answers:
            self.first_answer_at = self.first_answer_at or asyncio.get_running_loop().time()
            self._answers += answers
            self._voice.say(answers)

    def finish(self) -> list[Answer]:
        return [*self._answers, *self._reader.finish()]

    def broke_off(self, failure: Failure) -> Outcome:
        """What was complete when the call failed, or else the failure."""
        self.failure = failure
        if self.progress.empty:
            return failure
        try:
            return self.finish()
        except JudgeReplyError:
            return failure


def _refused(failure: Failure, remedy: str | None) -> Failure:
    """With a remedy that is known: to ask again would be refused again."""
    if remedy is None:
        return failure
    return Failure(JudgeError(f"{failure.error}; {remedy}"), retry=False, fault=failure.fault)


def _given_up(why: str) -> Failure:
    return Failure(JudgeUnavailable(why), retry=False)


def _out_of_time(question: Question) -> Failure:
    made = question.spent.calls
    text = f"no verdict within the deadline, {'1 call' if made == 1 else f'{made} calls'} made"
    return Failure(JudgeUnavailable(text), retry=False)
