"""Asking models: servers that are down, busy or slow, those asked in their stead, the end of a question."""

from __future__ import annotations

import asyncio
import math
import random
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from guardrail.calls import RETRIES, BreakerState
from guardrail.errors import ConfigError, JudgeError, JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.judges.llm.chat import Chat
from tests.support.llm_server import (
    Act,
    Behaviour,
    Cut,
    Drip,
    Hang,
    LlmServer,
    Recorded,
    Reply,
    Status,
    StreamError,
    busy,
    refusing,
    refusing_field,
)
from tests.support.llm_server.behaviours import resolve
from tests.unit.judges.llm.asking import settings
from tests.unit.judges.llm.chatting import MINUTE, Asker, Clock, chatting, lines, tasks_of_ours

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
        with pytest.raises(JudgeUnavailable, match="not calling it again for a while"):
            await Asker(chat).ask()
        assert len(server.calls) == 2
        clock.now += 10.0
        with pytest.raises(JudgeUnavailable, match="answered 500"):
            await Asker(chat).ask()
        with pytest.raises(JudgeUnavailable, match="not calling it again for a while"):
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
    told = "llm:test: its recent calls failed: the server answered 500; not calling it again for a while"
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


LATE = "no verdict within the deadline, [12] calls? made"


FAILS: Final = Status(500)


@dataclass(frozen=True)
class Row:
    """``calls`` to each of the servers; ``failed`` is said of the first models, in order. With an ``error``
    nobody answers.
    """

    servers: tuple[Behaviour, ...]
    calls: tuple[int, ...] = (1, 1)
    failed: tuple[str, ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    seconds: float = MINUTE
    answers: tuple[str, ...] = ("c1", "c2")
    error: type[JudgeError] | None = None


NEXT_ANSWERS: Final = [
    Row((trouble, GOOD), failed=(why,))
    for trouble, why in (
        (FAILS, "the server answered 500"),
        (Status(401), "the server answered 401; check judge.llm.api_key"),
        (Status(400, {"message": "no such role"}), "the server answered 400"),
        (Status(429, {"code": "insufficient_quota"}), r"the server answered 429 \(insufficient_quota\)"),
        (busy("seconds", 3600), r"the server answered 429 \(rate_limit_exceeded\)"),
        (Cut(after=0), r"the connection to 127\.0\.0\.1:\d+ was cut"),
        (Reply("nothing"), "nothing usable"),
        (Reply(None, refusal="no"), "the model refused to judge"),
        (Status(200, raw="<html>"), "the server's answer is not JSON; check judge.llm.base_url"),
    )
]
ALL_FAIL: Final = [
    Row(servers, failed=(".*", "the server answered .*"), error=error)
    for servers, error in (
        ((FAILS, Status(401)), JudgeUnavailable),
        ((Reply("nothing"), Status(401)), JudgeReplyError),
        ((Status(403), Status(401)), JudgeError),
        ((Reply(None, refusal="no"), Status(400, {"code": "content_filter"})), JudgeRefused),
        ((Reply(None, refusal="no"), Status(400)), JudgeReplyError),
    )
]
IN_TIME: Final = [
    # In order, and no more of them than needed.
    Row(
        (FAILS, Status(503), GOOD, GOOD),
        (2, 2, 1, 0),
        ("the server answered 500", "the server answered 503"),
        {"max_retries": 1},
    ),
    # A model that hangs leaves time for the next, and the last may use all of it.
    Row((Hang(), GOOD), (1, 1), (LATE,), {"reserve": 0.9}, seconds=10.0),
    Row((FAILS, Hang()), failed=("the server answered 500", LATE), seconds=1.0, error=JudgeUnavailable),
    # The first says c1 and only then that it refuses; whatever is asked next, c1 has its answer.
    Row((Reply("c1\n", refusal="no more", wire=GOOD.wire), GOOD), (1, 0), answers=("c1",)),
]


@pytest.mark.parametrize("row", [*NEXT_ANSWERS, *ALL_FAIL, *IN_TIME])
async def test_who_is_asked_who_answers_and_why_the_others_did_not(row: Row) -> None:
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(LlmServer(server)) for server in row.servers]
        chat = await stack.enter_async_context(chatting(*servers, **({"max_retries": 0} | row.changes)))
        asker = Asker(chat)
        if row.error is None:
            assert tuple(await asker.ask(row.seconds)) == row.answers
        else:
            with pytest.raises(JudgeError) as caught:
                await asker.ask(row.seconds)
            assert type(caught.value) is row.error
            assert str(caught.value) == "; ".join(asker.question.failed)
    names = ["llm:test", *(f"llm:fallback-{number}" for number in range(1, len(servers)))]
    for name, why, said in zip(names, row.failed, asker.question.failed, strict=False):
        assert re.fullmatch(f"{name}: {why}", said)
    assert len(asker.question.failed) == len(row.failed)
    assert tuple(len(server.calls) for server in servers) == row.calls
    assert asker.question.meter.usage.judge_calls == sum(row.calls)
    assert [call.body["model"] for server in servers[1:] for call in server.calls[:1]] == [
        name.removeprefix("llm:") for name, calls in zip(names[1:], row.calls[1:], strict=True) if calls
    ]


async def test_while_a_server_asks_to_wait_it_is_not_called() -> None:
    clock = Clock()
    behaviours = (busy("seconds", 30), GOOD)
    async with (
        LlmServer(*behaviours) as first,
        LlmServer(GOOD) as second,
        chatting(first, second, clock=clock) as chat,
    ):
        await Asker(chat).ask(seconds=10.0)
        asker = Asker(chat)
        await asker.ask(seconds=10.0)
        assert asker.question.failed == ["llm:test: the server asked to wait; no time is left to try again"]
        assert len(first.calls) == 1
        clock.now += 31.0
        await Asker(chat).ask(seconds=10.0)
    assert (len(first.calls), len(second.calls)) == (2, 2)


async def test_a_wait_without_measure_holds_for_a_minute_only() -> None:
    clock = Clock()
    async with (
        LlmServer(busy("seconds", 1e9), GOOD) as first,
        LlmServer(GOOD) as second,
        chatting(first, second, clock=clock) as chat,
    ):
        await Asker(chat).ask()
        clock.now += 61.0
        asker = Asker(chat)
        await asker.ask()
    assert asker.question.failed == []


async def test_each_model_has_its_own_dialect() -> None:
    async with (
        LlmServer(refusing("json_schema", then=Status(500))) as first,
        LlmServer(GOOD) as second,
        chatting(first, second, max_retries=0) as chat,
    ):
        await Asker(chat).ask()
    assert [call.response_format for call in first.calls] == ["json_schema", "json_object"]
    assert [call.response_format for call in second.calls] == ["json_schema"]


async def test_another_server_gets_neither_key_nor_headers_of_the_first() -> None:
    async with LlmServer(Status(500)) as first, LlmServer(GOOD) as second:
        secrets: dict[str, Any] = {
            "api_key": "sk-first",
            "extra_headers": {"x-route": "hidden"},
            "extra_body": {"extra": 1},
        }
        async with chatting(first, second, max_retries=0, **secrets) as chat:
            await Asker(chat).ask()
    assert first.calls[0].headers["authorization"] == "Bearer sk-first"
    assert first.calls[0].headers["x-route"] == "hidden"
    assert "sk-first" not in str(second.calls[0].headers)
    assert "x-route" not in second.calls[0].headers
    assert "extra" not in second.calls[0].body


async def test_another_model_of_the_same_server_is_asked_with_the_same_key() -> None:
    async with LlmServer(Status(500), GOOD) as server:
        fallback: dict[str, Any] = {"model": "smaller", "extra_body": {"effort": "low", "temperature": 1}}
        async with chatting(server, max_retries=0, api_key="sk-first", fallbacks=[fallback]) as chat:
            await Asker(chat).ask()
    first, second = server.calls
    assert second.headers["authorization"] == first.headers["authorization"] == "Bearer sk-first"
    assert second.body["model"] == "smaller"
    assert second.body["effort"] == "low"
    assert (first.body["temperature"], second.body["temperature"]) == (0, 1)


def test_a_key_that_is_missing_is_named_with_its_place() -> None:
    missing = settings(fallbacks=[{"model": "m", "api_key": {"file": "/nowhere"}}], api_key="k")
    with pytest.raises(ConfigError) as caught:
        Chat(missing)
    assert "judge.llm.fallbacks[0].api_key" in str(caught.value)


async def test_no_time_is_kept_for_a_model_that_is_left_alone() -> None:
    """The first needs longer than its share would be."""
    go = asyncio.Event()
    slow = lines("c1", "c2", hold_after=1, until=go)
    changes: dict[str, Any] = {"reserve": 0.99, "breaker": {"min_calls": 1}}
    async with (
        LlmServer(slow) as first,
        LlmServer(GOOD) as second,
        chatting(first, second, **changes) as chat,
    ):
        admission = chat.endpoints[1].caller.breaker.admit()
        assert admission is not None
        admission.record(ok=False)
        asyncio.get_running_loop().call_later(1.0, go.set)
        assert await Asker(chat).ask(seconds=20.0) == ["c1", "c2"]
    assert second.calls == []


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
async def test_cancelled_during_a_call_it_leaves_nothing_behind(behaviour: Behaviour) -> None:
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


async def test_cancelled_at_any_moment_it_leaves_nothing_behind() -> None:
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


async def test_cancelled_while_waiting_for_a_turn() -> None:
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
async def test_cancelled_while_waiting_to_try_again(
    trouble: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_cancelled_while_a_fallback_is_asked() -> None:
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


async def test_of_many_cancelled_at_once_those_that_stay_are_answered() -> None:
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


# --------------------------------------------------------------------- whatever servers do, in whatever order

ACTS: Final[list[Act | Callable[[Recorded], Act]]] = [
    GOOD,
    lines("c1", "c2", pause_s=0.02),
    lines("c1", "c2", ignore_stream=True),
    Reply("nothing usable"),
    Reply(None, refusal="no"),
    Reply(None, choices=[]),
    Status(200, raw="<html>"),
    Status(500),
    Status(401),
    busy(),
    busy("ms", 0.05),
    busy("seconds", 3600),
    busy("date", 3600, code=503),
    Hang(),
    Hang(2, GOOD),
    Drip(),
    Cut(after=0),
    Cut(chunks=2, reply=GOOD),
    Cut(chunks=1, reset=True, reply=GOOD),
    StreamError(1, reply=GOOD),
    refusing("json_schema", then=GOOD),
    refusing_field("stream", then=GOOD),
]

# Far beyond any deadline asked for here: a test double for patience, not a measure of speed.
PATIENCE_S: Final = 60.0


def unruly(seed: int) -> Callable[[Recorded], Act]:
    chooser = random.Random(seed)
    return lambda call: resolve(chooser.choice(ACTS), call)


@pytest.mark.parametrize("seed", range(6))
async def test_questions_end_by_their_deadline_in_answers_or_an_error(seed: int) -> None:
    changes: dict[str, Any] = {
        "max_concurrency": 1 + seed,
        "breaker": {"min_calls": 3, "open_s": 0.05},
        "stall_s": 0.15,
        "max_retries": 3,
    }
    async with (
        LlmServer(unruly(seed)) as first,
        LlmServer(unruly(seed + 100)) as second,
        chatting(first, second, **changes) as chat,
    ):

        async def one(number: int) -> None:
            asker = Asker(chat, response_id=str(number % 5))
            try:
                answers = await asker.ask(seconds=0.5)
            except JudgeError as error:
                assert str(error)  # noqa: PT017  # an error is one of two good ends
                assert asker.heard == []
            else:
                assert set(answers) <= {"c1", "c2"}
                assert len(answers) == len(set(answers)) > 0
                assert set(asker.heard) <= set(answers)
            assert len(asker.heard) == len(set(asker.heard))

        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(one(number) for number in range(40)))
            await first.until_in_flight(0)
            await second.until_in_flight(0)
        for endpoint in chat.endpoints:
            assert (endpoint.caller.slots.held, endpoint.caller.slots.waiting) == (0, 0)
        assert tasks_of_ours() == []
