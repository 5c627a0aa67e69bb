"""The lane of one input partition: what has come of its records since its last step.

A step is taken in one instant: all outputs, what is new in every session touched, the closed ones, and the
position. Nothing of it can be left out or split off, or the stored sessions would say what the outputs do
not. So what bounds a step is what is let into the lane: past the bounds records wait until a step is taken.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Final, NamedTuple

from consumers.offsets import Reading, SecondReading
from consumers.session_store import SessionStore
from consumers.transport import Commit, OutRecord, Partition, Record, StateRecord
from guardrail.engine import ClosedResponse, Engine

MAX_OUTPUTS: Final = 5_000
MAX_BYTES: Final = 8 * 1024 * 1024
"""Of outputs, and of input, which is about what sessions store of it."""


class Step(NamedTuple):
    """What one transaction writes."""

    records: list[OutRecord]
    state: list[StateRecord]
    commit: Commit


class Lane:
    """One partition from its assignment, or its recovery, to its revocation or the failure of a step."""

    def __init__(
        self,
        partition: Partition,
        commit: Commit | None,
        store: SessionStore,
        *,
        gap_s: float,
        interval_s: float,
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
        self._gap_s = gap_s
        self._interval_s = interval_s
        self._second_reading = SecondReading(commit)
        self._next = commit.offset if commit else None
        self._committed = commit
        self._outputs: list[OutRecord] = []
        self._bytes = 0
        self._touched: dict[str, None] = {}
        self._closed: list[ClosedResponse] = []
        self._dirty_since: float | None = None
        self._last_step = float("-inf")
        self._wake = asyncio.Event()

    # ------------------------------------------------------------------------------------ filling

    @property
    def full(self) -> bool:
        """Enough for a step: records wait until it is taken."""
        return len(self._outputs) >= MAX_OUTPUTS or self._bytes >= MAX_BYTES

    @property
    def congested(self) -> bool:
        """Is no more to be read for now?"""
        return not self.ready or bool(self.waiting) or self.full

    @property
    def busy(self) -> bool:
        """Is there output that no step has taken?"""
        return bool(self._outputs)

    def admits(self, record: Record) -> bool:
        """Part of Holding: a record that can't be taken now waits here, and is not lost."""
        if not self.admitting:
            return False
        if self.ready and not self.waiting and not self.full:
            self._count(record)
            return True
        self.waiting.append(record)
        return False

    def next_waiting(self) -> Record | None:
        """The first of the records that wait, if it can be taken now."""
        if not self.waiting or self.full or not self.admitting:
            return None
        record = self.waiting.popleft()
        self._count(record)
        return record

    def reading(self, offset: int) -> Reading:
        """Part of Holding."""
        return self._second_reading.reading(offset)

    def put(self, record: OutRecord) -> None:
        """Part of Holding."""
        if not self._outputs:
            self._wake.set()
        self._outputs.append(record)
        self._count(record)

    def taken(self, offset: int, response_id: str | None) -> None:
        """Part of Holding."""
        self._next = offset + 1
        if response_id is not None:
            self._touched[response_id] = None
        self._soil()

    def touch(self, response_id: str) -> None:
        """A session of this lane has changed."""
        self._touched[response_id] = None
        self._soil()

    def close(self, response: ClosedResponse) -> None:
        """A session of this lane is over."""
        self._closed.append(response)
        self._soil()

    def _count(self, record: Record | OutRecord) -> None:
        was_full = self.full
        self._bytes += len(record.value or b"") + len(record.key or b"")
        if self.full and not was_full:
            self._wake.set()

    def _soil(self) -> None:
        if self._dirty_since is None:
            self._dirty_since = time.monotonic()
            self._wake.set()

    def end(self) -> None:
        """Take no more; the step that is due now is the last one."""
        self.admitting = False
        self.closing = True
        self.waiting.clear()
        self._wake.set()

    def throw_away(self) -> None:
        """Its records are another lane's, or another guard's, to read: whoever knows it can't fill it."""
        self.admitting = False
        self.waiting.clear()

    # ------------------------------------------------------------------------------------ stepping

    async def due(self) -> None:
        """Wait until a step is due: soon after there is output, else at intervals, at once at the end."""
        while not self.closing:
            delay = self._delay()
            if delay is not None and delay <= 0:
                return
            self._wake.clear()
            try:
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            except TimeoutError:
                pass

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

    def take(self, engine: Engine) -> Step | None:
        """Everything since the last step; None when that is nothing. Never waits."""
        outputs, self._outputs, self._bytes = self._outputs, [], 0
        touched, self._touched = self._touched, {}
        closed, self._closed = self._closed, []
        self._dirty_since = None
        if self._next is None:
            return None  # nothing was ever read, so there is nothing that could have come of it
        captures = [
            (response_id, captured)
            for response_id in touched
            if (captured := engine.capture(response_id)) is not None
        ]
        state = self.store.changes(captures, closed)
        commit = Commit(self._next, self._second_reading.note(self._next))
        if not outputs and not state and commit == self._committed:
            return None
        self._committed = commit
        return Step(outputs, state, commit)

    def stepped(self) -> None:
        """The step that was taken is committed."""
        self.steps += 1
        self._last_step = time.monotonic()
