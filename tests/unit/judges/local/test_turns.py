"""Who goes first at the local judge, and who goes without."""

from __future__ import annotations

import asyncio

import pytest

from guardrail.judges.local.judge import TurnQueue


class Queue:
    """Takers of turns, who note when theirs came and hold it until the test lets go."""

    def __init__(self, at_once: int = 1) -> None:
        self.turns = TurnQueue(at_once)
        self.came: list[str] = []
        self.let_go = asyncio.Semaphore(0)

    def take(self, name: str, within_s: float | None = None) -> asyncio.Task[None]:
        async def taking() -> None:
            async with self.turns.turn(within_s) as came:
                self.came.append(name if came else f"without {name}")
                if came:
                    await self.let_go.acquire()

        return asyncio.create_task(taking())

    async def next(self) -> None:
        self.let_go.release()
        await rest()


async def rest() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_those_who_can_not_go_without_come_first_each_kind_in_its_order() -> None:
    queue = Queue()
    tasks = [
        queue.take(name, 60 if name.startswith("other") else None)
        for name in ("a", "other 1", "other 2", "b", "c")
    ]
    await rest()
    for _ in range(4):
        await queue.next()
    await queue.next()
    await asyncio.gather(*tasks)
    assert queue.came == ["a", "b", "c", "other 1", "other 2"]


async def test_as_many_as_there_are_turns_go_at_once() -> None:
    queue = Queue(2)
    tasks = [queue.take(str(number)) for number in range(4)]
    await rest()
    assert queue.came == ["0", "1"]
    for _ in range(4):
        await queue.next()
    await asyncio.gather(*tasks)
    assert queue.came == ["0", "1", "2", "3"]


async def test_who_waits_too_long_goes_without() -> None:
    queue = Queue()
    holder = queue.take("a")
    await rest()
    await queue.take("late", 0.01)
    patient = queue.take("b", 60)
    await rest()
    await queue.next()
    await queue.next()
    await asyncio.gather(holder, patient)
    assert queue.came == ["a", "without late", "b"]


async def test_who_gives_no_time_at_all_goes_without_though_a_turn_is_free() -> None:
    queue = Queue()
    await queue.take("hasty", 0.0)
    assert queue.came == ["without hasty"]


@pytest.mark.parametrize("given", [False, True])
async def test_a_turn_of_someone_who_was_cancelled_goes_to_the_next(given: bool) -> None:
    queue = Queue()
    holder = queue.take("a")
    await rest()
    cancelled, after = queue.take("cancelled"), queue.take("b")
    await rest()
    if given:
        queue.let_go.release()
        await holder  # its turn is on the way to the second
    cancelled.cancel()
    await rest()
    if not given:
        await queue.next()
    assert queue.came == ["a", "b"]
    await queue.next()
    await asyncio.gather(holder, after)
    assert not queue.turns._queues[0]
    async with queue.turns.turn(0.01) as came:
        assert came  # it is free again
