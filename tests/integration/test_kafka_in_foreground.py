"""``make kafka``: a broker in the foreground says why it can't run, and does not outlive its java."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.support.kafka_broker import KafkaBroker, free_ports

ROOT = Path(__file__).resolve().parents[2]


async def started(port: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.kafka_broker", "--port", str(port)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_a_port_in_use_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = await started(port)
        out, err = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert err.decode() == f"port {port} is in use: stop what listens there or choose another with --port\n"


@pytest.mark.kafka
@pytest.mark.skipif(sys.platform != "linux", reason="finds the java process in /proc")
async def test_it_ends_with_a_message_when_its_java_dies(own_kafka: KafkaBroker) -> None:
    """The fixture only skips where there is no Java; its own broker is not started."""
    process = await started(*free_ports(1))
    assert process.stdout is not None
    assert b"is up on" in await process.stdout.readline()
    (java,) = children(process.pid)
    os.kill(java, signal.SIGKILL)
    _, err = await process.communicate()
    assert process.returncode == 1
    assert "Kafka ended by itself with status -9" in err.decode()


@pytest.mark.kafka
async def test_a_signal_ends_it_in_order(own_kafka: KafkaBroker) -> None:
    process = await started(*free_ports(1))
    assert process.stdout is not None
    assert b"is up on" in await process.stdout.readline()
    process.terminate()
    _, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
