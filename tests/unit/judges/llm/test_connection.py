"""What failures of calls mean: statuses, waits, and why no server was reached, by host and port, and without
what stands in a URL besides.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import openai
import pytest

from guardrail.calls import BackOff, Failure, retry_after, server_of
from guardrail.errors import ConfigError, JudgeError, JudgeUnavailable
from guardrail.judges import Verdict
from guardrail.judges.llm import LlmJudge
from guardrail.judges.llm.chat import Exchange, StallBounds
from guardrail.judges.openai_client import OwnClients, describe, httpx
from tests.support.certificates import Authority
from tests.support.judges import reply_of
from tests.support.kafka_broker import free_ports
from tests.support.llm_server import Hang, LlmServer, Status
from tests.support.tcp_server import TcpServer
from tests.unit.judges.llm.asking import judge, judging, request, settings

REQUEST = httpx.Request("POST", "http://localhost/v1")


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://host/v1", "host:443"),
        ("http://host/v1/", "host:80"),
        ("http://localhost:8000/v1", "localhost:8000"),
        ("https://me:hunter2@host:8443/v1?key=hunter2#hunter2", "host:8443"),
        ("http://[::1]:80/v1", "[::1]:80"),
        ("http://h:99999/hunter2", "the server"),
        ("", "the server"),
    ],
)
def test_a_server_is_told_by_host_and_port_alone(url: str, server: str) -> None:
    assert server_of(url) == server


async def told(url: str) -> str:
    with pytest.raises(JudgeUnavailable) as caught:
        await judge(None, base_url=url, max_retries=0)
    return str(caught.value)


async def test_a_port_where_nothing_listens() -> None:
    [port] = free_ports(1)
    server = f"127.0.0.1:{port}"
    assert await told(f"http://{server}/v1") == (
        f"no connection to {server}: it was refused: nothing listens there; check base_url"
    )


async def test_a_host_that_is_not_known() -> None:
    assert await told("http://no-such-host.invalid/v1") == (
        "no connection to no-such-host.invalid:80: the name of the host is not known; check base_url"
    )


class Plain(TcpServer):
    """Answers in HTTP, and leaves it to the caller to close."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()


async def _unreached(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def test_https_where_http_is_spoken() -> None:
    async with Plain() as server:
        host = server.url.split("/")[2]
        assert await told(f"https://{host}/v1") == (
            f"no connection to {host}: the TLS handshake failed (does the server speak http instead of "
            "https?); check base_url"
        )


async def test_a_certificate_of_an_authority_that_nobody_knows(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("localhost")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(issued.certfile, issued.keyfile)
    async with await asyncio.start_server(
        _unreached, "localhost", 0, ssl=context, family=socket.AF_INET
    ) as server:
        host = f"localhost:{server.sockets[0].getsockname()[1]}"
        assert await told(f"https://{host}/v1") == (
            f"no connection to {host}: its certificate is not trusted; name the authority's in SSL_CERT_FILE"
        )


def failed(cause: Exception, why: BaseException | None = None) -> str:
    cause.__cause__ = why
    error = openai.APIConnectionError(request=REQUEST)
    if isinstance(cause, httpx.TimeoutException):
        error = openai.APITimeoutError(request=REQUEST)
    error.__cause__ = cause
    return str(describe(error, "host:443", "judge.llm").error)


def test_what_else_there_may_be() -> None:
    late = httpx.ConnectTimeout("hunter2")
    assert failed(late) == "no connection to host:443: connecting timed out; check base_url"
    assert failed(httpx.ReadTimeout("hunter2")) == "the call timed out"
    proxy = failed(httpx.ProxyError("407 hunter2"))
    assert proxy.startswith("no connection to host:443: the proxy that the environment names refused it")
    other = failed(httpx.ConnectError("hunter2"), OSError("hunter2"))
    assert other == "no connection to host:443: the network failed; check base_url"


@pytest.mark.parametrize("why", [ssl.SSLWantReadError(), ConnectionResetError(), None])
def test_a_connection_that_stood_was_cut_whatever_it_was_waiting_for(why: BaseException | None) -> None:
    assert failed(httpx.ReadError("hunter2"), why) == "the connection to host:443 was cut"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 99 Foo 1970"}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=lambda: 100.0) == seconds


WAITS = BackOff(first_s=0.1, longest_s=0.5)


def test_the_bound_of_the_wait_doubles_up_to_the_maximum() -> None:
    assert [WAITS.wait(retry, None, lambda: 1.0) for retry in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    assert WAITS.bound(100_000) == 0.5


def test_the_wait_is_spread_over_all_of_the_bound() -> None:
    assert WAITS.wait(3, None, lambda: 0.0) == 0.0


def test_the_wait_is_never_shorter_than_what_the_server_asks() -> None:
    assert WAITS.wait(0, 30.0, lambda: 0.5) == 30.05


def described(error: openai.APIError) -> Failure:
    return describe(error, "the server", "judge.llm")


def answered(status: int, code: Any = None, **headers: str) -> Failure:
    response = httpx.Response(status, headers=headers, request=REQUEST)
    return described(openai.APIStatusError("Text", response=response, body={"code": code}))


def test_an_exhausted_account_is_a_fault_and_no_overload() -> None:
    """Fewer calls at once would help nothing, another provider would."""
    failure = answered(429, "insufficient_quota", **{"retry-after": "1"})
    assert (failure.retry, failure.fault, failure.overload) == (False, True, False)
    assert failure.retry_after is None
    assert isinstance(failure.error, JudgeUnavailable)


def test_what_must_not_be_tried_again_asks_for_no_wait() -> None:
    assert answered(429, **{"retry-after": "7"}).retry_after == 7.0
    assert answered(429, **{"retry-after": "7", "x-should-retry": "false"}).retry_after is None


@pytest.mark.parametrize("code", [["x"], "a secret: $50", "x" * 65, {}])
def test_a_code_that_is_no_plain_word_is_not_repeated(code: object) -> None:
    assert str(answered(400, code).error) == "the server answered 400"


def test_a_connection_that_failed_is_the_server_s_fault() -> None:
    for error, late in (
        (openai.APIConnectionError(request=REQUEST), False),
        (openai.APITimeoutError(request=REQUEST), True),
    ):
        failure = described(error)
        assert (failure.retry, failure.fault, failure.overload) == (True, True, late)
        assert isinstance(failure.error, JudgeUnavailable)


@pytest.mark.parametrize(
    ("status", "code", "message", "named"),
    [
        (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.", True),
        (400, "BadRequestError", "This model's maximum context length is 4096 tokens. However, you", True),
        (400, None, "the request exceeds the available context size, try increasing it", True),
        (400, None, "input length exceeds the context window", True),
        (400, None, "Prompt is too long: 210000 tokens > 200000 maximum", True),
        (422, None, "`inputs` must have less than 4096 tokens: max_model_len", True),
        (413, None, "Payload", True),
        (400, None, "unknown role 'developer'", False),
        (404, None, "no context size is known of this model", False),
    ],
)
def test_a_prompt_that_is_too_long_is_told_with_the_setting_that_shortens_it(
    status: int, code: str | None, message: str, *, named: bool
) -> None:
    body = {"message": message, "code": code}
    response = httpx.Response(status, request=REQUEST, json={"error": body})
    told = str(described(openai.APIStatusError(message, response=response, body=body)).error)
    assert ("lower judge.llm.max_context_chars" in told) is named
    assert message not in told


async def test_the_client_hands_on_what_the_server_says_of_the_length() -> None:
    said = {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"}
    async with LlmServer(Status(400, said)) as server:
        with pytest.raises(JudgeError, match=r"answered 400; the prompt is longer.*max_context_chars"):
            await judge(server)


# ----------------------------------------------------------------- what goes to a server besides the question

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
