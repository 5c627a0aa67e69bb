"""A Kafka for benchmarks, topics on it, and guards that run on it as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from consumers.kafka import KafkaWriter
from consumers.settings import KafkaSettings, Topics
from consumers.transport import OutRecord

PARTITIONS: Final = 4
BATCH: Final = 5_000
READY_WITHIN_S: Final = 60.0
"""That a guard may take to start, also where it reads sessions."""
GUARD: Final = ("-c", "from guardrail.cli import main; main()")
"""Arguments of a Python that is ``guardrail``."""
_STOP_S: Final = 60


@contextlib.contextmanager
def kafka_for_benchmark(bootstrap: str | None) -> Iterator[str]:
    """The given broker, or one of our own for as long as the block runs."""
    if bootstrap:
        yield bootstrap
        return
    from tests.support.kafka_broker import running_broker  # needs Java; not for those who bring a broker

    with running_broker() as own:
        yield own


async def create_topic(bootstrap: str, name: str, partitions: int = PARTITIONS, **configs: str) -> None:
    """A topic with one replica and ``configs``, compacted where its name ends in ``sessions``.

    Returns once the broker tells others of it.
    """
    if name.endswith("sessions"):
        configs["cleanup.policy"] = "compact"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs)])
        while any(  # noqa: ASYNC110 - the broker has nothing to wait for
            p["error_code"] or t["error_code"]
            for t in await admin.describe_topics([name])
            for p in t["partitions"] or [t]
        ):
            await asyncio.sleep(0.05)
    finally:
        await admin.close()


async def new_topics(
    bootstrap: str, partitions: int = PARTITIONS, of_sessions: Mapping[str, str] | None = None
) -> Topics:
    """A guard's topics, new; ``of_sessions`` configures that of stored sessions."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    topics = Topics(**{role: f"{name}-{role}" for role in Topics.model_fields})
    for topic in topics.names():
        configs = (of_sessions or {}) if topic == topics.sessions else {}
        await create_topic(bootstrap, topic, partitions, **configs)
    return topics


async def write(bootstrap: str, records: Sequence[OutRecord]) -> None:
    """Write them all, in batches."""
    writer = KafkaWriter(KafkaSettings(bootstrap_servers=bootstrap))
    await writer.start()
    try:
        for first in range(0, len(records), BATCH):
            await writer.write(records[first : first + BATCH])
    finally:
        await writer.stop()


@dataclass(slots=True)
class GuardProcess:
    """A guard on a group, and what it logs; an async context manager, which ends it."""

    bootstrap: str
    topics: Topics
    group: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further ones by path, as ``kafka.delivery_guarantee``."""
    program: Sequence[str] = GUARD
    ready: str = "guard.ready"
    """The event in its log that is waited for."""
    port: int = 0
    """Of its metrics, once it is ready."""
    logged_at: dict[str, list[float]] = field(default_factory=dict)
    """By event, when it was logged, by the monotonic clock."""
    _process: asyncio.subprocess.Process | None = None
    _reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def start(self) -> None:
        """Start it, and come back when it is ready. Raises RuntimeError with its log where it ends before,
        TimeoutError where it takes longer than ``READY_WITHIN_S``.
        """
        settings = {
            "kafka.bootstrap_servers": self.bootstrap,
            "kafka.group_id": self.group,
            **{f"kafka.topics.{role}": name for role, name in self.topics.model_dump().items()},
            "logging.format": "json",
            "ops.port": "0",
            **self.settings,
        }
        named = {"GUARDRAIL_" + path.replace(".", "__").upper(): value for path, value in settings.items()}
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, *self.program, "run"),
            # An installed guard has its byte code.
            env=os.environ | named | {"PYTHONDONTWRITEBYTECODE": ""},
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stderr is not None
        said = b""
        async with asyncio.timeout(READY_WITHIN_S):
            while f'"{self.ready}"'.encode() not in said:
                line = await self._process.stderr.readline()
                if not line:
                    raise RuntimeError(said[-1_000:].decode("utf-8", "replace"))
                said += line
                self._note(line)
        self._reading = asyncio.create_task(self._read(self._process.stderr))

    def _note(self, line: bytes) -> None:
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            self.port = said.get("port", self.port)
            self.logged_at.setdefault(said["event"], []).append(time.monotonic())

    async def _read(self, log: asyncio.StreamReader) -> None:
        async for line in log:
            self._note(line)

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.returncode is None

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    async def end(self, by: signal.Signals = signal.SIGTERM) -> int:
        """End it; the exit status, once it has ended. It is killed if that takes a minute."""
        assert self._process is not None
        if self.runs:
            self.send_signal(by)
        try:
            return await asyncio.wait_for(self._process.wait(), _STOP_S)
        except TimeoutError:
            self._process.kill()
            return await self._process.wait()

    async def metrics(self) -> dict[str, float]:
        """The sum of each of its metrics."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        page = (await reader.read()).decode()
        writer.close()
        found: dict[str, float] = {}
        for name, value in re.findall(r"^([a-z_]+)(?:\{[^}]*\})? (\S+)$", page, re.MULTILINE):
            found[name] = found.get(name, 0.0) + float(value)
        return found
