"""Calls to one model on one server: which are made, when, how often, and what they teach.

A call waits for its turn among those in flight, as many as the server has been found to bear; it is not made
while the breaker is open, or if it can't succeed in the time that is left; it ends by an absolute deadline;
and a failed one is repeated after a wait, if the failure may be another one next time.
"""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final, Generic, TypeVar

from guardrail import telemetry
from guardrail.awake import awake
from guardrail.calls.failures import RETRIES, Failure
from guardrail.calls.limits import SILENT_S, AdaptiveLimit, CircuitBreaker, FairSlots, RecentTimes
from guardrail.errors import JudgeUnavailable

_T = TypeVar("_T")

MAX_QUEUE: Final = 1_000
"""Calls that may wait for their turn."""
_MOST: Final = 0.8
"""Of the time that a call was given: who waits no longer then has not just gone away."""
# The longest that all calls wait because one of them got a Retry-After: the server may recover earlier.
_LONGEST_PAUSE_S: Final = 60.0


class Call(ABC, Generic[_T]):
    """What is called, and what is known of the try under way. One for all tries."""

    timed: ClassVar[bool] = True
    """Whether the times of other calls say how long this one takes."""

    until: float = math.inf
    """When the try under way ends at the latest, in the event loop's time."""
    first_token_at: float | None = None
    """When the server began to answer, in the event loop's time; None if that can't be told."""
    first_answer_at: float | None = None
    """When there was something to use."""
    failure: Failure | None = None
    """Why the last try failed, also where it had answered in part."""
    stalled: bool = False
    """Whether the last try ended because the server fell silent."""

    def admit(self) -> None:
        """Called before each try. Raises JudgeUnavailable if none may be made any more."""

    def begin(self, until: float) -> None:
        """A try begins, which ends by then."""
        self.until = until
        self.first_token_at = self.first_answer_at = self.failure = None
        self.stalled = False

    @abstractmethod
    async def run(self) -> _T | Failure:
        """One try."""

    def broke_off(self, failure: Failure) -> _T | Failure:
        """What is there of a try that failed."""
        self.failure = failure
        return failure

    def ended(self) -> None:
        """Called after each try, also of one that was cancelled."""

    def out_of_time(self) -> str:
        """What to say at the deadline."""
        return "no answer within the deadline"


class Caller:
    """Makes the calls. All calls of one event loop share it."""

    def __init__(
        self, name: str, model: str, max_concurrency: int, clock: Callable[[], float] = awake
    ) -> None:
        """``name`` is for the log and ``model`` for metrics. ``clock`` gives seconds to the breaker and to
        recent times.
        """
        self._model = telemetry.model_label(model)
        self.breaker = CircuitBreaker(name, self._model, clock)
        self.limit = AdaptiveLimit(max_concurrency)
        self.slots = FairSlots(lambda: self.limit.limit, MAX_QUEUE)
        self._clock = clock
        self._first = RecentTimes(clock)  # from the call to its first answer
        self._whole = RecentTimes(clock)  # to its end
        self._paused_until = 0.0

    def typical_s(self) -> float | None:
        """The seconds that a recent call typically took to its first answer; None if too few were timed."""
        return self._first.quantile(0.5)

    def pause_s(self) -> float:
        """The seconds for which the server still asks not to be called."""
        return max(0.0, self._paused_until - self._clock())

    async def run(self, call: Call[_T], until: float, lane: str = "", *, retries: int) -> _T | Failure:
        """Call until it succeeds, the retries are used up, or there is no time for another.

        ``until`` is in the event loop's time; this returns by then. Calls of different lanes take turns when
        they have to wait. If a reply breaks off, what was complete is the outcome.
        """
        loop = asyncio.get_running_loop()
        retry = 0
        while True:
            outcome = await self._once(call, until, lane)
            if not isinstance(outcome, Failure) or not outcome.retry or retry >= retries:
                return outcome
            wait = RETRIES.wait(retry, outcome.retry_after)
            if loop.time() + wait >= until:
                # Waiting is pointless. Failing now leaves time for something else.
                return _given_up(f"{outcome.error}; no time is left to try again")
            await asyncio.sleep(wait)
            retry += 1

    async def _once(self, call: Call[_T], until: float, lane: str) -> _T | Failure:
        loop = asyncio.get_running_loop()
        if loop.time() >= until:
            return _given_up(call.out_of_time())
        hopeless = self._hopeless(lane, until - loop.time())
        if hopeless is not None:
            return hopeless
        try:
            async with asyncio.timeout_at(until):
                if self.pause_s():
                    await asyncio.sleep(RETRIES.wait(0, self.pause_s()))
                await self.slots.acquire(lane)
        except TimeoutError:
            return _given_up(call.out_of_time())
        except JudgeUnavailable as error:
            return Failure(error, retry=False)
        try:
            # The wait may have been longer than expected.
            too_late = self._too_late(until - loop.time())
            if too_late is not None:
                return too_late
            return await self._in_turn(call, until)
        finally:
            self.slots.release()

    def _hopeless(self, lane: str, seconds: float) -> Failure | None:
        """Why a call can't succeed within ``seconds``, so that none is wasted; None if it might."""
        if not self.breaker.would_admit:
            return self._left_alone()
        pause = self.pause_s()
        if pause >= seconds:
            return _given_up("the server asked to wait; no time is left to try again")
        return self._too_late(seconds - pause - self._queueing_s(lane))

    def _left_alone(self) -> Failure:
        """A call that the breaker does not let through; whoever reads of it wants to know why it is open."""
        cause = self.breaker.last_failure
        return _given_up(
            f"its recent calls failed{f': {cause}' if cause else ''}; not calling it again for a while"
        )

    def _too_late(self, seconds: float) -> Failure | None:
        typical = self.typical_s()
        if typical is None or typical <= seconds:
            return None
        return _given_up("the time left is shorter than what it needs at present")

    def _queueing_s(self, lane: str) -> float:
        """How many seconds a call would wait for its turn, judging by recent calls."""
        if self.slots.free:
            return 0.0
        whole = self._whole.quantile(0.5) or 0.0
        return whole * (self.slots.ahead(lane) + 1) / self.limit.limit

    async def _in_turn(self, call: Call[_T], until: float) -> _T | Failure:
        try:
            call.admit()
        except JudgeUnavailable as error:
            return Failure(error, retry=False)
        admission = self.breaker.admit()
        if admission is None:
            return self._left_alone()
        begun, awake_at, round_ = asyncio.get_running_loop().time(), awake(), self.limit.round
        call.begin(until)
        cut_short = False
        try:
            try:
                async with asyncio.timeout_at(until) as scope:
                    outcome = await call.run()
            except TimeoutError:
                if not scope.expired():
                    raise
                # It is the server's fault only if the call had the time that nearly all recent ones needed,
                # without standstills of this process.
                had_s = awake() - awake_at
                cut_short = had_s < self._fair_s(0.0 if call.timed else SILENT_S)
                call.stalled = had_s >= self._fair_s(SILENT_S)
                late = JudgeUnavailable(call.out_of_time())
                outcome = call.broke_off(
                    Failure(late, retry=False, fault=not cut_short, overload=not cut_short)
                )
            failure = call.failure
            self._learn(call, answered=not isinstance(outcome, Failure), begun=begun, round_=round_)
            fault = failure is not None and failure.fault
            admission.record(
                ok=None if cut_short else not fault,
                why=str(failure.error) if failure else "",
                hung=fault and call.stalled and call.first_answer_at is None,
            )
            return outcome
        finally:
            # Cancelled: what it is about has run out of time, or is not needed any more.
            unknown = _MOST * (until - begun)
            fair_s = self._fair_s(unknown if call.timed else max(SILENT_S, unknown))
            admission.given_up(math.inf if call.first_answer_at else fair_s)
            call.ended()

    def _fair_s(self, unknown: float) -> float:
        """The time that nearly all recent calls needed to their first answer, if that is known."""
        long = self._first.quantile(0.95)
        return unknown if long is None else long

    def _learn(self, call: Call[_T], *, answered: bool, begun: float, round_: int) -> None:
        now = asyncio.get_running_loop().time()
        failure = call.failure
        telemetry.JUDGE_CALL_SECONDS.labels(self._model, "ok" if failure is None else "failed").observe(
            now - begun
        )
        if failure is None:
            first = call.first_token_at
            self.limit.succeeded(
                round_, self.slots.held + self.slots.waiting, None if first is None else first - begun
            )
        elif failure.overload:
            self.limit.overloaded(round_)
        if call.timed and failure is None:
            self._whole.add(now - begun)
        if call.timed and answered:
            self._first.add((call.first_answer_at or now) - begun)
        if failure is not None and failure.retry_after:
            until = self._clock() + min(failure.retry_after, _LONGEST_PAUSE_S)
            self._paused_until = max(self._paused_until, until)


def _given_up(why: str) -> Failure:
    return Failure(JudgeUnavailable(why), retry=False)
