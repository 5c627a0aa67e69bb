"""A model that fails, and those asked in its stead."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from guardrail.errors import ConfigError, JudgeError, JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.judges.llm.chat import Chat
from tests.support.llm_server import Behaviour, Cut, Hang, LlmServer, Reply, Status, busy, refusing
from tests.unit.judges.llm.asking import settings
from tests.unit.judges.llm.chatting import MINUTE, Asker, Clock, chatting, lines

GOOD = lines("c1", "c2")
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
        (Status(401), "the server answered 401; check the API key"),
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
    assert asker.question.answered_by == ("" if row.error else names[len(row.failed)])
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
    assert asker.question.answered_by == "llm:test"


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
