"""What holds calls back: fair turns, times of late, the circuit breaker, the number of calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from guardrail.calls import AdaptiveLimit, BreakerState, Caller, CircuitBreaker, FairSlots, RecentTimes
from guardrail.calls.caller import SILENT_S, Admission
from guardrail.errors import JudgeUnavailable
from guardrail.telemetry import REGISTRY
from tests.unit.judges.llm.chatting import Clock

BUSY = 1_000  # calls that want to be sent: more than any limit


def timed(clock: Clock, *seconds: float) -> RecentTimes:
    times = RecentTimes(clock)
    for each in seconds:
        times.add(each)
    return times


def test_quantiles_of_enough_samples() -> None:
    times = timed(Clock(), *range(1, 101))
    assert (times.quantile(0.5), times.quantile(0.95)) == (51.0, 96.0)
    assert timed(Clock(), 1.0, 1.0, 1.0, 1.0).quantile(0.5) is None


def test_samples_expire() -> None:
    """Else a server that was slow once, and is given up without a call since then, stayed slow for ever."""
    clock = Clock()
    times = timed(clock, 9.0)
    clock.now += 30.0
    for _ in range(5):
        times.add(1.0)
    assert times.quantile(0.99) == 9.0
    clock.now += 31.0
    assert times.quantile(0.99) == 1.0
    clock.now += 30.0
    assert times.quantile(0.99) is None


def test_memory_is_bounded_and_the_latest_are_kept() -> None:
    assert timed(Clock(), *[9.0] * 1_000, *[1.0] * 256).quantile(0.99) == 1.0


def test_a_breaker_shows_under_its_models_name_whatever_judge_asks_it() -> None:
    breaker = Caller("decisions:asked-by-decisions", "asked-by-decisions", 1).breaker
    for admission in [breaker.admit() for _ in range(breaker.min_calls)]:
        assert admission is not None
        admission.record(ok=False)
    shown = {"model": "asked-by-decisions"}
    assert REGISTRY.get_sample_value("guardrail_judge_circuit_state", shown) == 2


class Watched:
    """A breaker of a server, and what happens to it, told in words."""

    def __init__(self, **changes: Any) -> None:
        self.clock = Clock()
        self.breaker = CircuitBreaker("llm:test", "test", self.clock)
        for name, value in ({"window_s": 10.0, "min_calls": 4, "open_s": 5.0} | changes).items():
            setattr(self.breaker, name, value)

    @property
    def state(self) -> BreakerState:
        return self.breaker.state

    def admit(self) -> Admission:
        admission = self.breaker.admit()
        assert admission is not None
        return admission

    def play(self, events: str) -> None:
        """``+5`` are seconds; of a call's end ``s`` is a success, ``f`` a failure, ``h`` one without any
        answer, and ``-`` tells nothing.
        """
        for word in events.split():
            if word.startswith("+"):
                self.clock.now += float(word)
                continue
            for end in word:
                ok = None if end == "-" else end == "s"
                self.admit().record(ok=ok, hung=end == "h")


CLOSED, HALF_OPEN, OPEN = BreakerState.CLOSED, BreakerState.HALF_OPEN, BreakerState.OPEN
OPENED = "ffff"
ALMOST_SILENT = f"s +{SILENT_S - 0.1} hhhh f "  # an error is an answer


@pytest.mark.parametrize(
    ("events", "changes", "state"),
    [
        # It opens when the share of failures is reached.
        ("ssf", {}, CLOSED),
        ("ssff", {}, OPEN),
        ("fff", {}, CLOSED),
        ("sssf" * 20, {}, CLOSED),
        # What is older than the window, or ended without telling anything, does not count.
        ("fff +10 f", {}, CLOSED),
        ("fff +10 ffff", {}, OPEN),
        ("fff ---", {}, CLOSED),
        # After a time it is probed. It closes when all probes succeed, and what failed before is forgotten.
        (f"{OPENED} +4.9", {}, OPEN),
        (f"{OPENED} +5", {}, HALF_OPEN),
        (f"{OPENED} +5 s", {}, HALF_OPEN),
        (f"{OPENED} +5 ss", {}, CLOSED),
        (f"{OPENED} +5 ss fff", {}, CLOSED),
        # One probe that fails opens it again for the whole time; one that was cancelled makes room.
        (f"{OPENED} +5 sf", {}, OPEN),
        (f"{OPENED} +5 sf +4.9", {}, OPEN),
        (f"{OPENED} +5 sf +5", {}, HALF_OPEN),
        (f"{OPENED} +5 ---", {"probes": 1}, HALF_OPEN),
        (f"{OPENED} +5 --- s", {"probes": 1}, CLOSED),
        # A server that hangs is left alone after few calls, but not if it answers others in the meantime.
        ("s +10 hh", {"min_calls": 10}, CLOSED),
        ("s +10 hhh", {"min_calls": 10}, OPEN),
        (ALMOST_SILENT * 5, {"min_calls": 100}, CLOSED),
    ],
)
def test_when_it_opens_and_closes(events: str, changes: dict[str, Any], state: BreakerState) -> None:
    tested = Watched(**changes)
    tested.play(events)
    assert tested.state is state
    assert (tested.breaker.admit() is None) is (state is OPEN)


def test_it_lets_a_few_probes_through_and_no_more() -> None:
    tested = Watched()
    tested.play(f"{OPENED} +5")
    for _ in range(2):
        tested.admit()
    assert tested.breaker.admit() is None


def test_a_call_from_before_it_opened_says_nothing_of_the_probes() -> None:
    tested = Watched()
    late_good, late_bad = tested.admit(), tested.admit()
    tested.play(f"{OPENED} +5")
    assert tested.state is HALF_OPEN
    late_good.record(ok=True)
    late_bad.record(ok=False)
    assert tested.state is HALF_OPEN
    tested.play("ss")
    assert tested.state is CLOSED


def test_only_the_first_word_on_a_call_counts() -> None:
    tested = Watched()
    tested.play(f"{OPENED} +5")
    admission = tested.admit()
    for ok in (True, None, True):
        admission.record(ok=ok)
    assert tested.state is HALF_OPEN


def test_a_call_that_was_given_up_counts_by_the_time_that_it_had() -> None:
    tested = Watched(min_calls=100)
    for _ in range(5):
        early = tested.admit()
        tested.clock.now += 1.9
        early.given_up(2.0)
    assert tested.state is CLOSED
    late = [tested.admit() for _ in range(3)]
    tested.clock.now += 2.0
    for admission in late:
        admission.given_up(2.0)
    assert tested.state is OPEN
    assert tested.breaker.last_failure == "no answer in time"


def adaptive(maximum: int = 64, fallen: int = 0) -> AdaptiveLimit:
    """A limit after so many signs of overload."""
    limit = AdaptiveLimit(maximum)
    for _ in range(fallen):
        limit.overloaded(limit.round)
    return limit


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
@pytest.mark.parametrize("fallen", [0, 2, 20])
def test_it_finds_the_capacity_of_the_server_and_stays_near_it(capacity: int, fallen: int) -> None:
    limit = adaptive(fallen=fallen)
    rounds = [run_round(limit, capacity) for _ in range(300)][-100:]
    assert min(rounds) >= int(capacity * 0.6)
    assert max(rounds) <= capacity + 2
    refused = sum(max(0, sent - capacity) for sent in rounds)
    assert refused <= 0.4 * sum(rounds)


def test_a_server_with_room_is_used_up_to_the_maximum() -> None:
    limit = adaptive(maximum=4, fallen=9)
    assert [run_round(limit, 100) for _ in range(6)] == [1, 2, 2, 3, 4, 4]


def test_it_follows_a_capacity_that_changes() -> None:
    limit = adaptive()
    for capacity in (20, 5, 40):
        rounds = [run_round(limit, capacity) for _ in range(200)][-20:]
        assert capacity * 0.6 <= sum(rounds) / len(rounds) <= capacity + 2


def test_a_limit_that_is_far_too_high_is_halved_until_a_call_succeeds_and_never_is_none() -> None:
    limit = adaptive(maximum=40)
    seen = [limit.limit]
    for _ in range(7):
        limit.overloaded(limit.round)
        seen.append(limit.limit)
    assert seen == [40, 28, 14, 7, 3, 1, 1, 1]
    limit = adaptive(maximum=40, fallen=1)
    limit.succeeded(limit.round, 1, None)
    limit.overloaded(limit.round)
    assert limit.limit == 19


def test_calls_refused_together_count_once() -> None:
    limit = adaptive(maximum=10)
    for _ in range(10):
        limit.overloaded(0)
    assert limit.limit == 7


def test_it_does_not_rise_while_there_is_no_demand() -> None:
    """What nobody has tried is not known to be borne."""
    limit = adaptive(maximum=14, fallen=1)
    for _ in range(1_000):
        limit.succeeded(limit.round, 3, None)
    assert limit.limit == 9


def test_a_server_that_queues_is_sent_fewer() -> None:
    limit = adaptive(maximum=32)
    for _ in range(50):
        limit.succeeded(limit.round, 1, 0.2)
    assert limit.limit == 32
    for _ in range(40):
        limit.succeeded(limit.round, 32, 2.0)
    assert limit.limit < 16


def test_noise_and_a_lasting_change_are_no_overload() -> None:
    limit = adaptive(maximum=32)
    for number in range(500):
        limit.succeeded(limit.round, 1, 0.1 if number % 5 else 0.6)
    assert limit.limit == 32
    for _ in range(1_000):
        limit.succeeded(limit.round, BUSY, 0.6)
    low = limit.limit
    for _ in range(1_000):
        limit.succeeded(limit.round, BUSY, 0.6)
    assert limit.limit >= low


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
