"""The common interface of the two delivery guarantees, and what a guard is run with.

The guard reads records, has the engine work on them, and passes on the outputs. ``Guarantee`` hides where
outputs collect, when and how they are written, and what happens to sessions when partitions come and go.
``consumers.exactly_once`` and ``consumers.at_least_once`` implement it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Protocol, Self

from consumers.offsets import StartStatus
from consumers.settings import MEBIBYTE, GuardSettings, Topics
from consumers.transport import OutRecord, Partition, Record, Restored
from guardrail.engine.engine import Change, ClosedResponse, Engine
from guardrail.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardOptions:
    """How a guard reads, writes and leaves."""

    limits: Limits = field(default_factory=Limits)
    topics: Topics = field(default_factory=Topics)
    delivery_guarantee: Literal["exactly_once", "at_least_once"] = "exactly_once"
    poll_timeout_ms: int = 200
    max_poll_records: int = 2_000
    max_record_bytes: int = 8 * MEBIBYTE
    commit_gap_ms: int = 5
    commit_interval_ms: int = 500
    revoke_timeout_ms: int = 2_000
    recovery_grace_ms: int = 20_000
    """The longest time without a holder that is not counted against the deadlines of restored sessions."""
    drain_timeout_ms: int = 10_000
    leave_timeout_ms: int = 8_000
    """With ``drain_timeout_ms`` it bounds the time from ``stop`` to the end."""

    @classmethod
    def of(cls, settings: GuardSettings) -> Self:
        """As the settings say."""
        kafka = settings.kafka
        return cls(
            limits=settings.limits,
            topics=kafka.topics,
            delivery_guarantee=kafka.delivery_guarantee,
            max_poll_records=kafka.client["max_poll_records"],
            max_record_bytes=kafka.max_request_bytes,
            drain_timeout_ms=settings.shutdown.drain_timeout_ms,
            leave_timeout_ms=settings.shutdown.leave_timeout_ms,
        )


class Holding(Protocol):
    """One input partition for as long as it is held and not thrown away after a failure."""

    partition: Partition

    @property
    def ready(self) -> bool:
        """Whether its sessions are restored."""
        ...

    @property
    def waiting(self) -> Sequence[Record]:
        """Records that could not be taken yet, the oldest first."""
        ...

    def release(self) -> list[Record]:
        """Give back the records that could not be taken yet: they wait elsewhere."""
        ...

    def admits(self, record: Record) -> bool:
        """Whether ``record`` may be taken now. Otherwise it is kept for later, or another holder reads it."""
        ...

    def reading(self, offset: int) -> StartStatus:
        """What it means that the record at ``offset`` begins a response."""
        ...

    def put(self, records: Sequence[OutRecord]) -> None:
        """Queue these outputs for writing."""
        ...

    def taken(self, offset: int, response_id: str | None) -> None:
        """All outputs of the record at ``offset`` so far have been put.

        ``response_id`` is that of its response, which may be in flight on another partition, or not at all;
        None if the record has none.
        """
        ...


class Guarantee(ABC):
    """Writes the guard's outputs. An async context manager that owns the tasks that do it.

    An error in one of these tasks ends the block.
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._ended = False

    def attach(self, engine: Engine, take: Callable[[Holding, Iterable[Record]], object]) -> None:
        """Call it once, before entering. ``take`` makes the guard take records that had to wait, some of
        them; or it releases them all.
        """
        self._engine, self._take = engine, take

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended = True
        for task in self._own_tasks():
            task.cancel()
        await self._group.__aexit__(kind, error, traceback)

    @abstractmethod
    def _own_tasks(self) -> Iterable[asyncio.Task[None]]:
        """Those that end with the block."""

    @abstractmethod
    def holdings(self) -> Mapping[Partition, Holding]:
        """The current holdings. A copy: taken when records arrive, it still identifies their holdings
        later.
        """

    @abstractmethod
    def recovering(self) -> Collection[Partition]:
        """Partitions that are held and have no holding, because what failed is being taken up anew."""

    @abstractmethod
    def congested(self) -> Collection[Partition]:
        """Partitions to read no further until their outputs are written."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether anything is waiting to be written."""

    @property
    @abstractmethod
    def unwritten_since(self) -> float | None:
        """Since when the oldest of what was read waits to be written, by the monotonic clock; None if nothing
        does."""

    @abstractmethod
    def put(self, partition: Partition, records: Sequence[OutRecord]) -> None:
        """Outputs of a response of this partition, in order."""

    @abstractmethod
    def changed(self, change: Change) -> None:
        """A response has new state to store, with or without an output."""

    @abstractmethod
    def closed(self, response: ClosedResponse) -> None:
        """A response is over; all its outputs have been put."""

    @abstractmethod
    async def close(self, within_s: float) -> None:
        """Write what is left, commit, and end the tasks; give up on what takes longer, and log it."""

    @abstractmethod
    async def assigned(self, restored: Mapping[Partition, Restored]) -> None:
        """See AssignmentListener."""

    @abstractmethod
    async def revoked(self, partitions: Collection[Partition]) -> None:
        """See AssignmentListener."""
