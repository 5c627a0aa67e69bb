"""The transactional producer, as far as it goes without a broker."""

from __future__ import annotations

import asyncio

import pytest

from consumers.kafka import TransactionalProducer
from consumers.settings import KafkaSettings
from consumers.transport import Commit, Partition
from guardrail.errors import StepFailed


class Stuck(TransactionalProducer):
    """Its step waits for ever, until the deadline fires."""

    async def begin(self) -> None:
        await asyncio.Event().wait()

    @property
    def deadline(self) -> asyncio.Timeout:
        assert self._deadline is not None
        return self._deadline


@pytest.mark.parametrize("fires", [False, True])
async def test_stop_closes_also_when_the_deadline_of_its_step_has_just_fired(fires: bool) -> None:
    producer = Stuck(KafkaSettings(bootstrap_servers="127.0.0.1:1"), Partition("in", 0))
    step = asyncio.ensure_future(producer.transact([], [], Commit(1)))
    await asyncio.sleep(0)
    if fires:
        # In the turn in which stop begins: the step is cancelled by then, and has not heard of it yet.
        producer.deadline.reschedule(0.0)
    stopping = asyncio.ensure_future(producer.stop())
    with pytest.raises(StepFailed, match="was stopped"):
        await step
    await stopping
    assert producer._producer._closed
