"""Exactly once: one lane for each input partition, with one transaction per step.

The life of a lane::

    assigned ──restore──> ready: records ──> engine ──outputs, changes──> lane ──step──> transaction
                            ^                                                                │
                            └────────── restore from the broker's state <──thrown away── failed

If a step fails or its outcome is unknown, the lane and its sessions are thrown away, and a new lane is built
from the broker's state. Nothing here ever compensates, repeats or guesses.

A lane collects the output of one input partition's records since its last step. A step is taken in one
instant: all outputs, all new state of the sessions touched, the closed sessions, and the position. It can't
be split or reduced, or the stored sessions would disagree with the outputs. What is let into the lane
therefore bounds a step: past the bounds records wait until a step is taken.

Invariants (tests/contract/test_exactly_once_contract.py, tests/property/test_guard_restarts.py):
- outputs, state and position of a step are on the broker together, or none of them is;
- a position is committed when all records before it are in the state or the outputs of that step or earlier
  ones; the next owner reads on from there and takes nothing twice;
- steps of one partition follow each other; lanes never wait for each other;
- after a failure nothing of the old lane is written, as code that still refers to it can't add to the new.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import structlog

from consumers.guarantee import Guarantee, GuardOptions, Holding, SecondReading, StartStatus
from consumers.sessions_topic import SessionStore, restore
from consumers.transport import Commit, OutRecord, Partition, Record, Restored, StateRecord, Transport
from guardrail import telemetry
from guardrail.engine.engine import Change, ClosedResponse
from guardrail.errors import PartitionLost, StepFailed, TransportUnavailable

MAX_OUTPUTS: Final = 5_000
MAX_BYTES: Final = 8 * 1024 * 1024
"""Of outputs, and of input, which is about what sessions store of it."""


class Step(NamedTuple):
    """The contents of one transaction."""

    records: list[OutRecord]
    state: list[StateRecord]
    commit: Commit


class Lane:
    """One partition from its assignment, or its recovery, to its revocation or the failure of a step."""

    def __init__(
        self, partition: Partition, commit: Commit | None, store: SessionStore, options: GuardOptions
    ) -> None:
        self.partition = partition
        self.store = store
        self.ready = False
        """Its sessions are restored."""
        self.admitting = True
        """Records are taken."""
        self.closing = False
        """The next step is the last."""
        self.steps = 0
        """Committed."""
        self.waiting: deque[Record] = deque()
        """Records read and not taken yet."""
        self._gap_s = options.commit_gap_ms / 1000
        self._interval_s = options.commit_interval_ms / 1000
        self._second_reading = SecondReading(commit)
        self._next = commit.offset if commit else None
        self._committed = commit
        self.put_since: float | None = None
        """When the oldest output was put that no step has taken."""
        self._outputs: list[OutRecord] = []
        self._bytes = 0
        self.full = False
        """There is enough for a step: further records wait until it is taken."""
        self._changes: list[Change] = []
        self._closed: list[ClosedResponse] = []
        self._dirty_since: float | None = None
        self._last_step = float("-inf")
        self._wake = asyncio.Event()

    # ------------------------------------------------------------------------------------ filling

    @property
    def congested(self) -> bool:
        """Whether to read no more for now."""
        return not self.ready or bool(self.waiting) or self.full

    @property
    def busy(self) -> bool:
        """Whether there is output that no step has taken."""
        return bool(self._outputs)

    def admits(self, record: Record) -> bool:
        """A record that can't be taken now waits here and is not lost."""
        if not self.admitting:
            return False
        if self.ready and not self.waiting and not self.full:
            self._grow([record])
            return True
        self.waiting.append(record)
        return False

    def next_waiting(self) -> Record | None:
        """The first waiting record, if it can be taken now."""
        if not self.waiting or self.full or not self.admitting:
            return None
        record = self.waiting.popleft()
        self._grow([record])
        return record

    def release(self) -> list[Record]:
        waiting = list(self.waiting)
        self.waiting.clear()
        return waiting

    def reading(self, offset: int) -> StartStatus:
        return self._second_reading.reading(offset)

    def put(self, records: Sequence[OutRecord]) -> None:
        if not self._outputs:
            self.put_since = time.monotonic()
            self._wake.set()
        self._outputs += records
        self._grow(records)

    def taken(self, offset: int, response_id: str | None) -> None:  # noqa: ARG002 - part of Holding
        self._next = offset + 1
        self._mark_dirty()

    def changed(self, change: Change) -> None:
        """A session of this lane has new state to store."""
        self._changes.append(change)
        self._mark_dirty()

    def close(self, response: ClosedResponse) -> None:
        """A session of this lane is over."""
        self._closed.append(response)
        self._mark_dirty()

    def _grow(self, records: Sequence[Record | OutRecord]) -> None:
        self._bytes += sum([len(record.value or b"") + len(record.key or b"") for record in records])
        if not self.full and (self._bytes >= MAX_BYTES or len(self._outputs) >= MAX_OUTPUTS):
            self.full = True
            self._wake.set()

    def _mark_dirty(self) -> None:
        if self._dirty_since is None:
            self._dirty_since = time.monotonic()
            self._wake.set()

    def end(self) -> None:
        """Take no more records; the step that is due now is the last one."""
        self.admitting = False
        self.closing = True
        self.waiting.clear()
        self._wake.set()

    def discard(self) -> None:
        """Its records are read again elsewhere; code that still refers to it can't add to it any more."""
        self.admitting = False
        self.waiting.clear()

    # ------------------------------------------------------------------------------------ stepping

    async def due(self) -> None:
        """Wait until a step is due: soon after there is output, else at intervals, and at once at the end."""
        while not self.closing:
            delay = self._delay()
            if delay is not None and delay <= 0:
                return
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wake.wait()

    def _delay(self) -> float | None:
        now = time.monotonic()
        if self._outputs or self.full:
            return self._last_step + self._gap_s - now
        if self._dirty_since is not None:
            return self._dirty_since + self._interval_s - now
        expiry = self.store.next_expiry_s
        if expiry is None or self._next is None:
            return None
        return max(expiry, self._last_step + self._interval_s - now)

    def take(self) -> Step | None:
        """Everything since the last step, or None if there is nothing. Never waits."""
        outputs, self._outputs, self._bytes, self.put_since = self._outputs, [], 0, None
        changes, self._changes = self._changes, []
        closed, self._closed = self._closed, []
        self._dirty_since, self.full = None, False
        if self._next is None:
            return None  # nothing was ever read, so there can be no output
        captures = [
            (change.response_id, captured) for change in changes if (captured := change.take()) is not None
        ]
        state = self.store.changes(captures, closed)
        commit = Commit(self._next, self._second_reading.note(self._next))
        if not outputs and not state and commit == self._committed:
            return None
        self._committed = commit
        return Step(outputs, state, commit)

    def stepped(self) -> None:
        """The step that was taken has been committed."""
        self.steps += 1
        self._last_step = time.monotonic()


MOST_FAILURES: Final = 20
"""Steps of a partition that fail one after the other before the guard gives up and says so."""
LONGEST_PAUSE_S: Final = 5.0
LAST_STEP_S: Final = 5.0
"""How long the last steps may take when partitions are given back."""
CANCEL_S: Final = 1.0
"""How long tasks may take to end that were given up."""

log = structlog.get_logger(__name__)


class ExactlyOnce(Guarantee):
    """Lanes, and a task for each of them."""

    def __init__(self, transport: Transport, options: GuardOptions, max_value_bytes: int) -> None:
        super().__init__()
        self._transport = transport
        self._options = options
        self._max_value_bytes = max_value_bytes
        self._lanes: dict[Partition, Lane] = {}
        self._tasks: dict[Partition, asyncio.Task[None]] = {}
        self._stepping_since: dict[Partition, float] = {}
        """Since when what a step holds waits that is under way, or has failed."""

    def _own_tasks(self) -> Iterable[asyncio.Task[None]]:
        return self._tasks.values()

    # ------------------------------------------------------------------------------------ filling

    def holdings(self) -> Mapping[Partition, Holding]:
        return dict(self._lanes)

    def recovering(self) -> Collection[Partition]:
        return [held for held, task in self._tasks.items() if not task.done() and held not in self._lanes]

    def congested(self) -> Collection[Partition]:
        """Lanes that are recovering, and lanes with waiting records."""
        return [*self.recovering(), *(held for held, lane in self._lanes.items() if lane.congested)]

    @property
    def busy(self) -> bool:
        return any(lane.busy for lane in self._lanes.values())

    @property
    def unwritten_since(self) -> float | None:
        put = (since for lane in self._lanes.values() if (since := lane.put_since) is not None)
        return min((*put, *self._stepping_since.values()), default=None)

    def put(self, partition: Partition, records: Sequence[OutRecord]) -> None:
        lane = self._lanes.get(partition)
        if lane is not None:
            lane.put(records)

    def changed(self, change: Change) -> None:
        """A response has new state to store, with or without an output."""
        lane = self._lanes.get(change.lane)  # type: ignore[call-overload]
        if lane is not None:
            lane.changed(change)

    def closed(self, response: ClosedResponse) -> None:
        lane = self._lanes.get(response.lane)  # type: ignore[call-overload]
        if lane is not None:
            lane.close(response)

    # ------------------------------------------------------------------------------------ writing

    async def _serve(self, partition: Partition) -> None:
        """Commit the steps of a partition until it is revoked or the guard stops."""
        failures = 0
        while (lane := self._lanes.get(partition)) is not None:
            try:
                await self._commit_steps(lane)
            except PartitionLost as error:
                log.warning("guard.partition_lost", error=str(error))
                self._discard(partition)
                return
            except StepFailed as error:
                failures = 1 if lane.steps else failures + 1
                closing = lane.closing
                self._discard(partition)
                telemetry.FAILED_STEPS.inc()
                log.warning(
                    "guard.step_failed",
                    partition=f"{partition.topic}-{partition.index}",
                    in_a_row=failures,
                    error=str(error),
                )
                if closing:
                    return  # the next owner restores it
                if failures >= MOST_FAILURES:
                    raise TransportUnavailable(
                        f"{failures} steps of {partition} failed one after the other, "
                        f"the last one so: {error}"
                    ) from error
            else:
                return
            await self._recover(partition, failures)

    async def _commit_steps(self, lane: Lane) -> None:
        while True:
            await self._take_waiting(lane)
            await lane.due()
            last = lane.closing
            put_since = lane.put_since
            step = lane.take()
            if step is not None:
                began = time.monotonic()
                self._stepping_since.setdefault(lane.partition, began if put_since is None else put_since)
                await self._transport.transact(lane.partition, *step)
                self._stepping_since.pop(lane.partition, None)
                lane.stepped()
                telemetry.COMMIT_SECONDS.observe(time.monotonic() - began)
            if last:
                return

    async def _take_waiting(self, lane: Lane) -> None:
        """Take the records that found the lane full, until it is full again or releases them."""
        while lane.waiting and not lane.full and lane.admitting:
            self._take(lane, iter(lane.next_waiting, None))
            await asyncio.sleep(0)

    # --------------------------------------------------------------------------------- assignment

    async def assigned(self, restored: Mapping[Partition, Restored]) -> None:
        """Restore the sessions. Raises StateError if a newer version stored them."""
        for partition, found in restored.items():
            await self._cancelled({task} if (task := self._tasks.pop(partition, None)) else set())
            self._discard(partition)
            await self._restore(partition, found)
            if self._ended:
                return
            name = f"lane {partition.topic}-{partition.index}"
            self._tasks[partition] = self._group.create_task(self._serve(partition), name=name)

    async def revoked(self, partitions: Collection[Partition]) -> None:
        """Take no more records, wait briefly for verdicts under way, commit, and release the partitions."""
        for partition in partitions:
            lane = self._lanes.get(partition)
            if lane is not None:
                lane.admitting = False
        if self._engine.pending_claims and not self._ended:
            try:
                async with asyncio.timeout(self._options.revoke_timeout_ms / 1000):
                    await self._engine.drain()
            except TimeoutError:
                log.info("guard.revoke_timeout", claims=self._engine.pending_claims)
        await self._end(partitions)

    async def close(self, within_s: float) -> None:
        self._ended = True
        await self._end(tuple(self._tasks), within_s)

    async def _end(self, partitions: Collection[Partition], within_s: float = LAST_STEP_S) -> None:
        """Commit the last steps, within a deadline, and drop the lanes."""
        tasks = set()
        for partition in partitions:
            lane, task = self._lanes.get(partition), self._tasks.get(partition)
            if task is None:
                continue
            tasks.add(task)
            if lane is None or not lane.ready:
                task.cancel()  # recovering: its state is what the broker has
            else:
                lane.end()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=within_s)
            if late:
                log.warning("guard.last_step_timeout", lanes=sorted(task.get_name() for task in late))
                await self._cancelled(late)
        for partition in partitions:
            self._tasks.pop(partition, None)
            self._stepping_since.pop(partition, None)
            self._discard(partition)

    async def _cancelled(self, tasks: set[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_S)

    def _discard(self, partition: Partition) -> None:
        lane = self._lanes.pop(partition, None)
        if lane is not None:
            lane.discard()
        self._engine.drop_lane(partition)

    async def _recover(self, partition: Partition, failures: int) -> None:
        """A new lane from the broker's state; none if the partition has been given away in the meantime."""
        if failures > 1:
            await asyncio.sleep(min(LONGEST_PAUSE_S, 0.01 * 2**failures))
        try:
            restored = await self._transport.recover(partition)
        except PartitionLost as error:
            log.warning("guard.partition_lost", error=str(error))
            return
        await self._restore(partition, restored)

    async def _restore(self, partition: Partition, restored: Restored) -> None:
        """Put a lane in place at once, because records may come already, and restore its sessions."""
        started = time.monotonic()
        limits = self._options.limits
        store = SessionStore(
            max_value_bytes=self._max_value_bytes,
            max_finished=limits.finished_responses_remembered,
            ttl_s=limits.finished_response_ttl_ms / 1000,
        )
        lane = self._lanes[partition] = Lane(partition, restored.commit, store, self._options)
        grace_s = self._options.recovery_grace_ms / 1000
        sessions = await restore(self._engine, partition, store, restored, grace_s=grace_s)
        lane.ready = True
        self._stepping_since.pop(partition, None)  # what was not written is decided anew
        telemetry.RESTORED.inc(sessions)
        log.info(
            "guard.restored",
            partition=f"{partition.topic}-{partition.index}",
            offset=restored.commit.offset if restored.commit else None,
            sessions=sessions,
            took_ms=round((time.monotonic() - started) * 1000),
        )
