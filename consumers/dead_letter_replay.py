"""Writing dead letters back to where they came from, each once.

For each partition of the dead-letter topic there is one transactional producer, and its transactions hold the
records written back together with the progress in a consumer group of its own: a replay that is killed, at
any moment, is gone on with by the next, and two at a time are kept apart, the later one fencing the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from consumers.dead_letter_progress import Progress, resume, rewound
from consumers.dead_letter_reader import DeadLetter, DeadLetterReader, Selection, Span, open_reader
from consumers.dead_letters import REPLAYED
from consumers.kafka.client import require_topics, translated
from consumers.kafka.recovery import committed_positions
from consumers.kafka.producing import TransactionalProducer
from consumers.transport import Commit, OutRecord, Partition
from guardrail.errors import ConfigError, StepFailed
from guardrail.kafka_settings import KafkaSettings

MAX_STEP_RECORDS: Final = 500
MAX_STEP_BYTES: Final = 4 * 1024 * 1024
MAX_TOLD: Final = 20


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What to write back, and where to."""

    selection: Selection = field(default_factory=Selection)
    to: str | None = None
    """A topic for all of them; None is the topic that each came from."""
    from_beginning: bool = False
    """Also what was written back before. Without filters the progress starts over, too."""
    limit: int | None = None


@dataclass(slots=True)
class ReplayReport:
    """What a replay wrote, or, of a plan, would write. Everything counts dead letters."""

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
    """Settings of the replay's own group: ``GROUP-dead-letters-replay``, with ``-to-TOPIC`` where given."""
    group_id = f"{settings.group_id}-dead-letters-replay" + (f"-to-{to}" if to else "")
    return settings.model_copy(update={"group_id": group_id})


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where dead letters may be written back to: their own topics, or ``to`` for all of them.

    A dead letter's headers may be forged: what it names is written to only where it exists and is nobody's
    output, and the plan tells how many go where.
    """

    to: str | None
    internal: frozenset[str]
    known: frozenset[str]

    def of(self, letter: DeadLetter) -> str:
        """Raises Unusable."""
        if self.to is not None:
            return self.to
        if letter.origin is None:
            raise Unusable("it does not say which topic it came from; name one with --to")
        topic = letter.origin.topic
        if is_internal(topic, self.internal):
            raise Unusable(f"it claims to come from {topic}, where only the guard and Kafka itself write")
        if topic not in self.known:
            raise Unusable(f"there is no topic {topic}; name another one with --to")
        return topic


def is_internal(topic: str, internal: frozenset[str]) -> bool:
    """Is it an output of the guard, its sessions, or one of Kafka's own?"""
    return topic in internal or topic.startswith("__")


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
    """What ``run_replay`` would write now, without writing anything; the destinations are seen to exist.

    Raises ConfigError for a destination that only the guard writes to, TransportUnavailable, TransportError.
    """
    own = replay_settings(settings, request.to)
    internal = _internal(settings)
    if request.to is not None and is_internal(request.to, internal):
        raise ConfigError(
            f"--to {request.to}: only the guard and Kafka itself write there; name another topic"
        )
    async with open_reader(settings) as reader:
        if request.to is not None:
            await require_topics(reader.admin, settings, [request.to])
        report = ReplayReport(request, own.group_id, reader.spans)
        where = Destinations(request.to, internal, reader.topics)
        for partition in reader.spans:
            await _replay_partition(reader, own, partition, report, where, None)
    return report


async def run_replay(settings: KafkaSettings, plan: ReplayReport) -> ReplayReport:
    """Write back what ``plan`` saw, less what another replay has written since.

    Returns what was written when all is committed. When it raises TransportError everything committed so far
    stays, and the next replay goes on there.
    """
    own = replay_settings(settings, plan.request.to)
    async with open_reader(settings) as reader:
        report = ReplayReport(plan.request, own.group_id, plan.spans)
        where = Destinations(plan.request.to, _internal(settings), reader.topics)
        for partition, span in plan.spans.items():
            if span.begin >= span.end:
                continue
            producer = TransactionalProducer(own, partition, tuple(plan.by_topic))
            try:
                await _started(producer, partition)
                await _replay_partition(reader, own, partition, report, where, producer)
            except StepFailed as error:
                raise StepFailed(
                    f"{error}. What was committed stays; run the replay again to go on"
                ) from error
            finally:
                await producer.stop()
    return report


async def _started(producer: TransactionalProducer, partition: Partition) -> None:
    try:
        await producer.start()
    except (KafkaError, OSError, TimeoutError) as error:
        raise translated(error, f"taking over the replay of {partition.topic}[{partition.index}]") from error


async def _replay_partition(
    reader: DeadLetterReader,
    own: KafkaSettings,
    partition: Partition,
    report: ReplayReport,
    where: Destinations,
    producer: TransactionalProducer | None,
) -> None:
    """One partition, in order, up to the end in ``report``; without a producer nothing is written."""
    request = report.request
    committed = await _committed(reader.admin, own, partition)
    begin, end = report.spans[partition]
    progress = _progress(request, committed, begin)
    step = _Step(producer, progress, committed)
    async with aclosing(reader.read(partition, progress.begin, end)) as letters:
        async for letter in letters:
            if request.limit is not None and report.written >= request.limit:
                break
            offset = letter.record.offset
            before = progress.was_done(offset)
            if request.selection.wants(letter) and (request.from_beginning or not before):
                record = _written_back(letter, where, report)
                if record is not None:
                    await step.add(record)
                progress.done(offset)
            elif before:
                progress.done(offset)
            else:
                report.left += 1
                progress.left(offset)
    await step.finish()


def _written_back(letter: DeadLetter, where: Destinations, report: ReplayReport) -> OutRecord | None:
    """The record to write, counted in ``report``; None, and a line there, for one that can't be written."""
    try:
        record = written_back(letter, where.of(letter))
    except Unusable as why:
        report.unusable += 1
        if len(report.told) < MAX_TOLD:
            report.told.append(f"{letter.record.partition.index}:{letter.record.offset}: {why}")
        return None
    report.by_reason[letter.reason] += 1
    report.by_topic[record.topic] += 1
    report.came_back += letter.replays > 0
    return record


def _progress(request: ReplayRequest, committed: Commit | None, oldest: int) -> Progress:
    if not request.from_beginning:
        return resume(committed, oldest)
    if request.selection.everything:
        return resume(committed, oldest, forget=True)
    return rewound(committed, oldest)


class _Step:
    """Records that go into one transaction, with the progress that they make."""

    def __init__(
        self, producer: TransactionalProducer | None, progress: Progress, committed: Commit | None
    ) -> None:
        self._producer = producer
        self._progress = progress
        self._committed = committed
        self._records: list[OutRecord] = []
        self._bytes = 0

    async def add(self, record: OutRecord) -> None:
        """Write what there is before, where this one would make it too large."""
        size = len(record.key or b"") + len(record.value or b"")
        if len(self._records) >= MAX_STEP_RECORDS or self._bytes + size > MAX_STEP_BYTES:
            await self._write()
        self._records.append(record)
        self._bytes += size

    async def finish(self) -> None:
        """Write the rest, and progress that came of reading alone."""
        if self._records or self._progress.commit() != self._committed:
            await self._write()

    async def _write(self) -> None:
        commit = self._progress.commit()  # also of a plan: it is to fail before anything is written
        if self._producer is not None:
            await self._producer.transact(self._records, (), commit)
        self._committed = commit
        self._records = []
        self._bytes = 0


async def _committed(admin: AIOKafkaAdminClient, own: KafkaSettings, partition: Partition) -> Commit | None:
    try:
        return (await committed_positions(admin, own, [partition]))[partition]
    except (KafkaError, OSError, TimeoutError) as error:
        raise translated(error, f"reading the progress of group {own.group_id}") from error


def _internal(settings: KafkaSettings) -> frozenset[str]:
    return frozenset({*settings.topics.outputs(), settings.topics.sessions})
