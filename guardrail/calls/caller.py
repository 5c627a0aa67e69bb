"""Calls to one model on one server: which are made, when, how often, and what they teach.

A call waits for its turn among those in flight, as many as the server has been found to bear; it is not made
while the breaker is open, or if it can't succeed in the time that is left; it ends by an absolute deadline;
and a failed one is repeated after a wait, if the failure may be another one next time. All of that is learned
from the calls themselves, so none of it is a setting: the numbers are the constants of the classes here.
"""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, Generic, TypeVar

from guardrail import telemetry
from guardrail.awake import awake
from guardrail.calls.failures import RETRIES, Failure
from guardrail.errors import JudgeUnavailable
from guardrail.log_events import EventLog

# ------------------------------------------------------------------------- what limits the calls to one model

_log = EventLog(__name__)

_MOST_SAMPLES: Final = 256
_LEAST_SAMPLES: Final = 5
_RECENT_S: Final = 60.0

SILENT_S: Final = 4.0
"""Without an answer for so long, a server that lets calls run out of time hangs; with less time than that, a
call tells nothing of a server whose times are not known."""

# The number of parts of the breaker's window, which bounds its memory.
_PARTS: Final = 10

# The latency level follows a change within about ten calls. Its lowest level drifts up over hundreds of
# calls, so that a server that has become slower for good is not mistaken for an overloaded one.
_FOLLOW: Final = 0.2
_DRIFT: Final = 1.005
_GENTLE_DECREASE: Final = 0.9
_MIN_TIMED: Final = 10


class RecentTimes:
    """The durations of recent calls.

    They expire. Otherwise a server that was slow once, and is therefore not called, would never be timed
    again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, float]] = deque(maxlen=_MOST_SAMPLES)

    def add(self, seconds: float) -> None:
        self._samples.append((self._clock(), seconds))

    def quantile(self, share: float) -> float | None:
        """The seconds within which this share of the calls ended; None if too few were timed."""
        oldest = self._clock() - _RECENT_S
        while self._samples and self._samples[0][0] < oldest:
            self._samples.popleft()
        if len(self._samples) < _LEAST_SAMPLES:
            return None
        times = sorted(seconds for _, seconds in self._samples)
        return times[min(len(times) - 1, int(share * len(times)))]


class BreakerState(StrEnum):
    CLOSED = "closed"  # calls are sent
    OPEN = "open"  # no call is sent
    HALF_OPEN = "half_open"  # a few calls are sent as a probe


_CIRCUIT: Final = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


@dataclass(slots=True)
class _Part:
    begun: float
    calls: int = 0
    failed: int = 0


class CircuitBreaker:
    """Stops calling a failing server for a while, then probes it with a few calls.

    It opens if at least ``min_calls`` calls ended within ``window_s`` seconds and ``failure_rate`` of them
    failed. It also opens if ``hangs`` calls in a row had no answer in their time, and no call had one for
    ``SILENT_S``: of a server that hangs few calls end, since each takes all of its time, and then fewer are
    made. After ``open_s`` seconds it sends ``probes`` calls: if all succeed it closes, at the first failure
    it opens again. A call that ends after the state has changed says nothing about the new state and doesn't
    count.
    """

    window_s: ClassVar[float] = 30.0
    min_calls: ClassVar[int] = 10
    failure_rate: ClassVar[float] = 0.5
    hangs: ClassVar[int] = 3
    open_s: ClassVar[float] = 10.0
    probes: ClassVar[int] = 2

    def __init__(self, name: str, label: str, clock: Callable[[], float] = time.monotonic) -> None:
        """``name`` is for the log, and ``label`` of the model for metrics; ``clock`` gives seconds."""
        self._name = name
        self._label = label
        self._clock = clock
        self._parts: deque[_Part] = deque(maxlen=_PARTS)
        self.last_failure = ""
        """Why the last call that counted as failed did; empty while none has."""
        self._state = BreakerState.CLOSED
        self._epoch = 0  # counts state changes
        self._in_a_row = 0  # calls without an answer in their time
        self._answered_at = clock()
        self._open_until = 0.0
        self._probing = 0
        self._probed = 0
        self._show()

    @property
    def state(self) -> BreakerState:
        if self._state is BreakerState.OPEN and self._clock() >= self._open_until:
            self._enter(BreakerState.HALF_OPEN)
        return self._state

    @property
    def would_admit(self) -> bool:
        """Whether a call would be sent now."""
        state = self.state
        free = self._probing + self._probed < self.probes
        return state is BreakerState.CLOSED or (state is BreakerState.HALF_OPEN and free)

    def admit(self) -> Admission | None:
        """Permission for one call, whose end must be recorded; None if the call must not be sent."""
        if not self.would_admit:
            return None
        if self._state is BreakerState.HALF_OPEN:
            self._probing += 1
        return Admission(self, self._epoch)

    def now(self) -> float:
        """Seconds by its clock."""
        return self._clock()

    def record(self, epoch: int, *, ok: bool | None, why: str = "", hung: bool = False) -> None:
        """Count the end of a call that was admitted in ``epoch``; ``ok`` is None if it says nothing.

        ``why`` it failed is told while no call is sent; ``hung``: it had no answer in its time.
        """
        if epoch != self._epoch:
            return
        if ok is not None and not hung:
            self._in_a_row, self._answered_at = 0, self._clock()
        if ok is False and why:
            self.last_failure = why
        if self._state is BreakerState.HALF_OPEN:
            self._probing -= 1
            if ok:
                self._probed += 1
                if self._probed >= self.probes:
                    self._enter(BreakerState.CLOSED)
            elif ok is False:
                self._enter(BreakerState.OPEN)
        elif ok is not None:
            self._in_a_row += hung
            if self._in_a_row >= self.hangs and self._clock() - self._answered_at >= SILENT_S:
                self._enter(BreakerState.OPEN)
            else:
                self._count(ok=ok)

    def _count(self, *, ok: bool) -> None:
        now, width = self._clock(), self.window_s / _PARTS
        if not self._parts or now >= self._parts[-1].begun + width:
            self._parts.append(_Part(now))
        self._parts[-1].calls += 1
        self._parts[-1].failed += not ok
        recent = [part for part in self._parts if part.begun > now - width * _PARTS]
        calls, failed = sum(part.calls for part in recent), sum(part.failed for part in recent)
        if calls >= self.min_calls and failed / calls >= self.failure_rate:
            self._enter(BreakerState.OPEN)

    def _enter(self, state: BreakerState) -> None:
        self._state = state
        self._epoch += 1
        self._probing = self._probed = self._in_a_row = 0
        self._parts.clear()
        self._show()
        if state is BreakerState.OPEN:
            self._open_until = self._clock() + self.open_s
            _log.warning(
                "judge.circuit_open", judge=self._name, for_ms=self.open_s * 1000, error=self.last_failure
            )
        elif state is BreakerState.CLOSED:
            _log.info("judge.circuit_closed", judge=self._name)

    def _show(self) -> None:
        telemetry.CIRCUIT_STATE.labels(self._label).set(_CIRCUIT[self._state])


class Admission:
    """Permission for one call. Only the first record of how it ended counts."""

    __slots__ = ("_begun", "_breaker", "_epoch", "_recorded")

    def __init__(self, breaker: CircuitBreaker, epoch: int) -> None:
        self._breaker = breaker
        self._epoch = epoch
        self._begun = breaker.now()
        self._recorded = False

    def record(self, *, ok: bool | None, why: str = "", hung: bool = False) -> None:
        """See ``CircuitBreaker.record``."""
        if not self._recorded:
            self._recorded = True
            self._breaker.record(self._epoch, ok=ok, why=why, hung=hung)

    def given_up(self, fair_s: float) -> None:
        """Nobody waits for the call any more. Had it ``fair_s`` seconds, that is the server's fault."""
        hung = self._breaker.now() - self._begun >= fair_s
        self.record(ok=False if hung else None, why="no answer in time" if hung else "", hung=hung)


class AdaptiveLimit:
    """How many concurrent calls a server can take, found as TCP finds the capacity of an unknown path.

    Additive increase, multiplicative decrease. It begins at the maximum, falls at each sign of overload, and
    rises by one per round of successes, but only while it is what holds calls back. It falls once per round:
    when several concurrent calls are refused, only the first refusal counts. If nothing has succeeded since
    it last fell it is far too high, and is halved. A time to first token far above its lowest recent level is
    a sign of overload too: the server queues calls instead of refusing them.
    """

    decrease: ClassVar[float] = 0.7
    """The factor at a sign of overload."""
    latency_tolerance: ClassVar[float] = 4.0
    """From how many times its lowest recent level on a time to first token is such a sign."""

    def __init__(self, maximum: int) -> None:
        self._max = self._limit = float(maximum)
        self._falling = False  # nothing has succeeded since the last decrease
        self._level: float | None = None  # of the time to the first token, in seconds
        self._lowest = 0.0
        self._timed = 0
        self.round = 0
        """Counts decreases. A call remembers in which round it began."""

    @property
    def limit(self) -> int:
        return int(self._limit)

    def succeeded(self, began_in: int, demand: int, first_token_s: float | None) -> None:
        """A call that began in that round succeeded; ``demand`` counts all calls in flight or waiting,
        including it.
        """
        if first_token_s is not None and self._is_slow(first_token_s):
            self._decrease(began_in, _GENTLE_DECREASE)
        elif began_in == self.round:
            self._falling = False
            if demand >= self.limit:
                self._limit = min(self._max, self._limit + 1.0 / self._limit)

    def overloaded(self, began_in: int) -> None:
        """The server refused a call for lack of capacity, or kept it waiting too long."""
        self._decrease(began_in, min(self.decrease, 0.5) if self._falling else self.decrease)

    def _decrease(self, began_in: int, factor: float) -> None:
        if began_in != self.round:
            return
        self.round += 1
        self._falling = True
        self._limit = max(1.0, self._limit * factor)

    def _is_slow(self, seconds: float) -> bool:
        self._level = seconds if self._level is None else self._level + _FOLLOW * (seconds - self._level)
        self._timed += 1
        self._lowest = self._level if self._timed <= 1 else min(self._lowest * _DRIFT, self._level)
        return self._timed >= _MIN_TIMED and self._level > self.latency_tolerance * self._lowest


_Queue = OrderedDict[asyncio.Future[None], None]


class FairSlots:
    """A semaphore with a queue per lane: slots go round the waiting lanes, first in first out within each.

    A lane with a thousand waiters therefore delays another lane by one slot, not by a thousand. A waiter may
    be cancelled at any time; a slot on its way to it goes to the next.
    """

    def __init__(self, limit: Callable[[], int], max_waiting: int | None = None) -> None:
        """``limit`` says how many may be held, and may change; ``max_waiting``: how many may wait."""
        self._limit = limit
        self._max_waiting = max_waiting
        # Lanes with waiters, the next one first.
        self._lanes: OrderedDict[Hashable, _Queue] = OrderedDict()
        self.held = 0
        self.waiting = 0

    @property
    def free(self) -> bool:
        """Whether nobody would have to wait."""
        return self.held < self._limit() and not self.waiting

    def ahead(self, lane: Hashable) -> int:
        """At most how many would get their turn before a new waiter of this lane."""
        if self.free:
            return 0
        own = len(self._lanes.get(lane, ()))
        return own + sum(min(len(queue), own + 1) for key, queue in self._lanes.items() if key != lane)

    @asynccontextmanager
    async def slot(self, lane: Hashable) -> AsyncIterator[None]:
        """Hold a slot; waits for the lane's turn, and raises JudgeUnavailable if too many wait already."""
        await self.acquire(lane)
        try:
            yield
        finally:
            self.release()

    async def acquire(self, lane: Hashable) -> None:
        """The first half of ``slot``."""
        if self.free:
            self.held += 1
            return
        if self._max_waiting is not None and self.waiting >= self._max_waiting:
            raise JudgeUnavailable(f"{self.waiting} calls wait for their turn already")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lanes.setdefault(lane, OrderedDict())[turn] = None
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()  # it was given a slot and can't use it
            else:
                self._leave(lane, turn)
            raise

    def release(self) -> None:
        """The second half. As many who wait get their turn as the limit now allows."""
        self.held -= 1
        while self._lanes and self.held < self._limit():
            lane, queue = self._lanes.popitem(last=False)
            turn, _ = queue.popitem(last=False)
            if queue:
                self._lanes[lane] = queue  # behind the others
            self.waiting -= 1
            if not turn.done():  # else it was cancelled and is about to leave
                self.held += 1
                turn.set_result(None)

    def _leave(self, lane: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._lanes.get(lane, OrderedDict())
        if turn in queue:
            del queue[turn]
            self.waiting -= 1
            if not queue:
                del self._lanes[lane]


# -------------------------------------------------------------------------------------------------- the calls

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
