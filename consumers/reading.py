"""Reading a topic without a group, for takeovers and for who looks on: what is there now, or what comes."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from consumers.kafka.client import asking, close_consumer, connected_admin, groupless_options, require_topics
from consumers.settings import KafkaSettings
from consumers.transport import Partition, Record
from guardrail.errors import ConfigError, TransportError

_POLL_MS: Final = 200
_END_MS: Final = 25
"""How long the end can stay unnoticed: what ends there may be markers and aborted records only."""
_EMPTY_ANSWERS: Final = 6
"""So many in a row, each to a fetch of its own, say that there is nothing at a place."""
_CLOSE_S: Final = 2.0
_MOST_HELD: Final = 20_000
_MOST_HELD_BYTES: Final = 64 * 1024 * 1024
_PATIENCE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a topic. Times are of the records, in milliseconds since 1970; ends are not included.

    ``partitions``: those to read, with their first offset and the one to end before, None for no bound; all
    partitions if there is none. ``last``: no more than so many offsets of each partition, its newest.
    """

    since_ms: int | None = None
    until_ms: int | None = None
    partitions: Mapping[int, tuple[int | None, int | None]] = field(default_factory=dict)
    last: int | None = None


class Span(NamedTuple):
    """Offsets of a partition: the oldest record, and the end of committed records."""

    begin: int
    end: int


class CompactionWatch:
    """Detects that nothing is left although the end is not reached, because the rest has been compacted away.

    Fetches at such a position return nothing, again and again. One empty response is not enough: its records
    may still be in the client, or may have been dropped there when the position was set. A second one is only
    requested when nothing of the first is waiting to be taken.
    """

    def __init__(self, position: int) -> None:
        self._position = position
        self._answered_ms: int | None = None
        self._answers = 0

    def nothing_more(self, consumer: AIOKafkaConsumer, tp: TopicPartition, position: int, end: int) -> bool:
        answered_ms = consumer.last_poll_timestamp(tp)
        if position != self._position:
            self._position, self._answered_ms, self._answers = position, answered_ms, 0
        elif answered_ms != self._answered_ms:
            stable = consumer.last_stable_offset(tp)
            self._answered_ms = answered_ms
            self._answers += stable is not None and stable >= end
        return self._answers >= _EMPTY_ANSWERS


class TopicReader:
    """Reads one topic. Made by ``open_topic``."""

    spans: Mapping[Partition, Span]
    """Of every partition, what was there when the reader was opened."""

    def __init__(self, settings: KafkaSettings, topic: str, consumer: AIOKafkaConsumer) -> None:
        self._topic = topic
        self._consumer = consumer
        self._patience_s = settings.request_timeout_ms / 1000
        self._ends: dict[TopicPartition, int] = {}
        self._watches: dict[TopicPartition, CompactionWatch] = {}

    async def begin(self, partitions: Iterable[int]) -> None:
        """Look at what is there now."""
        tps = [TopicPartition(self._topic, index) for index in partitions]
        begins = await self._consumer.beginning_offsets(tps)
        ends = await self._consumer.end_offsets(tps)  # under read_committed, the last stable offset
        self.spans = {Partition(*tp): Span(begins[tp], ends[tp]) for tp in tps}

    async def take(self, part: Range, *, at_end: bool = False) -> None:
        """From now on read this part of what was there; ``at_end``: what has no first time begins at the end.

        Raises ConfigError for a partition that isn't there.
        """
        for index in part.partitions:
            if Partition(self._topic, index) not in self.spans:
                raise ConfigError(
                    f"topic {self._topic} has no partition {index}; it has 0 to {len(self.spans) - 1}"
                )
        wanted = part.partitions or dict.fromkeys([at.index for at in self.spans], (None, None))
        spans = {TopicPartition(self._topic, at): self.spans[Partition(self._topic, at)] for at in wanted}
        self._consumer.assign(list(spans))
        begins = {tp: span.begin for tp, span in spans.items()}
        ends = {tp: span.end for tp, span in spans.items()}
        since, until = ends if at_end else begins, ends
        if part.since_ms is not None:
            since = await self._at_time(part.since_ms, ends)
        if part.until_ms is not None:
            until = await self._at_time(part.until_ms, ends)
        self._ends = {}
        for tp, (first, last) in zip(spans, wanted.values(), strict=True):
            self._ends[tp] = min(until[tp], ends[tp], ends[tp] if last is None else last)
            newest = 0 if part.last is None else self._ends[tp] - part.last
            start = min(max(since[tp], begins[tp], first or 0, newest), self._ends[tp])
            self._watches[tp] = CompactionWatch(start)
            self._consumer.seek(tp, start)

    async def _at_time(self, ms: int, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = await self._consumer.offsets_for_times(dict.fromkeys(ends, ms))
        return {tp: end if found.get(tp) is None else found[tp].offset for tp, end in ends.items()}

    async def until_end(self) -> AsyncGenerator[Record, None]:
        """What was committed when the reader was opened. Raises TransportError when nothing comes."""
        async with aclosing(self._up_to_end(self._patience_s)) as records:
            async for record in records:
                if record.offset < self._ends[TopicPartition(*record.partition)]:
                    yield record
        for tp, reached in (await self._left()).items():
            raise TransportError(
                f"reading {tp.topic}[{tp.partition}]: nothing came from Kafka for "
                f"{self._patience_s:g} s, at offset {reached} of {self._ends[tp]}; do the brokers answer?"
            )

    async def follow(self) -> AsyncGenerator[Record, None]:
        """What was there when the reader was opened, by time; then records as they come, without end.

        Partitions are read one after the other, so what is there is held back until all of it is read, or
        no more comes. Of more than fits the bounds, the oldest goes first.
        """
        held: list[tuple[int, int, int, Record]] = []
        held_bytes = 0
        async with aclosing(self._up_to_end(_PATIENCE_S)) as records:
            async for record in records:
                order = (record.timestamp_ms, record.partition.index, record.offset)
                heapq.heappush(held, (*order, record))
                held_bytes += len(record.value or b"")
                while len(held) > _MOST_HELD or held_bytes > _MOST_HELD_BYTES:
                    oldest = heapq.heappop(held)[-1]
                    held_bytes -= len(oldest.value or b"")
                    yield oldest
        while held:
            yield heapq.heappop(held)[-1]
        while True:
            async for record in self._poll(_POLL_MS):
                yield record

    async def _up_to_end(self, patience_s: float) -> AsyncGenerator[Record, None]:
        """Until all ends are reached, or nothing has come for ``patience_s``; with what comes beyond them."""
        loop = asyncio.get_running_loop()
        left, moved = await self._left(), loop.time()
        while left and loop.time() - moved <= patience_s:
            async for record in self._poll(_END_MS):
                yield record
            # Markers and aborted records move a position too, without a record.
            now = await self._left()
            if now != left:
                left, moved = now, loop.time()

    async def _left(self) -> dict[TopicPartition, int]:
        """The positions of the partitions that are not at their end."""
        found = {tp: await self._consumer.position(tp) for tp in self._ends}
        return {
            tp: reached
            for tp, reached in found.items()
            if reached < self._ends[tp]
            and not self._watches[tp].nothing_more(self._consumer, tp, reached, self._ends[tp])
        }

    async def _poll(self, timeout_ms: int) -> AsyncIterator[Record]:
        batches: dict[TopicPartition, list[Any]]
        async with asking(f"reading topic {self._topic}"):
            batches = await self._consumer.getmany(timeout_ms=timeout_ms)
        for tp, records in batches.items():
            for one in records:
                yield Record(
                    Partition(*tp),
                    one.offset,
                    one.key,
                    one.value,
                    tuple(one.headers),
                    one.timestamp,
                    one.timestamp_type,
                )


@asynccontextmanager
async def open_topic(
    settings: KafkaSettings, topic: str, *, part: Range | None = None, at_end: bool = False
) -> AsyncIterator[TopicReader]:
    """A reader of ``topic``, or of a part of it; ``at_end``: of what comes, unless the part says since when.

    Raises TransportUnavailable, TransportError, ConfigError.
    """
    async with connected_admin(settings) as admin:
        await require_topics(admin, settings, [topic])
        (described,) = await admin.describe_topics([topic])
    consumer = AIOKafkaConsumer(**groupless_options(settings))
    try:
        async with asking(f"reading topic {topic}", settings.request_timeout_ms):
            await consumer.start()
            reader = TopicReader(settings, topic, consumer)
            await reader.begin(range(len(described["partitions"])))
            await reader.take(part or Range(), at_end=at_end)
        yield reader
    finally:
        await close_consumer(consumer, _CLOSE_S)
