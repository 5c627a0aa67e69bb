"""A circuit breaker: a server that fails is left alone for a while, then tried with a few calls."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from guardrail.judges.llm.endpoint_settings import CircuitBreakerSettings

_log = logging.getLogger(__name__)

# The window is kept in so many parts: its end is known to that accuracy, and its memory is bounded.
_PARTS: Final = 10


class State(StrEnum):
    CLOSED = "closed"  # calls are sent
    OPEN = "open"  # none is
    HALF_OPEN = "half_open"  # a few are, as a probe


@dataclass(slots=True)
class _Part:
    begun: float
    calls: int = 0
    failed: int = 0


class CircuitBreaker:
    """Closed until the share of failed calls in the window is too large, then open, then half open.

    In the half-open state ``probes`` calls are sent: when all succeed it closes, with the first that fails it
    opens again. What ends after the state has changed says nothing of the new one, and is not counted.
    """

    def __init__(
        self, settings: CircuitBreakerSettings, name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``name`` is for the log; ``clock`` gives seconds."""
        self._settings = settings
        self._name = name
        self._clock = clock
        self._parts: deque[_Part] = deque(maxlen=_PARTS)
        self._state = State.CLOSED
        self._epoch = 0  # counts changes of the state
        self._open_until = 0.0
        self._probing = 0
        self._probed = 0

    @property
    def state(self) -> State:
        if self._state is State.OPEN and self._clock() >= self._open_until:
            self._enter(State.HALF_OPEN)
        return self._state

    @property
    def would_admit(self) -> bool:
        """Would a call be sent now?"""
        state = self.state
        free = self._probing + self._probed < self._settings.probes
        return state is State.CLOSED or (state is State.HALF_OPEN and free)

    def admit(self) -> Admission | None:
        """Leave for one call, whose end must be recorded; None: the call must not be sent."""
        if not self.would_admit:
            return None
        if self._state is State.HALF_OPEN:
            self._probing += 1
        return Admission(self, self._epoch)

    def record(self, epoch: int, *, ok: bool | None) -> None:
        """The end of a call that was admitted in ``epoch``; ``ok`` None: it told nothing."""
        if not self._settings.enabled or epoch != self._epoch:
            return
        if self._state is State.HALF_OPEN:
            self._probing -= 1
            if ok:
                self._probed += 1
                if self._probed >= self._settings.probes:
                    self._enter(State.CLOSED)
            elif ok is False:
                self._enter(State.OPEN)
        elif ok is not None:
            self._count(ok=ok)

    def _count(self, *, ok: bool) -> None:
        now, width = self._clock(), self._settings.window_ms / 1000 / _PARTS
        if not self._parts or now >= self._parts[-1].begun + width:
            self._parts.append(_Part(now))
        self._parts[-1].calls += 1
        self._parts[-1].failed += not ok
        recent = [part for part in self._parts if part.begun > now - width * _PARTS]
        calls, failed = sum(part.calls for part in recent), sum(part.failed for part in recent)
        if calls >= self._settings.min_calls and failed / calls >= self._settings.failure_rate:
            self._enter(State.OPEN)

    def _enter(self, state: State) -> None:
        self._state = state
        self._epoch += 1
        self._probing = self._probed = 0
        self._parts.clear()
        if state is State.OPEN:
            self._open_until = self._clock() + self._settings.open_ms / 1000
            _log.warning("%s fails: no call is sent to it for %d ms", self._name, self._settings.open_ms)
        elif state is State.CLOSED:
            _log.info("%s answers again", self._name)


class Admission:
    """Leave for one call. The first word on how it ended counts."""

    __slots__ = ("_breaker", "_epoch", "_recorded")

    def __init__(self, breaker: CircuitBreaker, epoch: int) -> None:
        self._breaker = breaker
        self._epoch = epoch
        self._recorded = False

    def record(self, *, ok: bool | None) -> None:
        if not self._recorded:
            self._recorded = True
            self._breaker.record(self._epoch, ok=ok)
