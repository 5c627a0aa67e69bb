"""What the two delivery guarantees have in common, as the guard sees them.

The guard reads, has the engine work, and hands over what comes of it. Where that gathers, when and how it is
written, and what becomes of the sessions when partitions come and go, is behind ``Guarantee``:
``consumers.exactly_once`` and ``consumers.at_least_once``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Protocol, Self

from consumers.offsets import StartStatus
from consumers.transport import OutRecord, Partition, Record, Restored
from guardrail.engine.engine import Change, ClosedResponse


class Holding(Protocol):
    """One input partition for as long as it is held, and not thrown away after a failure."""

    partition: Partition

    @property
    def ready(self) -> bool:
        """Are its sessions restored?"""
        ...

    def admits(self, record: Record) -> bool:
        """May ``record`` be taken now? Otherwise it is kept for later, or is another holder's to read."""
        ...

    def reading(self, offset: int) -> StartStatus:
        """What a record at ``offset`` means that begins a response."""
        ...

    def put(self, record: OutRecord) -> None:
        """Have this written."""
        ...

    def taken(self, offset: int, response_id: str | None) -> None:
        """All that comes of the record at ``offset`` so far has been put.

        ``response_id`` is that of its response, which may be under way on another partition, or not at all;
        None where the record doesn't say.
        """
        ...


class Guarantee(Protocol):
    """Writes what the guard makes. An async context manager, which owns the tasks that do it.

    An error in one of these tasks ends the block.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def holdings(self) -> Mapping[Partition, Holding]:
        """What is held at this moment. A copy: asked for when records come, it tells their holdings later."""
        ...

    def congested(self) -> Collection[Partition]:
        """Partitions of which no more is to be read until their outputs are written."""
        ...

    @property
    def busy(self) -> bool:
        """Is anything waiting to be written?"""
        ...

    def put(self, partition: Partition, record: OutRecord) -> None:
        """An output of a response of this partition."""
        ...

    def changed(self, change: Change) -> None:
        """A response has something to store, whether or not there was an output."""
        ...

    def closed(self, response: ClosedResponse) -> None:
        """Nothing more will come of a response; all its outputs have been put."""
        ...

    async def close(self, within_s: float) -> None:
        """Write what there is, commit, and end the tasks; what takes longer is given up, and logged."""
        ...

    async def assigned(self, restored: Mapping[Partition, Restored]) -> None:
        """See AssignmentListener."""
        ...

    async def revoked(self, partitions: Collection[Partition]) -> None:
        """See AssignmentListener."""
        ...
