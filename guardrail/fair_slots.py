"""A bounded number of slots, shared fairly between those who queue for them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

_Queue = OrderedDict[asyncio.Future[None], None]


class FairSlots:
    """A semaphore with a queue for each lane: slots go round the lanes that wait, first in first out in each.

    So one lane with a thousand waiters delays another with one by one slot, not by a thousand. A waiter may
    be cancelled at any time; a slot that was on its way to it goes to the next.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        # Lanes that have waiters, the one whose turn it is first. While there are any, no slot is free.
        self._lanes: OrderedDict[Hashable, _Queue] = OrderedDict()

    @property
    def free(self) -> int:
        """Slots that nobody holds."""
        return self._free

    @property
    def waiting(self) -> int:
        """Who waits for a slot, all lanes together."""
        return sum(len(queue) for queue in self._lanes.values())

    @asynccontextmanager
    async def slot(self, lane: Hashable) -> AsyncIterator[None]:
        """Hold a slot; waits for the lane's turn."""
        await self._acquire(lane)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, lane: Hashable) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lanes.setdefault(lane, OrderedDict())[turn] = None
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release()  # it was given a slot and can't use it
            else:
                self._leave(lane, turn)
            raise

    def _leave(self, lane: Hashable, turn: asyncio.Future[None]) -> None:
        queue = self._lanes.get(lane)
        if queue is None:
            return
        queue.pop(turn, None)
        if not queue:
            del self._lanes[lane]

    def _release(self) -> None:
        while self._lanes:
            lane, queue = self._lanes.popitem(last=False)
            turn, _ = queue.popitem(last=False)
            if queue:
                self._lanes[lane] = queue  # behind the others
            if not turn.done():  # else cancelled, and about to leave
                turn.set_result(None)
                return
        self._free += 1
