"""The local judge: checks claims on this machine, in some tens of milliseconds each.

Requests that nobody else can answer come first; the others wait briefly for their turn.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from guardrail.errors import JudgeUnavailable
from guardrail.judges.base import JudgeRequest, awake
from guardrail.judges.local.check import NAME, Examination, build_checker
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.model import default_threads
from guardrail.judges.recorder import Recorder, recorder
from guardrail.verdicts import Judgement

_Queue = OrderedDict[asyncio.Future[None], None]


class TurnQueue:
    """A bounded number of turns at once. First in, first out, among those that give no time and then among
    those that do; whoever waits may be cancelled at any time."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._queues: tuple[_Queue, _Queue] = (OrderedDict(), OrderedDict())

    @asynccontextmanager
    async def turn(self, within_s: float | None) -> AsyncIterator[bool]:
        """Wait for a turn and hold it; False when none comes ``within_s`` seconds, and always with 0."""
        if within_s == 0 or not await self._came(within_s):
            yield False
            return
        try:
            yield True
        finally:
            self._pass_on()

    async def _came(self, within_s: float | None) -> bool:
        if self._free:
            self._free -= 1
            return True
        queue = self._queues[within_s is not None]
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue[mine] = None
        try:
            await asyncio.wait({mine}, timeout=within_s)
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._pass_on()
            raise
        finally:
            queue.pop(mine, None)
        return mine.done() and not mine.cancelled()

    def close(self) -> None:
        """Let those who wait go without."""
        for queue in self._queues:
            for mine in queue:
                mine.cancel()
            queue.clear()

    def _pass_on(self) -> None:
        for queue in self._queues:
            if queue:
                queue.popitem(last=False)[0].set_result(None)
                return
        self._free += 1


_WORKERS_THAT_WAIT: Final = 16  # for a server that runs the verifier
_CLOSED: Final = "the judge is closed"
_UNHURRIED: Final = 0.5  # of the time from the request to its deadline
_IN_HASTE: Final = 0.75  # of it
_NOTHING_READ: Final = 2
_FIRST_PACE_S: Final = 0.02  # a claim, before any was judged
_LATEST: Final = 0.05  # what the latest claim counts in the pace


class _Hours(NamedTuple):
    """When the time of a request's claims began and ends, by the clock that stands still with the process."""

    begin: float
    end: float


class LocalJudge:
    """A Judge. The claims of a request are one job of a thread pool that the judge owns.

    Of claims that come up when half of the time to the deadline is gone, all waiting included, one window is
    read, and of those that come up when three quarters are gone, none (``degraded_from`` says so). That is
    for standstills and bursts: who gives it no more than it judges in time by ``wait_s`` does not see it.
    A job stops between two claims, or two windows, when its caller was cancelled or its deadline has passed;
    what it has by then is said, and the other claims become UNVERIFIED. Requests that another judge can
    answer better (``turn_within_s``) come after the others, and are judged without reading any window when
    their turn does not come.
    """

    def __init__(self, settings: LocalJudgeSettings | None = None) -> None:
        """Loads the verifier, if the settings have one. Raises ConfigError where a file can't be used."""
        self.settings = settings or LocalJudgeSettings()
        self._checker = build_checker(self.settings)
        self._closed = threading.Event()
        served = self.settings.verifier.enabled and self.settings.verifier.server is not None
        workers = self.settings.workers or (_WORKERS_THAT_WAIT if served else default_threads())
        self._workers = workers
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, TurnQueue] = WeakKeyDictionary()
        self._sharing = threading.Lock()
        self._waiting = 0  # claims that are not judged yet
        self._pace = _FIRST_PACE_S
        # One more for requests whose turn did not come: judging them is little work.
        self._pool = ThreadPoolExecutor(workers + 1, thread_name_prefix="local-judge")

    @property
    def name(self) -> str:
        """``local``."""
        return NAME

    def wait_s(self, more: int = 0) -> float:
        """See ``PacedJudge``."""
        return (self._waiting + more) * self._pace / self._workers

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        """Judge all claims of ``request`` that can be judged before its deadline.

        Raises JudgeError when the verifier fails, and JudgeUnavailable once the judge is closed.
        """
        # A request may have waited for its turn elsewhere: claims that are late already must not be given up.
        now, monotonic = awake(), time.monotonic()
        asked = now if request.since is None else now + min(0.0, request.since - monotonic)
        hours = _Hours(asked, now + request.deadline - monotonic)
        with self._counted(len(request.claims)):
            async with self._turns_here().turn(request.turn_within_s) as came:
                found = await self._in_thread(request, hours, reading=came)
        for judgement in found:
            yield judgement

    @contextmanager
    def _counted(self, claims: int) -> Iterator[None]:
        with self._sharing:
            self._waiting += claims
        try:
            yield
        finally:
            with self._sharing:
                self._waiting -= claims

    def _turns_here(self) -> TurnQueue:
        """Those of the running loop: guards on several loops may share a judge, and take turns on each."""
        with self._sharing:
            return self._turns.setdefault(asyncio.get_running_loop(), TurnQueue(self._workers))

    async def _in_thread(self, request: JudgeRequest, hours: _Hours, *, reading: bool) -> list[Judgement]:
        if self._closed.is_set():
            raise JudgeUnavailable(_CLOSED)
        stopped = threading.Event()
        work = partial(self._judge, request, hours, reading, stopped, recorder())
        job = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await job
        except asyncio.CancelledError:
            stopped.set()
            task = asyncio.current_task()
            if self._closed.is_set() and not (task and task.cancelling()):
                # Only the job was: who asked must not take itself for cancelled.
                raise JudgeUnavailable(_CLOSED) from None
            raise

    async def aclose(self) -> None:
        """Let running jobs end at their next claim or window, drop waiting ones, and free the threads."""
        self._closed.set()
        with self._sharing:
            for loop, turns in self._turns.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(turns.close)
        self._pool.shutdown(wait=False, cancel_futures=True)
        try:
            await asyncio.to_thread(self._checker.close)
        except RuntimeError:  # the interpreter is ending, and gives threads no more work
            self._checker.close()

    def _judge(
        self,
        request: JudgeRequest,
        hours: _Hours,
        reading: bool,
        stopped: threading.Event,
        record: Recorder | None,
    ) -> list[Judgement]:
        time_given = max(0.0, hours.end - hours.begin)

        def over() -> bool:
            return stopped.is_set() or self._closed.is_set() or awake() >= hours.end

        def pressed() -> int:
            if not reading:
                return _NOTHING_READ
            gone = awake() - hours.begin
            return (gone >= _UNHURRIED * time_given) + (gone >= _IN_HASTE * time_given)

        examined: dict[str, Examination] = {}
        found = []
        began, began_at = awake(), time.monotonic()
        for judgement in self._checker.check_all(
            request.claims,
            request.question,
            request.evidence,
            over,
            pressed,
            None if record is None else examined.__setitem__,
        ):
            found.append(judgement)
            if record is not None:
                _record(record, judgement, examined.pop(judgement.claim_id, None), began_at)
            now = awake()
            if not judgement.hurried:
                self._pace += (now - began - self._pace) * _LATEST
            began, began_at = now, time.monotonic()
        return found


def _record(record: Recorder, judgement: Judgement, examined: Examination | None, begun_at: float) -> None:
    """The windows that were read for a claim, and what the verifier and the judge said."""
    reads = () if examined is None else examined.read
    windows = [f"[{number}] {read.window.text}" for number, read in enumerate(reads, 1)]
    readings = [
        f"[{number}] support {read.reading.support:.3f}, contradiction {read.reading.contradiction:.3f}"
        for number, read in enumerate(reads, 1)
    ]
    said = f"{judgement.verdict}, support {judgement.support or 0.0:.3f}: {judgement.reasoning}"
    record.add(
        "reading",
        (judgement.claim_id,),
        begun_at,
        judge=NAME,
        prompt="\n".join(windows) or "no passage was read",
        reply="\n".join([*readings, said]),
    )
