"""How full an engine is, in total and by lane; which lanes pause; and slots that lanes share fairly."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

from guardrail.limits import Limits

_Queue = OrderedDict[asyncio.Future[None], None]


class FairSlots:
    """A semaphore with a queue per lane: slots go round the waiting lanes, first in first out within each.

    A lane with a thousand waiters therefore delays another lane by one slot, not by a thousand. A waiter may
    be cancelled at any time; a slot on its way to it goes to the next.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        # Lanes with waiters, the next one first. While there are any, no slot is free.
        self._lanes: OrderedDict[Hashable, _Queue] = OrderedDict()

    @property
    def free(self) -> int:
        """Slots that nobody holds."""
        return self._free

    @property
    def waiting(self) -> int:
        """Number of waiters, over all lanes."""
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
            if not turn.done():  # else it was cancelled and is about to leave
                turn.set_result(None)
                return
        self._free += 1


_Lane = TypeVar("_Lane", bound=Hashable)

RELIEF: Final = 0.8
"""A lane that was paused for its share is read again when it, or the whole, is below this much of what
paused it."""


@dataclass(slots=True)
class Load:
    """What is in flight: responses that can still have output, characters, and claims waiting for a
    verdict.
    """

    sessions: int = 0
    chars: int = 0
    pending: int = 0

    def share(self, limits: Limits) -> float:
        """The share of the bound that it is closest to; 1.0 and more is full."""
        return max(
            self.sessions / limits.max_sessions,
            self.chars / limits.max_bytes,
            self.pending / limits.max_pending_claims,
        )


class Bounds:
    """An engine's total load, and what follows from it: whether there is room, and whether anything is
    awaited.

    The consumer sets ``shedding`` when only input could make room: then new responses are turned away until
    there is room again.
    """

    __slots__ = ("_limits", "idle", "room", "saturated", "shedding", "total")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.total = Load()
        self.saturated = False
        self.shedding = False
        self.room = asyncio.Event()
        self.room.set()
        self.idle = asyncio.Event()
        self.idle.set()

    def add(self, load: Load, *, sessions: int = 0, chars: int = 0, pending: int = 0) -> None:
        """Count these for a lane and in total."""
        total = self.total
        load.sessions += sessions
        total.sessions += sessions
        load.chars += chars
        total.chars += chars
        load.pending += pending
        total.pending += pending
        if total.pending:
            self.idle.clear()
        else:
            self.idle.set()
        self.measure()

    def measure(self) -> None:
        """Check whether a bound is reached, or all have room again."""
        share = self.total.share(self._limits)
        if share >= 1.0 and not self.saturated:
            self.saturated = True
            self.room.clear()
        elif share < self._limits.resume_at and self.saturated:
            self.saturated = self.shedding = False
            self.room.set()


def over_their_share(
    loads: Mapping[_Lane, Load], total: float, paused: Collection[_Lane], limits: Limits
) -> set[_Lane]:
    """The lanes above their fair share, one of ``len(loads)``, of an engine that is filling up.

    ``total`` is the share of the bounds that all lanes take together, ``paused`` the previous result. From
    ``limits.resume_at`` on, lanes above their share are paused; they stay paused until they are well below
    it, or there is room again. Only verdicts make room in a paused lane, so a lane that waits for none is
    never paused: its responses need their input to end.
    """
    fair = 1 / len(loads) if loads else 1.0

    def is_over(lane: _Lane, load: Load) -> bool:
        if not load.pending:
            return False
        share = load.share(limits)
        if lane in paused:
            return total >= RELIEF * limits.resume_at and share >= RELIEF * fair
        return total >= limits.resume_at and share > fair

    return {lane for lane, load in loads.items() if is_over(lane, load)}
