"""An event loop in a thread of its own, on which something stays open.

For frameworks that call the same component from plain code, from a loop that lives
for one call, or from several loops at once.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import AsyncExitStack
from typing import Any, Final, Generic, TypeVar

from guardrail.errors import GuardrailError

_R = TypeVar("_R")
_T = TypeVar("_T")
_CLOSING_S: Final = 10.0
"""How long the process waits at its end for what is open to close."""


class GuardClosed(GuardrailError):
    """The guard was closed while it checked an answer."""


class LoopThread(Generic[_R]):
    """Runs from its making until ``stop``, or until opening fails. Any thread may call its methods."""

    def __init__(self, name: str, opening: Callable[[AsyncExitStack], Awaitable[_R]], if_closed: str) -> None:
        """``opening`` opens, on the loop, what the stack closes. ``if_closed`` is what GuardClosed says."""
        self.ready: Future[_R] = Future()
        """What is open, once it is, or the error that opening it raised."""
        self.ready.set_running_or_notify_cancel()  # many may wait for it: none of them cancels it
        self._opening = opening
        self._if_closed = if_closed
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._stopping = False
        self._join_raises = False
        self._error: BaseException | None = None
        """That closing raised, for ``join``."""
        self._changing = threading.RLock()  # stop may interrupt its own thread, where an owner is collected
        # A daemon: what nobody closes doesn't keep the process from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        _threads.add(self)
        self._thread.start()

    @property
    def lives(self) -> bool:
        """Whether it can be asked. After a fork it can't, since that copies no threads."""
        return self._thread.is_alive() and not self._stopping

    def begin(self, work: Callable[[_R], Coroutine[Any, Any, _T]]) -> Future[_T]:
        """Begin work with what is open, once it is; the future has the error of opening otherwise.

        Raises GuardClosed.
        """
        with self._changing:  # whatever is begun before the end, the loop still sees
            if self.lives:
                return asyncio.run_coroutine_threadsafe(self._work(work), self._loop)
        error = self.ready.exception() if self.ready.done() else None
        if error is None:
            raise GuardClosed(self._if_closed)
        failed: Future[_T] = Future()
        failed.set_exception(error)
        return failed

    def wait(self, future: Future[_T]) -> _T:
        """The result of work begun here. Blocks. Raises GuardClosed."""
        try:
            return future.result()
        except CancelledError:
            raise GuardClosed(self._if_closed) from None
        except BaseException:
            future.cancel()  # Ctrl-C
            raise

    async def await_(self, future: Future[_T]) -> _T:
        """As ``wait``, on a loop of the caller's; what the caller cancels is cancelled."""
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise GuardClosed(self._if_closed) from None  # nobody cancelled the caller

    def stop(self, *, join_raises: bool = False) -> None:
        """Begin to stop: what is under way is cancelled. Never waits.

        With ``join_raises`` the error that closing raises is raised by ``join``; else it goes to stderr.
        """
        with self._changing:
            if self.lives:
                self._stopping = True
                self._join_raises = join_raises
                self._loop.call_soon_threadsafe(self._stop.set)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until it has stopped, and say whether it has. Raises as ``stop`` was told."""
        self._thread.join(timeout_s)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    async def _work(self, work: Callable[[_R], Coroutine[Any, Any, _T]]) -> _T:
        return await work(await asyncio.wrap_future(self.ready))

    def _run(self) -> None:
        # Not asyncio.run, which nest_asyncio replaces.
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._live())
        except BaseException as error:
            if not self._join_raises:
                raise  # Python writes it to stderr
            self._error = error

    async def _live(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                self.ready.set_result(await self._opening(stack))
                await self._stop.wait()
                # First what is under way, so that nobody gets the verdicts of a judge that was closed.
                await self._end_others(cancel=True)
        except BaseException as error:
            if self.ready.done():
                raise
            with self._changing:
                self._stopping = True  # first, so that who has the error can begin anew
                self.ready.set_exception(error)
            await self._end_others(cancel=False)  # they have the same error

    async def _end_others(self, *, cancel: bool) -> None:
        with self._changing:
            self._stopping = True
        await asyncio.sleep(0)  # what was begun until now becomes a task
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            if cancel:
                task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


_threads: Final[weakref.WeakSet[LoopThread[Any]]] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Let judges close before the interpreter tears down what they need."""
    threads = [thread for thread in _threads if thread.lives]
    for thread in threads:
        thread.stop()
    for thread in threads:
        thread.join(_CLOSING_S)
