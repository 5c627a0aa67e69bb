"""A transaction as far as it goes without a broker: the order of its requests, its errors, its end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from aiokafka.producer.transaction_manager import TransactionManager, TransactionState

from consumers.kafka import TransactionalProducer
from consumers.kafka.workarounds import expect_fatal_errors, fatal_error, in_transaction
from consumers.settings import KafkaSettings
from consumers.transport import Commit, Partition
from guardrail.errors import StepFailed


class Noting(TransactionalProducer):
    """Notes the parts of a step; nothing is sent."""

    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__(settings, Partition("in", 0))
        self.parts: list[str] = []

    async def begin(self) -> None:
        self.parts.append("begin")

    async def send(self, *_: object) -> None:
        self.parts.append("records")

    async def settled(self) -> None:
        self.parts.append("acknowledged")

    async def send_offsets(self, *_: object) -> None:
        self.parts.append("position")

    async def commit(self) -> None:
        self.parts.append("commit")


async def test_the_position_follows_the_records_when_they_are_acknowledged() -> None:
    """A failed send does not fail the library's transaction: it would commit without the record."""
    producer = Noting(KafkaSettings(bootstrap_servers="127.0.0.1:1"))
    await producer.transact([], [], Commit(1))
    assert producer.parts == ["begin", "records", "acknowledged", "position", "commit"]
    await producer.stop()


async def test_a_fatal_error_before_the_first_transaction_is_told() -> None:
    """The library's own handler would trip over the transaction that is not there."""
    manager = TransactionManager("id", 1000)
    manager.set_pid_and_epoch(1, 0)

    async def fenced() -> None:
        raise ProducerFenced

    async def fail() -> AIOKafkaProducer:
        producer = cast("AIOKafkaProducer", SimpleNamespace(_txn_manager=manager, _sender=SimpleNamespace()))
        sender: Any = producer._sender
        sender.sender_task = asyncio.create_task(fenced())
        await asyncio.wait([sender.sender_task])
        return producer

    producer = await fail()
    with pytest.raises(AttributeError):
        manager.fatal_error(ProducerFenced())
    manager.state = TransactionState.READY
    expect_fatal_errors(producer)
    manager.fatal_error(ProducerFenced())
    manager.wait_for_transaction_end().exception()
    assert isinstance(fatal_error(producer), ProducerFenced)
    assert not in_transaction(producer)


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
