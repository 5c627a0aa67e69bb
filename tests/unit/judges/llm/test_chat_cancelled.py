"""Cancelling in every phase of a question: the server sees it, and nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from guardrail.calls import RETRIES
from guardrail.judges.llm.chat import Chat
from tests.support.llm_server import Behaviour, Drip, Hang, LlmServer, Reply, Status, busy
from tests.unit.judges.llm.chatting import MINUTE, Asker, Clock, chatting, lines, tasks_of_ours

GOOD = lines("c1", "c2")


async def _left(chat: Chat, server: LlmServer) -> None:
    """No call is under way, none waits, no task runs; and the next question is answered."""
    await server.until_in_flight(0)
    for endpoint in chat.endpoints:
        assert (endpoint.caller.slots.held, endpoint.caller.slots.waiting) == (0, 0)
        assert endpoint.caller.breaker.would_admit
    assert tasks_of_ours() == []


async def _until(condition: Callable[[], bool]) -> None:
    """Nothing tells of what this waits for; the test's own time limit ends it."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "behaviour",
    [Hang(), Hang(0), Hang(1, GOOD), Hang(2, GOOD), Drip(), lines("c1", ignore_stream=True, hold_after=1)],
    ids=[
        "before the head",
        "after the head",
        "before a token",
        "within the reply",
        "dripping",
        "whole reply",
    ],
)
async def test_during_a_call(behaviour: Behaviour) -> None:
    async with LlmServer(behaviour, GOOD) as server, chatting(server, max_concurrency=1) as chat:
        asker = Asker(chat)
        task = asyncio.create_task(asker.ask())
        await server.arrived.wait()
        if behaviour == Hang(2, GOOD):
            await asker.news.wait()
        await _cancel(task)
        await server.given_up.wait()
        await _left(chat, server)
        assert await Asker(chat).ask() == ["c1", "c2"]


@pytest.mark.parametrize(
    ("waited_s", "hangs"), [(MINUTE, True), (MINUTE / 2, False)], ids=["out of time", "the reader left"]
)
async def test_questions_that_nobody_waits_for_any_more_tell_of_a_server_by_their_time(
    waited_s: float, hangs: bool
) -> None:
    """As when an answer is blocked for its first claim without a verdict: calls for others end with it."""
    clock = Clock()
    async with LlmServer(Hang()) as server, chatting(server, clock=clock) as chat:
        for _ in range(3):
            task = asyncio.create_task(Asker(chat).ask())
            await server.until_in_flight(1)
            clock.now += waited_s
            await _cancel(task)
            await server.until_in_flight(0)
        assert chat.endpoints[0].caller.breaker.would_admit is not hangs


async def test_a_question_that_is_answered_in_part_tells_nothing_of_the_server() -> None:
    clock = Clock()
    async with LlmServer(Hang(2, GOOD)) as server, chatting(server, clock=clock) as chat:
        for _ in range(5):
            asker = Asker(chat)
            task = asyncio.create_task(asker.ask())
            await asker.news.wait()
            clock.now += 10.0
            await _cancel(task)
            await server.until_in_flight(0)
        assert chat.endpoints[0].caller.breaker.would_admit


async def test_at_any_moment() -> None:
    """Cancelled after so many steps of the event loop, whatever is under way then."""
    async with LlmServer(GOOD) as server, chatting(server, max_concurrency=1) as chat:
        for steps in range(60):
            task = asyncio.create_task(Asker(chat).ask())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await _left(chat, server)
        assert await Asker(chat).ask() == ["c1", "c2"]


async def test_while_waiting_for_a_turn() -> None:
    async with LlmServer(Hang(), GOOD) as server, chatting(server, max_concurrency=1) as chat:
        first = asyncio.create_task(Asker(chat).ask())
        await server.arrived.wait()
        second = asyncio.create_task(Asker(chat).ask())
        await _until(lambda: chat.endpoints[0].caller.slots.waiting == 1)
        await _cancel(second)
        assert len(server.calls) == 1
        await _cancel(first)
        await _left(chat, server)


@pytest.mark.parametrize("trouble", [Status(500), busy("seconds", 30)], ids=["backoff", "Retry-After"])
async def test_while_waiting_to_try_again(trouble: Behaviour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RETRIES, "first_s", 1_000.0)
    monkeypatch.setattr(RETRIES, "longest_s", 1_000.0)
    async with LlmServer(trouble, GOOD) as server, chatting(server) as chat:
        task = asyncio.create_task(Asker(chat).ask(seconds=10_000))
        await server.arrived.wait()
        await server.calls[0].ended.wait()
        await server.until_in_flight(0)
        await _until(lambda: chat.endpoints[0].caller.slots.held == 0)
        await _cancel(task)
        await _left(chat, server)
        assert len(server.calls) == 1


async def test_while_a_fallback_is_asked() -> None:
    async with (
        LlmServer(Status(500)) as first,
        LlmServer(Hang()) as second,
        chatting(first, second, max_retries=0) as chat,
    ):
        task = asyncio.create_task(Asker(chat).ask())
        await second.arrived.wait()
        await _cancel(task)
        await second.given_up.wait()
        await _left(chat, second)


async def test_many_at_once_and_those_that_stay_are_answered() -> None:
    slow = Reply("c1\n", wire=lines(pause_s=0.01).wire)
    async with LlmServer(slow) as server, chatting(server, max_concurrency=4) as chat:
        tasks = [asyncio.create_task(Asker(chat, response_id=str(n % 7)).ask()) for n in range(60)]
        await server.until_calls(6)
        for task in tasks[::2]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[1::2] == [["c1"]] * 30
        await _left(chat, server)


async def test_closing_ends_the_connections() -> None:
    async with LlmServer(GOOD) as server:
        async with chatting(server) as chat:
            await Asker(chat).ask()
        # The server's tasks end with their connections; one that is kept open would be under way still.
        await _until(lambda: not server._tasks)
