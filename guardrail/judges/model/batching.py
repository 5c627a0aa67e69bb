"""One thread for one model: pairs of all requests share its batches, most urgent claim first."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.judges.model.classifier import Scores
from guardrail.judges.model.tokens import Pair

Score = Callable[[Sequence[Pair]], Sequence[Scores | JudgeError]]
"""Scores of pairs, in their order, or why a pair has none. Blocks; runs in the batcher's thread only."""


@dataclass(slots=True)
class _Job:
    """The pairs of one claim: those waiting, which the holder of the batcher's lock owns, and the scores of
    those that ran, which its thread owns.
    """

    waiting: deque[Pair]
    wanted: int
    deadline: float
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[list[Scores]]
    scores: list[Scores] = field(default_factory=list)


class Batcher:
    """Runs a model in its own thread.

    Claims are taken by deadline, so that under load as many as possible are finished rather than all begun. A
    claim whose deadline has passed, or whose future was cancelled, is dropped before its next batch.
    """

    def __init__(self, score: Score, batch_size: int, max_queued: int, name: str) -> None:
        """``max_queued`` bounds the waiting pairs, except that one claim is always accepted."""
        self._score = score
        self._batch_size = batch_size
        self._max_queued = max_queued
        self._order = itertools.count()
        self._lock = threading.Condition()
        self._heap: list[tuple[float, int, _Job]] = []
        self._queued = 0  # waiting pairs
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(
        self,
        pairs: Sequence[Pair],
        deadline: float,
        response_id: str = "",  # noqa: ARG002 (a server's takes turns by it)
    ) -> asyncio.Future[list[Scores]]:
        """A future of the scores of ``pairs``; cancelling it withdraws them.

        ``deadline`` is a reading of ``time.monotonic()``. Fails with JudgeUnavailable if the queue is full,
        the deadline has passed or the batcher was closed, and with JudgeError if the model failed.
        """
        loop = asyncio.get_running_loop()
        job = _Job(deque(pairs), len(pairs), deadline, loop, loop.create_future())
        with self._lock:
            if self._closed:
                job.future.set_exception(JudgeUnavailable("the judge is closed"))
            elif self._queued and self._queued + len(pairs) > self._max_queued:
                job.future.set_exception(JudgeUnavailable(f"{self._queued} pairs wait for the model"))
            elif not pairs:
                job.future.set_result([])
            else:
                heapq.heappush(self._heap, (deadline, next(self._order), job))
                self._queued += len(pairs)
                job.future.add_done_callback(lambda future: self._done(job, future))
                self._lock.notify()
        return job.future

    async def aclose(self) -> None:
        """Fail waiting claims and end the thread, after the current batch."""
        with self._lock:
            self._closed = True
            jobs = [job for _, _, job in self._heap]
            self._heap.clear()
            self._queued = 0
            self._lock.notify()
        for job in jobs:
            _tell(job, JudgeUnavailable("the judge is closed"))
        await asyncio.to_thread(self._thread.join)

    def _done(self, job: _Job, future: asyncio.Future[list[Scores]]) -> None:
        if future.cancelled():
            with self._lock:
                self._drop(job)

    def _drop(self, job: _Job) -> None:
        """Stop processing ``job``, under the lock; it leaves the heap when its turn comes."""
        if not self._closed:
            self._queued -= len(job.waiting)
        job.waiting.clear()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._heap and not self._closed:
                    self._lock.wait()
                if self._closed:
                    return
                batch = self._take()
            if batch:
                self._run_batch(batch)

    def _take(self) -> list[tuple[_Job, Pair]]:
        """The next batch, under the lock."""
        batch: list[tuple[_Job, Pair]] = []
        now = time.monotonic()
        while self._heap and len(batch) < self._batch_size:
            job = self._heap[0][2]
            if job.waiting and job.deadline <= now:
                self._drop(job)
                _tell(job, JudgeUnavailable("the deadline has passed"))
            count = min(len(job.waiting), self._batch_size - len(batch))
            batch += [(job, job.waiting.popleft()) for _ in range(count)]
            self._queued -= count
            if not job.waiting:
                heapq.heappop(self._heap)
        return batch

    def _run_batch(self, batch: list[tuple[_Job, Pair]]) -> None:
        error: JudgeError | None = None
        scores: Sequence[Scores | JudgeError] = ()
        try:
            scores = self._score([pair for _, pair in batch])
        except JudgeError as caught:
            error = caught
        except Exception as caught:  # noqa: BLE001 (a runtime's errors have no common root, and texts in them)
            error = JudgeUnavailable(f"the model failed ({type(caught).__name__})")
        if error is None and len(scores) != len(batch):
            error = JudgeUnavailable("the model gave another number of results than it was asked for")
        if error is not None:
            for job in {id(job): job for job, _ in batch}.values():
                self._fail(job, error)
            return
        for (job, _), score in zip(batch, scores, strict=True):
            if isinstance(score, JudgeError):
                self._fail(job, score)
                continue
            job.scores.append(score)
            if len(job.scores) == job.wanted:
                _tell(job, job.scores)

    def _fail(self, job: _Job, error: JudgeError) -> None:
        with self._lock:
            self._drop(job)
        _tell(job, error)


def _tell(job: _Job, result: list[Scores] | JudgeError) -> None:
    """Settle the job's future in its own loop; a closed loop no longer waits for it."""

    def settle() -> None:
        if job.future.done():
            return
        if isinstance(result, JudgeError):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)

    try:
        job.loop.call_soon_threadsafe(settle)
    except RuntimeError:
        return
