"""What limits the calls to one model: its failures, its capacity and its pace.

The caller learns all of it from the calls themselves, so none of it is a setting. The numbers are the
defaults of the classes here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from guardrail import telemetry
from guardrail.log_events import EventLog

_log = EventLog(__name__)

_MOST_SAMPLES: Final = 256

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

    def __init__(self, window_s: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._window_s = window_s
        self._clock = clock
        self._samples: deque[tuple[float, float]] = deque(maxlen=_MOST_SAMPLES)

    def add(self, seconds: float) -> None:
        self._samples.append((self._clock(), seconds))

    def quantile(self, share: float, min_samples: int = 1) -> float | None:
        """The seconds within which this share of the calls ended; None if there are fewer samples."""
        oldest = self._clock() - self._window_s
        while self._samples and self._samples[0][0] < oldest:
            self._samples.popleft()
        if len(self._samples) < max(1, min_samples):
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

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        failure_rate: float = 0.5,
        window_s: float = 30.0,
        min_calls: int = 10,
        hangs: int = 3,
        open_s: float = 10.0,
        probes: int = 2,
    ) -> None:
        """``name`` is for the log; ``clock`` gives seconds."""
        self._name = name
        self._clock = clock
        self._failure_rate = failure_rate
        self._window_s = window_s
        self._min_calls = min_calls
        self._hangs = hangs
        self._open_s = open_s
        self._probes = probes
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
        telemetry.CIRCUIT_STATE.labels(telemetry.model_label(name.removeprefix("llm:"))).set(
            _CIRCUIT[self._state]
        )

    @property
    def state(self) -> BreakerState:
        if self._state is BreakerState.OPEN and self._clock() >= self._open_until:
            self._enter(BreakerState.HALF_OPEN)
        return self._state

    @property
    def would_admit(self) -> bool:
        """Whether a call would be sent now."""
        state = self.state
        free = self._probing + self._probed < self._probes
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
                if self._probed >= self._probes:
                    self._enter(BreakerState.CLOSED)
            elif ok is False:
                self._enter(BreakerState.OPEN)
        elif ok is not None:
            self._in_a_row += hung
            if self._in_a_row >= self._hangs and self._clock() - self._answered_at >= SILENT_S:
                self._enter(BreakerState.OPEN)
            else:
                self._count(ok=ok)

    def _count(self, *, ok: bool) -> None:
        now, width = self._clock(), self._window_s / _PARTS
        if not self._parts or now >= self._parts[-1].begun + width:
            self._parts.append(_Part(now))
        self._parts[-1].calls += 1
        self._parts[-1].failed += not ok
        recent = [part for part in self._parts if part.begun > now - width * _PARTS]
        calls, failed = sum(part.calls for part in recent), sum(part.failed for part in recent)
        if calls >= self._min_calls and failed / calls >= self._failure_rate:
            self._enter(BreakerState.OPEN)

    def _enter(self, state: BreakerState) -> None:
        self._state = state
        self._epoch += 1
        self._probing = self._probed = self._in_a_row = 0
        self._parts.clear()
        telemetry.CIRCUIT_STATE.labels(telemetry.model_label(self._name.removeprefix("llm:"))).set(
            _CIRCUIT[state]
        )
        if state is BreakerState.OPEN:
            self._open_until = self._clock() + self._open_s
            _log.warning(
                "judge.circuit_open", judge=self._name, for_ms=self._open_s * 1000, error=self.last_failure
            )
        elif state is BreakerState.CLOSED:
            _log.info("judge.circuit_closed", judge=self._name)


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

    Additive increase, multiplicative decrease. Until the first sign of overload every success raises the
    limit by one (it doubles per round), after that by one per round. It rises only while it is what holds
    calls back. It falls once per round: when several concurrent calls are refused, only the first refusal
    counts. If nothing has succeeded since it last fell it is far too high, and is halved.
    """

    def __init__(
        self,
        maximum: int,
        *,
        minimum: int = 1,
        initial: int | None = None,
        decrease: float = 0.7,
        latency_tolerance: float = 4.0,
    ) -> None:
        """Begins at ``initial``, or else at ``maximum``. ``decrease`` is the factor at a sign of overload.

        A time to first token of ``latency_tolerance`` times its lowest recent level is such a sign too: the
        server queues calls instead of refusing them.
        """
        self._max = float(maximum)
        self._min = float(min(minimum, maximum))
        self._limit = min(self._max, max(self._min, float(initial or maximum)))
        self._factor = decrease
        self._tolerance = latency_tolerance
        self._doubling = True
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
                self._limit = min(self._max, self._limit + (1.0 if self._doubling else 1.0 / self._limit))

    def overloaded(self, began_in: int) -> None:
        """The server refused a call for lack of capacity, or kept it waiting too long."""
        self._decrease(began_in, min(self._factor, 0.5) if self._falling else self._factor)

    def _decrease(self, began_in: int, factor: float) -> None:
        if began_in != self.round:
            return
        self.round += 1
        self._doubling = False
        self._falling = True
        self._limit = max(self._min, self._limit * factor)

    def _is_slow(self, seconds: float) -> bool:
        self._level = seconds if self._level is None else self._level + _FOLLOW * (seconds - self._level)
        self._timed += 1
        self._lowest = self._level if self._timed <= 1 else min(self._lowest * _DRIFT, self._level)
        return self._timed >= _MIN_TIMED and self._level > self._tolerance * self._lowest
