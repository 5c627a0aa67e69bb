"""How full an engine is, in all and by lane, and which lanes are to be read no further."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from guardrail.limits import Limits

_Lane = TypeVar("_Lane", bound=Hashable)

RELIEF: Final = 0.8
"""A lane that was paused for its share is read again when it, or the whole, is below this much of what
paused it."""


@dataclass(slots=True)
class Load:
    """What is in flight: responses that are not silent, characters, and claims that wait for a verdict."""

    sessions: int = 0
    chars: int = 0
    pending: int = 0

    def share(self, limits: Limits) -> float:
        """The share of the bound it is nearest to; 1.0 and more is full."""
        return max(
            self.sessions / limits.max_sessions,
            self.chars / limits.max_bytes,
            self.pending / limits.max_pending_claims,
        )


class Bounds:
    """The load of an engine in all, and what follows from it: is there room, is anything awaited?

    ``shedding`` is set by the consumer when only input could make room: then new responses are turned away
    until there is room again.
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
        """Count these for a lane and in all."""
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
        """See if a bound is reached, or all have room again."""
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
    """The lanes that take more than their fair share, one of ``len(loads)``, of an engine that fills up.

    ``total`` is the share of the bounds that all lanes take together, ``paused`` what was answered last. From
    ``limits.resume_at`` on, lanes over their share are paused; they stay so until they are well below it,
    or there is room again. Only verdicts make room in a lane that is not read, so one that waits for none is
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
