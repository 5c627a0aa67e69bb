"""The clock of what others are given time for: it stands still while the process does."""

from __future__ import annotations

import time
from typing import Final

BEAT_S: Final = 0.25
_STILL_S: Final = 0.5
_DEAD_S: Final = 600.0
"""Without a beat for so long, whoever beat has ended without saying so; no standstill lasts as long."""


class AwakeClock:
    """Seconds as by ``time.monotonic()``, without those in which the process stood still: stopped, paused
    with its machine, or kept from the processor.

    An engine beats every ``BEAT_S`` while it lives. From one beat to the next no more than half a second
    passes on this clock, whatever passes on others. Without beats it is the monotonic clock. Any thread may
    read it.
    """

    def __init__(self) -> None:
        self._state: tuple[float, float] = float("inf"), 0.0  # one object, so that threads read both
        self._hearts = 0

    def __call__(self) -> float:
        """A reading, in seconds."""
        now = time.monotonic()
        beat_at, stood_s = self._state
        return (now if now - beat_at > _DEAD_S else min(now, beat_at + _STILL_S)) - stood_s

    @property
    def stood_s(self) -> float:
        """Seconds in which the process stood still, all together, as far as the latest beat knows."""
        return self._state[1]

    def start(self) -> None:
        """Another one is going to beat."""
        self._hearts += 1
        self.beat()

    def stop(self) -> None:
        """One of those that beat does so no more."""
        self.beat()
        self._hearts -= 1
        if not self._hearts:
            self._state = float("inf"), self._state[1]

    def beat(self) -> None:
        """Note that the process runs. To be called where whatever waits for time is served."""
        now = time.monotonic()
        beat_at, stood_s = self._state
        still_s = now - beat_at - _STILL_S
        self._state = now, stood_s + (still_s if 0.0 < still_s <= _DEAD_S - _STILL_S else 0.0)


awake: Final = AwakeClock()
"""That of this process. What others are given, claims or calls, counts on it."""
