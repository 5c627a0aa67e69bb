"""Exactly once over Kafka: a transactional producer per held partition, and what the broker has of each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from consumers.kafka_patience import named, until_answered
from consumers.kafka_positions import Positions, Taken, taken
from consumers.kafka_state import read_state
from consumers.kafka_transactions import TransactionalProducer
from consumers.transport import Commit, OutRecord, Partition, Restored, StateRecord
from guardrail.errors import StepFailed, only_cause
from guardrail.kafka_settings import KafkaSettings

_log = logging.getLogger(__name__)


class Steps:
    """The producers of the partitions that this member holds."""

    def __init__(
        self,
        settings: KafkaSettings,
        positions: Positions,
        output_topics: Collection[str],
        producer_class: type[TransactionalProducer] = TransactionalProducer,
    ) -> None:
        self._settings = settings
        self._positions = positions
        self._output_topics = tuple(output_topics)
        self._producer_class = producer_class
        self._producers: dict[Partition, TransactionalProducer] = {}

    async def take(
        self,
        partition: Partition,
        records: Sequence[OutRecord],
        state: Sequence[StateRecord],
        commit: Commit,
    ) -> None:
        """One step of a partition. Raises StepFailed, TransportError, TransportUnavailable."""
        producer = self._producers.get(partition)
        if producer is None:
            raise StepFailed(f"{named([partition])}: no producer; an earlier recovery failed")
        await producer.transact(records, state, commit)

    async def open(
        self, partitions: Collection[Partition], check: Callable[[], Awaitable[None]] | None = None
    ) -> dict[Partition, Taken]:
        """Fence all earlier writers of these partitions and read what the broker has of them.

        With ``auto_offset_reset`` latest, the first position is committed where none was.
        Waits up to ``recovery_timeout_ms`` for brokers that are away. ``check`` is awaited before every
        attempt: PartitionLost from it ends them all. Raises it, and TransportUnavailable.
        """

        async def attempt() -> dict[Partition, Taken]:
            if check is not None:
                await check()
            return await self._open(partitions)

        return await until_answered(self._settings, partitions, attempt)

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
            cause = only_cause(error)
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            if cause is error:
                raise
            raise cause from error
        self._producers.update(made)
        return taken(restored, first)


async def _keep(producer: TransactionalProducer, state: Mapping[bytes, bytes], offset: int) -> None:
    """Commit the first position. Stored sessions are of records before it: they would never be finished."""
    if state:
        _log.warning("stored sessions without a committed position are forgotten: %d records", len(state))
    await producer.transact([], [StateRecord(key, None) for key in state], Commit(offset))


async def _stop_all(producers: Collection[TransactionalProducer]) -> None:
    async with asyncio.TaskGroup() as group:
        for producer in producers:
            group.create_task(producer.stop())
