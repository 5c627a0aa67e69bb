"""A member whose steps fail on demand, applied or not: as when the broker's answer is lost on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

from consumers.memory import MemoryTransport
from consumers.transport import Commit, OutRecord, Partition, Restored, StateRecord
from guardrail.errors import PartitionLost, StepFailed

Fault = Literal["before", "after", "lost"] | None
"""The step fails and was not applied; fails and was applied; the partition is lost; nothing."""


class FaultyTransport(MemoryTransport):
    """``next_fault`` is asked at every step. Checks what the consumer owes the transport after a failure."""

    next_fault: Callable[[], Fault]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.steps: list[tuple[Partition, list[OutRecord], list[StateRecord], Commit]] = []
        self.recovered = 0
        self.next_fault = lambda: None
        self._stepping: set[Partition] = set()
        self._failed: set[Partition] = set()

    async def transact(
        self,
        partition: Partition,
        records: Sequence[OutRecord],
        state: Sequence[StateRecord],
        commit: Commit,
    ) -> None:
        assert partition not in self._failed, "a step after one that failed, without a recovery"
        assert partition not in self._stepping, "two steps of a partition at once"
        fault = self.next_fault()
        self._stepping.add(partition)
        try:
            if fault != "before" and fault != "lost":
                await super().transact(partition, records, state, commit)
                self.steps.append((partition, list(records), list(state), commit))
            if fault is not None:
                await asyncio.sleep(0)
                raise (PartitionLost if fault == "lost" else StepFailed)(f"injected: {fault}")
        except StepFailed:
            self._failed.add(partition)
            raise
        finally:
            self._stepping.discard(partition)

    async def recover(self, partition: Partition) -> Restored:
        self.recovered += 1
        await asyncio.sleep(0)
        restored = await super().recover(partition)
        self._failed.discard(partition)
        return restored

    async def _assigned(self, partitions: Any) -> None:
        self._failed.difference_update(partitions)
        await super()._assigned(partitions)
