"""The transport over a Kafka cluster, on aiokafka.

What the client library does not do by itself and this does:

- A rebalance runs in a background task of the library, which assigns new partitions, fetches for them and
  only then calls back; and it swallows what the callback raises. Here no record leaves ``poll`` before
  ``on_assigned`` has returned, and its exceptions come out of the next ``poll``.
- Positions are set explicitly after the callback, from the group's committed offsets read together with
  their metadata, which the consumer's own ``committed`` drops.
- A poll that is cancelled disables the library's idle detection for good, and one that meets a rebalance
  waits for its end: so the fetch is a task that outlives a poll, and is taken up by the next one.
- Nothing waits for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import IllegalStateError, KafkaError

from consumers.checks import check_commits
from consumers.kafka_client import client_options, connect_admin, require_topics, translated
from consumers.kafka_writer import KafkaWriter
from consumers.transport import AssignmentListener, Commit, OutRecord, Partition, Record
from guardrail.errors import TransportError
from guardrail.kafka_settings import KafkaSettings

_FETCH_GRACE_S: Final = 0.1
_RETRY_S: Final = 0.2

_log = logging.getLogger(__name__)


class KafkaTransport:
    """``consumers.transport.Transport`` on a Kafka cluster."""

    def __init__(
        self,
        settings: KafkaSettings,
        input_topics: Collection[str] | None = None,
        *,
        output_topics: Collection[str] | None = None,
    ) -> None:
        """Topics are those of ``settings`` when left out; ``start`` checks that they exist."""
        self._settings = settings
        self._input_topics = tuple(input_topics or (settings.topics.responses,))
        self._output_topics = tuple(settings.topics.outputs() if output_topics is None else output_topics)
        self._admin: AIOKafkaAdminClient | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._writer: KafkaWriter | None = None
        self._listener: AssignmentListener | None = None
        self._held: dict[TopicPartition, Partition] = {}
        self._next: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._ready = asyncio.Event()
        """Set while assigned partitions may be read, cleared while a rebalance is under way."""
        self._epoch = 0
        self._fetch: asyncio.Task[dict[TopicPartition, list[Any]]] | None = None
        self._fetch_started: tuple[int, int] = (0, 0)
        self._failure: Exception | None = None

    async def start(self, listener: AssignmentListener) -> None:
        """Check broker and topics, connect, ask to join the group; partitions come in the background."""
        if self._listener is not None:
            raise TransportError("start was called twice; make a new transport to join again")
        self._listener = listener
        settings = self._settings
        try:
            self._admin = await connect_admin(settings)
            await require_topics(self._admin, settings, {*self._input_topics, *self._output_topics})
            self._writer = KafkaWriter(settings)
            self._consumer = AIOKafkaConsumer(
                **client_options(settings),
                group_id=settings.group_id,
                enable_auto_commit=False,
                auto_offset_reset=settings.auto_offset_reset,
                isolation_level=settings.isolation_level,
                # Range gives partition i of every topic to the same member. One assignor only: the
                # library joins once per assignor.
                partition_assignment_strategy=(RangePartitionAssignor,),
                session_timeout_ms=settings.session_timeout_ms,
                rebalance_timeout_ms=settings.session_timeout_ms,
                heartbeat_interval_ms=settings.heartbeat_interval_ms,
                max_poll_interval_ms=settings.max_poll_interval_ms,
                fetch_max_wait_ms=settings.fetch_max_wait_ms,
                fetch_min_bytes=settings.fetch_min_bytes,
                fetch_max_bytes=settings.fetch_max_bytes,
                max_partition_fetch_bytes=settings.max_partition_fetch_bytes,
            )
            async with asyncio.timeout(settings.connect_timeout_ms / 1000):
                await self._writer.start()
                await self._consumer.start()
            self._consumer.subscribe(list(self._input_topics), listener=_Rebalance(self))
        except BaseException as error:
            await self.stop()
            if isinstance(error, (KafkaError, OSError, TimeoutError)):
                raise translated(error, f"connecting to Kafka at {settings.bootstrap_servers}") from error
            raise

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        """See ``Transport.poll``. Raises what the listener raised, TransportError, TransportUnavailable."""
        consumer = self._consumer
        if consumer is None:
            raise TransportError("poll was called before start or after stop")
        self._raise_failure()
        if self._fetch is None:
            self._fetch_started = (self._epoch, max_records)
            self._fetch = asyncio.create_task(
                consumer.getmany(timeout_ms=timeout_ms, max_records=max_records)
            )
        fetch = self._fetch
        await asyncio.wait([fetch], timeout=timeout_ms / 1000 + _FETCH_GRACE_S)
        self._raise_failure()
        if not fetch.done():
            return []
        self._fetch = None
        try:
            batches = fetch.result()
        except KafkaError as error:
            raise translated(error, "reading from Kafka") from error
        if self._fetch_started != (self._epoch, max_records) or not self._ready.is_set():
            self._rewind(batches)
            if not self._ready.is_set():
                await self._until_ready(timeout_ms / 1000)
            return []
        return self._records(batches)

    def pause(self, partitions: Collection[Partition]) -> None:
        """See ``Transport.pause``. A pause ends with the assignment."""
        for partition in partitions:
            tp = TopicPartition(*partition)
            if tp in self._held and tp not in self._paused:
                self._paused.add(tp)
                if self._consumer is not None and self._ready.is_set():
                    self._consumer.pause(tp)

    def resume(self, partitions: Collection[Partition]) -> None:
        """See ``Transport.resume``."""
        for partition in partitions:
            tp = TopicPartition(*partition)
            if tp in self._paused:
                self._paused.remove(tp)
                if self._consumer is not None and self._ready.is_set():
                    self._consumer.resume(tp)

    async def publish(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        """See ``Transport.publish``. Raises PartitionLost, TransportUnavailable, TransportError."""
        writer, consumer = self._writer, self._consumer
        if writer is None or consumer is None:
            raise TransportError("publish was called before start or after stop")
        check_commits(commits, self._held.values())
        await writer.write(records)
        if not commits:
            return
        positions = {
            TopicPartition(*partition): (at.offset, at.metadata) for partition, at in commits.items()
        }
        try:
            async with asyncio.timeout(self._settings.delivery_timeout_ms / 1000):
                await consumer.commit(positions)
        except (KafkaError, TimeoutError) as error:
            raise translated(error, f"committing positions of group {self._settings.group_id}") from error

    async def stop(self) -> None:
        """Leave the group and close. The listener hears nothing; drain before."""
        consumer, self._consumer = self._consumer, None
        writer, self._writer = self._writer, None
        admin, self._admin = self._admin, None
        fetch, self._fetch = self._fetch, None
        if consumer is not None and not await self._closed("consumer", consumer.stop()):
            # Interrupted half-way, which a broker that is away can do, it leaves its connections open.
            await consumer._client.close()
        if fetch is not None:
            fetch.cancel()  # its consumer is gone, so nothing is left to be disturbed by it
            await asyncio.gather(fetch, return_exceptions=True)
        if writer is not None:
            await self._closed("producer", writer.stop())
        if admin is not None:
            await self._closed("admin client", admin.close())
        self._forget()

    async def _closed(self, what: str, closing: Coroutine[Any, Any, None]) -> bool:
        """Whether it closed in order and in time.

        In a task of its own: a client that meets a dead broker on its way out may end in a CancelledError
        that nobody asked for and that must not end its caller.
        """
        task = asyncio.create_task(closing)
        await asyncio.wait([task], timeout=self._settings.request_timeout_ms / 1000)
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, (KafkaError, OSError, TimeoutError)):
            raise error
        if task.cancelled() or error is not None:
            _log.warning("the Kafka %s did not close cleanly: %s", what, type(error).__name__)
            return False
        return True

    def _records(self, batches: Mapping[TopicPartition, Sequence[Any]]) -> list[Record]:
        """Our records from the library's, positions moved on."""
        found: list[Record] = []
        for tp, batch in batches.items():
            partition = self._held.get(tp)
            if partition is None or tp in self._paused:
                self._rewind({tp: batch})
                continue
            found += [
                Record(
                    partition,
                    record.offset,
                    record.key,
                    record.value,
                    tuple((name, value or b"") for name, value in record.headers) if record.headers else (),
                    record.timestamp,
                )
                for record in batch
            ]
            self._next[tp] = batch[-1].offset + 1
        return found

    def _rewind(self, batches: Mapping[TopicPartition, Sequence[Any]]) -> None:
        """Have records that can't be returned now fetched again, where the partition is still ours."""
        consumer = self._consumer
        for tp in batches:
            if consumer is not None and tp in self._next:
                try:
                    consumer.seek(tp, self._next[tp])
                except IllegalStateError:
                    continue  # taken away in this very moment: the next owner begins at the committed offset

    async def _until_ready(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        except TimeoutError:
            return

    async def _assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Runs in the library's background task, before it heartbeats for the new assignment."""
        consumer, listener = self._consumer, self._listener
        if consumer is None or listener is None:
            return
        tps = sorted(partitions)
        consumer.pause(*tps)
        committed = await self._committed(tps)
        starts = await self._starts([tp for tp in tps if committed[tp] is None])
        self._held = {tp: Partition(tp.topic, tp.partition) for tp in tps}
        if tps:
            await listener.on_assigned({self._held[tp]: committed[tp] for tp in tps})
        for tp in tps:
            commit = committed[tp]
            self._next[tp] = starts[tp] if commit is None else commit.offset
            consumer.seek(tp, self._next[tp])
            if tp not in self._paused:
                consumer.resume(tp)
        self._ready.set()

    async def _revoked(self) -> None:
        """Runs in the library's background task, before it joins again; the group waits for it."""
        self._ready.clear()
        self._epoch += 1
        try:
            if self._held and self._listener is not None:
                await self._listener.on_revoked(tuple(self._held.values()))
        finally:
            self._forget()

    async def _committed(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, Commit | None]:
        """Committed positions with their metadata.

        A coordinator that is loading answers with an error that the library loses, leaving an empty
        answer; an answer is therefore taken only when it has every partition asked for.
        """
        if not tps or self._admin is None:
            return {}
        async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
            while True:
                try:
                    found = await self._admin.list_consumer_group_offsets(
                        self._settings.group_id, partitions=list(tps)
                    )
                except KafkaError as error:
                    if not error.retriable:
                        raise
                else:
                    if all(tp in found for tp in tps):
                        break
                await asyncio.sleep(_RETRY_S)
        return {
            tp: Commit(found[tp].offset, found[tp].metadata or "") if found[tp].offset >= 0 else None
            for tp in tps
        }

    async def _starts(self, tps: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Where partitions without a committed position begin."""
        if not tps or self._consumer is None:
            return {}
        if self._settings.auto_offset_reset == "earliest":
            return dict(await self._consumer.beginning_offsets(list(tps)))
        return dict(await self._consumer.end_offsets(list(tps)))

    def _failed(self, error: Exception, doing: str) -> None:
        known = isinstance(error, (KafkaError, TimeoutError))
        self._failure = translated(error, doing) if known else error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _forget(self) -> None:
        self._held.clear()
        self._next.clear()
        self._paused.clear()
        self._ready.clear()


class _Rebalance(ConsumerRebalanceListener):
    """Keeps what the callbacks raise for the next poll: the library would only log it."""

    def __init__(self, transport: KafkaTransport) -> None:
        self._transport = transport

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:  # noqa: ARG002
        try:
            await self._transport._revoked()
        except Exception as error:  # noqa: BLE001
            self._transport._failed(error, "giving up partitions")

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        try:
            await self._transport._assigned(assigned)
        except Exception as error:  # noqa: BLE001
            self._transport._failed(error, "taking over partitions")
