"""How full an engine is, in total and by lane; which lanes pause; and slots that lanes share fairly."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from guardrail.limits import Limits

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


BEHIND_FROM: Final = 0.25
"""The judge is behind when a claim would wait for this share of its time: few answers are delayed, and there
is room for a pace that falls to a quarter."""
_REMEMBERED_S: Final = 5.0
_AT_FIRST: Final = 4  # claims for each request at a time, before the pace is known,
_AT_FIRST_S: Final = 2.5  # that are taken to need so long


class Backlog:
    """How far the judge is behind: how long a claim would wait for its verdict at the judge's recent pace.

    A judge that knows its pace tells how long. For any judge the pace is also measured, while there are more
    requests than it takes at a time; at other times verdicts come as fast as claims do, which says nothing.
    The longer wait counts. Until as many verdicts have come as there are requests at a time, four times as
    many claims are taken to need 2.5 s, or the limit if that is shorter. A judge that has given no verdict
    for as long as a claim has time counts as broken, not as behind: waiting for it would help nobody.
    """

    __slots__ = (
        "_at",
        "_busy_s",
        "_clock",
        "_known",
        "_past_s",
        "_resume_at",
        "_since",
        "_verdict_at",
        "_verdicts",
        "at_once",
        "behind",
        "busy",
        "calls",
        "caught_up",
        "timeout_s",
        "wait_s",
    )

    def __init__(self, at_once: int, resume_at: float, clock: Callable[[], float]) -> None:
        """``at_once`` requests go to the judge at a time. Behind ends below ``resume_at`` of what begins it.
        ``clock`` gives seconds.
        """
        self.timeout_s = math.inf
        """The time that a claim has."""
        self.calls = 0
        """Requests under way, including those that wait for a turn."""
        self.wait_s = 0.0
        """How long a claim would wait now, in seconds; 0 while nothing waits for a turn."""
        self.behind = False
        self.caught_up = asyncio.Event()
        self.caught_up.set()
        self.at_once = at_once
        """Requests that the judge takes at a time."""
        self._resume_at = resume_at
        self._clock = clock
        self._since = 0.0
        self._past_s = 0.0  # times behind that are over
        self.busy = False
        """There were more requests than that. Where there are not, nor were, nothing is to be measured."""
        self._known = 0  # verdicts in busy times
        self._at = self._verdict_at = clock()
        self._busy_s = self._verdicts = 0.0  # both fading

    def look(self, claims: int, verdicts: int = 0, told_s: float = 0.0) -> bool:
        """``claims`` wait, so many verdicts have just come, and the judge tells that a claim would wait for
        ``told_s`` seconds. Returns whether the judge falls behind just now.
        """
        now = self._clock()
        if self.busy:
            gone = now - self._at
            kept = math.exp(-gone / _REMEMBERED_S)
            self._busy_s = self._busy_s * kept + gone
            self._verdicts = self._verdicts * kept + verdicts
            self._known += verdicts
        if verdicts or not self.busy:
            self._verdict_at = now
        self._at, self.busy = now, self.calls > self.at_once
        limit = BEHIND_FROM * self.timeout_s
        self.wait_s = max(told_s, claims * self._pace_s(limit) if self.busy else 0.0)
        broken = now - self._verdict_at >= self.timeout_s
        was = self.behind
        self.behind = not broken and self.wait_s >= limit * (self._resume_at if was else 1.0)
        if self.behind and not was:
            self._since = now
            self.caught_up.clear()
            return True
        if was and not self.behind:
            self._past_s += now - self._since
            self.caught_up.set()
        return False

    @property
    def behind_s(self) -> float:
        """Seconds in which the judge was behind, all together."""
        return self._past_s + self._clock() - self._since if self.behind else self._past_s

    def _pace_s(self, limit: float) -> float:
        if self._known < self.at_once:
            return min(limit, _AT_FIRST_S) / (_AT_FIRST * self.at_once)
        return self._busy_s / max(self._verdicts, 1e-9)


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
