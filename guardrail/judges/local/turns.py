"""Turns at the local judge: requests that nobody else can answer come first, the others wait briefly."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_Queue = OrderedDict[asyncio.Future[None], None]


class Turns:
    """A bounded number of turns at once. First in, first out, among those that give no time and then among
    those that do; whoever waits may be cancelled at any time."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._queues: tuple[_Queue, _Queue] = (OrderedDict(), OrderedDict())

    @asynccontextmanager
    async def turn(self, within_s: float | None) -> AsyncIterator[bool]:
        """Wait for a turn and hold it; False when none comes ``within_s`` seconds, and always with 0."""
        if within_s == 0 or not await self._came(within_s):
            yield False
            return
        try:
            yield True
        finally:
            self._pass_on()

    async def _came(self, within_s: float | None) -> bool:
        if self._free:
            self._free -= 1
            return True
        queue = self._queues[within_s is not None]
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue[mine] = None
        try:
            await asyncio.wait({mine}, timeout=within_s)
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._pass_on()
            raise
        finally:
            queue.pop(mine, None)
        return mine.done() and not mine.cancelled()

    def close(self) -> None:
        """Let those who wait go without."""
        for queue in self._queues:
            for mine in queue:
                mine.cancel()
            queue.clear()

    def _pass_on(self) -> None:
        for queue in self._queues:
            if queue:
                queue.popitem(last=False)[0].set_result(None)
                return
        self._free += 1
