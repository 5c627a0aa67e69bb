"""The order of a transaction's requests, without a broker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.structs import OffsetAndMetadata

from consumers.kafka.workarounds import Driver, hasten


class Sender:
    """Notes what is asked for, and answers that all is well."""

    def __init__(self, manager: TransactionManager) -> None:
        self.asked: list[str] = []
        self._manager = manager

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
        self.driver: Driver = hasten(cast("AIOKafkaProducer", producer))

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
