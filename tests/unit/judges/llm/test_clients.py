"""What goes to a model's server besides the question: what is configured, and nothing of the environment."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from urllib.parse import parse_qsl

import pytest

from guardrail.errors import ConfigError, JudgeError
from guardrail.judges import Verdict
from guardrail.judges.llm import LlmJudge
from guardrail.judges.llm.chat import Exchange, StallBounds
from guardrail.judges.openai_client import OwnClients
from tests.support.judges import reply_of
from tests.support.llm_server import Hang, LlmServer, Status
from tests.support.tcp_server import TcpServer
from tests.unit.judges.llm.asking import judge, judging, request, settings

ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-environment",
    "OPENAI_ADMIN_KEY": "sk-environment-admin",
    "OPENAI_ORG_ID": "org-environment",
    "OPENAI_PROJECT_ID": "proj-environment",
    "OPENAI_WEBHOOK_SECRET": "whsec-environment",
    "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer sk-environment-custom\n"
    "authorization: Bearer sk-environment-lower\nX-Route: environment\nContent-Type: environment/x",
    "OPENAI_BASE_URL": "http://environment.invalid/v1",
    "OPENAI_API_VERSION": "environment",
    "OPENAI_API_TYPE": "azure",
    "AZURE_OPENAI_ENDPOINT": "http://environment.invalid",
    "AZURE_OPENAI_API_KEY": "sk-environment-azure",
}
# Besides those that say what HTTP needs.
SENT = {"authorization", "accept", "content-type", "user-agent", "x-stainless-retry-count"}
HTTP = {"host", "connection", "accept-encoding", "content-length", "x-stainless-raw-response"}


@pytest.fixture
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def check(headers: Mapping[str, str], **expected: str) -> None:
    assert set(headers) - HTTP == SENT | {name.replace("_", "-") for name in expected}
    assert not [value for value in headers.values() if "environment" in value]
    assert headers["content-type"] == "application/json"
    for name, value in expected.items():
        assert headers[name.replace("_", "-")] == value


@pytest.mark.usefixtures("_environment")
async def test_no_server_gets_what_lies_in_the_environment() -> None:
    async with LlmServer(Status(500)) as first, LlmServer() as second:
        fallbacks = [
            {"model": "theirs", "base_url": second.url, "api_key": "theirs", "extra_headers": {"x-gate": "b"}}
        ]
        changes: dict[str, Any] = {"api_key": "mine", "extra_headers": {"x-gate": "a"}, "max_retries": 0}
        await judge(first, request(), fallbacks=fallbacks, **changes)
    check(first.calls[0].headers, authorization="Bearer mine", x_gate="a")
    check(second.calls[0].headers, authorization="Bearer theirs", x_gate="b")


async def test_without_a_key_no_authorization_is_sent() -> None:
    """The client wants one; Azure, which takes its key in another header, could read it."""
    async with LlmServer() as server:
        await judge(server, request(), extra_headers={"api-key": "azure"})
    assert "authorization" not in server.calls[0].headers
    assert server.calls[0].headers["api-key"] == "azure"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nothing_goes_where_a_server_redirects_to(status: int) -> None:
    async with LlmServer() as other:
        headers = {"location": f"{other.url}/chat/completions"}
        async with LlmServer(Status(status, headers=headers)) as server:
            with pytest.raises(JudgeError, match=f"answered {status}; it redirects.*base_url"):
                await judge(server, request(), extra_headers={"api-key": "configured"})
        assert len(server.calls) == 1
        assert not other.calls


class Proxy(TcpServer):
    """Refuses all calls, and leaves it to the caller to close."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bytes] = []

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        await reader.read()


async def test_a_proxy_that_the_environment_names_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        with pytest.raises(JudgeError, match="answered 403"):
            await judge(None, request(), base_url="http://model.invalid/v1")
    assert proxy.asked == [b"POST http://model.invalid/v1/chat/completions HTTP/1.1\r\n"]


def test_a_socks_proxy_that_cannot_be_used_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ConfigError, match=r"SOCKS proxy \(ALL_PROXY.*httpx2\[socks\]"):
        LlmJudge(settings(base_url="http://model.invalid/v1"))


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("?api-version=2024-10-21", "api-version=2024-10-21"),
        ("/?api-version=2024-10-21&flag=#top", "api-version=2024-10-21&flag="),
        ("?route=a%20b%26c", "route=a%20b%26c"),
        ("/", ""),
    ],
)
async def test_a_query_in_the_base_url_stands_behind_the_path(query: str, sent: str) -> None:
    async with LlmServer(Status(500)) as first, LlmServer() as second:
        fallbacks = [{"model": "theirs", "base_url": second.url + query}]
        await judge(None, request(), base_url=first.url + query, fallbacks=fallbacks, max_retries=0)
    for server in (first, second):
        assert parse_qsl(server.calls[0].query, keep_blank_values=True) == parse_qsl(
            sent, keep_blank_values=True
        )


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_judge_may_be_asked_from_one_event_loop_after_another() -> None:
    """As by code without a loop of its own, which calls ``asyncio.run`` again and again."""
    async with judging(max_retries=0) as (made, server):
        for number in range(3):
            asked = reply_of(made, request(f"The plan has {number} seats."))
            judged = await asyncio.to_thread(asyncio.run, asked)
            assert judged.judgements[0].verdict is not Verdict.UNVERIFIED
        assert server.connections == 3
    del made
    gc.collect()  # the connections of the loops that ended, which warn where these warnings are expected


async def test_calls_at_once_are_spread_over_clients_and_idle_connections_used_again() -> None:
    own = OwnClients("http://model.invalid/v1", "key")
    with ExitStack() as calls:
        taken = [calls.enter_context(own.client()) for _ in range(40)]
    assert Counter(Counter(map(id, taken)).values()) == {16: 2, 8: 1}
    with own.client() as again:
        assert again is taken[0]
    await own.aclose()
    assert all(client.is_closed() for client in taken)


async def test_a_connection_is_used_again() -> None:
    async with judging(max_retries=0) as (made, server):
        for number in range(5):
            await reply_of(made, request(f"The plan has {number} seats."))
    assert server.connections == 1


async def test_a_connection_that_the_server_has_closed_is_not_used_again() -> None:
    async with judging(max_retries=0) as (made, server):
        for number in range(3):
            judged = await reply_of(made, request(f"The plan has {number} seats."))
            assert judged.judgements[0].verdict is not Verdict.UNVERIFIED
            server.hang_up()
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("_environment")
async def test_an_authorization_that_is_configured_is_sent_instead_of_the_key() -> None:
    async with LlmServer() as server:
        await judge(server, request(), extra_headers={"Authorization": "Basic configured"})
    check(server.calls[0].headers, authorization="Basic configured")


async def test_a_call_that_is_cancelled_twice_leaves_no_connection_open() -> None:
    """As where the deadline of the claim and the call's own fall together."""
    async with LlmServer(Hang()) as server:
        own = OwnClients(server.url, "key")
        exchange = Exchange(own, lambda _: None, StallBounds(60.0, 60.0))
        body = {"model": "any", "messages": [], "stream": True}
        asking = asyncio.create_task(exchange.run(body, {}))
        await server.arrived.wait()
        for _ in range(2):
            asking.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.calls[0].ended.wait()
        assert server.calls[0].left
        await own.aclose()
