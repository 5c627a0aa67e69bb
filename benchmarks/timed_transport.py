"""A transport that notes how long the work took and how much was written."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from consumers.transport import Commit, OutRecord, Partition, Record, StateRecord, Transport


class Timed:
    """Passes everything on. Sets ``stop`` once positions are committed after ``records`` input records.

    ``seconds`` is from the first record read to the last output written.
    """

    def __init__(self, inner: Transport, records: int, stop: asyncio.Event) -> None:
        self._inner = inner
        self._expected = records
        self._stop = stop
        self._positions: dict[Partition, int] = {}
        self._first_read = 0.0
        self._last_written = 0.0
        self.written = self.bytes = self.state_written = self.state_bytes = self.steps = 0
        self.start = inner.start
        self.pause = inner.pause
        self.resume = inner.resume
        self.recover = inner.recover
        self.stop = inner.stop
        self.unread = inner.unread
        self.waits_for = inner.waits_for
        self.group = inner.group

    @property
    def seconds(self) -> float:
        return self._last_written - self._first_read

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        records = await self._inner.poll(timeout_ms, max_records)
        if records and not self._first_read:
            self._first_read = time.perf_counter()
        return records

    async def publish(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        await self._inner.publish(records, commits)
        self._note(records, commits)

    async def transact(
        self,
        partition: Partition,
        records: Sequence[OutRecord],
        state: Sequence[StateRecord],
        commit: Commit,
    ) -> None:
        await self._inner.transact(partition, records, state, commit)
        self.steps += 1
        self.state_written += len(state)
        self.state_bytes += sum(len(record.value or b"") for record in state)
        self._note(records, {partition: commit})

    def _note(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        if records:
            self._last_written = time.perf_counter()
            self.written += len(records)
            self.bytes += sum(len(record.value or b"") for record in records)
        self._positions.update({partition: commit.offset for partition, commit in commits.items()})
        if sum(self._positions.values()) == self._expected:
            self._stop.set()
