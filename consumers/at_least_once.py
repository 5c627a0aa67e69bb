"""At least once: no transactions, no stored sessions.

A position is committed only after all outputs of the records before it have been written, and only up to the
start of the oldest response in flight. After a restart that response is read again from its start. Outputs
have deterministic ids, so readers recognise what is written twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Self

import structlog

from consumers.guarantee import Guarantee, Holding, SecondReading, StartStatus, write_note
from consumers.transport import Commit, OutRecord, Partition, Record, Restored, Transport
from guardrail.engine.engine import ClosedResponse
from guardrail.errors import PartitionLost, TransportError

MAX_OUTBOX: Final = 20_000
RESUME_AT: Final = MAX_OUTBOX // 2

log = structlog.get_logger(__name__)


class HeldPartition:
    """A partition, for as long as it is assigned: how far it has been read, and the responses in flight."""

    ready = True  # there is nothing to restore
    waiting = ()  # what is read is taken

    def __init__(self, partition: Partition, commit: Commit | None, owner: AtLeastOnce) -> None:
        self.partition = partition
        self._owner = owner
        self._next = commit.offset if commit else None
        self._second = SecondReading(commit)
        self.committed = commit
        self.open: dict[str, int] = {}
        """The responses in flight, and where they began."""

    def release(self) -> list[Record]:
        return []  # none has to wait here

    def admits(self, record: Record) -> bool:  # noqa: ARG002 - part of Holding
        return self._owner.holds(self)

    def reading(self, offset: int) -> StartStatus:
        return self._second.reading(offset)

    def put(self, records: Sequence[OutRecord]) -> None:
        self._owner.put(self.partition, records)

    def taken(self, offset: int, response_id: str | None) -> None:
        if response_id is not None:
            self._owner.note_response(self, response_id, offset)
        self._next = offset + 1

    def commit(self, is_decided: Callable[[str], bool]) -> Commit | None:
        """What may be committed once everything passed on so far is written; None if that is no news."""
        if self._next is None or self._next < self._second.until:
            return None  # during a second reading the first one's note knows more
        # Offsets grow, so the first that is open is the oldest.
        offset = next(iter(self.open.values()), self._next)
        flags = {start: is_decided(response_id) for response_id, start in self.open.items()}
        commit = Commit(offset, write_note(offset, self._next, flags))
        return None if commit == self.committed else commit


class AtLeastOnce(Guarantee):
    """One outbox, one writer."""

    def __init__(self, transport: Transport, *, commit_interval_ms: int) -> None:
        super().__init__()
        self._transport = transport
        self._commit_interval_s = commit_interval_ms / 1000
        self._held: dict[Partition, HeldPartition] = {}
        self._in_flight: dict[str, HeldPartition] = {}
        """By response, the partition that it began on."""
        self._outbox: list[OutRecord] = []
        self._put_since: float | None = None
        self._writing_since: float | None = None
        self._has_output = asyncio.Event()
        self._writing = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None
        self._congested = False
        self._closing = False
        # Records were taken from the outbox and not acknowledged: from then on no position is safe.
        self._unwritten = False

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._writer = self._group.create_task(self._write(), name="guard-writer")
        return self

    def _own_tasks(self) -> Iterable[asyncio.Task[None]]:
        return () if self._writer is None else (self._writer,)

    # ------------------------------------------------------------------------------------ filling

    def holdings(self) -> Mapping[Partition, Holding]:
        return dict(self._held)

    def holds(self, held: HeldPartition) -> bool:
        """Whether this is the current assignment, and not being revoked."""
        return self._held.get(held.partition) is held

    def recovering(self) -> Collection[Partition]:
        return ()  # a write that fails ends the guard

    def congested(self) -> Collection[Partition]:
        waiting = len(self._outbox)
        self._congested = waiting > (RESUME_AT if self._congested else MAX_OUTBOX)
        return tuple(self._held) if self._congested else ()

    @property
    def busy(self) -> bool:
        return bool(self._outbox)

    @property
    def unwritten_since(self) -> float | None:
        return self._put_since if self._writing_since is None else self._writing_since

    def put(self, partition: Partition, records: Sequence[OutRecord]) -> None:  # noqa: ARG002
        if not self._outbox:
            self._put_since = time.monotonic()
        self._outbox += records
        self._has_output.set()

    def note_response(self, held: HeldPartition, response_id: str, offset: int) -> None:
        """A record of this response has been read; note where it began, if it is in flight here."""
        if response_id not in self._in_flight and self._engine.lane_of(response_id) == held.partition:
            self._in_flight[response_id] = held
            held.open[response_id] = offset

    def closed(self, response: ClosedResponse) -> None:
        # Its output is in the outbox, and commits are taken together with the outbox.
        held = self._in_flight.pop(response.response_id, None)
        if held is not None:
            del held.open[response.response_id]

    # ------------------------------------------------------------------------------------ writing

    async def close(self, within_s: float) -> None:
        """Don't cancel the writer at once: records being written at this moment would be written again."""
        self._closing = True
        self._has_output.set()
        if self._writer is not None:
            _, late = await asyncio.wait({self._writer}, timeout=within_s)
            if late:
                log.warning("guard.last_step_timeout", records=len(self._outbox))

    async def _write(self) -> None:
        """Write records as they come, and everything that is left at the end."""
        last_commit = time.monotonic()
        while not self._closing:
            due = max(0.0, last_commit + self._commit_interval_s - time.monotonic())
            with suppress(TimeoutError):
                async with asyncio.timeout(due):
                    await self._has_output.wait()
            commit = time.monotonic() - last_commit >= self._commit_interval_s
            await self._flush(self._held.values() if commit else ())
            if commit:
                last_commit = time.monotonic()
        await self._flush(self._held.values())

    async def _flush(self, commit: Collection[HeldPartition]) -> None:
        """Write the outbox, and commit the positions of these that this makes safe."""
        async with self._writing:
            if self._unwritten:
                raise TransportError("an earlier write failed or was cut off; nothing more is written")
            records, self._outbox = self._outbox, []
            self._writing_since, self._put_since = self._put_since, None
            self._has_output.clear()
            moved = {held: at for held in commit if (at := held.commit(self._engine.decided)) is not None}
            commits = {held.partition: at for held, at in moved.items()}
            if not records and not commits:
                return
            self._unwritten = True
            try:
                await self._transport.publish(records, commits)
            except PartitionLost as error:
                # The new owner of the partition continues from its last position. The records may or may not
                # have been written: duplicates are recognised, but missing records would be lost.
                log.warning("guard.partition_lost", error=str(error))
                await self._transport.publish(records, {})
            else:
                for held, at in moved.items():
                    held.committed = at
            self._unwritten = False
            self._writing_since = None

    # --------------------------------------------------------------------------------- assignment

    async def assigned(self, restored: Mapping[Partition, Restored]) -> None:
        for partition, found in restored.items():
            if (old := self._held.get(partition)) is not None:
                for response_id in old.open:
                    self._in_flight.pop(response_id, None)
            self._held[partition] = HeldPartition(partition, found.commit, self)

    async def revoked(self, partitions: Collection[Partition]) -> None:
        """Leave responses in flight to the next owner, from their start."""
        if self._ended:
            return  # the engine drops its responses, which must not look decided
        gone = [held for partition in partitions if (held := self._held.pop(partition, None)) is not None]
        await self._flush(gone)
        dropped = [response_id for held in gone for response_id in held.open]
        for response_id in dropped:
            del self._in_flight[response_id]
        self._engine.discard(dropped)
        log.info("guard.responses_handed_over", responses=len(dropped))
