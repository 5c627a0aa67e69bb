"""Writing to Kafka: a producer without transactions, one beside work that doesn't wait for it, and the
transactional one of an input partition.

``AIOKafkaProducer.send`` costs a coroutine, a future and a partition look-up for every record. This module
packs the records of one call into the producer's own batches, partition by partition, and sends the batches
with one future each: same wire format, same idempotence, about a third of the time.

A step of exactly once is one Kafka transaction. The client library leaves these gaps, which this module
fills:

- A failed send does not fail the library's transaction, which would commit without the record. So every send
  is awaited before the commit.
- None of its calls has its own time limit, and giving up on one leaves the outcome open.
- After a fatal error its calls end in AssertionError or AttributeError. After any failure the producer is
  useless and a new one takes its place.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice, zip_longest
from typing import Any, Final, Self

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    InvalidProducerEpoch,
    InvalidTransactionTimeout,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from consumers.kafka.client import (
    asking,
    client_options,
    closed_in_time,
    connect_admin,
    quiet_while,
    require_topics,
    translated,
)
from consumers.kafka.workarounds import (
    Requests,
    begin_transaction,
    close_producer,
    expect_fatal_errors,
    fatal_error,
    in_transaction,
)
from consumers.sessions_topic import key_prefix
from consumers.settings import MEBIBYTE, KafkaSettings
from consumers.transport import Commit, OutRecord, Partition, StateRecord
from guardrail import telemetry
from guardrail.client.library import look_at
from guardrail.errors import GuardrailError, StepFailed, TransportError, TransportUnavailable
from guardrail.log_events import EventLog
from guardrail.partitioning import cached_partition_of

_RECORD_OVERHEAD_BYTES: Final = 128
"""More than the framing of a record and its batch."""

Sent = dict["asyncio.Future[Any]", str]
"""A future for every batch sent, with the topic it went to."""


def producer_options(settings: KafkaSettings) -> dict[str, Any]:
    """Arguments of an idempotent producer that waits for all in-sync replicas. Raises ConfigError."""
    return {**client_options(settings, AIOKafkaProducer), "enable_idempotence": True, "acks": "all"}


class Packer:
    """Packs records into batches of one producer, by topic and partition."""

    def __init__(self, producer: AIOKafkaProducer, settings: KafkaSettings) -> None:
        self._producer = producer
        self._max_request_bytes = settings.max_request_bytes
        self._keyless_turn = 0

    async def pack(
        self, records: Sequence[OutRecord], state: Iterable[StateRecord] = (), at: tuple[str, int] = ("", 0)
    ) -> dict[tuple[str, int], list[Any]]:
        """Batches by topic and partition, in the order of ``records``; those of ``state`` all go to ``at``.

        Raises TransportError for a record that is too large, KafkaError for a missing topic.
        """
        producer = self._producer
        now_ms = time.time_ns() // 1_000_000
        partitions: dict[str, int] = {}
        lanes: dict[tuple[str, int], list[Any]] = {}
        for topic, key, value, headers in records:
            count = partitions.get(topic)
            if count is None:
                count = partitions[topic] = len(await producer.partitions_for(topic))
            if key is None:
                self._keyless_turn += 1
                lane_id = (topic, self._keyless_turn % count)
            else:
                lane_id = (topic, cached_partition_of(key, count))
            self._put(lanes, lane_id, now_ms, key, value, list(headers))
        for changed in state:
            self._put(lanes, at, now_ms, changed.key, changed.value, [])
        return lanes

    def _put(
        self,
        lanes: dict[tuple[str, int], list[Any]],
        lane_id: tuple[str, int],
        now_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
    ) -> None:
        size = (len(key) if key else 0) + (len(value) if value else 0)
        if size > self._max_request_bytes - _RECORD_OVERHEAD_BYTES:
            raise TransportError(
                f"a record for {lane_id[0]} has {size} bytes, more than client.max_request_size "
                f"{self._max_request_bytes}; raise it and the topic's max.message.bytes"
            )
        lane = lanes.get(lane_id)
        if lane is None:
            lane = lanes[lane_id] = [self._producer.create_batch()]
        if lane[-1].append(timestamp=now_ms, key=key, value=value, headers=headers) is None:
            lane.append(self._producer.create_batch())
            lane[-1].append(timestamp=now_ms, key=key, value=value, headers=headers)


async def submit(
    producer: AIOKafkaProducer, lanes: Mapping[tuple[str, int], Sequence[Any]], sent: Sent
) -> None:
    """Pass all batches to the producer and add their futures to ``sent``, even if it fails half-way.

    First batches first: a second one for a partition waits until its first is on the way.
    """
    for wave in zip_longest(*lanes.values()):
        for (topic, index), batch in zip(lanes, wave, strict=True):
            if batch is not None:
                future = await producer.send_batch(batch, topic, partition=index)
                # A future's exception that nobody retrieves would be logged when the future is collected.
                future.add_done_callback(look_at)
                sent[future] = topic


async def acknowledged(sent: Sent) -> None:
    """Wait for every batch, and raise the error of the first one that failed."""
    if sent:
        await asyncio.wait(sent)
    for future in sent:
        future.result()


def unwritten(sent: Sent) -> list[str]:
    """The topics of what was sent and is not acknowledged."""
    return sorted(
        {
            topic
            for future, topic in sent.items()
            if not future.done() or future.cancelled() or future.exception() is not None
        }
    )


class KafkaWriter:
    """An idempotent producer that waits for all in-sync replicas."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._producer = AIOKafkaProducer(**producer_options(settings))
        self._requests = Requests(self._producer)
        self._packer = Packer(self._producer, settings)
        # If several callers wait for a place in a partition's queue, the library counts the time of each
        # again and again (MessageAccumulator.add_batch), and gives up long before its timeout.
        self._handing_over = asyncio.Lock()

    async def start(self) -> None:
        """Connect."""
        await self._producer.start()

    async def stop(self) -> None:
        """Close; safe after a failed start.

        Everything for which ``write`` has returned is acknowledged, so only failed writes or writes under way
        can be pending: they get a moment and are then given up.
        """
        await close_producer(self._producer, self._requests)

    async def write(self, records: Sequence[OutRecord]) -> None:
        """Write ``records``, in order within a partition, and return when all are acknowledged.

        Raises TransportError; then any of them may have been written.
        """
        if not records:
            return
        sent: Sent = {}
        try:
            async with asyncio.timeout(self._settings.delivery_timeout_ms / 1000):
                async with self._handing_over:
                    await submit(self._producer, await self._packer.pack(records), sent)
                await acknowledged(sent)
        except (KafkaError, TimeoutError) as error:
            topics = ", ".join(unwritten(sent) or sorted({record.topic for record in records}))
            raise translated(
                error,
                f"writing {len(records)} records to Kafka, topic {topics}",
                "do the brokers answer, and does the topic still exist? "
                f"'{self._settings.create_command}' makes those that are missing",
            ) from error


_ABORT_S: Final = 1.0
_RETRY_BACKOFF_MS: Final = 20
"""How soon the library asks again while the broker still writes the markers of the last transaction."""
_CLIENT_ERRORS: Final = (
    KafkaError,
    OSError,
    TimeoutError,
    AssertionError,
    AttributeError,
    asyncio.InvalidStateError,
)
_FENCED: Final = (ProducerFenced, InvalidProducerEpoch)
_LASTING: Final = (
    GroupAuthorizationFailedError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
"""Errors that a recovered partition would meet again."""


def transactional_id(settings: KafkaSettings, partition: Partition) -> str:
    """The id of this partition's writer, in whichever process: a new producer with it fences the last one."""
    prefix, group = settings.transactional_id_prefix, settings.group_id
    return f"{prefix}-{group}-{partition.topic}-{partition.index}"


class TransactionalProducer:
    """Writes the steps of one partition, one after the other. After a failed step it can only be stopped.

    ``begin``, ``send``, ``settled``, ``send_offsets`` and ``commit`` are the parts of a step, in the order in
    which ``transact`` calls them.
    """

    def __init__(self, settings: KafkaSettings, partition: Partition, topics: Collection[str] = ()) -> None:
        """``topics`` are those to write to beside that of the state: the first step then needs no look-up."""
        self._settings = settings
        self._partition = partition
        self._topics = tuple(topics)
        self._state_topic = settings.topics.sessions
        self._key_prefix = key_prefix(settings.group_id)
        self._transactional_id = transactional_id(settings, partition)
        self._limit_s = min(settings.delivery_timeout_ms, settings.transaction_timeout_ms) / 1000
        self._producer = AIOKafkaProducer(
            **{"retry_backoff_ms": _RETRY_BACKOFF_MS, **producer_options(settings)},
            transactional_id=self._transactional_id,
        )
        self._requests = Requests(self._producer)
        self._packer = Packer(self._producer, settings)
        self._sent: Sent = {}
        self._deadline: asyncio.Timeout | None = None
        self._stopped = False
        self.failed = False
        """Did a step fail? Then this one takes no other."""

    async def start(self) -> None:
        """Connect and fence every earlier producer with this id; its open transaction has ended on return.

        Raises TransportError, TransportUnavailable, KafkaError and TimeoutError.
        """
        try:
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                await self._producer.start()
                for topic in self._topics:
                    await self._producer.partitions_for(topic)
                known = await self._producer.partitions_for(self._state_topic)
        except TransactionalIdAuthorizationFailed as error:
            raise TransportUnavailable(
                f"transactional id {self._transactional_id}: access denied; grant this user to write and "
                f"describe transactional ids that begin with {self._settings.transactional_id_prefix}"
            ) from error
        except InvalidTransactionTimeout as error:
            raise TransportUnavailable(
                f"client.transaction_timeout_ms {self._settings.transaction_timeout_ms} is more than the "
                "broker's transaction.max.timeout.ms; lower the first or raise the second"
            ) from error
        if self._partition.index not in known:
            raise TransportUnavailable(
                f"topic {self._state_topic} has {len(known)} partitions and {self._partition.topic} more; "
                "give it as many"
            )
        expect_fatal_errors(self._producer)

    async def transact(
        self, records: Sequence[OutRecord], state: Sequence[StateRecord], commit: Commit
    ) -> None:
        """One step, all or nothing. State goes to the partition with the same index as the input's.

        Raises StepFailed if the outcome is unknown; TransportError and TransportUnavailable if a repetition
        would fail again.
        """
        if self.failed or self._stopped or self._deadline is not None:
            raise StepFailed(f"{self._named()}: a step before this one failed or is still under way")
        self._sent = {}
        self._deadline = asyncio.timeout(self._limit_s)
        self.failed = True  # whatever ends it early, including cancellation
        try:
            async with self._deadline:
                await self.begin()
                await self.send(records, state)
                await self.settled()
                # Not earlier: a broker asks its coordinator about both, and a request that comes while
                # another of the transaction is pending gets an error that costs a look-up and a pause.
                await self.send_offsets(commit)
                await self.commit()
        except TransportError:
            raise
        except _CLIENT_ERRORS as error:
            raise self._step_error(error, len(records) + len(state)) from error
        else:
            self.failed = False
        finally:
            self._deadline = None

    async def begin(self) -> None:
        """Begin; the broker learns about it with the first batch."""
        await begin_transaction(self._producer)

    async def send(self, records: Sequence[OutRecord], state: Sequence[StateRecord]) -> None:
        """Pass everything to the client, in order within a partition; nothing is acknowledged yet."""
        own = [StateRecord(self._key_prefix + change.key, change.value) for change in state]
        lanes = await self._packer.pack(records, own, (self._state_topic, self._partition.index))
        await submit(self._producer, lanes, self._sent)

    async def settled(self) -> None:
        """Wait until every record is acknowledged. Raises the error of the first one that failed."""
        await acknowledged(self._sent)

    async def send_offsets(self, commit: Commit) -> None:
        """Make the position part of the transaction."""
        position = {TopicPartition(*self._partition): (commit.offset, commit.metadata)}
        await self._producer.send_offsets_to_transaction(position, self._settings.group_id)

    async def commit(self) -> None:
        """Commit. After a failure it is unknown whether the commit was applied."""
        await self._producer.commit_transaction()

    async def abort(self) -> None:
        """Abort an open transaction, so that readers need not wait for its timeout; best effort."""
        if not in_transaction(self._producer):
            return
        try:
            async with asyncio.timeout(_ABORT_S):
                await self._producer.abort_transaction()
        except _CLIENT_ERRORS:
            return  # the successor's start ends it, or the broker after transaction_timeout_ms

    async def stop(self) -> None:
        """Abort an open transaction and close, also after a failed start. A step under way fails."""
        if self._stopped:
            return
        self._stopped = True
        if self._deadline is not None and not self._deadline.expired():  # otherwise it ends by itself
            self._deadline.reschedule(asyncio.get_running_loop().time())
        try:
            await self.abort()
        finally:
            await close_producer(self._producer, self._requests)

    def _step_error(self, error: BaseException, count: int) -> TransportError:
        if not isinstance(error, _FENCED):
            # The first error is what matters; a later call only finds that the client has given up.
            error = fatal_error(self._producer) or error
        step = f"{self._named()}, a step of {count} records"
        if isinstance(error, _LASTING):
            return translated(error, step)
        if isinstance(error, _FENCED):
            return StepFailed(
                f"{step}: another producer has fenced this one; is the partition held elsewhere?"
            )
        if isinstance(error, TimeoutError):
            if self._stopped:
                return StepFailed(
                    f"{step}: given up because its producer was stopped; its outcome is unknown"
                )
            pending = ", ".join(unwritten(self._sent)) or "the commit"
            return StepFailed(
                f"{step}: no answer within {self._limit_s:g} s, waiting for {pending}; its outcome is "
                "unknown. Do the brokers answer, and do the topics still exist?"
            )
        return StepFailed(f"{step}: {type(error).__name__}: {error}; its outcome is unknown")

    def _named(self) -> str:
        return f"transactional id {self._transactional_id}"


# --------------------------------------------------------------------------- beside work that doesn't wait

_MOST_BYTES: Final = 64 * MEBIBYTE
_AT_ONCE: Final = 500
_AGAIN_S: Final = 1.0
_LATE_S: Final = 5.0
_CLOSE_S: Final = 5.0
_NOT_YET: Final = "Kafka is not connected yet"

_log = EventLog(__name__)


class KafkaPublisher:
    """Writes records in their order, each at least once, for as long as there is room for them.

    What Kafka doesn't take waits, up to 64 MiB; what has no room is lost, and counted. Within ``async with``;
    at its end what waits has ``within_s`` to be written.
    """

    def __init__(self, settings: KafkaSettings, topics: Collection[str], within_s: float) -> None:
        """``topics`` must exist before anything is written. Raises ConfigError."""
        producer_options(settings)  # which reads certificates and passwords
        self._settings = settings
        self._topics = topics
        self._within_s = within_s
        self._waiting: deque[OutRecord] = deque()
        self._bytes = 0
        self._some, self._none = asyncio.Event(), asyncio.Event()
        self._none.set()
        self._why = _NOT_YET
        """Why nothing can be written; empty: it can."""
        self._lost = 0
        """Since it last could be."""

    def put(self, records: Sequence[OutRecord]) -> None:
        """Have them written. Never waits, and raises nothing."""
        for record in records:
            if self._bytes + _size(record) > _MOST_BYTES:
                self._lose(1, "there is no room for more")
            else:
                self._waiting.append(record)
                self._bytes += _size(record)
                self._none.clear()
                self._some.set()

    def note(self) -> str:
        """What is wrong, in words; empty if nothing is."""
        waiting = f"{len(self._waiting)} events wait, {self._lost} are lost"
        return f"verdicts are not published: {self._why}; {waiting}" if self._why else ""

    async def __aenter__(self) -> Self:
        self._work = asyncio.create_task(self._publish(), name="publisher")
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._within_s):
                await self._none.wait()
        self._work.cancel()
        await asyncio.wait([self._work])
        quiet_while(self, away=False)
        if self._waiting:
            self._lose(len(self._waiting), "the process ends")

    async def _publish(self) -> None:
        """After a failure a producer may refuse every record: a new one takes its place."""
        while True:
            try:
                writer = KafkaWriter(self._settings)  # which reads certificates and passwords again
                try:
                    await self._connect(writer)
                    while True:
                        await self._write(writer)
                        await self._some.wait()
                finally:
                    await closed_in_time("producer", writer.stop(), _CLOSE_S)
            except Exception as error:  # noqa: BLE001 - guarding goes on, whatever it is
                self._tell(str(error) if isinstance(error, GuardrailError) else type(error).__name__)
            await asyncio.sleep(_AGAIN_S)

    async def _connect(self, writer: KafkaWriter) -> None:
        admin = await connect_admin(self._settings, told=self._why != _NOT_YET)
        try:
            await require_topics(admin, self._settings, self._topics)
        finally:
            await closed_in_time("admin client", admin.close(), _CLOSE_S)
        async with asking("connecting a producer", self._settings.connect_timeout_ms):
            await writer.start()

    async def _write(self, writer: KafkaWriter) -> None:
        """Write all that waits. Raises TransportError; then the rest waits on."""
        while batch := list(islice(self._waiting, _AT_ONCE)):
            late = asyncio.get_running_loop().call_later(_LATE_S, self._tell, "Kafka takes nothing")
            try:
                await writer.write(batch)
            except GuardrailError as error:
                if isinstance(error.__cause__, MessageSizeTooLargeError):
                    self._drop(max(batch, key=_size))  # no repetition would help
                    self._lose(1, "the topic takes no record of its size")
                raise
            finally:
                late.cancel()
            for record in batch:
                self._drop(record)
            telemetry.PUBLISHED.labels("written").inc(len(batch))
        self._some.clear()
        self._none.set()
        self._tell("")

    def _drop(self, record: OutRecord) -> None:
        self._waiting.remove(record)  # which is the first, or nearly
        self._bytes -= _size(record)

    def _tell(self, why: str) -> None:
        """Log each change, and whether anything was lost meanwhile."""
        if not why and (self._why or self._lost):
            _log.info("serve.publishing", servers=self._settings.bootstrap_servers, lost=self._lost)
            self._lost = 0
        elif why and why != self._why:
            waiting = len(self._waiting)
            _log.warning("serve.not_published", error=why, waiting=waiting, effect="it is tried again")
        self._why = why
        telemetry.KAFKA_AWAY.set(bool(why))
        quiet_while(self, away=bool(why))

    def _lose(self, number: int, why: str) -> None:
        if not self._lost:
            _log.error("serve.verdicts_lost", events=number, why=why)
        self._lost += number
        telemetry.PUBLISHED.labels("lost").inc(number)


def _size(record: OutRecord) -> int:
    return len(record.value or b"") + len(record.key or b"")
