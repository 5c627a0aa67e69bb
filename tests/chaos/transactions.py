"""What the broker's transaction coordinator has under way, read from its own log.

The client library has no call that lists transactions.
"""

from __future__ import annotations

import asyncio
import struct
import time
from enum import IntEnum
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition

LOG: Final = TopicPartition("__transaction_state", 0)
"""The test broker has one partition of it."""
_VALUE: Final = struct.Struct(">hqhib")
"""Version, producer id, epoch, timeout, state; more follows."""
_READ_S: Final = 5.0


class State(IntEnum):
    """As the coordinator numbers them."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


DECIDED: Final = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT, State.PREPARE_EPOCH_FENCE})
"""And not yet marked in all partitions."""


async def states(bootstrap: str) -> dict[str, State]:
    """Of the last transaction of each transactional id. Raises KafkaError, OSError and TimeoutError."""
    found: dict[str, State] = {}
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    try:
        async with asyncio.timeout(_READ_S):
            await consumer.start()
            consumer.assign([LOG])
            end = (await consumer.end_offsets([LOG]))[LOG]
            while await consumer.position(LOG) < end:
                for record in (await consumer.getmany(LOG, timeout_ms=100)).get(LOG, ()):
                    # Before the id are the version of the key and the length of the id.
                    name = (record.key or b"")[4:].decode()
                    found[name] = State(_VALUE.unpack_from(record.value)[4]) if record.value else State.DEAD
    finally:
        await consumer.stop()
    return found


async def settled(bootstrap: str, timeout_s: float) -> bool:
    """Wait until every decided transaction is completed; False when one is not in time. Raises as states."""
    deadline = time.monotonic() + timeout_s
    while DECIDED.intersection((await states(bootstrap)).values()):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.1)
    return True
