"""How many calls a server bears at once, found by trying, and whose turn it is."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from guardrail.errors import JudgeUnavailable
from guardrail.judges.llm.endpoint_settings import ConcurrencySettings

# The level of the latency follows a new one within some ten calls; its lowest one drifts up within hundreds,
# so that what has lastingly become slower is taken for the new normal.
_FOLLOW: Final = 0.2
_DRIFT: Final = 1.005
_GENTLE_DECREASE: Final = 0.9
_MIN_TIMED: Final = 10


class AdaptiveLimit:
    """Additive increase, multiplicative decrease, as TCP finds the capacity of a path it knows nothing of.

    Up to the first sign of overload every success raises the limit by one (it doubles in a round), afterwards
    by one in a round. It rises only while it is what holds calls back, and falls once per round: of the calls
    that were under way together, the first that is refused speaks for all. Where nothing succeeded since it
    fell it is far too high, and is halved.
    """

    def __init__(self, settings: ConcurrencySettings, maximum: int) -> None:
        """Never below ``settings.min`` nor above ``maximum``."""
        self._settings = settings
        self._max = float(maximum)
        self._min = float(min(settings.min, maximum))
        self._limit = min(self._max, max(self._min, float(settings.initial or maximum)))
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
        """A call that began in that round was served; ``demand`` are those in flight or waiting, with it."""
        if first_token_s is not None and self._is_slow(first_token_s):
            self._decrease(began_in, _GENTLE_DECREASE)
        elif began_in == self.round:
            self._falling = False
            if demand >= self.limit:
                self._limit = min(self._max, self._limit + (1.0 if self._doubling else 1.0 / self._limit))

    def overloaded(self, began_in: int) -> None:
        """The server refused a call for want of capacity, or kept it waiting for too long."""
        decrease = self._settings.decrease
        self._decrease(began_in, min(decrease, 0.5) if self._falling else decrease)

    def _decrease(self, began_in: int, factor: float) -> None:
        if began_in != self.round:
            return
        self.round += 1
        self._doubling = False
        self._falling = True
        self._limit = max(self._min, self._limit * factor)

    def _is_slow(self, seconds: float) -> bool:
        tolerance = self._settings.latency_tolerance
        if tolerance is None:
            return False
        self._level = seconds if self._level is None else self._level + _FOLLOW * (seconds - self._level)
        self._timed += 1
        self._lowest = self._level if self._timed <= 1 else min(self._lowest * _DRIFT, self._level)
        return self._timed >= _MIN_TIMED and self._level > tolerance * self._lowest


class Slots:
    """Calls in flight, at most as many as the limit says; those that wait take turns by response.

    A response with many calls waiting doesn't keep one with a single call from its turn.
    """

    def __init__(self, limit: Callable[[], int], max_queue: int) -> None:
        self._limit = limit
        self._max_queue = max_queue
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self.in_flight = 0
        self.waiting = 0

    @property
    def free(self) -> bool:
        return self.in_flight < self._limit() and not self.waiting

    def ahead(self, response_id: str) -> int:
        """How many calls would have their turn before a new one of this response, at most."""
        if self.free:
            return 0
        own = len(self._queues.get(response_id, ()))
        others = (min(len(queue), own + 1) for key, queue in self._queues.items() if key != response_id)
        return own + sum(others)

    async def acquire(self, response_id: str) -> None:
        """Wait for a turn. Raises JudgeUnavailable at once when too many wait."""
        if self.free:
            self.in_flight += 1
            return
        if self.waiting >= self._max_queue:
            raise JudgeUnavailable(f"{self.waiting} calls wait for their turn already")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(response_id, deque()).append(turn)
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(response_id, turn)
            else:  # it had its turn in the same moment
                self.release()
            raise

    def release(self) -> None:
        """A call has ended; as many that wait have their turn as the limit now allows."""
        self.in_flight -= 1
        while self._queues and self.in_flight < self._limit():
            response_id, queue = self._queues.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._queues[response_id] = queue
            self.waiting -= 1
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    def _leave(self, response_id: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(response_id)
        if queue is not None and turn in queue:
            queue.remove(turn)
            self.waiting -= 1
            if not queue:
                del self._queues[response_id]
