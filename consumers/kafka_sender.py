"""The client's requests for one transaction, sent sooner one after the other.

The library's sender makes one transactional request at a time, and goes through its whole loop between two
of them: four turns that each wait for everything else on the event loop. Here one task makes all requests
that are due, and asks for partitions and group to be added at once: both go to the coordinator on one
connection, which a broker serves in order. The position goes last, when the records are acknowledged: a
broker asks its coordinator about both, and a question that comes while another of the transaction waits to
be asked is answered with an error that costs a look-up and a pause. What is asked for, and how every answer
is treated, stays the library's.
"""

from __future__ import annotations

import asyncio
from asyncio import InvalidStateError
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.producer.transaction_manager import TransactionState


def hasten(producer: AIOKafkaProducer) -> Driver:
    """Have a transactional producer that is not started yet work like that."""
    driver = Driver(producer)
    producer._sender._maybe_do_transactional_request = driver.task  # type: ignore[method-assign]
    return driver


class Driver:
    """Stands in for ``Sender._maybe_do_transactional_request``."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._under_way: set[asyncio.Future[Any]] = set()
        self._sender = producer._sender
        self._transactions = producer._txn_manager
        self._accumulator = producer._message_accumulator

    def hold_position(self, records: Iterable[asyncio.Future[Any]]) -> None:
        """The position is not sent before these are acknowledged, or have failed."""
        for future in records:
            self._under_way.add(future)
            future.add_done_callback(self._answered)

    def _answered(self, future: asyncio.Future[Any]) -> None:
        self._under_way.discard(future)
        if not self._under_way:
            self._transactions.notify_task_waiter()

    def task(self) -> asyncio.Task[None] | None:
        """The task that makes what requests are due; None when none is. The sender keeps and awaits it."""
        return asyncio.create_task(self._make_requests()) if self._due() else None

    async def _make_requests(self) -> None:
        while due := self._due():
            adding = bool(self._transactions.partitions_to_add())
            results = await asyncio.gather(*(request() for request in due), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException) and not self._follows(result):
                    raise result
            if adding:
                self._wake_sender()

    def _follows(self, error: BaseException) -> bool:
        """Is this of an answer that came when another one had just spoiled the transaction?

        The library forgets then what was asked for, and trips over the second answer about it.
        """
        spoilt = self._transactions.state == TransactionState.ABORTABLE_ERROR
        return spoilt and isinstance(error, KeyError | InvalidStateError)

    def _due(self) -> list[Callable[[], Awaitable[object]]]:
        """What can be asked now, in the library's order: partitions, group, its position, the end."""
        sender, transactions = self._sender, self._transactions
        due: list[Callable[[], Awaitable[object]]] = []
        partitions = transactions.partitions_to_add()
        if partitions:
            due.append(lambda: sender._do_add_partitions_to_txn(partitions))
        group_id = transactions.consumer_group_to_add()
        if group_id is not None:
            due.append(lambda: sender._do_add_offsets_to_txn(group_id))
        if due:
            return due
        position = transactions.offsets_to_commit()
        if position is not None:
            if self._under_way:
                return []
            return [lambda: sender._do_txn_offset_commit(*position)]
        result = transactions.needs_transaction_commit()
        if result is not None:
            return [lambda: sender._do_txn_commit(result)]
        return []

    def _wake_sender(self) -> None:
        """Batches of a partition were held back until it was added."""
        waiting = self._accumulator._waiter_future
        if not waiting.done():
            waiting.set_result(None)
