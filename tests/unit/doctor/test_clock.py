"""This machine's clock beside another one's."""

from __future__ import annotations

import asyncio

import pytest

from guardrail.doctor import check_clock, endpoint_time_s
from tests.support.tcp_server import TcpServer


@pytest.mark.parametrize(
    ("told_s", "state", "words"),
    [
        (1_000.5, "ok", "within 5 s of the broker"),
        (996.0, "ok", "within 5 s of the broker"),
        (990.0, "warn", "10 s ahead of the broker"),
        (1_062.0, "warn", "60 s behind the broker"),
        (9_002.0, "fail", "8,000 s behind the broker"),
        (None, "skip", "no LogAppendTime"),
    ],
)
def test_a_difference_is_told_by_its_size(told_s: float | None, state: str, words: str) -> None:
    check = check_clock(told_s, 1_000.0, 1_002.0, "the broker")
    assert check.state == state
    assert words in check.detail


def test_whole_seconds_of_an_http_date_are_no_difference() -> None:
    assert check_clock(994.6, 1_000.0, 1_000.1, "it", exact_to_s=1.0).state == "ok"
    assert check_clock(994.6, 1_000.0, 1_000.1, "it").state == "warn"


class Clock(TcpServer):
    """A server that tells the time, and keeps what it was sent."""

    def __init__(self, date: str | None) -> None:
        super().__init__()
        self._date = date
        self.heard = b""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard = await reader.readuntil(b"\r\n\r\n")
        date = "" if self._date is None else f"Date: {self._date}\r\n"
        writer.write(
            f"HTTP/1.1 404 Not Found\r\n{date}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()


async def test_any_answer_of_an_endpoint_tells_the_time_and_no_secret_is_sent_for_it() -> None:
    async with Clock("Thu, 01 Jan 1970 00:16:40 GMT") as server:
        assert await endpoint_time_s(f"{server.url}?key=secret") == 1_000.0
    assert b"secret" not in server.heard
    assert b"uthorization" not in server.heard


@pytest.mark.parametrize("date", [None, "yesterday"])
async def test_an_endpoint_that_does_not_tell_the_time_is_no_error(date: str | None) -> None:
    async with Clock(date) as server:
        assert await endpoint_time_s(server.url) is None
    assert await endpoint_time_s("http://127.0.0.1:9/v1") is None
