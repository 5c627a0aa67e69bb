"""The common interface of the two delivery guarantees, and what a guard is run with.

The guard reads records, has the engine work on them, and passes on the outputs. ``Guarantee`` hides where
outputs collect, when and how they are written, and what happens to sessions when partitions come and go.
``consumers.exactly_once`` and ``consumers.at_least_once`` implement it.

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
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Final, Literal, Protocol, Self

from consumers.settings import MEBIBYTE, GuardSettings, Topics
from consumers.transport import Commit, OutRecord, Partition, Record, Restored
from guardrail.engine.engine import ClosedResponse, Engine
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
