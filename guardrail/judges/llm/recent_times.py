"""How long calls took of late."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

_MOST_SAMPLES: Final = 256


class RecentTimes:
    """The durations of the last calls, for as long as they tell of the present.

    They expire: where calls are given up because they would take too long, no new ones would ever be timed.
    """

    def __init__(self, window_s: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._window_s = window_s
        self._clock = clock
        self._samples: deque[tuple[float, float]] = deque(maxlen=_MOST_SAMPLES)

    def add(self, seconds: float) -> None:
        self._samples.append((self._clock(), seconds))

    def quantile(self, share: float, min_samples: int = 1) -> float | None:
        """The time in seconds that this share of the calls kept within; None with fewer samples."""
        oldest = self._clock() - self._window_s
        while self._samples and self._samples[0][0] < oldest:
            self._samples.popleft()
        if len(self._samples) < max(1, min_samples):
            return None
        times = sorted(seconds for _, seconds in self._samples)
        return times[min(len(times) - 1, int(share * len(times)))]
