"""Reading the stored state of partitions: the compacted topic of sessions, from its beginning to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition

from consumers.kafka_client import client_options, close_consumer, translated
from consumers.kafka_headers import read_any_header_name
from consumers.state_records import key_prefix
from guardrail.kafka_settings import MEBIBYTE, KafkaSettings

_POLL_MS: Final = 25
"""How long the end can stay unnoticed: what ends there may be markers and aborted records only."""
_EMPTY_ANSWERS: Final = 6
"""So many in a row, each to a fetch of its own, say that there is nothing at a place."""
_CLOSE_S: Final = 2.0


async def read_state(
    settings: KafkaSettings, topic: str, indices: Collection[int]
) -> dict[int, dict[bytes, bytes]]:
    """The latest value of every key of the group that was not deleted, by partition, in the order of writing.

    Reads up to the last stable offset as of now, so it has to be called after the writers were fenced, and
    sees nothing of aborted transactions. Raises TransportError when the brokers give nothing for
    ``request_timeout_ms``, KafkaError and OSError.
    """
    if not indices:
        return {}
    consumer = AIOKafkaConsumer(
        **client_options(settings),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        fetch_max_wait_ms=settings.fetch_max_wait_ms,
        max_partition_fetch_bytes=max(MEBIBYTE, settings.max_partition_fetch_bytes),
    )
    try:
        async with asyncio.timeout(settings.request_timeout_ms / 1000) as patience:
            await consumer.start()
            read_any_header_name(consumer)
            return await _read(
                consumer, [TopicPartition(topic, index) for index in indices], settings, patience
            )
    except TimeoutError as error:
        raise translated(error, f"reading the state of topic {topic}") from error
    finally:
        await close_consumer(consumer, _CLOSE_S)


async def _read(
    consumer: AIOKafkaConsumer,
    tps: list[TopicPartition],
    settings: KafkaSettings,
    patience: asyncio.Timeout,
) -> dict[int, dict[bytes, bytes]]:
    """As ``read_state``; every progress gives it new patience."""
    loop = asyncio.get_running_loop()
    consumer.assign(tps)
    consumer.pause(*tps)  # what is fetched before the position is set would be thrown away by that
    begins = await consumer.beginning_offsets(tps)
    ends = await consumer.end_offsets(tps)  # under read_committed, the last stable offset
    states: dict[int, dict[bytes, bytes]] = {tp.partition: {} for tp in tps}
    prefix = key_prefix(settings.group_id)
    left = {tp: _Reading(begins[tp]) for tp in tps if begins[tp] < ends[tp]}
    for tp in tps:
        # The library, too, has to know a position; this one needs no look-up.
        consumer.seek(tp, begins[tp])
    consumer.resume(*left)
    while left:
        batches = await consumer.getmany(*left, timeout_ms=_POLL_MS)
        for tp, batch in batches.items():
            _apply(states[tp.partition], batch, prefix)
        for tp, reading in list(left.items()):
            position = await consumer.position(tp)
            if position >= ends[tp] or reading.nothing_more(consumer, tp, position, ends[tp]):
                del left[tp]
                consumer.pause(tp)
                patience.reschedule(loop.time() + settings.request_timeout_ms / 1000)
        if batches:
            patience.reschedule(loop.time() + settings.request_timeout_ms / 1000)
    return states


class _Reading:
    """Notices that nothing is left although the end is not reached: what was there has been compacted away.

    A fetch of such a place is answered with nothing, again and again. One answer is not enough to tell: its
    records may still be with the client, or may have been dropped there when the position was set. A second
    one is only asked for when nothing of the first is waiting to be taken.
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


def _apply(state: dict[bytes, bytes], batch: Collection[Any], prefix: bytes) -> None:
    """Latest value last, deleted ones gone, other groups' passed over: what compaction leaves of ours."""
    for record in batch:
        if record.key is None or not record.key.startswith(prefix):
            continue
        key = record.key[len(prefix) :]
        state.pop(key, None)
        if record.value is not None:
            state[key] = record.value
