"""The client's transport over Kafka: one producer, one consumer, partitions assigned by hand."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from guardrail.client.library import closing_failed, known_to, look_at, named
from guardrail.client.presence import ClientPresence
from guardrail.client.transport import DeliveryRecord, OutgoingRecord
from guardrail.errors import ConfigError, TransportError, TransportUnavailable
from guardrail.log_events import EventLog
from guardrail.partitioning import partition_of

_DEFAULTS: Final[Mapping[str, Any]] = {
    "client_id": "guardrail-client",
    "acks": "all",
    "max_batch_size": 128 * 1024,
    "max_request_size": 8 * 1024 * 1024,
    "metadata_max_age_ms": 30_000,
}
"""Of aiokafka's parameters; the caller's go before.

The producer is not idempotent. One request at a time goes to a partition, which keeps the order, and what a
retry writes twice the guard passes over; an idempotent one may refuse every record after an outage that is
longer than its ``request_timeout_ms``.
"""
_OURS: Final[Mapping[str, str]] = {
    "group_id": "a group would hand replies to other processes",
    "isolation_level": "only committed deliveries may be shown",
    "auto_offset_reset": "a response's deliveries must all be read",
    "enable_auto_commit": "there is no group",
    "transactional_id": "text goes out as it is written",
    "key_serializer": "keys are response ids",
    "value_serializer": "values are events",
    "key_deserializer": "keys are response ids",
    "value_deserializer": "values are events",
    "partitioner": "the guard's is Kafka's default, and replies are found by it",
}
_CLOCKS_DIFFER_MS: Final = 60_000

_log = EventLog(__name__)


class KafkaClientTransport:
    """``ClientTransport`` over aiokafka."""

    def __init__(
        self,
        bootstrap_servers: str | list[str],
        responses_topic: str,
        deliveries_topic: str,
        *,
        reply_partitions: int | None,
        connect_timeout_s: float,
        options: Mapping[str, Any],
    ) -> None:
        """``options`` go to aiokafka's producer and consumer, whichever knows them. Raises ConfigError."""
        if reply_partitions is not None and reply_partitions < 1:
            raise ConfigError(f"reply_partitions {reply_partitions}: give at least 1, or None for all")
        for name, reason in _OURS.items():
            if name in options:
                raise ConfigError(f"{name} can't be chosen for a GuardClient: {reason}; leave it out")
        self._servers = bootstrap_servers
        common = {**_DEFAULTS, **options, "bootstrap_servers": bootstrap_servers}
        self._for_producer = known_to(AIOKafkaProducer, common)
        self._for_consumer = known_to(AIOKafkaConsumer, common)
        unknown = common.keys() - self._for_producer.keys() - self._for_consumer.keys()
        if unknown:
            raise ConfigError(
                f"{', '.join(sorted(unknown))}: aiokafka 0.14 has no such parameter; leave it out"
            )
        self._for_consumer |= {
            "group_id": None,
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
            "auto_offset_reset": "earliest",  # should a position be lost: what is old is dropped by its key
        }
        self._responses = responses_topic
        self._deliveries = deliveries_topic
        self._reply_partitions = reply_partitions
        self._connect_timeout_s = connect_timeout_s
        self._producer: AIOKafkaProducer | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._lanes = 1
        self._counts: list[int] = []
        """Numbers of partitions that the deliveries have had: a guard may still write by an earlier one."""
        self._presence = ClientPresence(self._servers)
        self._read: set[int] = set()
        self._assigning = asyncio.Lock()
        self._moved = False
        """Is yet to be read what moved as the deliveries got more partitions?"""
        self._open: dict[str, int] = {}
        """Responses that deliveries may come for, and when they began: milliseconds since 1970."""

    async def start(self) -> None:
        """Part of ClientTransport."""
        presence = self._presence
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                with presence.known():
                    self._producer = AIOKafkaProducer(**self._for_producer)
                    presence.attend(self._producer)
                    await self._producer.start()
                    self._consumer = AIOKafkaConsumer(**self._for_consumer)
                    presence.attend(self._consumer)
                    await self._consumer.start()
                # Asked first, because a broker may create a misspelt topic for clients that just use it.
                missing = {self._responses, self._deliveries} - await self._consumer.topics()
                if missing:
                    raise TransportUnavailable(
                        f"Kafka at {self._servers} has no topic {', '.join(sorted(missing))}, or this user "
                        "may not see it; create it with: guardrail topics create"
                    )
                self._lanes = len(await self._producer.partitions_for(self._responses))
                partitions = sorted(await self._producer.partitions_for(self._deliveries))
                self._counts = [len(partitions)]
                number = min(self._reply_partitions or len(partitions), len(partitions))
                await self._follow(set(random.sample(partitions, number)), {})
        except (KafkaError, OSError) as error:  # a timeout is an OSError
            within = f" within {self._connect_timeout_s:g} s" if isinstance(error, TimeoutError) else ""
            raise TransportUnavailable(
                f"Kafka can't be reached at {self._servers}{within} "
                f"({named(error)}); start it, or check bootstrap_servers, security_protocol and the login"
            ) from error

    async def stop(self, within_s: float) -> None:
        """Part of ClientTransport."""
        producer, self._producer = self._producer, None
        consumer, self._consumer = self._consumer, None
        clients: tuple[tuple[str, Any], ...] = (("producer", producer), ("consumer", consumer))
        for what, client in clients:
            if client is not None and await closing_failed(client.stop(), within_s) is not None:
                _log.warning("client.close_failed", what=what)

    def mint(self) -> str:
        """Part of ClientTransport."""
        while True:
            response_id = uuid4().hex
            if self._partitions_of(response_id) <= self._read:
                return response_id

    async def open(self, response_id: str) -> None:
        """Part of ClientTransport."""
        self._open[response_id] = time.time_ns() // 1_000_000
        await self._follow(self._partitions_of(response_id), {})

    def close(self, response_id: str) -> None:
        """Part of ClientTransport."""
        self._open.pop(response_id, None)

    def lane(self, response_id: str) -> int:
        """Part of ClientTransport: the partition, so that one without a leader keeps no others waiting."""
        return partition_of(response_id.encode(), self._lanes)

    async def publish(self, records: Sequence[OutgoingRecord]) -> Sequence[TransportError | None]:
        """Part of ClientTransport. What is not taken within aiokafka's request_timeout_ms has failed."""
        if self._producer is None:
            return [TransportError("the client is closed")] * len(records)
        sent: list[asyncio.Future[Any] | TransportError] = []
        with self._presence.known():
            for key, value, headers in records:
                try:
                    sent.append(await self._producer.send(self._responses, value, key=key, headers=headers))
                except (KafkaError, OSError) as error:
                    sent.append(self._translated(error))
        futures = [future for future in sent if isinstance(future, asyncio.Future)]
        if futures:
            try:
                await asyncio.wait(futures)
            except asyncio.CancelledError:
                for future in futures:
                    future.add_done_callback(look_at)
                raise
        return [
            outcome if isinstance(outcome, TransportError) else self._failure_of(outcome) for outcome in sent
        ]

    async def poll(self, timeout_ms: int) -> Sequence[DeliveryRecord]:
        """Part of ClientTransport."""
        consumer = self._consumer
        if consumer is None:
            raise TransportError("the client is closed")
        try:
            if self._has_grown(consumer):
                await self._find_moved(consumer)
            batches = await consumer.getmany(timeout_ms=timeout_ms)
        except (KafkaError, OSError) as error:
            raise TransportError(f"reading {self._deliveries}: {named(error)}") from error
        return [
            DeliveryRecord.of(record.key, record.value, record.headers)
            for records in batches.values()
            for record in records
        ]

    def _partitions_of(self, response_id: str) -> set[int]:
        # Not cached: most ids made up are thrown away again.
        return {partition_of(response_id.encode(), count) for count in self._counts}

    async def _follow(self, wanted: set[int], since: Mapping[int, int]) -> None:
        """Read these partitions too: from offsets in ``since``, else from the present end on."""
        if wanted <= self._read:
            return
        consumer = self._consumer
        if consumer is None:
            raise TransportError("the client is closed")
        async with self._assigning:
            new = wanted - self._read
            if not new:
                return
            place = {number: TopicPartition(self._deliveries, number) for number in self._read | new}
            # An assignment takes the place of the last one, positions included. With a known position
            # nothing of this waits, so no record comes in between.
            positions = {number: await consumer.position(place[number]) for number in self._read}
            consumer.assign(list(place.values()))
            for number, offset in {**positions, **since}.items():
                consumer.seek(place[number], offset)
            at_end = [place[number] for number in new if number not in since]
            if at_end and not await consumer.seek_to_end(*at_end):
                raise TransportError(f"Kafka did not tell the end of {self._deliveries} in time")
            self._read |= new

    def _has_grown(self, consumer: AIOKafkaConsumer) -> bool:
        """Have the deliveries more partitions than before, and is what moved not read yet?

        A guard knows it before or after us, by some minutes (``metadata_max_age_ms``). So answers in flight
        are looked for in the partitions of all numbers, from the time they began on, and new ids hash to
        partitions that are read under every number.
        """
        known = consumer.partitions_for_topic(self._deliveries)
        if known and len(known) > max(self._counts):
            _log.warning("client.partitions_grew", topic=self._deliveries, partitions=len(known))
            self._counts.append(len(known))
            self._moved = True
        return self._moved

    async def _find_moved(self, consumer: AIOKafkaConsumer) -> None:
        new = {
            number for response_id in self._open for number in self._partitions_of(response_id)
        } - self._read
        try:
            if new:
                first_ms = min(self._open.values()) - _CLOCKS_DIFFER_MS
                places = [TopicPartition(self._deliveries, number) for number in new]
                found = await consumer.offsets_for_times(dict.fromkeys(places, first_ms))
                since = {place.partition: at.offset for place, at in found.items() if at is not None}
                await self._follow(new, since)
        except (KafkaError, OSError) as error:
            _log.warning("client.moved_answers_not_found", error=named(error), effect="it is tried again")
        else:
            self._moved = False

    def _failure_of(self, future: asyncio.Future[Any]) -> TransportError | None:
        if future.cancelled():
            return TransportError(f"writing to {self._responses} was given up")
        error = future.exception()
        return None if error is None else self._translated(error)

    def _translated(self, error: BaseException) -> TransportError:
        doing = f"writing to {self._responses}"
        match error:
            case MessageSizeTooLargeError():
                return TransportError(
                    f"{doing}: an event is too large; send fewer or shorter contexts, or raise the topic's "
                    "max.message.bytes and max_request_size"
                )
            case TopicAuthorizationFailedError():
                return TransportUnavailable(f"{doing}: access denied; grant this user to write there")
            case UnknownTopicOrPartitionError():
                return TransportUnavailable(f"{doing}: the topic does not exist; run guardrail topics create")
            case _:
                return TransportError(f"{doing}: {named(error)}")
