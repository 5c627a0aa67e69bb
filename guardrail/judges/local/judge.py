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

from guardrail.awake import awake
from guardrail.errors import JudgeUnavailable
from guardrail.judges.base import JudgeRequest
from guardrail.judges.local.check import build_checker
from guardrail.judges.local.examination import Examination
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.local.verdict import NAME
from guardrail.judges.model import default_threads
from guardrail.judges.recorder import Recorder, recorder
from guardrail.verdicts import Judgement


class Turn:
    """A turn at the judge. Its holder may pass it on for a while, from the thread that it works in."""

    __slots__ = ("_came", "_loop", "_queue", "held")

    def __init__(self, queue: TurnQueue) -> None:
        self._queue = queue
        self._loop = asyncio.get_running_loop()
        self._came = threading.Event()
        self.held = False

    def give_way(self, until: float) -> None:
        """Let whoever waits go first; blocks until the turn is back, ``wake`` is called, or ``until``, a
        reading of ``time.monotonic()``. For a thread."""
        if not self._queue.waited_for:
            return
        self._came.clear()
        try:
            self._loop.call_soon_threadsafe(self._queue.give_way, self)
        except RuntimeError:  # the loop is closed: nobody waits
            return
        self._came.wait(max(0.0, until - time.monotonic()))

    def come(self) -> None:
        """It is the holder's turn, again."""
        self.held = True
        self._came.set()

    def wake(self) -> None:
        """The holder need not wait any more."""
        self._came.set()


_Queue = OrderedDict[asyncio.Future[None], None]


class TurnQueue:
    """A bounded number of turns at once. First in, first out, among those that give no time and then among
    those that do, by turns with those that gave way; whoever waits may be cancelled at any time."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._queues: tuple[_Queue, _Queue] = (OrderedDict(), OrderedDict())
        self._gave_way: OrderedDict[Turn, None] = OrderedDict()
        self._new_last = False  # whether the last turn went to one that is new

    @property
    def waited_for(self) -> bool:
        """Whether anybody waits for a turn, and another may give way. Any thread may ask."""
        return len(self._gave_way) < MOST_GIVING_WAY and any((*self._queues, self._gave_way))

    @asynccontextmanager
    async def turn(self, within_s: float | None) -> AsyncIterator[Turn | None]:
        """Wait for a turn and hold it; None when none comes ``within_s`` seconds, and always with 0."""
        if within_s == 0 or not await self._came(within_s):
            yield None
            return
        turn = Turn(self)
        turn.held = True
        try:
            yield turn
        finally:
            self._gave_way.pop(turn, None)
            if turn.held:
                turn.held = False  # its thread may not have noticed yet
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

    def give_way(self, turn: Turn) -> None:
        """Put one that holds its turn behind the others."""
        if turn.held:
            turn.held = False
            self._gave_way[turn] = None
            self._pass_on()
        else:
            turn.wake()

    def close(self) -> None:
        """Let those who wait go without."""
        for queue in self._queues:
            for mine in queue:
                mine.cancel()
            queue.clear()
        for turn in self._gave_way:
            turn.wake()

    def _pass_on(self) -> None:
        new, hasty = self._queues
        if self._gave_way and (self._new_last or not (new or hasty)):
            self._new_last = False
            self._gave_way.popitem(last=False)[0].come()
        elif new or hasty:
            self._new_last = True
            (new or hasty).popitem(last=False)[0].set_result(None)
        else:
            self._free += 1


MOST_GIVING_WAY: Final = 64
"""Requests that may wait in a thread each for their turn to come back."""
_SLICE_S: Final = 0.1
"""How long a request keeps its turn while others wait: some claims, which most answers have no more of."""
_WORKERS_THAT_WAIT: Final = 16  # for a server that runs the verifier
_CLOSED: Final = "the judge is closed"
_UNHURRIED: Final = 0.5  # of the time from the request to its deadline
_IN_HASTE: Final = 0.75  # of it
_NOTHING_READ: Final = 2
_FIRST_PACE_S: Final = 0.02  # a claim, before any was judged
_LATEST: Final = 0.05  # what the latest claim counts in the pace at least, of all that came before
_LONGEST_S: Final = 2.0
"""As one that takes no longer: one client's claim, which gives way, must not keep all from being read."""


class _Hours(NamedTuple):
    """When the time of a request's claims began and ends, by the clock that stands still with the process."""

    begin: float
    end: float


class LocalJudge:
    """A Judge. The claims of a request are one job of a thread pool that the judge owns.

    Of claims that come up when half of the time to the deadline is gone, all waiting included, one window is
    read, and of those that come up when three quarters are gone, none (``degraded_from`` says so). That is
    for standstills and bursts: who gives it no more than it judges in time by ``wait_s`` does not see it.
    A job stops between two claims, two windows or two sentences whose figures are read, when its caller was
    cancelled or its deadline has passed; what it has by then is said, and the other claims become UNVERIFIED.
    Between them it also gives way to requests that wait, so that a long one delays others by little. Requests
    that another judge can answer better (``turn_within_s``) come after the others, and are judged without
    reading any window when their turn does not come.
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
        self._paced = 4  # claims that the pace is taken from; the guess counts as so many
        # One more for requests whose turn did not come: judging them is little work.
        self._pool = ThreadPoolExecutor(workers + MOST_GIVING_WAY + 1, thread_name_prefix="local-judge")

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
            async with self._turns_here().turn(request.turn_within_s) as turn:
                found = await self._in_thread(request, hours, turn)
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

    async def _in_thread(self, request: JudgeRequest, hours: _Hours, turn: Turn | None) -> list[Judgement]:
        if self._closed.is_set():
            raise JudgeUnavailable(_CLOSED)
        stopped = threading.Event()
        work = partial(self._judge, request, hours, turn, stopped, recorder())
        job = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await job
        except asyncio.CancelledError:
            stopped.set()
            if turn is not None:
                turn.wake()
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
        turn: Turn | None,
        stopped: threading.Event,
        record: Recorder | None,
    ) -> list[Judgement]:
        time_given = max(0.0, hours.end - hours.begin)
        began = turn_began = awake()
        began_at = time.monotonic()

        def ended() -> bool:
            return stopped.is_set() or self._closed.is_set() or awake() >= hours.end

        def over() -> bool:
            nonlocal began, turn_began
            now = awake()
            if turn is not None and now - turn_began >= _SLICE_S and not ended():
                turn.give_way(time.monotonic() + hours.end - now)
                turn_began = awake()
                began += turn_began - now  # no time of the claim's
            return ended()

        def pressed() -> int:
            if turn is None:
                return _NOTHING_READ
            gone = awake() - hours.begin
            return (gone >= _UNHURRIED * time_given) + (gone >= _IN_HASTE * time_given)

        examined: dict[str, Examination] = {}
        found: list[Judgement] = []
        if not request.evidence.prepare(over):
            return found
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
                self._learn(now - began)
            began, began_at = now, time.monotonic()
        if len(found) < len(request.claims):  # so long it took at least
            self._learn(max(self._pace, awake() - began))
        return found

    def _learn(self, took_s: float) -> None:
        """Note what a claim took that was read wholly, its waits apart."""
        with self._sharing:
            self._paced += 1
            latest = max(_LATEST, 1 / self._paced)
            self._pace += (min(took_s, _LONGEST_S) - self._pace) * latest


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
