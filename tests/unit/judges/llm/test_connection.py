"""Why no server was reached: said by host and port, in words, without what stands in a URL besides."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import openai
import pytest

from guardrail.calls import server_of
from guardrail.errors import JudgeUnavailable
from guardrail.judges.openai_client import describe, httpx
from tests.support.certificates import Authority
from tests.support.kafka_broker import free_ports
from tests.support.tcp_server import TcpServer
from tests.unit.judges.llm.asking import judge

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
            f"no connection to {host}: no TLS came about, as where a server speaks http and not https; "
            "check base_url"
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
    assert failed(late) == "no connection to host:443: there was none in time; check base_url"
    assert failed(httpx.ReadTimeout("hunter2")) == "the call timed out"
    proxy = failed(httpx.ProxyError("407 hunter2"))
    assert proxy.startswith("no connection to host:443: the proxy that the environment names refused it")
    other = failed(httpx.ConnectError("hunter2"), OSError("hunter2"))
    assert other == "no connection to host:443: the network failed; check base_url"


@pytest.mark.parametrize("why", [ssl.SSLWantReadError(), ConnectionResetError(), None])
def test_a_connection_that_stood_was_cut_whatever_it_was_waiting_for(why: BaseException | None) -> None:
    assert failed(httpx.ReadError("hunter2"), why) == "the connection to host:443 was cut"
