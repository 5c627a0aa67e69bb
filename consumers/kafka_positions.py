"""The committed positions of a group, with the notes that were committed with them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from consumers.transport import Commit, Partition
from guardrail.kafka_settings import KafkaSettings

_RETRY_S: Final = 0.2


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
