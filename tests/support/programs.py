"""``guardrail`` as operators run it: programs of their own, by a file of settings, and what they log."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what processes bring about (the test's own time limit bounds it)."""
    while not condition():  # noqa: ASYNC110 - logs and readers are looked at
        await asyncio.sleep(0.02)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from guardrail.cli import main; main()", *arguments]


def environment() -> dict[str, str]:
    """This process's, without settings of the guardrail; health and metrics on any port that is free."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GUARDRAIL_")}
    return kept | {"COLUMNS": "80", "GUARDRAIL_OPS__PORT": "0"}


def call(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = environment() | variables
    return subprocess.run(command(*arguments), capture_output=True, text=True, env=env, check=False)


class Running:
    """One ``guardrail run``, its file of settings and its log."""

    def __init__(self, config: Path, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.config = config
        self.process = process
        self._log = log

    def lines(self, event: str | None = None) -> list[dict[str, Any]]:
        """What it has logged, or of that alone what is this event."""
        whole = [line for line in self._log.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
        return [found for found in map(json.loads, whole) if event in (None, found["event"])]

    def events(self) -> set[str]:
        """All that it has logged, by name."""
        return {line["event"] for line in self.lines()}

    async def logs(self, event: str, times: int = 1) -> dict[str, Any]:
        """Wait for an event; its latest line."""
        await until(lambda: len(self.lines(event)) >= times or self.process.poll() is not None)
        assert len(self.lines(event)) >= times, "the guard ended"
        return self.lines(event)[-1]

    async def ends(self) -> int:
        """The exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait, 60)


@contextmanager
def running(folder: Path, config: dict[str, Any], what: str = "run", ops_port: int = 0) -> Iterator[Running]:
    """``guardrail run``, or another command that stays. Killed at the end of the block, if it still runs."""
    name = uuid.uuid4().hex
    path, log = folder / f"{name}.yaml", folder / f"{name}.log"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    with log.open("wb") as out:
        env = environment() | {"GUARDRAIL_OPS__PORT": str(ops_port)}
        process = subprocess.Popen(command(what, "--config", str(path)), stderr=out, env=env)
    try:
        yield Running(path, log, process)
    finally:
        process.kill()
        process.wait(timeout=30)
