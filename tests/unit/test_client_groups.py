"""Whose word counts where two groups of guards judge the same answers, one of which enforces nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from consumers.memory import MemoryBroker, MemoryTransport
from guardrail.client import AnswerBlocked, GuardClient, GuardTimeout
from guardrail.client import client as client_module
from guardrail.client.answers import TimeoutPolicy
from guardrail.errors import ConfigError
from guardrail.events import GROUP_HEADER
from guardrail.policy import Policy
from guardrail.testing import MemoryClientTransport, ScriptedJudge
from tests.support.guards import TOPICS, new_broker, running_guard, until
from tests.support.stages import staged

CONTEXTS = ["Refunds are paid within 14 days."]
RIGHT = "Refunds are paid within 14 days."
WRONG = "Refunds are paid within 30 days."
STRICT = Policy(rules=["verdict CONTRADICTED: block"])
SHADOW = Policy(rules=["verdict CONTRADICTED: block"], mode="observe")
ANSWERS = 20


@asynccontextmanager
async def guards(broker: MemoryBroker, **policies: Policy) -> AsyncIterator[None]:
    """One guard for each group, all on the same topics."""
    async with AsyncExitStack() as stack:
        for group, policy in policies.items():
            transport = MemoryTransport(broker, group, TOPICS.responses, sessions_topic=TOPICS.sessions)
            judge = ScriptedJudge({"30 days": "CONTRADICTED"})
            await stack.enter_async_context(running_guard(transport, judge, policy))
        yield


async def shown(client: GuardClient, text: str, seen: list[str]) -> str:
    """All text that a reader was shown, also of an answer that ends in an error."""
    async for piece in client.guard("?", CONTEXTS, [text]):
        seen.append(piece.text)  # noqa: PERF401 - what came before an error counts
    return "".join(seen)


async def test_a_client_that_names_its_group_shows_nothing_that_it_withholds() -> None:
    broker, seen = new_broker(), list[str]()
    async with (
        guards(broker, guardrail=STRICT, shadow=SHADOW),
        GuardClient(transport=MemoryClientTransport(broker), group="guardrail") as client,
    ):
        for _ in range(ANSWERS):
            with pytest.raises(AnswerBlocked):
                await shown(client, WRONG, seen)
        assert await shown(client, RIGHT, []) == RIGHT
    assert seen == []


async def test_it_says_once_of_each_group_that_it_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    broker = new_broker()
    async with (
        guards(broker, guardrail=STRICT, shadow=SHADOW),
        GuardClient(transport=MemoryClientTransport(broker), group="guardrail") as client,
    ):
        for _ in range(3):
            await shown(client, RIGHT, [])
    warned = [record for record in caplog.records if "client.other_group" in record.getMessage()]
    assert len(warned) == 1
    assert "shadow" in warned[0].getMessage()


async def test_a_group_that_nobody_is_in_never_answers() -> None:
    broker = new_broker()
    async with (
        guards(broker, shadow=SHADOW),
        GuardClient(transport=MemoryClientTransport(broker), group="guardrail", timeout_s=0.2) as client,
    ):
        with pytest.raises(GuardTimeout):
            await shown(client, RIGHT, [])


@pytest.mark.parametrize("on_timeout", ["raise", "pass", "message"])
async def test_without_a_group_answers_end_in_an_error_once_a_second_one_speaks(
    on_timeout: TimeoutPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = new_broker()
    transport = MemoryClientTransport(broker)
    async with GuardClient(transport=transport, on_timeout=on_timeout) as client:
        async with guards(broker, guardrail=STRICT, shadow=SHADOW):
            with pytest.raises(ConfigError, match=r"('guardrail'|'shadow').* ('guardrail'|'shadow')"):  # noqa: PT012
                for _ in range(ANSWERS):
                    with suppress(AnswerBlocked):
                        await shown(client, WRONG, [])
            with pytest.raises(ConfigError, match=r"GuardClient whose word counts \(group=…\)"):
                await shown(client, RIGHT, [])
        async with guards(broker, guardrail=STRICT):
            with pytest.raises(ConfigError):
                await shown(client, RIGHT, [])
            monkeypatch.setattr(client_module, "_CONFLICT_S", -1.0)  # a minute later
            assert await shown(client, RIGHT, []) == RIGHT


async def test_a_new_group_that_judges_old_answers_anew_is_no_conflict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = new_broker()
    async with GuardClient(transport=MemoryClientTransport(broker)) as client:
        async with guards(broker, blue=STRICT):
            assert await shown(client, RIGHT, []) == RIGHT
        monkeypatch.setattr(client_module, "_OVERLAP_S", -1.0)  # half a minute later
        async with guards(broker, green=STRICT):
            await until(lambda: broker.lag("green", TOPICS.responses) == 0)
            assert await shown(client, RIGHT, []) == RIGHT


async def test_a_second_group_in_the_middle_of_a_long_answer_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long ago the first one began, and however many answers of others came meanwhile."""
    monkeypatch.setattr(client_module, "_OVERLAP_S", -1.0)
    monkeypatch.setattr(client_module, "_ANSWERS_REMEMBERED", 0)
    seen, more = list[str](), asyncio.Event()

    async def words() -> AsyncIterator[str]:
        yield RIGHT
        await more.wait()

    async def read(client: GuardClient) -> None:
        async for piece in client.guard("?", CONTEXTS, words(), response_id="long"):
            seen.append(piece.text)

    async with staged() as stage:
        reading = asyncio.create_task(read(stage.client))
        await until(lambda: bool(stage.sent("long")))
        stage.segment("long", 0, RIGHT, (0, len(RIGHT)), "guardrail")
        await until(lambda: seen == [RIGHT])
        stage.segment("long", 1, RIGHT, (len(RIGHT), 2 * len(RIGHT)), "shadow")
        with pytest.raises(ConfigError):
            await reading
        more.set()
    assert seen == [RIGHT]


async def test_what_no_group_is_named_in_is_nobodys_word_against_another() -> None:
    """Guards that don't say yet, while they are replaced by guards that do."""
    broker = new_broker()
    async with GuardClient(transport=MemoryClientTransport(broker)) as client:
        for key, headers in ((b"a", ()), (b"a", ((GROUP_HEADER, b"guardrail"),))):
            broker.append(TOPICS.deliveries, key, b"{}", headers)
        async with guards(broker, guardrail=STRICT):
            assert await shown(client, RIGHT, []) == RIGHT
