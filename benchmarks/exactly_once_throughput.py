"""The guard's exactly-once pipeline against a bare transactional loop, over the same records, in one run.

Part of ``benchmarks.exactly_once``.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence

import uvloop

from benchmarks.bare_kafka_loop import create_topic
from benchmarks.bare_transactional_loop import bare_transactional_loop
from benchmarks.instant_judge import InstantJudge
from benchmarks.timed_transport import Timed
from benchmarks.workload import token_streams
from consumers.guard import GuardConsumer
from consumers.kafka import KafkaTransport, KafkaWriter
from consumers.kafka.client import quiet_client_log
from consumers.settings import KafkaSettings, Topics
from consumers.transport import OutRecord
from guardrail.config import LoggingSettings
from guardrail.logs import configure_logging
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter

PARTITIONS = 4
RESPONSES = 800
BATCH = 5_000
AIM = 0.5


async def _guarded(settings: KafkaSettings, records: int) -> Timed:
    stop = asyncio.Event()
    timed = Timed(KafkaTransport(settings, [settings.topics.responses]), records, stop)
    guard = GuardConsumer(
        timed,
        InstantJudge(),
        PolicyRouter.single(Policy()),
        topics=settings.topics,
        delivery_guarantee="exactly_once",
        max_record_bytes=settings.max_request_bytes,
    )
    await guard.run(stop)
    return timed


async def _measure(bootstrap: str, rounds: int) -> bool:
    quiet_client_log()
    run = uuid.uuid4().hex[:8]
    topic = f"bench-{run}-responses"
    await create_topic(bootstrap, topic, PARTITIONS)
    records = [
        OutRecord(topic, event.response_id.encode(), event.to_json())  # type: ignore[attr-defined]
        for event in token_streams(RESPONSES, at_once=200)
    ]
    writer = KafkaWriter(KafkaSettings(bootstrap_servers=bootstrap))
    await writer.start()
    for start in range(0, len(records), BATCH):
        await writer.write(records[start : start + BATCH])
    await writer.stop()
    ours: list[float] = []
    bare: list[float] = []
    for number in range(rounds):
        names = {name: f"bench-{run}-{number}-{name}" for name in Topics.model_fields if name != "responses"}
        topics = Topics(responses=topic, **names)
        out = f"bench-{run}-{number}-bare"
        for name in (*names.values(), out):
            await create_topic(bootstrap, name, PARTITIONS)
        settings = KafkaSettings(bootstrap_servers=bootstrap, group_id=f"bench-{run}-{number}", topics=topics)
        timed = await _guarded(settings, len(records))
        ours.append(timed.seconds)
        bare.append(
            await bare_transactional_loop(
                bootstrap,
                topic,
                out,
                len(records),
                PARTITIONS,
                per_input=timed.written / len(records),
                size=timed.bytes // max(1, timed.written),
            )
        )
    return _report(len(records), ours, bare, timed)


def _report(n: int, ours: Sequence[float], bare: Sequence[float], timed: Timed) -> bool:
    middle = len(ours) // 2
    ratio = sorted(bare)[middle] / sorted(ours)[middle]
    result: Mapping[str, object] = {
        "records": n,
        "guard_records_per_s": round(n / sorted(ours)[middle]),
        "bare_records_per_s": round(n / sorted(bare)[middle]),
        "ratio": round(ratio, 2),
        "aim_met": ratio >= AIM,
        "guard_steps": timed.steps,
        "outputs": timed.written,
        "output_bytes": timed.bytes,
        "state_records": timed.state_written,
        "state_bytes": timed.state_bytes,
    }
    print(
        f"{n:,} records of {RESPONSES} token streams, {PARTITIONS} partitions, medians of {len(ours)}:  "
        f"bare transactional loop {result['bare_records_per_s']:,} records/s   "
        f"guard, exactly once {result['guard_records_per_s']:,} records/s   ratio {ratio:.2f} (aim {AIM:g})"
    )
    print(
        f"the guard took {timed.steps:,} steps, wrote {timed.written:,} outputs of "
        f"{timed.bytes / max(1, timed.written):,.0f} bytes and {timed.state_written:,} records of state, "
        f"{timed.state_bytes:,} bytes; the bare loop wrote outputs of the same number and size"
    )
    print(json.dumps({"throughput": result}), flush=True)
    return ratio >= AIM


def throughput(bootstrap: str, rounds: int) -> bool:
    """Measure and print; is the aim met?"""
    configure_logging(LoggingSettings(level="warning"))
    return uvloop.run(_measure(bootstrap, rounds))
