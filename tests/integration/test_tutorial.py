"""docs/tutorial-kafka-chat.md, tutorial-review.md, and Kafka's way in of quickstart.md, on a real Kafka."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from pathlib import Path

import httpx2
import pytest

from tests.support import tutorial
from tests.support.docs import ROOT, blocks, shell_lines
from tests.support.kafka_broker import KafkaBroker, free_ports

pytestmark = pytest.mark.kafka

_GUARDRAIL = "import sys; from guardrail.cli import main; main()"


class Shell:
    """Runs the page's programs in a folder, with the test's Kafka in place of localhost:9092, and a free port
    in place of 8090.
    """

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self._folder = folder
        self._bootstrap = bootstrap
        [self._port] = free_ports(1)

    def save(self, name: str, text: str) -> None:
        text = text.replace("localhost:9092", self._bootstrap).replace("8090", str(self._port))
        (self._folder / name).write_text(text, encoding="utf-8")

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *[each.replace("localhost:9092", self._bootstrap) for each in arguments],
            cwd=self._folder,
            env=os.environ | {"GUARDRAIL_OPS__PORT": "0", "PYTHONPATH": str(ROOT)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *arguments: str) -> str:
        process = await self.start(*arguments)
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode()


async def logged(guard: asyncio.subprocess.Process, event: str) -> None:
    assert guard.stderr is not None
    seen = b""
    async for line in guard.stderr:
        seen += line
        if f'"{event}"'.encode() in line:
            return
    raise AssertionError(f"the guard ended without {event}: {seen.decode()}")


async def test_the_tutorial(own_kafka: KafkaBroker, tmp_path: Path) -> None:
    own_kafka.start()
    shell = Shell(tmp_path, own_kafka.bootstrap_servers)
    create = ("topics", "create", "--bootstrap-servers", "localhost:9092")
    await shell.run("-c", _GUARDRAIL, *create, "--partitions", "6", "--replication-factor", "1")
    shell.save("guardrail.yaml", tutorial.OBSERVING)
    await shell.run("-c", _GUARDRAIL, "config", "check", "guardrail.yaml")
    guard = await shell.start("-c", _GUARDRAIL, "run", "--config", "guardrail.yaml")
    try:
        await logged(guard, "guard.assigned")
        shell.save("chat.py", tutorial.CHAT)
        watched = await shell.run("chat.py")
        assert "within 30 days" in watched
        assert "I could not confirm" not in watched

        shell.save("guardrail.yaml", tutorial.ENFORCING)
        await logged(guard, "config.reloaded")
        enforced = await shell.run("chat.py")
        assert "The Pro plan costs $29 a month." in enforced
        assert "within 30 days" not in enforced
        assert "instead of all that: I could not confirm that." in enforced

        shell.save("cases.py", tutorial.CASES)
        cases = await shell.run("cases.py")
        assert "block How long does a refund take?" in cases
        assert "within 30 days" in cases

        await review(shell)
    finally:
        guard.send_signal(signal.SIGTERM)
        await guard.communicate()
    assert guard.returncode == 0


async def test_the_quickstarts_way_in(own_kafka: KafkaBroker, tmp_path: Path) -> None:
    own_kafka.start()
    shell, [port] = Shell(tmp_path, own_kafka.bootstrap_servers), free_ports(1)
    [block] = [
        each
        for each in blocks("quickstart.md", "")
        if each.startswith("pip install '.[examples]'\nguardrail")
    ]
    _, create, run, chat = shell_lines(block)
    await shell.run("-c", _GUARDRAIL, *create[1:])
    guard = await shell.start("-c", _GUARDRAIL, *run[1:])
    service = await shell.start(*chat[1:], "--port", str(port))
    try:
        await logged(guard, "guard.assigned")
        assert service.stdout is not None
        assert str(port) in (await service.stdout.readline()).decode()
        async with httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(retries=10), timeout=60) as client:
            question = {"question": "How do I reach support?"}
            told = (await client.get(f"http://127.0.0.1:{port}/answer", params=question)).text
    finally:
        for process in (service, guard):
            process.send_signal(signal.SIGTERM)
            await process.communicate()
    assert "event: block" in told
    assert "4321" not in told


async def review(shell: Shell) -> None:
    shell.save("webhook-secret", f"whsec_{base64.b64encode(os.urandom(32)).decode()}\n")
    shell.save("guardrail.yaml", tutorial.ENFORCING + tutorial.REVIEWING)
    await shell.run("-c", _GUARDRAIL, "config", "check", "guardrail.yaml")
    shell.save("receiver.py", tutorial.RECEIVER)
    receiver = await shell.start("receiver.py")
    subscriber = await shell.start("-c", _GUARDRAIL, "flagged", "--config", "guardrail.yaml")
    try:
        assert receiver.stdout is not None
        told = (await receiver.stdout.readline()).decode()
        assert told.startswith("block by 'contradicted'")
        assert "within 30 days" in told
    finally:
        subscriber.send_signal(signal.SIGTERM)
        await subscriber.communicate()
        receiver.kill()
        await receiver.communicate()
    assert subscriber.returncode == 0
    cases = ("-c", _GUARDRAIL, "cases")
    listed = await shell.run(*cases, "list", "--config", "guardrail.yaml", "--json")
    found = [json.loads(line) for line in listed.splitlines()]
    assert {each["decision"] for each in found} == {"block"}
    shown = await shell.run(*cases, "show", found[0]["response_id"], "--config", "guardrail.yaml")
    assert "Refunds are paid within 14 days" in shown
