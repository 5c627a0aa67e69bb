"""Limits of the machine, against the settings; and its clock beside another one's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from guardrail.config import Settings
from guardrail.doctor import Check, Machine, check_clock, check_machine, endpoint_time_s
from tests.support.tcp_server import TcpServer

GIBIBYTE = 1024**3
LARGE = Machine(open_files=65_536, memory=4 * GIBIBYTE, processors=4)


def found(machine: Machine = LARGE, settings: Settings | None = None, **known: Any) -> dict[str, Check]:
    return {check.about: check for check in check_machine(settings or Settings(), machine, **known)}


def test_a_large_machine_is_well() -> None:
    assert {check.state for check in found(partitions=60, brokers=3).values()} == {"ok"}


def test_a_producer_for_each_partition_needs_open_files() -> None:
    check = found(Machine(256, None, 2), partitions=60, brokers=3)["open files"]
    assert check.state == "fail"
    assert "256 may be open, and 60 partitions at 3 brokers take up to 368" in check.detail
    assert "512" in check.remedy


def test_memory_must_hold_what_limits_allow() -> None:
    check = found(Machine(None, GIBIBYTE // 2, 2))["memory"]
    assert check.state == "warn"
    assert "512 MiB" in check.detail
    assert "limits.max_bytes" in check.remedy
    smaller = Settings(limits={"max_bytes": 1024 * 1024})
    assert found(Machine(None, GIBIBYTE, 2), smaller)["memory"].state == "ok"


def test_less_than_one_processor_is_told() -> None:
    assert found(Machine(None, None, 1))["processors"].state == "ok"
    assert found(Machine(None, None, 0.5))["processors"].state == "warn"


def test_what_is_unknown_is_not_called_well() -> None:
    checks = found(Machine(None, None, 2))
    assert (checks["open files"].state, checks["memory"].state) == ("skip", "skip")


def test_the_shutdown_budget_is_told() -> None:
    assert "within 25 s of SIGTERM" in found()["shutdown"].detail


@pytest.mark.parametrize(
    ("files", "memory", "processors"),
    [
        ({"memory.max": "536870912\n", "cpu.max": "50000 100000\n"}, GIBIBYTE // 2, 0.5),
        ({"memory.max": "max\n", "cpu.max": "max 100000\n"}, None, None),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None, None),
        ({"memory/memory.limit_in_bytes": "1073741824\n"}, GIBIBYTE, None),
        ({}, None, None),
    ],
)
def test_limits_of_control_groups_of_both_versions_are_read(
    tmp_path: Path, files: dict[str, str], memory: int | None, processors: float | None
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    machine = Machine.here(tmp_path)
    assert machine.memory == memory
    assert machine.processors == processors or (processors is None and machine.processors >= 1)


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
