"""Closing a producer that is stuck, without a broker."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from aiokafka import AIOKafkaProducer

from consumers.kafka.workarounds import Requests


class Sender:
    """Its requests are never answered; like the library's, it makes each in a task of its own."""

    async def _send_produce_req(self, node_id: int, batches: object) -> None:
        await asyncio.Event().wait()

    def _maybe_do_transactional_request(self) -> asyncio.Task[Any]:
        return asyncio.create_task(asyncio.Event().wait())


class Producer:
    def __init__(self) -> None:
        self._sender = Sender()


async def test_a_producer_ends_its_requests() -> None:
    producer = Producer()
    requests = Requests(cast("AIOKafkaProducer", producer))
    sender: Any = producer._sender
    tasks = [asyncio.create_task(sender._send_produce_req(node, {})) for node in range(3)]
    tasks.append(sender._maybe_do_transactional_request())
    await asyncio.sleep(0)
    await requests.end()
    assert all(task.cancelled() for task in tasks)
    await requests.end()  # nothing is left to be ended
