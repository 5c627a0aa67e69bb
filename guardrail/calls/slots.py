"""Slots that those who wait take in fair turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager

from guardrail.errors import JudgeUnavailable

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
