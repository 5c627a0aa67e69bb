"""Ends what hangs: a time budget for every record, and a last resort for code that ignores it."""

from __future__ import annotations

import faulthandler
import signal
from types import FrameType, TracebackType
from typing import Self

LAST_RESORT = 30


class Hang(KeyboardInterrupt):
    """A record took longer than its budget.

    A KeyboardInterrupt, because an event loop reports all other errors of its callbacks and goes on.
    """


class Watchdog:
    """``budget_s`` seconds of the processor from one ``rearm`` to the next, else ``Hang`` is raised there.

    Not of real time: a process that a busy machine leaves waiting does not hang. Main thread only. What
    waits, or is native code that never returns to Python, is ended with the whole process, and a traceback,
    after ``LAST_RESORT`` times that in real time without a ``breathe``.
    """

    def __init__(self, budget_s: float) -> None:
        self._budget_s = budget_s
        self._before: object = None
        self._timer_before = (0.0, 0.0)

    def __enter__(self) -> Self:
        self._timer_before = signal.setitimer(signal.ITIMER_PROF, 0)
        self._before = signal.signal(signal.SIGPROF, self._ring)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGPROF, self._before)  # type: ignore[arg-type]
        signal.setitimer(signal.ITIMER_PROF, *self._timer_before)

    def breathe(self) -> None:
        """An episode begins."""
        faulthandler.dump_traceback_later(LAST_RESORT * self._budget_s, exit=True)
        self.rearm()

    def rearm(self) -> None:
        """A record begins."""
        # Again and again, because what cleans up after a hang may hang too.
        signal.setitimer(signal.ITIMER_PROF, self._budget_s, self._budget_s)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        raise Hang(f"a record took longer than {self._budget_s:g} s")
