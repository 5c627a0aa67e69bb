"""Exactly once over Kafka: a transactional producer per held partition, and what the broker has of each."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, TopicAuthorizationFailedError

from consumers.kafka_client import translated
from consumers.kafka_positions import committed_positions
from consumers.kafka_state import read_state
from consumers.kafka_transactions import TransactionalProducer
from consumers.transport import Commit, OutRecord, Partition, Restored, StateRecord
from guardrail.errors import (
    PartitionLost,
    StepFailed,
    TransportError,
    TransportUnavailable,
    only_cause,
)
from guardrail.kafka_settings import KafkaSettings

_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 3.0
_LOG_AGAIN_S: Final = 30.0

_log = logging.getLogger(__name__)


class Steps:
    """The producers of the partitions that this member holds."""

    def __init__(
        self,
        settings: KafkaSettings,
        admin: AIOKafkaAdminClient,
        output_topics: Collection[str],
        producer_class: type[TransactionalProducer] = TransactionalProducer,
    ) -> None:
        self._settings = settings
        self._admin = admin
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
            raise StepFailed(f"{_named([partition])}: no producer; an earlier recovery failed")
        await producer.transact(records, state, commit)

    async def open(
        self, partitions: Collection[Partition], check: Callable[[], Awaitable[None]] | None = None
    ) -> dict[Partition, Restored]:
        """Fence all earlier writers of these partitions and read what the broker has of them.

        Waits up to ``recovery_timeout_ms`` for brokers that are away. ``check`` is awaited before every
        attempt: PartitionLost from it ends them all. Raises it, and TransportUnavailable.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.recovery_timeout_ms / 1000
        wait_s, log_at = _FIRST_WAIT_S, loop.time()
        while True:
            try:
                if check is not None:
                    await check()
                return await self._open(partitions)
            except (PartitionLost, TransportUnavailable):
                raise
            except (GroupAuthorizationFailedError, TopicAuthorizationFailedError) as error:
                raise translated(error, f"taking over {_named(partitions)}") from error
            except (TransportError, KafkaError, OSError, TimeoutError) as error:
                cause = translated(error, f"taking over {_named(partitions)}")
                if loop.time() + wait_s >= deadline:
                    raise TransportUnavailable(
                        f"{cause}; gave up after recovery_timeout_ms "
                        f"{self._settings.recovery_timeout_ms}; do the brokers answer, do all topics exist?"
                    ) from error
            if loop.time() >= log_at:
                _log.warning("%s; trying again", cause)
                log_at = loop.time() + _LOG_AGAIN_S
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))
            wait_s = min(wait_s * 2, _LONGEST_WAIT_S)

    async def close(self, partitions: Collection[Partition] | None = None) -> None:
        """Stop the producers of these partitions, or all; steps under way fail."""
        chosen = list(self._producers) if partitions is None else partitions
        stopping = [self._producers.pop(one) for one in chosen if one in self._producers]
        await _stop_all(stopping)

    async def _open(self, partitions: Collection[Partition]) -> dict[Partition, Restored]:
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
            committed = await committed_positions(self._admin, self._settings, made)
        except BaseException as error:
            await _stop_all(made.values())
            cause = only_cause(error)
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            if cause is error:
                raise
            raise cause from error
        self._producers.update(made)
        return {
            partition: Restored(committed[partition], states[partition.index]) for partition in partitions
        }


async def _stop_all(producers: Collection[TransactionalProducer]) -> None:
    async with asyncio.TaskGroup() as group:
        for producer in producers:
            group.create_task(producer.stop())


def _named(partitions: Collection[Partition]) -> str:
    return ", ".join(f"{partition.topic}[{partition.index}]" for partition in sorted(partitions))
