from __future__ import annotations

import asyncio
from typing import Any

import pytest

from guardrail.errors import JudgeUnavailable
from guardrail.judges.llm.concurrency import AdaptiveLimit, Slots
from guardrail.judges.llm.endpoint_settings import ConcurrencySettings

BUSY = 1_000  # calls that want to be sent: more than any limit


def adaptive(maximum: int = 64, **changes: Any) -> AdaptiveLimit:
    return AdaptiveLimit(ConcurrencySettings.model_validate(changes), maximum)


def run_round(limit: AdaptiveLimit, capacity: int) -> int:
    """As many calls as are allowed, all under way together; those above the capacity are refused."""
    sent, began_in = limit.limit, limit.round
    for number in range(sent):
        if number < capacity:
            limit.succeeded(began_in, BUSY, None)
        else:
            limit.overloaded(began_in)
    return sent


@pytest.mark.parametrize("capacity", [1, 3, 8, 20, 50])
@pytest.mark.parametrize("initial", [1, 16, 64])
def test_it_finds_the_capacity_of_the_server_and_stays_near_it(capacity: int, initial: int) -> None:
    limit = adaptive(initial=initial)
    rounds = [run_round(limit, capacity) for _ in range(300)][-100:]
    assert min(rounds) >= int(capacity * 0.6)
    assert max(rounds) <= capacity + 2
    refused = sum(max(0, sent - capacity) for sent in rounds)
    assert refused <= 0.4 * sum(rounds)


def test_a_server_with_room_is_used_up_to_the_maximum() -> None:
    limit = adaptive(maximum=40, initial=1)
    assert [run_round(limit, 100) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 40, 40]


def test_it_follows_a_capacity_that_changes() -> None:
    limit = adaptive(initial=8)
    for capacity in (20, 5, 40):
        rounds = [run_round(limit, capacity) for _ in range(200)][-20:]
        assert capacity * 0.6 <= sum(rounds) / len(rounds) <= capacity + 2


def test_it_begins_with_all_that_is_allowed_unless_told_otherwise() -> None:
    assert adaptive(maximum=40).limit == 40
    assert adaptive(maximum=40, initial=3).limit == 3


def test_a_limit_that_is_far_too_high_is_halved_until_a_call_succeeds() -> None:
    limit = adaptive(initial=64, decrease=0.75)
    seen = []
    for _ in range(4):
        limit.overloaded(limit.round)
        seen.append(limit.limit)
    assert seen == [48, 24, 12, 6]
    limit.succeeded(limit.round, 1, None)
    limit.overloaded(limit.round)
    assert limit.limit == 4


def test_it_never_leaves_its_bounds() -> None:
    limit = adaptive(maximum=6, min=3, initial=100)
    assert limit.limit == 6
    for _ in range(50):
        limit.overloaded(limit.round)
    assert limit.limit == 3


def test_the_minimum_yields_to_a_smaller_maximum() -> None:
    assert adaptive(maximum=2, min=5, initial=5).limit == 2


def test_calls_refused_together_count_once() -> None:
    limit = adaptive(initial=10, decrease=0.5)
    began_in = limit.round
    for _ in range(10):
        limit.overloaded(began_in)
    assert limit.limit == 5


def test_it_does_not_rise_while_there_is_no_demand() -> None:
    """What nobody has tried is not known to be borne."""
    limit = adaptive(initial=10)
    for _ in range(1_000):
        limit.succeeded(limit.round, 3, None)
    assert limit.limit == 10


def test_a_server_that_queues_is_sent_fewer() -> None:
    limit = adaptive(initial=32, latency_tolerance=3.0)
    for _ in range(50):
        limit.succeeded(limit.round, 1, 0.2)
    assert limit.limit == 32
    for _ in range(40):
        limit.succeeded(limit.round, 32, 2.0)
    assert limit.limit < 16


def test_noise_and_a_lasting_change_are_no_overload() -> None:
    limit = adaptive(initial=32, latency_tolerance=3.0)
    for number in range(500):
        limit.succeeded(limit.round, 1, 0.1 if number % 5 else 0.6)
    assert limit.limit == 32
    for _ in range(1_000):
        limit.succeeded(limit.round, BUSY, 0.5)
    low = limit.limit
    for _ in range(1_000):
        limit.succeeded(limit.round, BUSY, 0.5)
    assert limit.limit >= low


def test_latency_is_let_alone_where_that_is_set() -> None:
    limit = adaptive(initial=32, latency_tolerance=None)
    for _ in range(100):
        limit.succeeded(limit.round, 1, 0.1)
    for _ in range(100):
        limit.succeeded(limit.round, 1, 60.0)
    assert limit.limit == 32


async def _queue(slots: Slots, *response_ids: str) -> tuple[list[str], list[asyncio.Task[None]]]:
    """Calls that wait, in this order; the list grows as they have their turn."""
    turns: list[str] = []

    async def one(response_id: str) -> None:
        await slots.acquire(response_id)
        turns.append(response_id)

    tasks = []
    for response_id in response_ids:
        tasks.append(asyncio.create_task(one(response_id)))
        await asyncio.sleep(0)
    return turns, tasks


async def test_responses_take_turns() -> None:
    slots = Slots(lambda: 1, 100)
    await slots.acquire("first")
    turns, tasks = await _queue(slots, "a", "a", "a", "b", "c", "c")
    assert slots.waiting == 6
    assert (slots.ahead("a"), slots.ahead("b"), slots.ahead("d")) == (6, 5, 3)
    for _ in tasks:
        slots.release()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert turns == ["a", "b", "c", "a", "c", "a"]
    assert (slots.in_flight, slots.waiting) == (1, 0)


async def test_a_limit_that_rises_lets_several_in_and_one_that_falls_none() -> None:
    allowed = 1
    slots = Slots(lambda: allowed, 100)
    await slots.acquire("first")
    turns, tasks = await _queue(slots, "a", "b", "c", "d")
    allowed = 3
    slots.release()
    await asyncio.sleep(0)
    assert turns == ["a", "b", "c"]
    allowed = 2
    slots.release()
    await asyncio.sleep(0)
    assert len(turns) == 3
    slots.release()
    await asyncio.gather(*tasks)
    assert slots.in_flight == 2


async def test_more_than_may_wait_are_refused_at_once() -> None:
    slots = Slots(lambda: 1, 1)
    await slots.acquire("a")
    _, tasks = await _queue(slots, "b")
    with pytest.raises(JudgeUnavailable, match="1 calls wait"):
        await slots.acquire("c")
    slots.release()
    await asyncio.gather(*tasks)


async def test_one_that_is_cancelled_while_it_waits_leaves_no_trace() -> None:
    slots = Slots(lambda: 1, 100)
    await slots.acquire("first")
    turns, (a, b) = await _queue(slots, "a", "b")
    a.cancel()
    await asyncio.gather(a, return_exceptions=True)
    assert slots.waiting == 1
    slots.release()
    await b
    assert turns == ["b"]
    slots.release()
    assert (slots.in_flight, slots.waiting) == (0, 0)


async def test_one_that_is_cancelled_in_the_moment_of_its_turn_passes_it_on() -> None:
    slots = Slots(lambda: 1, 100)
    await slots.acquire("first")
    turns, (a, b) = await _queue(slots, "a", "b")
    slots.release()  # it is a's turn, which a doesn't know yet
    a.cancel()
    await asyncio.gather(a, return_exceptions=True)
    await b
    assert turns == ["b"]
    slots.release()
    assert (slots.in_flight, slots.waiting) == (0, 0)


async def test_one_that_was_cancelled_and_is_not_yet_gone_is_passed_over() -> None:
    slots = Slots(lambda: 1, 100)
    await slots.acquire("first")
    turns, (a, b) = await _queue(slots, "a", "b")
    a.cancel()
    slots.release()
    await b
    await asyncio.gather(a, return_exceptions=True)
    assert turns == ["b"]
    slots.release()
    assert (slots.in_flight, slots.waiting) == (0, 0)
