"""Reading dead letters: what each says of itself, which are wanted, and the topic up to its present end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from consumers.dead_letters import PREFIX, REPLAYED
from consumers.kafka.client import (
    client_options,
    close_consumer,
    connect_admin,
    require_topics,
    translated,
)
from consumers.kafka.workarounds import read_any_header_name
from consumers.transport import Headers, Partition, Record
from guardrail.errors import TransportError
from guardrail.kafka_settings import KafkaSettings

_POLL_MS: Final = 100
_CLOSE_S: Final = 2.0
_MAX_DIGITS: Final = 18
"""More of them are no number that Kafka has, and Python refuses thousands."""


class Origin(NamedTuple):
    """Where the refused record stood. ``timestamp_ms`` counts from 1970."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of the dead-letter topic, and what its headers say. ``headers`` are the refused record's own.

    What a header does not say, because something else wrote the record, is empty or None.
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
        """Bytes of the refused record's value."""
        return len(self.record.value or b"") if self.omitted_bytes is None else self.omitted_bytes


@dataclass(frozen=True, slots=True)
class Selection:
    """Which dead letters are wanted; with everything at None, all."""

    reason: str | None = None
    key: bytes | None = None
    since_ms: int | None = None
    """Dead letters written at that time or later, in milliseconds since 1970."""

    @property
    def everything(self) -> bool:
        """Does it leave nothing out?"""
        return self == Selection()

    def wants(self, letter: DeadLetter) -> bool:
        """Is this dead letter one of them?"""
        return (
            (self.reason is None or letter.reason == self.reason)
            and (self.key is None or letter.record.key == self.key)
            and (self.since_ms is None or letter.record.timestamp_ms >= self.since_ms)
        )


class Span(NamedTuple):
    """Offsets of a partition: the oldest kept, and the end of what was committed when it was asked."""

    begin: int
    end: int


def read_letter(record: Record) -> DeadLetter:
    """What the headers of a dead letter say. Never fails: the record may come from anywhere.

    The guard's headers are the last ones. A refused record that had such headers itself keeps them.
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
    """What the last mark says; one that says nothing sensible was not made by a replay."""
    marks = [value for name, value in headers if name == REPLAYED]
    return _number((marks[-1] or b"").decode("ascii", "replace")) or 0 if marks else 0


def _number(text: str | None) -> int | None:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        return None
    return int(text)


class DeadLetterReader:
    """Reads the dead-letter topic without a group. Made by ``open_reader``."""

    def __init__(
        self,
        settings: KafkaSettings,
        admin: AIOKafkaAdminClient,
        consumer: AIOKafkaConsumer,
        spans: Mapping[Partition, Span],
        topics: frozenset[str],
    ) -> None:
        self.admin = admin
        self.topics = topics
        """All topics of the cluster that this user may see."""
        self.spans = spans
        """Of every partition, what there was to read when the reader was opened."""
        self._consumer = consumer
        self._patience_s = settings.request_timeout_ms / 1000

    async def read(self, partition: Partition, begin: int, end: int) -> AsyncGenerator[DeadLetter, None]:
        """Dead letters from offset ``begin`` to before ``end``, in order; one read at a time.

        Raises TransportError when the brokers give nothing for ``request_timeout_ms``.
        """
        tp = TopicPartition(*partition)
        consumer = self._consumer
        loop = asyncio.get_running_loop()
        consumer.assign([tp])
        consumer.seek(tp, begin)
        position, moved = begin, loop.time()
        while position < end:
            try:
                batch = (await consumer.getmany(tp, timeout_ms=_POLL_MS)).get(tp, [])
            except (KafkaError, OSError) as error:
                raise translated(error, f"reading {partition.topic}[{partition.index}]") from error
            for found in batch:
                if found.offset >= end:
                    return
                headers = tuple(found.headers)
                yield read_letter(
                    Record(partition, found.offset, found.key, found.value, headers, found.timestamp)
                )
            # Markers and aborted records move it too, without a record.
            reached = await consumer.position(tp)
            if reached != position or batch:
                position, moved = reached, loop.time()
            elif loop.time() - moved > self._patience_s:
                raise TransportError(
                    f"reading {partition.topic}[{partition.index}]: nothing came from Kafka for "
                    f"{self._patience_s:g} s, at offset {position} of {end}; do the brokers answer?"
                )


@asynccontextmanager
async def open_reader(settings: KafkaSettings) -> AsyncIterator[DeadLetterReader]:
    """A reader of ``topics.dead_letters``. Raises TransportUnavailable, TransportError, ConfigError."""
    topic = settings.topics.dead_letters
    admin = await connect_admin(settings)
    try:
        await require_topics(admin, settings, [topic])
        consumer = AIOKafkaConsumer(
            **client_options(settings),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            fetch_max_wait_ms=settings.fetch_max_wait_ms,
            max_partition_fetch_bytes=settings.max_partition_fetch_bytes,
        )
        try:
            try:
                async with asyncio.timeout(settings.request_timeout_ms / 1000):
                    await consumer.start()
                    read_any_header_name(consumer)
                    spans = await _spans(admin, consumer, topic)
                    topics = frozenset(await admin.list_topics())
            except (KafkaError, OSError, TimeoutError) as error:
                raise translated(error, f"reading topic {topic}") from error
            yield DeadLetterReader(settings, admin, consumer, spans, topics)
        finally:
            await close_consumer(consumer, _CLOSE_S)
    finally:
        await admin.close()


async def _spans(admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer, topic: str) -> dict[Partition, Span]:
    (described,) = await admin.describe_topics([topic])
    tps = sorted(TopicPartition(topic, one["partition"]) for one in described["partitions"])
    begins = await consumer.beginning_offsets(tps)
    ends = await consumer.end_offsets(tps)  # under read_committed, the last stable offset
    return {Partition(*tp): Span(begins[tp], ends[tp]) for tp in tps}
