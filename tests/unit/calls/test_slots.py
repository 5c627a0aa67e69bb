from __future__ import annotations

import asyncio

import pytest

from guardrail.calls import FairSlots
from guardrail.errors import JudgeUnavailable


class Queueing:
    """Tasks that want a slot, and who had one in which order."""

    def __init__(self, slots: int) -> None:
        self.allowed = slots
        self.slots = FairSlots(lambda: self.allowed)
        self.order: list[str] = []
        self.let_go = asyncio.Event()

    async def work(self, lane: str, name: str) -> None:
        async with self.slots.slot(lane):
            self.order.append(name)
            await self.let_go.wait()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_slots_go_round_the_lanes_and_in_order_within_each() -> None:
    q = Queueing(1)
    q.let_go.set()
    async with asyncio.TaskGroup() as group, q.slots.slot("first"):
        for n in range(4):
            group.create_task(q.work("hot", f"hot{n}"))
        await settle()
        for n in range(2):
            group.create_task(q.work("cold", f"cold{n}"))
        group.create_task(q.work("late", "late0"))
        await settle()
        assert q.order == []
        assert q.slots.waiting == 7
        assert [q.slots.ahead(lane) for lane in ("hot", "cold", "new")] == [7, 6, 3]
    assert q.order == ["hot0", "cold0", "late0", "hot1", "cold1", "hot2", "hot3"]
    assert q.slots.held == 0
    assert q.slots.waiting == 0


async def test_no_more_than_the_slots_are_held() -> None:
    q = Queueing(3)
    async with asyncio.TaskGroup() as group:
        for n in range(8):
            group.create_task(q.work(f"lane{n % 2}", str(n)))
        await settle()
        assert len(q.order) == 3
        assert q.slots.held == 3
        assert not q.slots.free
        q.let_go.set()
    assert sorted(q.order) == sorted(map(str, range(8)))
    assert q.slots.held == 0


async def test_a_waiter_that_is_cancelled_leaves_the_queue() -> None:
    q = Queueing(1)
    q.let_go.set()
    async with asyncio.TaskGroup() as group, q.slots.slot("first"):
        gone = [group.create_task(q.work("a", f"gone{n}")) for n in range(3)]
        group.create_task(q.work("b", "stays"))
        await settle()
        for task in gone:
            task.cancel()
        await settle()
        assert q.slots.waiting == 1
    assert q.order == ["stays"]
    assert q.slots.held == 0


async def test_a_slot_on_its_way_to_one_who_is_cancelled_goes_to_the_next() -> None:
    q = Queueing(1)
    q.let_go.set()
    async with asyncio.TaskGroup() as group:
        async with q.slots.slot("first"):
            gone = group.create_task(q.work("a", "gone"))
            group.create_task(q.work("a", "next"))
            await settle()
        gone.cancel()  # between being given the slot and running again
    assert q.order == ["next"]
    assert q.slots.held == 0


async def test_a_slot_is_not_lost_when_all_who_wait_are_cancelled_as_it_gets_free() -> None:
    q = Queueing(1)
    async with asyncio.TaskGroup() as group, q.slots.slot("first"):
        gone = [group.create_task(q.work(lane, lane)) for lane in ("a", "b", "b")]
        await settle()
        for task in gone:
            task.cancel()  # their futures are cancelled, and they have not run yet
    assert q.order == []
    assert q.slots.held == 0
    assert q.slots.waiting == 0


async def test_one_who_is_cancelled_with_a_slot_gives_it_back() -> None:
    q = Queueing(1)
    async with asyncio.TaskGroup() as group:
        holder = group.create_task(q.work("a", "holder"))
        group.create_task(q.work("b", "next"))
        await settle()
        assert q.order == ["holder"]
        holder.cancel()
        await settle()
        assert q.order == ["holder", "next"]
        q.let_go.set()
    assert q.slots.held == 0


async def test_a_limit_that_rises_lets_several_in_and_one_that_falls_none() -> None:
    q = Queueing(1)
    async with asyncio.TaskGroup() as group:
        async with q.slots.slot("first"):
            for lane in ("a", "b", "c", "d", "e"):
                group.create_task(q.work(lane, lane))
            await settle()
            q.allowed = 3
        await settle()
        assert q.order == ["a", "b", "c"]
        q.allowed = 2
        q.slots.release()  # as one of them would
        await settle()
        assert q.order == ["a", "b", "c"]
        q.slots.release()
        await settle()
        assert q.order == ["a", "b", "c", "d"]
        q.slots.held += 2
        q.let_go.set()


async def test_more_than_may_wait_are_refused_at_once() -> None:
    slots = FairSlots(lambda: 1, max_waiting=1)
    await slots.acquire("a")
    waiting = asyncio.create_task(slots.acquire("b"))
    await settle()
    with pytest.raises(JudgeUnavailable, match="1 calls wait"):
        await slots.acquire("c")
    slots.release()
    await waiting
