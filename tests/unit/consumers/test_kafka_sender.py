"""The order of a transaction's requests, and what a transaction's errors are, without a broker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced
from aiokafka.producer.transaction_manager import TransactionManager, TransactionState
from aiokafka.structs import OffsetAndMetadata

from consumers.kafka.workarounds import Driver, Requests, expect_fatal_errors, fatal_error, in_transaction


class Sender:
    """Notes what is asked for, and answers that all is well."""

    def __init__(self, manager: TransactionManager) -> None:
        self.asked: list[str] = []
        self._manager = manager

    async def _send_produce_req(self, node_id: int, batches: object) -> None:
        raise AssertionError("nothing is produced here")

    async def _do_add_offsets_to_txn(self, group_id: str) -> None:
        self.asked.append("group")
        self._manager.consumer_group_added(group_id)

    async def _do_txn_offset_commit(self, offsets: dict[TopicPartition, Any], group_id: str) -> None:
        self.asked.append("position")
        for tp, position in list(offsets.items()):
            self._manager.offset_committed(tp, position.offset, group_id)


class Transaction:
    """One that is open, with its position handed over."""

    def __init__(self) -> None:
        self.manager = TransactionManager("id", 1000)
        self.manager.set_pid_and_epoch(1, 0)
        self.manager.begin_transaction()
        self.sender = Sender(self.manager)
        producer = SimpleNamespace(
            _sender=self.sender, _txn_manager=self.manager, _message_accumulator=SimpleNamespace()
        )
        made = cast("AIOKafkaProducer", producer)
        self.driver = Driver(made, Requests(made))

    async def ask(self) -> None:
        """Make what is due, as the library's loop does."""
        task = self.driver.task()
        if task is not None:
            await task


async def test_the_group_is_added_while_records_are_under_way_and_the_position_waits_for_them() -> None:
    transaction = Transaction()
    records: list[asyncio.Future[None]] = [asyncio.Future(), asyncio.Future()]
    transaction.driver.hold_position(records)
    transaction.manager.add_offsets_to_txn({TopicPartition("in", 0): OffsetAndMetadata(5, "")}, "group")

    await transaction.ask()
    assert transaction.sender.asked == ["group"]

    records[0].set_result(None)
    await asyncio.sleep(0)
    await transaction.ask()
    assert transaction.sender.asked == ["group"]

    records[1].cancel()  # failed: the step sees it when it looks at its records
    await asyncio.sleep(0)
    await transaction.ask()
    assert transaction.sender.asked == ["group", "position"]


async def test_the_library_is_woken_when_the_last_record_is_acknowledged() -> None:
    """Its own loop may have looked a turn before: nothing else would wake it until the step's deadline."""
    transaction = Transaction()
    record: asyncio.Future[None] = asyncio.Future()
    transaction.driver.hold_position([asyncio.shield(record)])
    transaction.manager.add_offsets_to_txn({TopicPartition("in", 0): OffsetAndMetadata(5, "")}, "group")
    await transaction.ask()

    record.set_result(None)
    assert transaction.driver.task() is None  # the shield is told a turn later
    waiter = transaction.manager.make_task_waiter()
    async with asyncio.timeout(5):
        await waiter
    assert transaction.driver.task() is not None


async def test_a_transaction_without_records_sends_its_position_at_once() -> None:
    transaction = Transaction()
    transaction.manager.add_offsets_to_txn({TopicPartition("in", 0): OffsetAndMetadata(5, "")}, "group")

    await transaction.ask()

    assert transaction.sender.asked == ["group", "position"]


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
