"""Does the guard stay flat? Steady load for half an hour, its memory and file descriptors plotted.

    python -m benchmarks.soak --minutes 30 --out docs/

A real Kafka, a ``guardrail run`` process (exactly once; the local judge, or one that answers at once),
and a load of responses that begin and end all the time: streamed, aborted, abandoned by their producers,
with bad records among them. The topic of stored sessions is cleaned every few seconds, and another
producer has aborted a transaction on it, of which cleaning leaves an empty control batch; after the load
a guard is started again and takes it over. The ids of finished responses reach the bound on what is
remembered within the warm-up. Writes soak.png, soak.json and soak.md. Exit status 1 unless flat: resident
memory after the warm-up, fitted by a line, grows by less than 5 % an hour beyond twice the fit's standard
error; no more descriptors are open in the last third than in the first; every response got its final
event; the guard left with status 0; the next one was ready within a minute. Needs matplotlib (the extra
``tune``). Without an address it starts a Kafka of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import AsyncExitStack
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from benchmarks.frame import PARTITIONS, command_line, cpu_seconds, create_topic, kafka_for_benchmark
from benchmarks.soak_load import write_load
from benchmarks.soak_report import Sample, judge, write
from consumers.kafka.client import quiet_client_log

GRACE_S = 90.0
STOP_TIMEOUT_S = 60
READY_WITHIN_S = 60.0
# So low that both bounds on what is remembered are reached within minutes.
# They are constants of the guard, which is therefore started by hand.
CODE = (
    "from {module} import main; from guardrail.limits import Limits; "
    "Limits.finished_responses_remembered, Limits.finished_response_ttl_ms = 200, 60_000; main()"
)
POLICIES = {"default": {"incomplete_timeout_ms": 10_000}}


CLEANED_SOON = {
    "segment.ms": "4000",
    "delete.retention.ms": "4000",
    "max.compaction.lag.ms": "8000",
    "min.cleanable.dirty.ratio": "0.01",
}


async def abort_one(bootstrap: str, topic: str) -> None:
    """A transaction of another producer on every partition."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"of-another-{topic}")
    await producer.start()
    try:
        await producer.begin_transaction()
        for index in range(PARTITIONS):
            await producer.send_and_wait(topic, b"x", key=b"aborted", partition=index)
        await producer.abort_transaction()
    finally:
        await producer.stop()


async def until_ready(guard: subprocess.Popen[bytes], ops_port: int) -> int:
    """0 once the guard has taken all partitions over; 1 if it has not within a minute."""
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline and guard.poll() is None:
        await asyncio.sleep(0.5)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", ops_port)
        except OSError:
            continue
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        ready = b" 200 " in (await reader.read()).split(b"\r\n")[0]
        writer.close()
        if ready:
            return 0
    return 1


def start_guard(
    folder: Path, kafka: dict[str, Any], judge_kind: str, ops_port: int
) -> subprocess.Popen[bytes]:
    """The process that is watched."""
    config = folder / "guardrail.yaml"
    settings = {
        "kafka": kafka,
        "policies": POLICIES,
        "logging": {"level": "error"},
        "ops": {"host": "127.0.0.1", "port": ops_port},
    }
    config.write_text(yaml.safe_dump(settings))
    module, arguments = (
        ("benchmarks.guard_process", ["-"]) if judge_kind == "instant" else ("guardrail.cli", [])
    )
    command = [sys.executable, "-c", CODE.format(module=module), *arguments]
    return subprocess.Popen([*command, "run", "--config", str(config)])


class Watcher:
    """Samples the guard's process, the finals that readers have seen, and the lag of its group."""

    def __init__(self, guard: subprocess.Popen[bytes], started: Synchronized[int], group: str) -> None:
        self._pid = guard.pid
        self._proc = Path(f"/proc/{guard.pid}")
        self._started = started
        self._group = group
        self._cpu = (time.monotonic(), cpu_seconds(guard.pid))
        self._begun = time.monotonic()
        self.finals = 0
        self.samples: list[Sample] = []

    async def read(self, deliveries: AIOKafkaConsumer) -> None:
        """Count final events, until cancelled."""
        while True:
            for records in (await deliveries.getmany(timeout_ms=500)).values():
                self.finals += sum(
                    json.loads(record.value or b"{}").get("type") != "delivery.segment" for record in records
                )

    async def sample(self, admin: AIOKafkaAdminClient, input_reader: AIOKafkaConsumer) -> None:
        """Add a sample."""
        status = dict(
            line.split(":", 1) for line in (self._proc / "status").read_text().splitlines() if ":" in line
        )
        now, cpu = time.monotonic(), cpu_seconds(self._pid)
        before, used = self._cpu
        self._cpu = (now, cpu)
        self.samples.append(
            Sample(
                seconds=round(now - self._begun, 1),
                rss_mib=round(int(status["VmRSS"].split()[0]) / 1024, 2),
                fds=len(list((self._proc / "fd").iterdir())),
                threads=int(status["Threads"]),
                cpu=round((cpu - used) / (now - before), 3),
                in_flight=self._started.value - self.finals,
                lag=await self._lag(admin, input_reader),
            )
        )

    async def _lag(self, admin: AIOKafkaAdminClient, input_reader: AIOKafkaConsumer) -> int:
        """The lag; what it was when the broker can't say just now, which is no fault of the guard."""
        partitions = sorted(input_reader.assignment())
        try:
            ends = await input_reader.end_offsets(partitions)
            committed = await admin.list_consumer_group_offsets(self._group, partitions=partitions)
        except KafkaError:
            return self.samples[-1].lag if self.samples else 0
        return sum(ends[tp] - max(0, committed[tp].offset) for tp in partitions)


async def watch(
    bootstrap: str,
    topics: dict[str, str],
    watcher: Watcher,
    writing: Future[int],
    guard: subprocess.Popen[bytes],
    every_s: float,
    started: Synchronized[int],
) -> None:
    """Sample until the load is written and every response has its final event, or the guard has ended."""
    quiet_client_log()
    async with AsyncExitStack() as stack:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        stack.push_async_callback(admin.close)
        deliveries = AIOKafkaConsumer(
            topics["deliveries"],
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        input_reader = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        for consumer in (deliveries, input_reader):
            await consumer.start()
            stack.push_async_callback(consumer.stop)
        input_reader.assign([TopicPartition(topics["responses"], index) for index in range(PARTITIONS)])
        reading = asyncio.create_task(watcher.read(deliveries))
        try:
            deadline = float("inf")
            while guard.poll() is None and time.monotonic() < deadline:
                if writing.done():
                    deadline = min(deadline, time.monotonic() + GRACE_S)
                    if watcher.finals >= started.value:
                        break
                else:
                    await watcher.sample(admin, input_reader)
                done, _ = await asyncio.wait({reading}, timeout=every_s)
                for task in done:
                    task.result()
        finally:
            reading.cancel()
            await asyncio.wait({reading})


def soak(bootstrap: str, arguments: argparse.Namespace) -> bool:
    """Run it all; was it flat?"""
    run = uuid.uuid4().hex[:8]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        ops_port = free.getsockname()[1]
    names = ("responses", "deliveries", "verdicts", "flagged", "dead_letters", "sessions")
    topics = {name: f"soak-{run}-{name}" for name in names}
    for name, topic in topics.items():
        configs = CLEANED_SOON if name == "sessions" else {}
        asyncio.run(create_topic(bootstrap, topic, PARTITIONS, **configs))
    asyncio.run(abort_one(bootstrap, topics["sessions"]))
    group = f"soak-{run}"
    kafka = {"bootstrap_servers": bootstrap, "group_id": group, "topics": topics}
    context = multiprocessing.get_context("spawn")
    started: Synchronized[int] = context.Value("q", 0)
    stop = context.Event()
    seconds, warm_up_s = arguments.minutes * 60, arguments.warm_up_minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        guard = start_guard(Path(folder), kafka, arguments.judge, ops_port)
        try:
            with ProcessPoolExecutor(
                1, mp_context=context, initializer=_share, initargs=(started, stop)
            ) as pool:
                writing = pool.submit(
                    _write, bootstrap, topics["responses"], arguments.responses, arguments.rate, seconds
                )
                watcher = Watcher(guard, started, group)
                try:
                    asyncio.run(watch(bootstrap, topics, watcher, writing, guard, arguments.every, started))
                finally:
                    stop.set()
                bad = writing.result()
            guard.send_signal(signal.SIGTERM)
            status = guard.wait(STOP_TIMEOUT_S)
            next_one = start_guard(Path(folder), kafka, arguments.judge, ops_port)
            try:
                status = status or asyncio.run(until_ready(next_one, ops_port))
            finally:
                next_one.kill()
                next_one.wait()
        finally:
            if guard.poll() is None:
                guard.kill()
                guard.wait()
    result, line = judge(watcher.samples, warm_up_s, seconds, started.value, watcher.finals, status)
    title = (
        f"{arguments.minutes:g} minutes, {arguments.responses} responses at once, {arguments.rate:g} tokens/s"
        f" each, {arguments.judge} judge, exactly once, {started.value:,} responses, {bad:,} bad records"
    )
    write(Path(arguments.out), arguments.name, title, watcher.samples, result, line, warm_up_s)
    print(title)
    print(
        f"resident {result.rss_mean_mib} MiB, {result.rss_growth_mib_an_hour:+} MiB an hour "
        f"(standard error {result.rss_growth_error_mib_an_hour}); descriptors {result.fds_first_third:g} to "
        f"{result.fds_last_third:g}; answered {result.answered:,} of {result.responses:,}; "
        f"left with status {status}: {'flat' if result.flat else 'NOT FLAT'}"
    )
    return result.flat


class _Shared:
    """What the writer's process has of this one; given to it as it begins, which is the only time."""

    started: Synchronized[int]
    stop: Event


def _share(started: Synchronized[int], stop: Event) -> None:
    _Shared.started, _Shared.stop = started, stop


def _write(bootstrap: str, topic: str, at_once: int, rate: float, seconds: float) -> int:
    return write_load(bootstrap, topic, at_once, rate, seconds, 0, _Shared.started, _Shared.stop.is_set)


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, kafka=True)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--warm-up-minutes", type=float, help="default: 5, or a third of a shorter run")
    parser.add_argument("--responses", type=int, default=50, help="streams at once")
    parser.add_argument("--rate", type=float, default=20.0, help="tokens a second of each stream")
    parser.add_argument("--judge", choices=["local", "instant"], default="local")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between samples")
    parser.add_argument("--out", default=".", help="folder for the plot and the summaries")
    parser.add_argument("--name", default="soak", help="name of these files")
    arguments = parser.parse_args()
    if arguments.warm_up_minutes is None:
        arguments.warm_up_minutes = min(5.0, arguments.minutes / 3)
    with kafka_for_benchmark(arguments.bootstrap_servers) as bootstrap:
        flat = soak(bootstrap, arguments)
    sys.exit(0 if flat else 1)


if __name__ == "__main__":
    main()
