"""The common interface of the two delivery guarantees, what a guard is run with, and the guarantee at least
once.

The guard reads records, has the engine work on them, and passes on the outputs. ``Guarantee`` hides where
outputs collect, when and how they are written, and what happens to sessions when partitions come and go.
``consumers.exactly_once`` implements it, and ``AtLeastOnce`` below.

Both know the note beside a committed position. A position is safe once nothing before it is needed again.
Without stored sessions a response in flight needs all its events again after a restart, so the committed
position is the start of the oldest response in flight. After that position other responses have begun, and
many have ended. The note says how far had been read, and which of the responses begun there were still in
flight: only those start over. The others had ended, or had been refused; judged a second time they might end
differently.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Final, Literal, Protocol, Self

import structlog

from consumers.settings import MEBIBYTE, GuardSettings, Topics
from consumers.transport import Commit, OutRecord, Partition, Record, Restored, Transport
from guardrail.engine.engine import ClosedResponse, Engine
from guardrail.errors import PartitionLost, TransportError
from guardrail.limits import Limits
from guardrail.routing import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardOptions:
    """How a guard reads, writes and leaves."""

    limits: Limits = field(default_factory=Limits)
    topics: Topics = field(default_factory=Topics)
    producers: Scope | None = None
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
            producers=kafka.producers,
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

    @property
    def waiting(self) -> Sequence[Record]:
        """Records that could not be taken yet, the oldest first."""

    def release(self) -> list[Record]:
        """Give back the records that could not be taken yet: they wait elsewhere."""

    def admits(self, record: Record) -> bool:
        """Whether ``record`` may be taken now. Otherwise it is kept for later, or another holder reads it."""

    def reading(self, offset: int) -> StartStatus:
        """What it means that the record at ``offset`` begins a response."""

    def put(self, records: Sequence[OutRecord]) -> None:
        """Queue these outputs for writing."""

    def taken(self, offset: int, response_id: str | None) -> None:
        """All outputs of the record at ``offset`` so far have been put.

        ``response_id`` is that of its response, which may be in flight on another partition, or not at all;
        None if the record has none.
        """


class Guarantee(ABC):
    """Writes the guard's outputs. A context manager of the tasks that do it; an error of one ends it."""

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
        """The holdings now. A copy: taken when records arrive, it still tells their holdings later."""

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


# ------------------------------------------------------------------------ the note beside a position

MAX_NOTE_CHARS: Final = 4_000
"""Kafka keeps 4,096 bytes with a position. A longer list is left out: everything then begins again."""
_DECIDED: Final = "!"
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class StartStatus(Enum):
    """What a record that begins a response means at its offset."""

    FIRST = auto()
    """Not read before."""
    AGAIN = auto()
    """In flight at the restart: begin it again."""
    DECIDED = auto()
    """Its final events were out, its input had not ended: read on, say nothing."""
    OVER = auto()
    """It had ended, or had been refused."""


class SecondReading:
    """What the note of an earlier at-least-once run says about the records after a committed position."""

    __slots__ = ("_again", "_start", "until")

    def __init__(self, commit: Commit | None) -> None:
        self._start = commit.offset if commit else 0
        position, self._again = read_note(commit)
        self.until = max(position, self._start)
        """The offset from which on every reading is the first."""

    def reading(self, offset: int) -> StartStatus:
        """Whether the record at ``offset`` is read for the first time, and if not, what became of it."""
        if offset < self._start:
            # Before the committed position: the note was about another topic of that name.
            self._start = self.until = 0
        if offset >= self.until:
            return StartStatus.FIRST
        if self._again is None:
            return StartStatus.AGAIN
        decided = self._again.get(offset)
        if decided is None:
            return StartStatus.OVER
        return StartStatus.DECIDED if decided else StartStatus.AGAIN

    def note(self, offset: int) -> str:
        """The rest of the note at ``offset``, if everything before it is known by other means."""
        if offset >= self.until:
            return ""
        if self._again is None:
            return _note_text(self.until, None)
        left = {start: decided for start, decided in self._again.items() if start >= offset}
        return write_note(offset, self.until, left)


def write_note(offset: int, position: int, starts: Mapping[int, bool]) -> str:
    """The note: ``position``, and the starts in flight as distances from ``offset`` in base 36.

    A "!" marks the distance of a response that is decided and only waits for the end of its input.
    """
    marks = [_base36(start - offset) + (_DECIDED if decided else "") for start, decided in starts.items()]
    text = _note_text(position, ",".join(marks))
    return text if len(text) <= MAX_NOTE_CHARS else _note_text(position, None)


def _note_text(position: int, marks: str | None) -> str:
    note: dict[str, object] = {"v": 1, "position": position}
    if marks is not None:
        note["open"] = marks
    return json.dumps(note, separators=(",", ":"))


def read_note(commit: Commit | None) -> tuple[int, dict[int, bool] | None]:
    """How far had been read, and the starts in flight, true if decided.

    0 and None if the note is missing or not ours; None if there were too many starts to note.
    """
    if commit is None or not commit.metadata:
        return 0, None
    try:
        note = json.loads(commit.metadata)
        position, marks = note["position"], note.get("open")
        if note["v"] != 1 or not isinstance(position, int):
            return 0, None
        if marks is None:
            return position, None
        starts = {}
        for mark in marks.split(",") if marks else ():
            starts[commit.offset + int(mark.removesuffix(_DECIDED), 36)] = mark.endswith(_DECIDED)
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0, None
    return position, starts


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


# ------------------------------------------------------------------------------------------- at least once
#
# A position is committed only after all outputs of the records before it have been written, and only up to
# the start of the oldest response in flight. After a restart that response is read again from its start.
# Outputs have deterministic ids, so readers recognise what is written twice.

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
