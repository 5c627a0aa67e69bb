"""An event loop whose clock jumps to the next timer instead of waiting for it."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class NothingScheduled(Exception):
    """The loop would wait for ever: no timer is set, and nothing comes from outside."""


class _NoWaiting(selectors.DefaultSelector):
    """Polls; the time that would have been waited is added to the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NothingScheduled
        if timeout > 0:
            self.now += timeout
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Days pass in milliseconds, and the same things happen in the same order every time.

    For code without threads and sockets: ``time()`` starts at 0 and stands still while callbacks run.
    """

    def __init__(self) -> None:
        self._virtual = _NoWaiting()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run_in_virtual_time(coroutine: Any) -> Any:
    """``asyncio.run`` on such a loop."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)
