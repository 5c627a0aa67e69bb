"""A guard on an event loop of its own, for frameworks that call from any thread and from any loop.

A ``Guard`` belongs to one event loop. Here the guard runs on a loop in a thread of its own, opened at the
first call; callers wait for it wherever they are.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import CancelledError, Future
from contextlib import AsyncExitStack, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast

from guardrail.errors import GuardrailError
from guardrail.events import AnyOutputEvent, ResponseVerdict
from guardrail.guard import Guard
from guardrail.inputs import ContextLike
from guardrail.judges.base import Judge
from guardrail.policy import Policy

if TYPE_CHECKING:
    from guardrail.config import Settings

_R = TypeVar("_R")
_T = TypeVar("_T")
CALLER: Final[ContextVar[asyncio.AbstractEventLoop | None]] = ContextVar("CALLER", default=None)
"""The event loop on which somebody waits for what is done."""
FAILURES: Final[ContextVar[list[BaseException] | None]] = ContextVar("FAILURES", default=None)
"""What the application's chat model raised for the answer that is being judged; None where nobody asks."""
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

    async def await_(self, work: Callable[[_R], Coroutine[Any, Any, _T]]) -> _T:
        """Begin work and wait for it, on a loop of the caller's; what the caller cancels is cancelled."""
        before = CALLER.set(asyncio.get_running_loop())  # the work has the context of this moment
        try:
            future = self.begin(work)
        finally:
            CALLER.reset(before)
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
def end_all() -> None:
    """End all that are left, so that judges close before the interpreter tears down what they need."""
    threads = [thread for thread in _threads if thread.lives]
    for thread in threads:
        thread.stop()
    for thread in threads:
        thread.join(_CLOSING_S)


class OnOwnLoop(ABC, Generic[_R]):
    """What is open on an event loop of its own from its first use until it is closed, and then again.

    Nobody has to close it: its thread ends with it, or with the process.
    """

    def __init__(self, name: str, if_closed: str) -> None:
        """As for ``LoopThread``."""
        self._named = name, if_closed
        self._changing = threading.Lock()
        self._thread: LoopThread[_R] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_changing": None, "_thread": None}  # a copy opens its own

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _changing=threading.Lock())

    @abstractmethod
    def _opening(self) -> Callable[[AsyncExitStack], Awaitable[_R]]:
        """What opens it; a function that doesn't hold this object, which otherwise never ended."""

    def close(self) -> None:
        """Cancel what is under way, and close. May be called again.

        Raises what closing raises, and TimeoutError after 10 s. Blocks: on an event loop use ``aclose``.
        """
        with self._changing:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop(join_raises=True)
            if not thread.join(_CLOSE_S):
                raise TimeoutError(f"it did not close within {_CLOSE_S:g} s")

    async def aclose(self) -> None:
        """As ``close``, from whatever loop."""
        await asyncio.to_thread(self.close)

    def _running(self) -> LoopThread[_R]:
        with self._changing:
            # A thread that has died was that of the process before a fork, or could not open.
            if self._thread is None or not self._thread.lives:
                name, if_closed = self._named
                self._thread = LoopThread(name, self._opening(), if_closed)
                weakref.finalize(self, self._thread.stop).atexit = False
            return self._thread


END: Final = object()
_CLOSE_S: Final = 10.0
_CLOSED: Final = "the guard was closed before the answer was decided"


class BackgroundGuard(OnOwnLoop[Guard]):
    """A guard that can be used from every thread and every event loop, with ``await`` and without.

    ``settings`` is the path of a file as ``guardrail run`` takes it, which names judge and policies. Without
    it, ``judge`` and ``policy`` are as ``Guard`` takes them; that judge is used on the guard's own loop and
    stays open. Close the guard to end its thread; else it ends with the process.
    """

    def __init__(
        self, settings: str | Path | None = None, *, judge: Judge | None = None, policy: Policy | None = None
    ) -> None:
        if settings is not None and not (judge is None and policy is None):
            raise ValueError("settings name judge and policies: give either settings, or judge and policy")
        super().__init__("guard", _CLOSED)
        self._settings = None if settings is None else Path(settings)
        self._judge = judge
        self._policy = policy

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def check(
        self, question: str, contexts: Sequence[ContextLike], answer: str, **head: Any
    ) -> ResponseVerdict:
        """Judge a whole answer, see ``Guard.check``. Blocks: not for use on an event loop."""
        thread = self._running()
        return thread.wait(thread.begin(lambda guard: guard.check(question, contexts, answer, **head)))

    async def acheck(
        self, question: str, contexts: Sequence[ContextLike], answer: str, **head: Any
    ) -> ResponseVerdict:
        """Judge a whole answer, see ``Guard.check``, from whatever loop."""
        thread = self._running()
        return await thread.await_(lambda guard: guard.check(question, contexts, answer, **head))

    def stream(
        self, question: str, contexts: Sequence[ContextLike], deltas: Iterator[str], **head: Any
    ) -> Iterator[AnyOutputEvent]:
        """Guard an answer while it is written, see ``Guard.stream``. Blocks: not for use on an event loop.

        Each of ``deltas`` is taken in a thread, when the guard wants it.
        """
        thread = self._running()
        source = _Threaded(deltas)
        events = _Events(question, contexts, source.texts(), head)
        try:
            while (event := thread.wait(thread.begin(events.step))) is not END:
                yield cast("AnyOutputEvent", event)
        finally:
            try:
                with suppress(GuardClosed):
                    thread.wait(thread.begin(events.close))
            finally:  # also where the guard could not be opened
                source.close()

    async def astream(
        self, question: str, contexts: Sequence[ContextLike], deltas: AsyncIterator[str], **head: Any
    ) -> AsyncGenerator[AnyOutputEvent, None]:
        """Guard an answer while it is written, see ``Guard.stream``, from whatever loop.

        Each of ``deltas`` is taken on the caller's loop, when the guard wants it.
        """
        here, thread = asyncio.get_running_loop(), self._running()
        source = Stepped(deltas)
        events = _Events(question, contexts, _texts_from(here, source), head)
        try:
            while (event := await thread.await_(events.step)) is not END:
                yield cast("AnyOutputEvent", event)
        finally:
            try:
                with suppress(GuardClosed):
                    await thread.await_(events.close)
            finally:
                await source.aclose()

    def _opening(self) -> Callable[[AsyncExitStack], Awaitable[Guard]]:
        return partial(_opened, self._settings, self._judge, self._policy)


async def _opened(
    path: Path | None, judge: Judge | None, policy: Policy | None, stack: AsyncExitStack
) -> Guard:
    if path is None:
        return await stack.enter_async_context(Guard(judge, policy))
    return await guard_by_settings(path, stack)


async def guard_by_settings(path: Path | None, stack: AsyncExitStack) -> Guard:
    """A guard, open until ``stack`` closes, by the settings file at ``path`` and the environment."""
    from guardrail.config import load_settings

    return await guard_of_settings(await asyncio.to_thread(load_settings, path), stack)


async def guard_of_settings(settings: Settings, stack: AsyncExitStack) -> Guard:
    """A guard, open until ``stack`` closes, by settings that were read."""
    from guardrail.judges.factory import JudgeSet

    router = settings.router()
    judges = await asyncio.to_thread(JudgeSet, settings.judge, router.policies)
    stack.push_async_callback(judges.aclose)
    guard = Guard(judges.default, router=router, judges=judges.by_kind, limits=settings.limits)
    return await stack.enter_async_context(guard)


class _Events:
    """The events of one answer, taken step by step with the guard that is open."""

    def __init__(
        self, question: str, contexts: Sequence[ContextLike], deltas: AsyncIterator[str], head: dict[str, Any]
    ) -> None:
        self._asked = question, contexts, deltas
        self._head = head
        self._stepped: Stepped | None = None

    async def step(self, guard: Guard) -> Any:
        """The next event, or ``END``."""
        if self._stepped is None:
            self._stepped = Stepped(guard.stream(*self._asked, **self._head))
        return await self._stepped.step()

    async def close(self, _guard: Guard) -> None:
        if self._stepped is not None:
            await self._stepped.aclose()


class Stepped:
    """An iterator of one loop, taken step by step from another; closing waits for the step under way."""

    def __init__(self, items: AsyncIterator[Any]) -> None:
        self._items = items
        self._turn = asyncio.Lock()
        self._closed = False

    async def step(self) -> Any:
        """The next item, or ``END``."""
        async with self._turn:
            return END if self._closed else await anext(self._items, END)

    async def aclose(self) -> None:
        async with self._turn:
            if not self._closed and isinstance(self._items, AsyncGenerator):
                await self._items.aclose()
            self._closed = True


async def _texts_from(loop: asyncio.AbstractEventLoop, source: Stepped) -> AsyncGenerator[str, None]:
    """The texts of an iterator of ``loop``, on another loop."""
    try:
        while (text := await there(loop, source.step())) is not END:
            yield text
    finally:
        if not loop.is_closed():
            await there(loop, source.aclose())


async def there(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of work on another loop."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class _Threaded:
    """A plain iterator, taken in threads one step at a time; closing waits for the step under way."""

    def __init__(self, items: Iterator[str]) -> None:
        self._items = items
        self._turn = threading.Lock()
        self._closed = False

    async def texts(self) -> AsyncGenerator[str, None]:
        try:
            while (text := await asyncio.to_thread(self._step)) is not END:
                yield cast("str", text)
        finally:
            await asyncio.to_thread(self.close)

    def _step(self) -> object:
        with self._turn:
            return END if self._closed else next(self._items, END)

    def close(self) -> None:
        with self._turn:
            close = getattr(self._items, "close", None)
            if not self._closed and close is not None:
                close()
            self._closed = True
