"""The transport over a Kafka cluster, on aiokafka.

The client library leaves these gaps, which this module fills:

- A rebalance runs in a background task of the library, which assigns new partitions, fetches for them and
  only then calls back, and it swallows exceptions of the callback. Here no record leaves ``poll`` before
  ``on_assigned`` has returned, and its exceptions come out of the next ``poll``.
- Positions are set explicitly after the callback, from the group's committed offsets read together with their
  metadata, which the consumer's own ``committed`` drops.
- It sends no heartbeat while its callback runs, so reading a large state would cost the membership. Here
  heartbeats begin earlier, and reading stops if they report the next rebalance.
- A cancelled poll disables the library's idle detection for good, and a poll during a rebalance waits for its
  end. So the fetch is a task that outlives a poll, and the next poll continues it.
- Nothing waits forever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import IllegalStateError, KafkaError

from consumers.kafka.client import (
    asking,
    client_options,
    close_consumer,
    closed_in_time,
    connect_admin,
    require_topics,
    translated,
)
from consumers.kafka.producing import KafkaWriter, TransactionalProducer
from consumers.kafka.recovery import Meanwhile, Positions, Steps, Taken, named, until_answered
from consumers.kafka.watch import GroupWatch, KafkaWatch, announcing
from consumers.kafka.workarounds import Membership
from consumers.settings import KafkaSettings
from consumers.transport import (
    NOT_ASSIGNED,
    AssignmentListener,
    Commit,
    OutRecord,
    Partition,
    Record,
    Restored,
    StateRecord,
    check_commits,
)
from guardrail.errors import PartitionLost, StepFailed, TransportError
from guardrail.log_events import EventLog

_FETCH_GRACE_S: Final = 0.1
_RETRY_S: Final = 0.2
_ENDS_EVERY_S: Final = 1.0
_ENDS_WITHIN_S: Final = 5.0
_GIVE_UP_START_S: Final = 5.0
_LEAST_CLOSING_S: Final = 1.0

_T = TypeVar("_T")

_log = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class _Fetch:
    """A fetch under way, and the state when it began."""

    task: asyncio.Task[dict[TopicPartition, list[Any]]]
    epoch: int
    max_records: int
    recoveries: int


class KafkaTransport:
    """``consumers.transport.Transport`` on a Kafka cluster."""

    def __init__(
        self,
        settings: KafkaSettings,
        input_topic: str | None = None,
        *,
        output_topics: Collection[str] | None = None,
        producer_class: type[TransactionalProducer] = TransactionalProducer,
    ) -> None:
        """Topics default to those of ``settings``; ``producer_class`` runs the steps."""
        self._settings = settings
        self._input_topic = input_topic or settings.topics.responses
        self._output_topics = tuple(settings.topics.outputs() if output_topics is None else output_topics)
        self._producer_class = producer_class
        self._exactly_once = settings.delivery_guarantee == "exactly_once"
        self._admin: AIOKafkaAdminClient | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._writer: KafkaWriter | None = None
        self._positions: Positions | None = None
        self._steps: Steps | None = None
        self._membership: Membership | None = None
        self._watch: KafkaWatch | None = None
        self._watching: asyncio.Task[None] | None = None
        self._listener: AssignmentListener | None = None
        self._held: dict[TopicPartition, Partition] = {}
        self._next: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        """Of partitions that are paused, which are not fetched from: where they end."""
        self._newly_paused = asyncio.Event()
        self._paused: set[TopicPartition] = set()
        self._ready = asyncio.Event()
        """Set while assigned partitions may be read, cleared while a rebalance is under way."""
        self._epoch = 0
        self._over: asyncio.Future[None] | None = None
        """Done when the assignment ends: nothing is worth being recovered or restored any more."""
        self._late: dict[Partition, asyncio.Task[None]] = {}
        """Partitions of the assignment that could not be taken over with the others."""
        self._recovering: set[TopicPartition] = set()
        self._recoveries = 0
        self._recovered_at: dict[TopicPartition, int] = {}
        self._fetch: _Fetch | None = None
        self._failure: Exception | None = None
        self._meanwhile = Meanwhile(self._serves_others, lambda: self._watch is not None and self._watch.away)

    async def start(self, listener: AssignmentListener) -> None:
        """Check broker and topics, connect, ask to join the group; partitions come in the background."""
        if self._listener is not None:
            raise TransportError("start was called twice; make a new transport to join again")
        self._listener = listener
        settings = self._settings
        try:
            self._admin = await connect_admin(settings)
            topics = {self._input_topic, *self._output_topics}
            if self._exactly_once:
                topics.add(settings.topics.sessions)
            await require_topics(self._admin, settings, topics)
            self._over = asyncio.get_running_loop().create_future()
            self._consumer = AIOKafkaConsumer(
                **{
                    "rebalance_timeout_ms": settings.session_timeout_ms,
                    **client_options(settings, AIOKafkaConsumer),
                },
                group_id=settings.group_id,
                group_instance_id=settings.group_instance_id,
                enable_auto_commit=False,
                auto_offset_reset=settings.auto_offset_reset,
                # One assignor only: the library joins once per assignor.
                partition_assignment_strategy=(announcing(settings.topics.deliveries),),
            )
            self._positions = Positions(settings, self._admin, self._consumer)
            if self._exactly_once:
                self._steps = Steps(settings, self._positions, self._output_topics, self._producer_class)
            else:
                self._writer = KafkaWriter(settings)
            async with asyncio.timeout(settings.connect_timeout_ms / 1000):
                if self._writer is not None:
                    await self._writer.start()
                await self._consumer.start()
            self._membership = Membership(
                self._consumer,
                settings.group_id,
                settings.group_instance_id,
                settings.session_timeout_ms,
                self._fail,
            )
            self._consumer.subscribe([self._input_topic], listener=_Rebalance(self))
            self._watch = KafkaWatch(settings, self._consumer, self._admin, [self._input_topic], topics)
            looking = self._look_on(self._watch, GroupWatch(settings, self._admin))
            self._watching = asyncio.create_task(looking, name="kafka-watch")
        except BaseException as error:
            await self.stop(_GIVE_UP_START_S)
            if isinstance(error, (KafkaError, OSError, TimeoutError)):
                raise translated(error, f"connecting to Kafka at {settings.bootstrap_servers}") from error
            raise

    async def _look_on(self, watch: KafkaWatch, groups: GroupWatch) -> None:
        """Ends the guard with the next poll if one of them fails: without them it would not see an outage."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(watch.run())
                group.create_task(groups.run())
                group.create_task(self._learn_ends(watch))
        except Exception as error:  # noqa: BLE001 - the next poll raises it
            self._failed(error, "watching Kafka")

    async def _learn_ends(self, watch: KafkaWatch) -> None:
        """Ask where paused partitions end, every second: only fetching would tell."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ENDS_EVERY_S):
                    await self._newly_paused.wait()
            self._newly_paused.clear()
            paused = [tp for tp in self._paused if tp in self._next]
            consumer = self._consumer
            if not paused or consumer is None or watch.away:
                continue
            try:
                async with asyncio.timeout(_ENDS_WITHIN_S):
                    self._ends |= await consumer.end_offsets(paused)
            except (KafkaError, TimeoutError):
                continue  # the next time

    async def poll(self, timeout_ms: int, max_records: int) -> Sequence[Record]:
        """See ``Transport.poll``. Raises what the listener raised, TransportError, TransportUnavailable."""
        consumer = self._consumer
        if consumer is None:
            raise TransportError("poll was called before start or after stop")
        self._raise_failure()
        if self._fetch is None:
            getting = asyncio.create_task(consumer.getmany(timeout_ms=timeout_ms, max_records=max_records))
            self._fetch = _Fetch(getting, self._epoch, max_records, self._recoveries)
        fetch = self._fetch
        await asyncio.wait([fetch.task], timeout=timeout_ms / 1000 + _FETCH_GRACE_S)
        self._raise_failure()
        if not fetch.task.done():
            return []
        self._fetch = None
        try:
            batches = fetch.task.result()
        except KafkaError as error:
            if not error.retriable:
                raise translated(error, "reading from Kafka") from error
            # The library goes on trying by itself.
            if self._watch is None or not self._watch.away:
                _log.warning("guard.read_failed", error=type(error).__name__, effect="it is tried again")
            await asyncio.sleep(min(_RETRY_S, timeout_ms / 1000))
            return []
        if (fetch.epoch, fetch.max_records) != (self._epoch, max_records) or not self._ready.is_set():
            self._rewind(batches)
            if not self._ready.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(timeout_ms / 1000):
                        await self._ready.wait()
            return []
        found = self._records(batches, fetch.recoveries)
        await self._pass_markers()
        return found

    def pause(self, partitions: Collection[Partition]) -> None:
        """See ``Transport.pause``. A pause ends with the assignment."""
        for partition in partitions:
            tp = TopicPartition(*partition)
            if tp in self._held and tp not in self._paused:
                self._paused.add(tp)
                self._newly_paused.set()
                if self._consumer is not None and self._ready.is_set():
                    self._consumer.pause(tp)

    def resume(self, partitions: Collection[Partition]) -> None:
        for partition in partitions:
            tp = TopicPartition(*partition)
            if tp in self._paused:
                self._paused.remove(tp)
                if self._consumer is not None and self._ready.is_set() and tp not in self._recovering:
                    self._consumer.resume(tp)

    @property
    def group(self) -> str:
        return self._settings.group_id

    def waits_for(self) -> str:
        if self._watch is not None and self._watch.waits_for:
            return self._watch.waits_for
        if not self._ready.is_set():
            return NOT_ASSIGNED
        if self._late:
            return f"partitions that can't be taken over yet: {named(self._late)}"
        return ""

    def unread(self, partition: Partition) -> int | None:
        """See ``Transport.unread``. Known once the partition has been fetched from, or was paused."""
        tp = TopicPartition(*partition)
        if self._consumer is None or tp not in self._next or not self._ready.is_set():
            return None
        try:
            end = self._consumer.highwater(tp)
        except IllegalStateError:
            return None  # revoked at this very moment
        if end is None and tp not in self._ends:
            return None
        return max(0, max(end or 0, self._ends.get(tp, 0)) - self._next[tp])

    async def publish(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
        """See ``Transport.publish``. Raises PartitionLost, TransportUnavailable, TransportError."""
        writer, consumer = self._writer, self._consumer
        if consumer is None:
            raise TransportError("publish was called before start or after stop")
        if writer is None:
            raise TransportError("publish is for delivery_guarantee at_least_once; use transact")
        check_commits(commits, self._held.values())
        await writer.write(records)
        if not commits:
            return
        positions = {
            TopicPartition(*partition): (at.offset, at.metadata) for partition, at in commits.items()
        }
        doing = f"committing positions of group {self._settings.group_id}"
        async with asking(doing, self._settings.delivery_timeout_ms):
            await consumer.commit(positions)

    async def transact(
        self, partition: Partition, records: Sequence[OutRecord], state: Sequence[StateRecord], commit: Commit
    ) -> None:
        """See ``Transport.transact``. Raises StepFailed, PartitionLost, TransportError for what lasts."""
        steps = self._began("transact")
        check_commits({partition: commit}, self._held.values())
        try:
            await steps.take(partition, records, state, commit)
        except StepFailed as error:
            if partition not in self._held.values():
                raise PartitionLost(f"given to another member while a step was under way: {error}") from error
            raise

    async def recover(self, partition: Partition) -> Restored:
        """See ``Transport.recover``. Raises PartitionLost, TransportUnavailable, TransportError.

        First asks the group's coordinator whether the partition is still ours: a frozen process that was
        expelled without knowing it must not fence its successor.
        """
        steps, consumer = self._began("recover"), self._consumer
        tp = TopicPartition(*partition)
        lost = PartitionLost(f"{partition} is not held by this member (any more)")
        if consumer is None or tp not in self._held:
            raise lost
        self._recovering.add(tp)
        with suppress(IllegalStateError):  # revoked at this very moment
            consumer.pause(tp)
        taken = await self._unless_over(steps.open([partition], self._meanwhile, self._check_membership))
        if taken is None or tp not in self._held:
            raise lost
        restored, self._next[tp] = taken[partition]
        self._recoveries += 1
        self._recovered_at[tp] = self._recoveries
        consumer.seek(tp, self._next[tp])
        self._recovering.discard(tp)
        if tp not in self._paused:
            consumer.resume(tp)
        return restored

    async def stop(self, within_s: float | None = None) -> None:
        """Leave the group and close. The listener is not called; drain first.

        ``within_s`` defaults to request_timeout_ms, and is at least the time that closing a socket takes.
        """
        self._end_assignment()
        await self._end_late()
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        if self._membership is not None:
            self._membership.join_no_more()
        steps, self._steps = self._steps, None
        consumer, self._consumer = self._consumer, None
        writer, self._writer = self._writer, None
        admin, self._admin = self._admin, None
        fetch, self._fetch = self._fetch, None
        now = asyncio.get_running_loop().time
        deadline = now() + (self._settings.request_timeout_ms / 1000 if within_s is None else within_s)

        def left_s() -> float:
            return max(_LEAST_CLOSING_S, deadline - now())

        if steps is not None:
            # Before the group learns about it, so that nobody waits for an open transaction.
            await closed_in_time("producers", steps.close(), left_s())
        if consumer is not None:
            if self._membership is not None:
                await closed_in_time("membership", self._membership.leave(), left_s())
            await close_consumer(consumer, left_s())
        if fetch is not None:
            fetch.task.cancel()  # its consumer is gone, so it can't disturb anything
            await asyncio.gather(fetch.task, return_exceptions=True)
        if writer is not None:
            await closed_in_time("producer", writer.stop(), left_s())
        if admin is not None:
            await closed_in_time("admin client", admin.close(), left_s())
        self._forget()

    def _began(self, what: str) -> Steps:
        if self._consumer is None:
            raise TransportError(f"{what} was called before start or after stop")
        if self._steps is None:
            raise TransportError(f"{what} is for delivery_guarantee exactly_once")
        return self._steps

    def _records(self, batches: Mapping[TopicPartition, Sequence[Any]], recoveries: int) -> list[Record]:
        """Our records from the library's, with positions advanced; ``recoveries`` as the fetch began."""
        found: list[Record] = []
        for tp, batch in batches.items():
            partition = self._held.get(tp)
            recovered = tp in self._recovering or self._recovered_at.get(tp, 0) > recoveries
            if partition is None or recovered or tp in self._paused:
                self._rewind({tp: batch})
                continue
            found += [
                Record(
                    partition,
                    record.offset,
                    record.key,
                    record.value,
                    tuple(record.headers),
                    record.timestamp,
                )
                for record in batch
            ]
            self._next[tp] = batch[-1].offset + 1
        return found

    async def _pass_markers(self) -> None:
        """Move on behind what is not a record, such as the markers of producers' transactions."""
        consumer = self._consumer
        for tp in [tp for tp, partition in self._held.items() if self.unread(partition)]:
            if consumer is None or tp in self._paused or tp in self._recovering:
                continue
            try:
                at = await consumer.position(tp)
            except IllegalStateError:
                return  # revoked at this very moment
            if tp in self._next:
                self._next[tp] = max(at, self._next[tp])

    def _rewind(self, batches: Mapping[TopicPartition, Sequence[Any]]) -> None:
        """Fetch records that can't be returned now again, if the partition is still ours."""
        consumer = self._consumer
        for tp in batches:
            if consumer is not None and tp in self._next:
                # Revoked at this very moment? The next owner begins at the committed offset.
                with suppress(IllegalStateError):
                    consumer.seek(tp, self._next[tp])

    async def _assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Runs in the library's background task, after the group has agreed on the assignment."""
        consumer, listener = self._consumer, self._listener
        if consumer is None or listener is None or self._membership is None:
            return
        self._membership.joined()
        tps = sorted(partitions)
        held = {tp: Partition(tp.topic, tp.partition) for tp in tps}
        self._over = asyncio.get_running_loop().create_future()
        consumer.pause(*tps)
        taken = await self._unless_over(self._take_over(list(held.values())))
        if taken is None:
            return  # the next rebalance has begun, or we stop: the listener never sees this assignment
        self._held = held
        if taken:
            await listener.on_assigned({partition: restored for partition, (restored, _) in taken.items()})
        if consumer is not self._consumer:
            return  # stopped in the meantime
        self._begin(consumer, taken)
        for late in held.values():
            if late not in taken:
                self._late[late] = asyncio.create_task(self._take_later(late), name=f"take {late}")
        self._ready.set()

    def _begin(self, consumer: AIOKafkaConsumer, taken: Mapping[Partition, Taken]) -> None:
        """Read partitions that were taken over."""
        for partition, (_, offset) in taken.items():
            tp = TopicPartition(*partition)
            self._next[tp] = offset
            consumer.seek(tp, offset)
            if tp not in self._paused:
                consumer.resume(tp)

    async def _take_later(self, partition: Partition) -> None:
        """Take a partition over while the others are read; ends with the assignment."""
        consumer, listener, steps = self._consumer, self._listener, self._steps
        if consumer is None or listener is None or steps is None:
            return
        try:
            opening = steps.open([partition], self._meanwhile, self._check_membership)
            taken = await self._unless_over(opening)
            if taken is None:
                return
            await listener.on_assigned({partition: taken[partition].restored})
            if self._late.pop(partition, None) is not None:
                self._begin(consumer, taken)
        except PartitionLost:
            return  # the next assignment is under way
        except Exception as error:  # noqa: BLE001 - the next poll raises it
            self._failed(error, "taking over partitions")

    def _serves_others(self) -> bool:
        """Whether partitions are read while one is being taken over."""
        return self._ready.is_set() and any(tp not in self._recovering for tp in self._next)

    async def _end_late(self) -> None:
        late = list(self._late.values())
        self._late.clear()
        if late:
            await asyncio.wait(late)

    async def _revoked(self) -> None:
        """Runs in the library's background task before it joins again; the group waits for it."""
        self._ready.clear()
        self._epoch += 1
        self._end_assignment()
        await self._end_late()
        try:
            if self._held and self._listener is not None:
                await self._listener.on_revoked(tuple(self._held.values()))
        finally:
            self._forget()
            if self._steps is not None:
                await self._steps.close()

    async def _take_over(self, partitions: Collection[Partition]) -> Mapping[Partition, Taken]:
        positions = self._positions
        if not partitions or positions is None:
            return {}
        if self._steps is not None:
            return await self._steps.open(partitions, self._meanwhile)
        return await until_answered(
            self._settings, partitions, lambda: positions.take_over(partitions), self._meanwhile
        )

    async def _check_membership(self) -> None:
        """Raise PartitionLost if a rebalance is due, TransportError if the coordinator can't be asked."""
        if self._membership is None:
            raise PartitionLost("the transport was stopped")
        async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
            await self._membership.check()

    async def _unless_over(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """The result of ``work``; cancels it and returns None if the assignment ends first."""
        membership, over = self._membership, self._over
        task = asyncio.ensure_future(work)
        try:
            if membership is not None and over is not None:
                signals: set[asyncio.Future[Any]] = {task, over, membership.rebalance_due()}
                await asyncio.wait(signals, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
            await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    def _end_assignment(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def _failed(self, error: Exception, doing: str) -> None:
        known = isinstance(error, (KafkaError, TimeoutError))
        self._failure = translated(error, doing) if known else error

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _forget(self) -> None:
        self._held = {}
        self._next.clear()
        self._ends.clear()
        self._paused.clear()
        self._recovering.clear()
        self._recovered_at.clear()
        self._ready.clear()


class _Rebalance(ConsumerRebalanceListener):
    """Keeps the callbacks' exceptions for the next poll: the library would only log them."""

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
