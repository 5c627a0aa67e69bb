"""A guard on an event loop of its own, for frameworks that call from any thread and from any loop.

A ``Guard`` belongs to one event loop. Frameworks call the same component from threads, from a loop that lives
for one call, or from several loops at once. Here the guard runs on a loop in a thread of its own, opened at
the first call; callers wait for it wherever they are.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path
from typing import Any, Final, Self, TypeVar, cast

from guardrail.errors import GuardrailError
from guardrail.events import AnyOutputEvent, ResponseVerdict
from guardrail.guard import Guard
from guardrail.inputs import ContextLike
from guardrail.judges.base import Judge
from guardrail.policy import Policy

_T = TypeVar("_T")
_END: Final = object()
_CLOSE_S: Final = 10.0
_CLOSED: Final = "the guard was closed before the answer was decided"


class GuardClosed(GuardrailError):
    """The guard was closed while it checked an answer."""


class BackgroundGuard:
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
        self._settings = None if settings is None else Path(settings)
        self._judge = judge
        self._policy = policy
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._opening = asyncio.Lock()
        self._guard: Guard | None = None
        self._stack = AsyncExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Close the guard and end its thread. May be called again; a later check opens anew.

        Blocks: on an event loop use ``aclose``.
        """
        with self._starting:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._close(), loop).result(_CLOSE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_CLOSE_S)

    async def aclose(self) -> None:
        """As ``close``, from whatever loop."""
        await asyncio.to_thread(self.close)

    def check(
        self, question: str, contexts: Sequence[ContextLike], answer: str, **head: Any
    ) -> ResponseVerdict:
        """Judge a whole answer, see ``Guard.check``. Blocks: not for use on an event loop."""
        return _result(self._submit(self._check(question, contexts, answer, head), self._started()))

    async def acheck(
        self, question: str, contexts: Sequence[ContextLike], answer: str, **head: Any
    ) -> ResponseVerdict:
        """Judge a whole answer, see ``Guard.check``, from whatever loop."""
        return await _aresult(self._submit(self._check(question, contexts, answer, head), self._started()))

    def stream(
        self, question: str, contexts: Sequence[ContextLike], deltas: Iterator[str], **head: Any
    ) -> Iterator[AnyOutputEvent]:
        """Guard an answer while it is written, see ``Guard.stream``. Blocks: not for use on an event loop.

        Each of ``deltas`` is taken in a thread, when the guard wants it.
        """
        loop = self._started()
        source = _Threaded(deltas)
        events = _Stepped(self._events(question, contexts, source.texts(), head))
        try:
            while (event := _result(self._submit(events.step(), loop))) is not _END:
                yield cast("AnyOutputEvent", event)
        finally:
            with suppress(GuardClosed):
                _result(self._submit(events.aclose(), loop))
            source.close()

    async def astream(
        self, question: str, contexts: Sequence[ContextLike], deltas: AsyncIterator[str], **head: Any
    ) -> AsyncGenerator[AnyOutputEvent, None]:
        """Guard an answer while it is written, see ``Guard.stream``, from whatever loop.

        Each of ``deltas`` is taken on the caller's loop, when the guard wants it.
        """
        here, loop = asyncio.get_running_loop(), self._started()
        source = _Stepped(deltas)
        events = _Stepped(self._events(question, contexts, _texts_from(here, source), head))
        try:
            while (event := await _aresult(self._submit(events.step(), loop))) is not _END:
                yield cast("AnyOutputEvent", event)
        finally:
            with suppress(GuardClosed):
                await _aresult(self._submit(events.aclose(), loop))
            await source.aclose()

    # ------------------------------------------------------------------------------- on the guard's own loop

    async def _check(
        self, question: str, contexts: Sequence[ContextLike], answer: str, head: dict[str, Any]
    ) -> ResponseVerdict:
        return await (await self._opened()).check(question, contexts, answer, **head)

    async def _events(
        self, question: str, contexts: Sequence[ContextLike], deltas: AsyncIterator[str], head: dict[str, Any]
    ) -> AsyncGenerator[AnyOutputEvent, None]:
        stream = (await self._opened()).stream(question, contexts, deltas, **head)
        async with aclosing(cast("AsyncGenerator[AnyOutputEvent, None]", stream)) as events:  # which it is
            async for event in events:
                yield event

    async def _opened(self) -> Guard:
        async with self._opening:
            if self._guard is None:
                self._guard = await self._stack.enter_async_context(await self._made())
            return self._guard

    async def _made(self) -> Guard:
        if self._settings is None:
            return Guard(self._judge, self._policy)
        from guardrail.config import load_settings
        from guardrail.judges.factory import JudgeSet

        settings = await asyncio.to_thread(load_settings, self._settings)
        router = settings.router()
        judges = await asyncio.to_thread(JudgeSet, settings.judge, router.policies)
        self._stack.push_async_callback(judges.aclose)
        return Guard(judges.default, router=router, judges=judges.by_kind, limits=settings.limits)

    async def _close(self) -> None:
        self._guard = None
        await self._stack.aclose()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._opening = asyncio.Lock()  # belongs to the loop that first waits for it
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="guard", daemon=True)
                self._thread.start()
            return self._loop

    def _submit(self, work: Coroutine[Any, Any, _T], loop: asyncio.AbstractEventLoop) -> Future[_T]:
        with self._starting:  # whatever is submitted before the guard closes, the loop still sees
            if loop is not self._loop:
                work.close()
                raise GuardClosed(_CLOSED)
            return asyncio.run_coroutine_threadsafe(work, loop)


def _result(future: Future[_T]) -> _T:
    try:
        return future.result()
    except CancelledError:
        raise GuardClosed(_CLOSED) from None


async def _aresult(future: Future[_T]) -> _T:
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise GuardClosed(_CLOSED) from None  # the guard's loop ended, and not the caller's task


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(_cancel_others())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class _Stepped:
    """An iterator of one loop, taken step by step from another; closing waits for the step under way."""

    def __init__(self, items: AsyncIterator[Any]) -> None:
        self._items = items
        self._turn = asyncio.Lock()
        self._closed = False

    async def step(self) -> Any:
        """The next item, or ``_END``."""
        async with self._turn:
            return _END if self._closed else await anext(self._items, _END)

    async def aclose(self) -> None:
        async with self._turn:
            if not self._closed and isinstance(self._items, AsyncGenerator):
                await self._items.aclose()
            self._closed = True


async def _texts_from(loop: asyncio.AbstractEventLoop, source: _Stepped) -> AsyncGenerator[str, None]:
    """The texts of an iterator of ``loop``, on another loop."""
    try:
        while (text := await _there(loop, source.step())) is not _END:
            yield text
    finally:
        if not loop.is_closed():
            await _there(loop, source.aclose())


async def _there(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


class _Threaded:
    """A plain iterator, taken in threads one step at a time; closing waits for the step under way."""

    def __init__(self, items: Iterator[str]) -> None:
        self._items = items
        self._turn = threading.Lock()
        self._closed = False

    async def texts(self) -> AsyncGenerator[str, None]:
        try:
            while (text := await asyncio.to_thread(self._step)) is not _END:
                yield cast("str", text)
        finally:
            await asyncio.to_thread(self.close)

    def _step(self) -> object:
        with self._turn:
            return _END if self._closed else next(self._items, _END)

    def close(self) -> None:
        with self._turn:
            close = getattr(self._items, "close", None)
            if not self._closed and close is not None:
                close()
            self._closed = True
