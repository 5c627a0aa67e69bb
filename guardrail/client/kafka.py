"""The client's transport over Kafka: one producer, one consumer, partitions assigned by hand; and whether
Kafka answers and has the topics, told once for each change.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from guardrail.client.library import Repetitions, closing_failed, demoted, known_to, look_at, named
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


# ---------------------------------------------------------------------------------- whether Kafka is there
#
# aiokafka asks for metadata again at once where a partition has no leader, hundreds of times a second, and
# logs each answer. Here, between updates that follow each other closely, there are pauses, which grow; and
# what aiokafka's tasks of this client log is for debugging while the client has said what is away. Other
# clients of the process are left as they are: the tasks are known by a context variable, which they inherit.

_CLOSELY_S: Final = 2.0
_FREE: Final = 3
"""Updates in a row without a pause: a client that starts makes some."""
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 1.0
_PATIENCE_S: Final = 1.0
"""What is away for a shorter time is not told: a broker that has just started may know its topics later."""
_LOGGERS: Final = (
    "aiokafka",
    "aiokafka.cluster",
    "aiokafka.conn",
    "aiokafka.consumer.fetcher",
    "aiokafka.producer.producer",
    "aiokafka.producer.sender",
)
_REVEALING: Final = frozenset({"aiokafka.conn", "aiokafka.producer.producer"})
"""Their lines for debugging show requests and records as they are sent, with passwords and texts."""

_mine: ContextVar[ClientPresence | None] = ContextVar("guardrail_client_presence", default=None)


class Pace:
    """Pauses between updates: none for the first few, then ever longer ones, up to a second."""

    def __init__(self) -> None:
        self._row = 0
        self._last: float | None = None

    def pause_s(self, now: float) -> float:
        """How long to wait before the update that is due at ``now`` (seconds)."""
        close = self._last is not None and now - self._last < _CLOSELY_S
        self._row = self._row + 1 if close else 0
        if self._row < _FREE:
            return 0.0
        return min(_FIRST_PAUSE_S * 2.0 ** min(self._row - _FREE, 10), _LONGEST_PAUSE_S)

    def updated(self, now: float) -> None:
        """An update has ended at ``now``."""
        self._last = now


class ClientPresence:
    """What one client knows of Kafka, from the updates of its producer and its consumer."""

    def __init__(self, servers: str | list[str]) -> None:
        self._servers = servers if isinstance(servers, str) else ",".join(servers)
        self._since: float | None = None  # no broker answers
        self._away = False
        self._lost: dict[str, float] = {}  # topics, since when
        self._missing: frozenset[str] = frozenset()
        self._said = Repetitions()

    @contextmanager
    def known(self) -> Iterator[None]:
        """Tasks that begin in here, and those that these begin, are the client's."""
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_sparing)  # adding it again changes nothing
        token = _mine.set(self)
        try:
            yield
        finally:
            _mine.reset(token)

    def attend(self, kafka: AIOKafkaProducer | AIOKafkaConsumer) -> None:
        """Hear of the updates of a client that has not started, which from now on pause.

        Relies on private parts of aiokafka, as ``consumers.kafka.workarounds`` does.
        """
        client: Any = kafka.client if isinstance(kafka, AIOKafkaProducer) else kafka._client
        ask = client._metadata_update
        pace = Pace()

        async def update(cluster: Any, topics: Collection[str] | None) -> Any:
            await asyncio.sleep(pace.pause_s(time.monotonic()))
            answered = await ask(cluster, topics)
            now = time.monotonic()
            pace.updated(now)
            if cluster is client.cluster:
                asked = topics or ()
                missing = [topic for topic in asked if not cluster.partitions_for_topic(topic)]
                self.saw(answered=bool(answered), topics=asked, missing=missing, now=now)
            return answered

        client._metadata_update = update

    def saw(self, *, answered: bool, topics: Collection[str], missing: Collection[str], now: float) -> None:
        """An update has ended: did a broker answer, and which of the topics asked for has it not?"""
        if not answered:
            if self._since is None:
                self._since = now
            if not self._away and now - self._since >= _PATIENCE_S:
                self._away = True
                _log.warning(
                    "client.kafka_away",
                    servers=self._servers,
                    effect="answers wait or time out; it is tried again until Kafka answers",
                )
            return
        if self._away and self._since is not None:
            _log.info("client.kafka_back", servers=self._servers, away_s=round(now - self._since, 1))
        self._away, self._since = False, None
        for topic in topics:
            if topic in missing:
                self._lost.setdefault(topic, now)
            else:
                self._lost.pop(topic, None)
        told = frozenset(topic for topic, since in self._lost.items() if now - since >= _PATIENCE_S)
        if self._missing and not self._lost:
            _log.info("client.topics_back", topics=sorted(self._missing))
            self._missing = frozenset()
        elif told - self._missing:
            self._missing |= self._lost.keys()
            _log.error(
                "client.topics_missing",
                topics=sorted(self._lost),
                remedy="make them with: guardrail topics create",
                effect="answers wait or time out; the client goes on by itself when they are there",
            )

    def admits(self, record: logging.LogRecord) -> bool:
        """Should a line of aiokafka about this client be logged?"""
        if record.levelno <= logging.DEBUG:
            return record.name not in _REVEALING
        if self._away or self._missing:
            return demoted(record)
        # The topic or node comes first in a line.
        about = str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
        return not self._said.is_one(record, about)


class _SparingTasks(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        presence = _mine.get()
        return presence is None or presence.admits(record)


_sparing: Final = _SparingTasks()
