"""A model that fails, and those asked in its stead."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from guardrail.errors import ConfigError, JudgeError, JudgeRefused, JudgeReplyError, JudgeUnavailable
from guardrail.judges.llm.chat import Chat
from tests.support.llm_server import Behaviour, Cut, Hang, LlmServer, Reply, Status, busy, refusing
from tests.unit.judges.llm.asking import settings
from tests.unit.judges.llm.chatting import Asker, Clock, chatting, lines

GOOD = lines("c1", "c2")
MISSING_KEY = "fallbacks[0].api_key"


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (Status(500), "the server answered 500"),
        (Status(401), "the server answered 401; check the API key"),
        (Status(400, {"message": "no such role"}), "the server answered 400"),
        (Status(429, {"code": "insufficient_quota"}), "the server answered 429 (insufficient_quota)"),
        (busy("seconds", 3600), "the server answered 429 (rate_limit_exceeded)"),
        (Cut(after=0), "the connection to HOST was cut"),
        (Reply("nothing"), "nothing usable"),
        (Reply(None, refusal="no"), "the model refused to judge"),
        (Status(200, raw="<html>"), "the server's answer is not JSON; check judge.llm.base_url"),
    ],
)
async def test_the_next_model_answers_and_it_is_said_why(trouble: Behaviour, why: str) -> None:
    async with (
        LlmServer(trouble) as first,
        LlmServer(GOOD) as second,
        chatting(first, second, max_retries=0) as chat,
    ):
        asker = Asker(chat)
        assert await asker.ask() == ["c1", "c2"]
        host = first.url.split("/")[2]
    assert asker.spent.models == [f"llm:test: {why.replace('HOST', host)}"]
    assert asker.spent.answered_by == "llm:fallback-1"
    assert asker.spent.calls == 2
    assert second.calls[0].body["model"] == "fallback-1"


async def test_models_are_asked_in_order_and_no_more_of_them_than_needed() -> None:
    async with (
        LlmServer(Status(500)) as first,
        LlmServer(Status(503)) as second,
        LlmServer(GOOD) as third,
        LlmServer(GOOD) as fourth,
        chatting(first, second, third, fourth, max_retries=1) as chat,
    ):
        asker = Asker(chat)
        assert await asker.ask() == ["c1", "c2"]
    assert [len(server.calls) for server in (first, second, third, fourth)] == [2, 2, 1, 0]
    assert asker.spent.models == [
        "llm:test: the server answered 500",
        "llm:fallback-1: the server answered 503",
    ]
    assert asker.spent.calls == 5


@pytest.mark.parametrize(
    ("troubles", "kind"),
    [
        ((Status(500), Status(401)), JudgeUnavailable),
        ((Reply("nothing"), Status(401)), JudgeReplyError),
        ((Status(403), Status(401)), JudgeError),
        ((Reply(None, refusal="no"), Status(400, {"code": "content_filter"})), JudgeRefused),
        ((Reply(None, refusal="no"), Status(400)), JudgeReplyError),
    ],
)
async def test_when_all_fail_each_is_named(troubles: tuple[Behaviour, Behaviour], kind: type) -> None:
    async with (
        LlmServer(troubles[0]) as first,
        LlmServer(troubles[1]) as second,
        chatting(first, second, max_retries=0) as chat,
    ):
        asker = Asker(chat)
        with pytest.raises(JudgeError, match=r"llm:test: .*; llm:fallback-1: the server answered") as caught:
            await asker.ask()
    assert type(caught.value) is kind
    assert len(asker.spent.models) == 2
    assert asker.spent.answered_by == ""


async def test_a_model_that_hangs_leaves_time_for_the_next() -> None:
    async with (
        LlmServer(Hang()) as first,
        LlmServer(GOOD) as second,
        chatting(first, second, reserve=0.9) as chat,
    ):
        asker = Asker(chat)
        assert await asker.ask(seconds=10.0) == ["c1", "c2"]
        await first.given_up.wait()
    assert asker.spent.models == ["llm:test: no verdict within the deadline, 1 call made"]


async def test_the_last_model_may_use_all_the_time() -> None:
    async with (
        LlmServer(Status(500)) as first,
        LlmServer(Hang()) as second,
        chatting(first, second, max_retries=0) as chat,
    ):
        asker = Asker(chat)
        with pytest.raises(JudgeUnavailable, match="fallback-1: no verdict within the deadline"):
            await asker.ask(seconds=1.0)
        await second.given_up.wait()


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
        assert asker.spent.models == ["llm:test: the server asked to wait; no time is left to try again"]
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
    assert asker.spent.answered_by == "llm:test"


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


async def test_a_fallback_may_have_a_key_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-second", "utf-8")
    async with LlmServer(Status(500), GOOD) as server:
        fallback = {"model": "smaller", "api_key": {"file": str(tmp_path / "key")}}
        async with chatting(server, max_retries=0, api_key="sk-first", fallbacks=[fallback]) as chat:
            await Asker(chat).ask()
    assert [call.headers["authorization"][7:] for call in server.calls] == ["sk-first", "sk-second"]


def test_a_key_that_is_missing_is_named_with_its_place() -> None:
    missing = settings(fallbacks=[{"model": "m", "api_key": {"file": "/nowhere"}}], api_key="k")
    with pytest.raises(ConfigError) as caught:
        Chat(missing)
    assert f"judge.llm.{MISSING_KEY}" in str(caught.value)


async def test_early_answers_are_not_contradicted_by_a_later_call() -> None:
    """The first says c1 and only then that it refuses; whatever is asked next, c1 has its answer."""
    refused = Reply("c1\n", refusal="no more", wire=GOOD.wire)
    async with (
        LlmServer(refused) as first,
        LlmServer(GOOD) as second,
        chatting(first, second) as chat,
    ):
        asker = Asker(chat)
        assert await asker.ask() == ["c1"]
    assert asker.heard == ["c1"]
    assert second.calls == []


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
