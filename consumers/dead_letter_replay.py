"""Writes dead letters back to their original topics, each once.

Each partition of the dead-letter topic has one transactional producer. Its transactions contain the records
written back together with the progress in a separate consumer group. If a replay is killed at any moment, the
next one continues from there; of two concurrent replays, the later one fences the other.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient

from consumers.dead_letters import PREFIX, REPLAYED
from consumers.kafka.client import asking, connected_admin, require_topics
from consumers.kafka.producing import TransactionalProducer
from consumers.kafka.recovery import committed_positions
from consumers.reading import Range, Span, TopicReader, open_topic
from consumers.settings import KafkaSettings, Topics
from consumers.transport import MAX_METADATA_BYTES, Commit, Headers, OutRecord, Partition, Record
from guardrail.errors import ConfigError, StepFailed, TransportError

_MAX_DIGITS: Final = 18
"""More of them are no number that Kafka has, and Python refuses thousands."""


class Origin(NamedTuple):
    """Where the refused record came from. ``timestamp_ms`` is Unix time."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of the dead-letter topic, and what its headers say. ``headers`` are the refused record's own.

    Fields whose header is missing, because something else wrote the record, are empty or None.
    """

    record: Record
    headers: Headers
    reason: str = ""
    error: str = ""
    message: str = ""
    stage: str = ""
    origin: Origin | None = None
    omitted_bytes: int | None = None
    """Size of a value that did not fit and stands at its origin only."""
    replays: int = 0
    """How many times it was written back before."""

    @property
    def size(self) -> int:
        """Size of the refused record's value, in bytes."""
        return len(self.record.value or b"") if self.omitted_bytes is None else self.omitted_bytes


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """Which dead letters to select; if everything is None, all."""

    reason: str | None = None
    key: bytes | None = None
    since_ms: int | None = None
    """Dead letters written at that time or later, in milliseconds since 1970."""

    @property
    def everything(self) -> bool:
        """Whether it selects all dead letters."""
        return self == DeadLetterFilter()

    def wants(self, letter: DeadLetter) -> bool:
        """Whether it selects this dead letter."""
        return (
            (self.reason is None or letter.reason == self.reason)
            and (self.key is None or letter.record.key == self.key)
            and (self.since_ms is None or letter.record.timestamp_ms >= self.since_ms)
        )


def read_letter(record: Record) -> DeadLetter:
    """What the headers of a dead letter say. Never fails: the record may come from anywhere.

    The guard's headers come last. A refused record that itself had such headers keeps them.
    """
    first = max(
        (index for index, (name, _) in enumerate(record.headers) if name == PREFIX + "reason"), default=None
    )
    if first is None:
        return DeadLetter(record, record.headers, replays=_replays(record.headers))
    about = {
        name.removeprefix(PREFIX): (value or b"").decode("utf-8", "replace")
        for name, value in record.headers[first:]
    }
    partition, offset = _number(about.get("partition")), _number(about.get("offset"))
    origin = None
    if about.get("topic") and partition is not None and offset is not None:
        origin = Origin(about["topic"], partition, offset, _number(about.get("timestamp")))
    headers = record.headers[:first]
    return DeadLetter(
        record,
        headers,
        reason=about["reason"],
        error=about.get("error", ""),
        message=about.get("message", ""),
        stage=about.get("stage", ""),
        origin=origin,
        omitted_bytes=_number(about.get("value-bytes")),
        replays=_replays(headers),
    )


def _replays(headers: Headers) -> int:
    """The count in the last mark; a mark that makes no sense was not made by a replay."""
    marks = [value for name, value in headers if name == REPLAYED]
    return _number((marks[-1] or b"").decode("ascii", "replace")) or 0 if marks else 0


def _number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        return None
    return int(text)


MAX_STEP_RECORDS: Final = 500
MAX_STEP_BYTES: Final = 4 * 1024 * 1024
MAX_TOLD: Final = 20


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What to write back, and where to."""

    selection: DeadLetterFilter = field(default_factory=DeadLetterFilter)
    to: str | None = None
    """A topic for all of them; None is the topic that each came from."""
    from_beginning: bool = False
    """Also what was written back before. Without filters the progress starts over, too."""
    limit: int | None = None


@dataclass(slots=True)
class ReplayReport:
    """What a replay wrote or, for a plan, would write. All fields count dead letters."""

    request: ReplayRequest
    group_id: str
    spans: Mapping[Partition, Span]
    by_reason: Counter[str] = field(default_factory=Counter)
    by_topic: Counter[str] = field(default_factory=Counter)
    came_back: int = 0
    """Of those written: replayed before, and refused again."""
    left: int = 0
    """Not wanted, and not written back before: they stay to be replayed."""
    unusable: int = 0
    """Wanted, but they can't be written back. ``told`` says why, of the first ones."""
    told: list[str] = field(default_factory=list)

    @property
    def written(self) -> int:
        """How many were (or would be) written."""
        return self.by_reason.total()


class Unusable(Exception):
    """A dead letter that can't be written back; the message says why."""


def replay_settings(settings: KafkaSettings, to: str | None) -> KafkaSettings:
    """Settings of the replay's own group: ``GROUP-dead-letters-replay``, plus ``-to-TOPIC`` if given."""
    group_id = f"{settings.group_id}-dead-letters-replay" + (f"-to-{to}" if to else "")
    return settings.model_copy(update={"group_id": group_id})


def destination(letter: DeadLetter, to: str | None, topics: Topics, known: Collection[str]) -> str:
    """The topic that it is written back to: ``to``, or its own. Raises Unusable.

    A dead letter's headers may be forged. A replay therefore writes to the topic that they name only if it
    is ``known`` and not an output, and the plan reports how many go where.
    """
    if to is not None:
        return to
    if letter.origin is None:
        raise Unusable("it does not say which topic it came from; name one with --to")
    topic = letter.origin.topic
    if is_internal(topic, topics):
        raise Unusable(f"it claims to come from {topic}, where only the guard and Kafka itself write")
    if topic not in known:
        raise Unusable(f"there is no topic {topic}; name another one with --to")
    return topic


def is_internal(topic: str, topics: Topics) -> bool:
    """Whether it is an output of the guard, its sessions topic, or one of Kafka's internal topics."""
    return topic in (*topics.outputs(), topics.sessions) or topic.startswith("__")


def written_back(letter: DeadLetter, topic: str) -> OutRecord:
    """The refused record as it was, with one mark that counts its replays. Raises Unusable."""
    if letter.omitted_bytes is not None:
        raise Unusable(
            f"it did not fit into a dead letter (its value has {letter.omitted_bytes} bytes) and stands "
            "whole only at its origin"
        )
    headers = list(letter.headers)
    marks = [index for index, (name, _) in enumerate(headers) if name == REPLAYED]
    if marks:
        del headers[marks[-1]]
    headers.append((REPLAYED, str(letter.replays + 1).encode()))
    return OutRecord(topic, letter.record.key, letter.record.value, tuple(headers))


async def plan_replay(settings: KafkaSettings, request: ReplayRequest) -> ReplayReport:
    """What ``run_replay`` would write now, without writing anything; checks that the destinations exist.

    Raises ConfigError for a destination that only the guard writes to, TransportUnavailable, TransportError.
    """
    if request.to is not None and is_internal(request.to, settings.topics):
        raise ConfigError(
            f"--to {request.to}: only the guard and Kafka itself write there; name another topic"
        )
    return await _replay(settings, request, None)


async def run_replay(settings: KafkaSettings, plan: ReplayReport) -> ReplayReport:
    """Write back what is in ``plan``, except what another replay has written since.

    Returns what was written once everything is committed. If it raises TransportError, everything committed
    so far stays, and the next replay continues from there.
    """
    return await _replay(settings, plan.request, plan)


async def _replay(settings: KafkaSettings, request: ReplayRequest, plan: ReplayReport | None) -> ReplayReport:
    """The one pass of both: it writes what was planned; without a plan nothing."""
    own = replay_settings(settings, request.to)
    async with (
        connected_admin(settings) as admin,
        open_topic(settings, settings.topics.dead_letters) as reader,
    ):
        if request.to is not None:
            await require_topics(admin, settings, [request.to])
        async with asking("reading the names of topics"):
            known = frozenset(await admin.list_topics())
        report = ReplayReport(request, own.group_id, reader.spans if plan is None else plan.spans)
        replay = _Replay(own, admin, reader, known, report)
        for partition, span in report.spans.items():
            if plan is None:
                await replay.run(partition, None)
            elif span.begin < span.end:
                async with _producer(own, partition, tuple(plan.by_topic)) as producer:
                    await replay.run(partition, producer)
    return report


@asynccontextmanager
async def _producer(
    own: KafkaSettings, partition: Partition, topics: Sequence[str]
) -> AsyncIterator[TransactionalProducer]:
    producer = TransactionalProducer(own, partition, topics)
    try:
        async with asking(f"taking over the replay of {partition}"):
            await producer.start()
        yield producer
    except StepFailed as error:
        raise StepFailed(f"{error}. What was committed stays; run the replay again to go on") from error
    finally:
        await producer.stop()


@dataclass(frozen=True, slots=True)
class _Replay:
    """Goes through the partitions, and counts in ``report``."""

    own: KafkaSettings
    admin: AIOKafkaAdminClient
    reader: TopicReader
    known: Collection[str]
    report: ReplayReport

    async def run(self, partition: Partition, producer: TransactionalProducer | None) -> None:
        """One partition, in order, up to the end in the report; without a producer nothing is written."""
        report, request = self.report, self.report.request
        begin, end = report.spans[partition]
        async with asking(f"reading the progress of group {self.own.group_id}"):
            committed = (await committed_positions(self.admin, self.own, [partition]))[partition]
        progress = self._progress(committed, begin)
        step = _ReplayStep(producer, progress, committed)
        await self.reader.take(Range(partitions={partition.index: (progress.begin, end)}))
        async with aclosing(self.reader.until_end()) as records:
            async for record in records:
                if request.limit is not None and report.written >= request.limit:
                    break
                letter = read_letter(record)
                before = progress.was_done(record.offset)
                if request.selection.wants(letter) and (request.from_beginning or not before):
                    if (back := self._written_back(letter)) is not None:
                        await step.add(back)
                elif not before:
                    report.left += 1
                    progress.left(record.offset)
                    continue
                progress.done(record.offset)
        await step.finish()

    def _progress(self, committed: Commit | None, oldest: int) -> ReplayProgress:
        if not self.report.request.from_beginning:
            return resume(committed, oldest)
        if self.report.request.selection.everything:
            return ReplayProgress(oldest)
        return rewound(committed, oldest)

    def _written_back(self, letter: DeadLetter) -> OutRecord | None:
        """The record to write, counted; None, with an entry in the report, if it can't be written."""
        report = self.report
        try:
            topic = destination(letter, report.request.to, self.own.topics, self.known)
            record = written_back(letter, topic)
        except Unusable as why:
            report.unusable += 1
            if len(report.told) < MAX_TOLD:
                report.told.append(f"{letter.record.partition.index}:{letter.record.offset}: {why}")
            return None
        report.by_reason[letter.reason] += 1
        report.by_topic[record.topic] += 1
        report.came_back += letter.replays > 0
        return record


@dataclass(slots=True)
class _ReplayStep:
    """Records for one transaction, with the progress that they make."""

    producer: TransactionalProducer | None
    progress: ReplayProgress
    committed: Commit | None
    _records: list[OutRecord] = field(default_factory=list)
    _bytes: int = 0

    async def add(self, record: OutRecord) -> None:
        """Add a record; first write the pending ones if this one would make the step too large."""
        size = len(record.key or b"") + len(record.value or b"")
        if len(self._records) >= MAX_STEP_RECORDS or self._bytes + size > MAX_STEP_BYTES:
            await self._write()
        self._records.append(record)
        self._bytes += size

    async def finish(self) -> None:
        """Write the rest, and progress made by reading alone."""
        if self._records or self.progress.commit() != self.committed:
            await self._write()

    async def _write(self) -> None:
        commit = self.progress.commit()  # for a plan too: it should fail before anything is written
        if self.producer is not None:
            await self.producer.transact(self._records, (), commit)
        self.committed = commit
        self._records, self._bytes = [], 0


# ------------------------------------------------------------------------------------------- progress
#
# Progress is a position and the ranges done beyond it: a replay with filters skips records, so one offset
# can't describe it. The offset is committed with a note of the ranges that are done after it, in plain text:
# a thousand or so fit, and a replay that would leave more is refused before it writes anything.

_FORM: Final = "1:"
_NOTE: Final = re.compile(r"1:\d{1,18}\+[1-9]\d{0,17}(?:,\d{1,18}\+[1-9]\d{0,17})*")

Ranges = Sequence[tuple[int, int]]
"""Offsets from (included) and to (excluded), ascending, apart from each other."""


class ReplayProgress:
    """Progress of one partition while it is read once, in order, from ``begin`` on.

    Every record read is reported as ``done`` or ``left``; offsets without a record are treated like their
    neighbours. Ranges done beyond the current position stay done.
    """

    def __init__(self, begin: int, done: Ranges = ()) -> None:
        self.begin = begin
        self._before = deque((start, end) for start, end in done if end > begin)
        self._reached = begin
        # The first range is what the position covers, and may be empty.
        self._done: list[tuple[int, int]] = [(begin, begin)]
        self._gap = False

    def was_done(self, offset: int) -> bool:
        """Whether it was replayed before. Call in ascending order, like ``done`` and ``left``."""
        while self._before and self._before[0][1] <= offset:
            self._before.popleft()
        return bool(self._before) and self._before[0][0] <= offset

    def done(self, offset: int) -> None:
        """The record at this offset is replayed, now or before."""
        if self._gap:
            self._done.append((offset, offset + 1))
            self._gap = False
        else:
            self._done[-1] = (self._done[-1][0], offset + 1)
        self._reached = offset + 1

    def left(self, offset: int) -> None:
        """The record at this offset is left for another replay."""
        self._gap = True
        self._reached = offset + 1

    def commit(self) -> Commit:
        """What to commit with the records written so far. Raises TransportError if it is too scattered."""
        ahead = [(max(start, self._reached), end) for start, end in self._before if end > self._reached]
        (_, position), *ranges = _joined([*self._done, *ahead])
        note = _encode(position, ranges)
        if len(note) > MAX_METADATA_BYTES:
            raise TransportError(
                f"what was replayed lies in {len(ranges)} separate ranges after offset {position}, which is "
                "more than fits beside the position; nothing more was written. Replay the rest without a "
                "filter, or with one that leaves fewer records in between"
            )
        return Commit(position, note)


def _joined(ranges: Ranges) -> list[tuple[int, int]]:
    """The same offsets, with adjacent ranges merged."""
    joined = [ranges[0]]
    for start, end in ranges[1:]:
        if start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def resume(commit: Commit | None, oldest: int) -> ReplayProgress:
    """The committed progress of a partition; its ``oldest`` remaining record may be newer than that.

    Raises TransportError for an unreadable note.
    """
    if commit is None:
        return ReplayProgress(oldest)
    try:
        ranges = _decode(commit.offset, commit.metadata)
        return ReplayProgress(max(commit.offset, oldest), ranges)
    except ValueError as error:
        raise TransportError(
            f"the note beside position {commit.offset} can't be read ({error}); was it written by a newer "
            "version? Replay with --from-beginning to start over"
        ) from error


def rewound(commit: Commit | None, oldest: int) -> ReplayProgress:
    """Like ``resume``, but reads from the oldest record again; what was done stays done."""
    if commit is None or commit.offset <= oldest:
        return resume(commit, oldest)
    known = resume(commit, oldest)
    return ReplayProgress(oldest, [(oldest, known.begin), *known._before])


def _encode(position: int, ranges: Ranges) -> str:
    """Gaps and lengths, alternating."""
    parts: list[str] = []
    for start, end in ranges:
        parts.append(f"{start - position}+{end - start}")
        position = end
    return _FORM + ",".join(parts) if parts else ""


def _decode(position: int, note: str) -> Ranges:
    """Raises ValueError."""
    if not note:
        return []
    if not _NOTE.fullmatch(note):
        raise ValueError(f"{note[:8]!r}… is not a list of ranges")
    ranges: list[tuple[int, int]] = []
    for part in note.removeprefix(_FORM).split(","):
        gap, length = map(int, part.split("+"))
        ranges.append((position + gap, position + gap + length))
        position += gap + length
    return ranges
