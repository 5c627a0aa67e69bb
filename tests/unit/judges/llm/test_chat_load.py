"""Servers that are down, busy or slow: calls that are not made, and how many are."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from guardrail.calls import BreakerState
from guardrail.errors import JudgeError, JudgeUnavailable
from guardrail.judges.llm.chat import Chat
from tests.support.llm_server import (
    Act,
    Cut,
    Hang,
    LlmServer,
    Recorded,
    Reply,
    Status,
    busy,
)
from tests.unit.judges.llm.chatting import MINUTE, Asker, Clock, chatting, lines

GOOD = lines("c1", "c2")
SOON = {"min_calls": 2, "open_s": 10.0, "probes": 1}


async def _opened(chat: Chat) -> None:
    for _ in range(2):
        with pytest.raises(JudgeUnavailable):
            await Asker(chat).ask()


async def test_a_server_that_fails_is_left_alone_then_probed() -> None:
    clock = Clock()
    async with (
        LlmServer(Status(500), Status(500), Status(500), GOOD) as server,
        chatting(server, clock=clock, max_retries=0, breaker=SOON) as chat,
    ):
        await _opened(chat)
        with pytest.raises(JudgeUnavailable, match="left alone for a while"):
            await Asker(chat).ask()
        assert len(server.calls) == 2
        clock.now += 10.0
        with pytest.raises(JudgeUnavailable, match="answered 500"):
            await Asker(chat).ask()
        with pytest.raises(JudgeUnavailable, match="left alone for a while"):
            await Asker(chat).ask()
        assert len(server.calls) == 3
        clock.now += 10.0
        assert await Asker(chat).ask() == ["c1", "c2"]
        assert chat.endpoints[0].caller.breaker.state is BreakerState.CLOSED
        assert await Asker(chat).ask() == ["c1", "c2"]


async def test_while_it_is_left_alone_the_fallback_has_all_the_time_and_no_call_is_wasted() -> None:
    async with (
        LlmServer(Status(500)) as first,
        LlmServer(GOOD) as second,
        chatting(first, second, clock=Clock(), max_retries=0, breaker=SOON) as chat,
    ):
        for _ in range(5):
            asker = Asker(chat)
            assert await asker.ask() == ["c1", "c2"]
    assert (len(first.calls), len(second.calls)) == (2, 5)
    told = "llm:test: its recent calls failed: the server answered 500; it is left alone for a while"
    assert asker.question.failed == [told]
    assert asker.question.meter.usage.judge_calls == 1


@pytest.mark.parametrize(
    "trouble",
    [busy(), Status(400), Status(413), Reply("nothing"), Reply(None, refusal="no")],
    ids=["busy", "bad request", "too long", "unusable", "refused"],
)
async def test_a_server_that_is_well_is_not_left_alone(trouble: Act) -> None:
    async with (
        LlmServer(trouble) as server,
        chatting(server, max_retries=0, breaker=SOON) as chat,
    ):
        for _ in range(5):
            await asyncio.gather(Asker(chat).ask(), return_exceptions=True)
    assert len(server.calls) == 5


def timed(chat: Chat, *seconds: float) -> None:
    """As if calls had taken so long to their first verdict."""
    for each in seconds:
        chat.endpoints[0].caller._first.add(each)


@pytest.mark.parametrize(
    ("slowest", "state"),
    [(30.0, BreakerState.CLOSED), (0.1, BreakerState.OPEN)],
    ids=["too short", "long enough"],
)
async def test_a_deadline_that_was_too_short_is_not_held_against_a_server(
    slowest: float, state: BreakerState
) -> None:
    async with LlmServer(Hang()) as server, chatting(server, breaker={"min_calls": 1}) as chat:
        timed(chat, *[0.05] * 9, slowest)
        with pytest.raises(JudgeUnavailable, match="no verdict within the deadline"):
            await Asker(chat).ask(seconds=1.0)
        assert chat.endpoints[0].caller.breaker.state is state


async def test_a_turn_that_comes_too_late_is_not_used() -> None:
    async with LlmServer(Hang()) as server, chatting(server, max_concurrency=1) as chat:
        first = asyncio.create_task(Asker(chat).ask())
        await server.arrived.wait()
        timed(chat, *[5.0] * 5)
        second = asyncio.create_task(Asker(chat).ask(seconds=5.5))
        asyncio.get_running_loop().call_later(1.0, first.cancel)
        with pytest.raises(JudgeUnavailable, match="the time left is shorter than what it needs"):
            await second
        await asyncio.gather(first, return_exceptions=True)
    assert len(server.calls) == 1


async def test_a_call_that_would_come_too_late_is_not_made() -> None:
    clock = Clock()
    async with LlmServer(lines("c1", "c2", pause_s=0.1)) as server, chatting(server, clock=clock) as chat:
        await asyncio.gather(*(Asker(chat).ask() for _ in range(5)))
        with pytest.raises(JudgeUnavailable, match="the time left is shorter than what it needs"):
            await Asker(chat).ask(seconds=0.05)
        assert len(server.calls) == 5
        # What was slow a while ago may be fast by now: after a minute it is asked again.
        clock.now += 61.0
        with pytest.raises(JudgeUnavailable, match="no verdict within the deadline"):
            await Asker(chat).ask(seconds=0.05)


async def test_a_queue_that_is_too_long_is_not_joined() -> None:
    """One slot, held: three that wait would each take the typical time."""
    slow = lines("c1", "c2", pause_s=0.1)
    async with LlmServer(*[slow] * 5, Hang()) as server, chatting(server, max_concurrency=1) as chat:
        for _ in range(5):
            await Asker(chat).ask()
        whole = 0.4
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(Asker(chat).ask()) for _ in range(40)]
            await server.until_calls(6)
            with pytest.raises(JudgeUnavailable, match="the time left is shorter"):
                await Asker(chat).ask(seconds=20 * whole)
            for task in waiting:
                task.cancel()


async def test_a_full_queue_is_said_at_once() -> None:
    limits: dict[str, Any] = {"max_concurrency": 1, "max_queue": 0}
    async with LlmServer(Hang()) as server, chatting(server, **limits) as chat:
        first = asyncio.create_task(Asker(chat).ask())
        await server.arrived.wait()
        with pytest.raises(JudgeUnavailable, match="calls wait for their turn already"):
            await Asker(chat).ask()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)


async def test_the_number_of_calls_that_a_server_bears_is_found() -> None:
    """It takes four at once; the start is with sixty-four, and a hundred questions come together."""

    def bearing_four(call: Recorded) -> Act:
        return busy() if call.in_flight > 4 else lines("c1", pause_s=0.002)

    limits: dict[str, Any] = {"max_retries": 20, "latency_tolerance": math.inf}
    async with LlmServer(bearing_four) as server, chatting(server, **limits) as chat:
        askers = [Asker(chat, response_id=str(number)) for number in range(100)]
        answers = await asyncio.gather(*(asker.ask(4 * MINUTE) for asker in askers))
        assert answers == [["c1"]] * 100
        assert chat.endpoints[0].caller.limit.limit <= 6
    late = server.calls[len(server.calls) // 2 :]
    refused = [call for call in late if call.in_flight > 4]
    assert len(refused) < len(late) / 2


async def test_a_server_with_room_is_given_more() -> None:
    limits: dict[str, Any] = {"max_concurrency": 12, "latency_tolerance": math.inf}
    async with LlmServer(lines("c1", pause_s=0.002)) as server, chatting(server, **limits) as chat:
        limit = chat.endpoints[0].caller.limit
        while limit.limit > 1:
            limit.overloaded(limit.round)
        await asyncio.gather(*(Asker(chat).ask() for _ in range(100)))
        assert chat.endpoints[0].caller.limit.limit == 12
    # The server sees the end of a call later than the caller, and so may count a few more.
    assert server.most_in_flight >= 8


@pytest.mark.parametrize(
    ("trouble", "lowers"),
    [
        *((each, True) for each in (busy(), Status(503), Hang(0))),
        *((each, False) for each in (Status(500), Status(400), Cut(0), Reply("nothing"))),
    ],
)
async def test_signs_of_overload_lower_the_number_of_calls_and_other_failures_do_not(
    trouble: Act, *, lowers: bool
) -> None:
    async with LlmServer(trouble) as server, chatting(server, max_retries=0, stall_s=0.2) as chat:
        before = chat.endpoints[0].caller.limit.limit
        with pytest.raises(JudgeError):
            await Asker(chat).ask()
        assert (chat.endpoints[0].caller.limit.limit < before) is lowers
