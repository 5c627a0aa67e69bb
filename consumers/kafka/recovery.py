"""What a new owner of partitions reads back (positions and stored state), and the producers that it starts.

Positions are the group's committed ones, with the notes committed with them. Stored state is the compacted
sessions topic, read from its beginning to its end. Recovery waits for brokers that are down.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, TopicAuthorizationFailedError

from consumers.kafka.client import close_consumer, groupless_options, translated
from consumers.kafka.producing import TransactionalProducer
from consumers.reading import Range, TopicReader
from consumers.sessions_topic import key_prefix
from consumers.settings import MEBIBYTE, KafkaSettings
from consumers.transport import Commit, OutRecord, Partition, Restored, StateRecord
from guardrail import telemetry
from guardrail.errors import PartitionLost, StepFailed, TransportError, TransportUnavailable
from guardrail.log_events import EventLog

_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 3.0
_LOG_AGAIN_S: Final = 30.0
_TOGETHER_S: Final = 10.0
"""How long several partitions may take together before each is taken over by itself."""
_REST_S: Final = 2.0
"""How long the others may take after one of them is done; those that take longer are not waited for."""

_FINAL: Final = (
    PartitionLost,
    TransportUnavailable,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)
_MAY_PASS: Final = (TransportError, KafkaError, OSError, TimeoutError)

_T = TypeVar("_T")

_log = EventLog(__name__)


class Meanwhile(NamedTuple):
    """What else a guard is at while it takes partitions over."""

    others_are_served: Callable[[], bool]
    kafka_is_away: Callable[[], bool]


async def until_answered(
    settings: KafkaSettings,
    partitions: Collection[Partition],
    attempt: Callable[[], Awaitable[_T]],
    meanwhile: Meanwhile,
) -> _T:
    """The result of ``attempt`` to take over ``partitions``, retried until it succeeds.

    Tries for up to ``recovery_timeout_ms``. That time does not run while the guard serves other partitions,
    which must not end with these, nor while no broker answers: a restart would gain nothing. PartitionLost,
    TransportUnavailable and denied access end it at once. Raises them, and TransportUnavailable when time is
    up.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + settings.recovery_timeout_ms / 1000
    wait_s, log_at = _FIRST_WAIT_S, loop.time()
    while True:
        try:
            return await attempt()
        except _FINAL as error:
            if isinstance(error, KafkaError):
                raise translated(error, f"taking over {named(partitions)}") from error
            raise
        except _MAY_PASS as error:
            cause = translated(error, f"taking over {named(partitions)}")
            away = meanwhile.kafka_is_away()
            if not away:
                telemetry.FAILED_TAKEOVERS.inc()
            if away or meanwhile.others_are_served():
                deadline = loop.time() + settings.recovery_timeout_ms / 1000
            elif loop.time() + wait_s >= deadline:
                raise TransportUnavailable(
                    f"{cause}; gave up after {settings.recovery_timeout_ms / 1000:g} s; "
                    "do the brokers answer, do all topics exist?"
                ) from error
        if loop.time() >= log_at:
            _log.warning("guard.takeover_failed", error=str(cause), effect="it is tried again")
            log_at = loop.time() + _LOG_AGAIN_S
        await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


def named(partitions: Collection[Partition]) -> str:
    """For messages."""
    return ", ".join(map(str, sorted(partitions)))


_RETRY_S: Final = 0.2


class Taken(NamedTuple):
    """A partition that was taken over."""

    restored: Restored
    offset: int
    """The next to read."""


class Positions:
    """Asks the brokers for a group's positions. Its calls raise KafkaError and TimeoutError."""

    def __init__(
        self, settings: KafkaSettings, admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer
    ) -> None:
        self._settings = settings
        self._admin = admin
        self._consumer = consumer
        self.first_is_kept: Final = settings.auto_offset_reset == "latest"
        """Must the first position of a partition be committed before anything is read?

        The end moves. Where it was not kept, a successor would begin at another one, and what came in
        between would be lost; the beginning it finds again.
        """

    async def committed(self, partitions: Collection[Partition]) -> dict[Partition, Commit | None]:
        """See ``committed_positions``."""
        return await committed_positions(self._admin, self._settings, partitions)

    async def first(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Where partitions without a committed position begin, by ``auto_offset_reset``."""
        if not partitions:
            return {}
        consumer = self._consumer
        ask: Any = consumer.end_offsets if self.first_is_kept else consumer.beginning_offsets
        async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
            found = await ask([TopicPartition(*partition) for partition in partitions])
        return {partition: found[TopicPartition(*partition)] for partition in partitions}

    async def take_over(self, partitions: Collection[Partition]) -> dict[Partition, Taken]:
        """At least once: the committed positions, or the first position if there is none."""
        committed = await self.committed(partitions)
        first = await self.first([one for one, commit in committed.items() if commit is None])
        if first and self.first_is_kept:
            # As a member: a commit by a former member is refused.
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                await self._consumer.commit(
                    {TopicPartition(*partition): (offset, "") for partition, offset in first.items()}
                )
            committed |= {partition: Commit(offset) for partition, offset in first.items()}
        return taken({one: Restored(commit, {}) for one, commit in committed.items()}, first)


def taken(restored: Mapping[Partition, Restored], first: Mapping[Partition, int]) -> dict[Partition, Taken]:
    """Every partition with its starting position: the committed one, else the first."""
    return {
        partition: Taken(found, first[partition] if found.commit is None else found.commit.offset)
        for partition, found in restored.items()
    }


async def committed_positions(
    admin: AIOKafkaAdminClient, settings: KafkaSettings, partitions: Collection[Partition]
) -> dict[Partition, Commit | None]:
    """The group's last committed positions; the consumer's own ``committed`` drops the notes.

    A coordinator that is loading returns an error that the library drops, leaving an empty answer, so an
    answer only counts if it has every requested partition. Raises KafkaError and TimeoutError.
    """
    if not partitions:
        return {}
    tps = {partition: TopicPartition(*partition) for partition in partitions}
    async with asyncio.timeout(settings.request_timeout_ms / 1000):
        while True:
            try:
                found = await admin.list_consumer_group_offsets(
                    settings.group_id, partitions=list(tps.values())
                )
            except KafkaError as error:
                if not error.retriable:
                    raise
            else:
                if all(tp in found for tp in tps.values()):
                    break
            await asyncio.sleep(_RETRY_S)
    return {
        partition: Commit(found[tp].offset, found[tp].metadata or "") if found[tp].offset >= 0 else None
        for partition, tp in tps.items()
    }


_CLOSE_S: Final = 2.0


async def read_state(
    settings: KafkaSettings, topic: str, indices: Collection[int]
) -> dict[int, dict[bytes, bytes]]:
    """The latest value of every key of the group that was not deleted, by partition, in the order of writing.

    Reads up to the current last stable offset, so call it after fencing the writers; it sees nothing of
    aborted transactions. Raises TransportError, for one if the brokers return nothing for
    ``request_timeout_ms``; while it begins, KafkaError and OSError too.
    """
    states: dict[int, dict[bytes, bytes]] = {index: {} for index in indices}
    if not states:
        return states
    prefix = key_prefix(settings.group_id)
    options = groupless_options(settings)
    fetched_bytes = max(MEBIBYTE, options.pop("max_partition_fetch_bytes"))
    consumer = AIOKafkaConsumer(**options, max_partition_fetch_bytes=fetched_bytes)
    try:
        async with asyncio.timeout(settings.request_timeout_ms / 1000):
            await consumer.start()
            reader = TopicReader(settings, topic, consumer)
            await reader.begin(indices)
            await reader.take(Range())
        async for record in reader.until_end():
            if record.key is None or not record.key.startswith(prefix):
                continue
            state, key = states[record.partition.index], record.key[len(prefix) :]
            state.pop(key, None)  # the latest value stands last
            if record.value is not None:
                state[key] = record.value
    except TimeoutError as error:
        raise translated(error, f"reading the state of topic {topic}") from error
    finally:
        await close_consumer(consumer, _CLOSE_S)
    return states


class Steps:
    """The producers of the partitions that this member holds."""

    def __init__(
        self,
        settings: KafkaSettings,
        positions: Positions,
        output_topics: Collection[str],
        producer_class: type[TransactionalProducer],
    ) -> None:
        self._settings = settings
        self._positions = positions
        self._output_topics = tuple(output_topics)
        self._producer_class = producer_class
        self._producers: dict[Partition, TransactionalProducer] = {}

    async def take(
        self, partition: Partition, records: Sequence[OutRecord], state: Sequence[StateRecord], commit: Commit
    ) -> None:
        """Run one step of a partition. Raises StepFailed, TransportError, TransportUnavailable."""
        producer = self._producers.get(partition)
        if producer is None:
            raise StepFailed(f"{partition}: no producer; an earlier recovery failed")
        await producer.transact(records, state, commit)

    async def open(
        self,
        partitions: Collection[Partition],
        meanwhile: Meanwhile,
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> dict[Partition, Taken]:
        """Fence all earlier writers of these partitions and read the broker's state of them.

        Returns those of them that can be taken over, once there is one. With ``auto_offset_reset`` latest,
        commits the first position if there was none. Waits for brokers that are down, see
        ``until_answered``. Awaits ``check`` before every attempt: PartitionLost from it ends them all.
        Raises it, and TransportUnavailable.
        """

        async def attempt() -> dict[Partition, Taken]:
            if check is not None:
                await check()
            if len(partitions) == 1:
                return await self._open(partitions)
            try:
                async with asyncio.timeout(_TOGETHER_S):
                    return await self._open(partitions)
            except _FINAL:
                raise
            except _MAY_PASS:
                if found := await self._open_each(partitions):
                    return found
                raise

        return await until_answered(self._settings, partitions, attempt, meanwhile)

    async def _open_each(self, partitions: Collection[Partition]) -> dict[Partition, Taken]:
        """Those that can be opened by themselves, soon after the first of them: what is wrong with one, or
        lasts, must not keep the others. Those that fail are tried again, and then told.
        """
        found: dict[Partition, Taken] = {}
        tasks = [asyncio.create_task(self._open([partition])) for partition in partitions]
        waiting = set(tasks)
        try:
            while waiting:
                patience_s = _REST_S if found else None
                done, waiting = await asyncio.wait(
                    waiting, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    break
                for task in done:
                    error = task.exception()
                    if isinstance(error, _FINAL) or not isinstance(error, (*_MAY_PASS, type(None))):
                        raise error
                    if error is None:
                        found |= task.result()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return found

    async def close(self, partitions: Collection[Partition] | None = None) -> None:
        """Stop the producers of these partitions, or all; steps under way fail."""
        chosen = list(self._producers) if partitions is None else partitions
        stopping = [self._producers.pop(one) for one in chosen if one in self._producers]
        await _stop_all(stopping)

    async def _open(self, partitions: Collection[Partition]) -> dict[Partition, Taken]:
        await self.close(partitions)
        made = {
            partition: self._producer_class(self._settings, partition, self._output_topics)
            for partition in partitions
        }
        try:
            async with asyncio.TaskGroup() as group:
                for producer in made.values():
                    group.create_task(producer.start())
            # Only now is nothing of them under way any more, neither records nor positions.
            indices = [partition.index for partition in made]
            states = await read_state(self._settings, self._settings.topics.sessions, indices)
            committed = await self._positions.committed(made)
            first = await self._positions.first([one for one in made if committed[one] is None])
            restored = {one: Restored(committed[one], states[one.index]) for one in made}
            if self._positions.first_is_kept:
                async with asyncio.TaskGroup() as group:
                    for one, offset in first.items():
                        group.create_task(_keep(made[one], states[one.index], offset))
                restored |= {one: Restored(Commit(offset), {}) for one, offset in first.items()}
        except BaseException as error:
            await _stop_all(made.values())
            cause: BaseException = error
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            if cause is error:
                raise
            raise cause from error
        self._producers.update(made)
        return taken(restored, first)


async def _keep(producer: TransactionalProducer, state: Mapping[bytes, bytes], offset: int) -> None:
    """Commit the first position. Stored sessions belong to earlier records and would never finish."""
    if state:
        _log.warning("guard.sessions_forgotten", records=len(state), why="no position is committed")
    await producer.transact([], [StateRecord(key, None) for key in state], Commit(offset))


async def _stop_all(producers: Collection[TransactionalProducer]) -> None:
    async with asyncio.TaskGroup() as group:
        for producer in producers:
            group.create_task(producer.stop())
