"""What benchmarks share: their options, a Kafka with topics of its own, and figures of times."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from consumers.kafka import KafkaWriter
from consumers.settings import KafkaSettings, Topics
from consumers.transport import OutRecord

PARTITIONS = 4
BATCH = 5_000


def command_line(doc: str | None, *, kafka: bool = False) -> argparse.ArgumentParser:
    """A parser whose help is ``doc``, a script's own. ``kafka``: the script can be given a broker."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if kafka:
        parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="default: a Kafka of its own")
    return parser


@contextlib.contextmanager
def kafka_for_benchmark(bootstrap: str | None) -> Iterator[str]:
    """The given broker, or one of our own for as long as the block runs."""
    if bootstrap:
        yield bootstrap
        return
    from tests.support.kafka_broker import running_broker  # needs Java; not for those who bring a broker

    with running_broker() as own:
        yield own


async def create_topic(bootstrap: str, name: str, partitions: int, **configs: str) -> None:
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


async def new_topics(bootstrap: str, name: str = "", partitions: int = PARTITIONS) -> Topics:
    """A guard's topics, new and named after ``name``."""
    name = name or f"bench-{uuid.uuid4().hex[:8]}"
    topics = Topics(**{role: f"{name}-{role}" for role in Topics.model_fields})
    for topic in topics.names():
        await create_topic(bootstrap, topic, partitions)
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


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """p50 and p99 of seconds, in milliseconds."""
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50": round(cuts[49] * 1000, 1), "p99": round(cuts[98] * 1000, 1)}


def cpu_seconds(pid: int) -> float:
    """CPU time a process has used, its threads included (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
