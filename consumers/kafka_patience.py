"""Waiting for brokers that are away while partitions are taken over."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeVar

from aiokafka.errors import GroupAuthorizationFailedError, KafkaError, TopicAuthorizationFailedError

from consumers.kafka_client import translated
from consumers.transport import Partition
from guardrail.errors import PartitionLost, TransportError, TransportUnavailable
from guardrail.kafka_settings import KafkaSettings

_FIRST_WAIT_S: Final = 0.1
_LONGEST_WAIT_S: Final = 3.0
_LOG_AGAIN_S: Final = 30.0

_T = TypeVar("_T")

_log = logging.getLogger(__name__)


async def until_answered(
    settings: KafkaSettings, partitions: Collection[Partition], attempt: Callable[[], Awaitable[_T]]
) -> _T:
    """What ``attempt`` to take over ``partitions`` returns, once it does not fail any more.

    Tries for up to ``recovery_timeout_ms``. PartitionLost and TransportUnavailable end it at once, and so
    does a denied access. Raises them, and TransportUnavailable when time is up.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + settings.recovery_timeout_ms / 1000
    wait_s, log_at = _FIRST_WAIT_S, loop.time()
    while True:
        try:
            return await attempt()
        except (PartitionLost, TransportUnavailable):
            raise
        except (GroupAuthorizationFailedError, TopicAuthorizationFailedError) as error:
            raise translated(error, f"taking over {named(partitions)}") from error
        except (TransportError, KafkaError, OSError, TimeoutError) as error:
            cause = translated(error, f"taking over {named(partitions)}")
            if loop.time() + wait_s >= deadline:
                raise TransportUnavailable(
                    f"{cause}; gave up after recovery_timeout_ms {settings.recovery_timeout_ms}; "
                    "do the brokers answer, do all topics exist?"
                ) from error
        if loop.time() >= log_at:
            _log.warning("%s; trying again", cause)
            log_at = loop.time() + _LOG_AGAIN_S
        await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))
        wait_s = min(wait_s * 2, _LONGEST_WAIT_S)


def named(partitions: Collection[Partition]) -> str:
    """For messages."""
    return ", ".join(f"{partition.topic}[{partition.index}]" for partition in sorted(partitions))
