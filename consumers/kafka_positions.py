"""Where a group reads on: its committed positions, with the notes that were committed with them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from consumers.kafka_patience import until_answered
from consumers.transport import Commit, Partition, Restored
from guardrail.kafka_settings import KafkaSettings

_RETRY_S: Final = 0.2


class Taken(NamedTuple):
    """A partition taken over."""

    restored: Restored
    offset: int
    """The next to read."""


class Positions:
    """Asks the brokers for the positions of a group. Its calls raise KafkaError and TimeoutError."""

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
        """At least once: what was committed for these; the first position where nothing was.

        Waits up to ``recovery_timeout_ms`` for brokers that are away, then raises TransportUnavailable.
        """
        return await until_answered(self._settings, partitions, lambda: self._take_over(partitions))

    async def _take_over(self, partitions: Collection[Partition]) -> dict[Partition, Taken]:
        committed = await self.committed(partitions)
        first = await self.first([one for one, commit in committed.items() if commit is None])
        if first and self.first_is_kept:
            # As a member: a commit of one that is none any more is refused.
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                await self._consumer.commit(
                    {TopicPartition(*partition): (offset, "") for partition, offset in first.items()}
                )
            committed |= {partition: Commit(offset) for partition, offset in first.items()}
        return taken({one: Restored(commit, {}) for one, commit in committed.items()}, first)


def taken(restored: Mapping[Partition, Restored], first: Mapping[Partition, int]) -> dict[Partition, Taken]:
    """Every partition with where it is read on: at its committed position, else at its first one."""
    return {
        partition: Taken(found, first[partition] if found.commit is None else found.commit.offset)
        for partition, found in restored.items()
    }


async def committed_positions(
    admin: AIOKafkaAdminClient, settings: KafkaSettings, partitions: Collection[Partition]
) -> dict[Partition, Commit | None]:
    """What the group committed last for each; the consumer's own ``committed`` drops the notes.

    A coordinator that is loading answers with an error that the library loses, leaving an empty answer; an
    answer is therefore taken only when it has every partition asked for. Raises KafkaError and TimeoutError.
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
