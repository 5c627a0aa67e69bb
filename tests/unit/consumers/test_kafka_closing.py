"""Closing clients at a bad moment, without a broker."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.client import ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.errors import CoordinatorLoadInProgressError, RequestTimedOutError
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest

from consumers.kafka import workarounds
from consumers.kafka.workarounds import Membership, Requests, close_producer


async def test_a_producer_ends_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's sender, cancelled twice, ends the one that it awaits and forgets the others."""
    monkeypatch.setattr(workarounds, "_STOP_S", 0.01)
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1")
    sender: Any = producer._sender
    to_send: list[dict[int, Any]] = [{node: {} for node in range(5)}]
    asked: asyncio.Queue[int] = asyncio.Queue()

    async def unanswered(node: int, batches: object) -> None:
        asked.put_nowait(node)
        await asyncio.Event().wait()

    def drain(**_: object) -> tuple[dict[int, Any], bool]:
        return (to_send.pop() if to_send else {}), False

    sender._send_produce_req = unanswered
    monkeypatch.setattr(producer._message_accumulator, "drain_by_nodes", drain)
    requests = Requests(producer)
    sender._sender_task = asyncio.create_task(sender._sender_routine())
    assert [await asked.get() for _ in range(5)] == list(range(5))

    await close_producer(producer, requests)

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_join_without_an_answer_is_given_up() -> None:
    """Else the group would stand still for as long as any request may take."""
    waiting, dead = Mock(), Mock()

    class Coordinator:
        coordinator_id = 7
        coordinator_dead = dead
        _client = SimpleNamespace(_conns={(7, ConnectionGroup.COORDINATION): waiting})

        async def _send_req(self, request: object) -> object:
            if isinstance(request, JoinGroupRequest):
                await asyncio.Event().wait()
            return SimpleNamespace(error_code=0)

    coordinator = Coordinator()
    consumer = cast("AIOKafkaConsumer", SimpleNamespace(_coordinator=coordinator))
    Membership(consumer, "group", None, -900, lambda _: None)  # 100 ms with the margin
    with pytest.raises(RequestTimedOutError, match="no answer to a join of group group"):
        await coordinator._send_req(JoinGroupRequest("group", 1, 1, "", "", "consumer", []))
    dead.assert_called_once_with()
    waiting.close.assert_called_once_with(reason=CloseReason.CONNECTION_TIMEOUT)


async def test_a_member_that_leaves_joins_no_more() -> None:
    """Else everybody in the group would wait for it."""
    sent: list[object] = []

    class Coordinator:
        coordinator_id = 7

        async def _send_req(self, request: object) -> object:
            sent.append(request)
            return SimpleNamespace(error_code=0)

    coordinator = Coordinator()
    consumer = cast("AIOKafkaConsumer", SimpleNamespace(_coordinator=coordinator))
    membership = Membership(consumer, "group", None, 30_000, lambda _: None)
    join = JoinGroupRequest("group", 30_000, 30_000, "", "", "consumer", [])
    await coordinator._send_req(join)
    membership.join_no_more()
    with pytest.raises(CoordinatorLoadInProgressError):
        await coordinator._send_req(join)
    goodbye = LeaveGroupRequest("group", "me")
    await coordinator._send_req(goodbye)
    assert sent == [join, goodbye]
