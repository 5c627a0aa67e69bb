"""How fast a bare aiokafka loop is here: consume, ``json.loads``, produce. The yardstick of the pipeline.

    python -m benchmarks.bare_kafka_loop --records 200000 [--bootstrap-servers HOST:PORT]

Without an address it starts a Kafka of its own. Prints records per second of the bare loop, as anybody
would write it, and of the guard's transport doing the same.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from consumers.kafka import KafkaTransport, KafkaWriter
from consumers.kafka.client import quiet_client_log
from consumers.settings import KafkaSettings
from consumers.transport import Commit, OutRecord, Partition, Restored

BATCH = 5_000
BATCH_BYTES = 128 * 1024


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


async def fill(bootstrap: str, topic: str, n: int, responses: int = 1_000) -> None:
    """Write ``n`` deltas of about 60 bytes of JSON, over ``responses`` keys."""
    writer = KafkaWriter(KafkaSettings(bootstrap_servers=bootstrap))
    await writer.start()
    try:
        for first in range(0, n, BATCH):
            await writer.write(
                [
                    OutRecord(topic, *delta(number % responses, number // responses))
                    for number in range(first, min(n, first + BATCH))
                ]
            )
    finally:
        await writer.stop()


def delta(response: int, seq: int) -> tuple[bytes, bytes]:
    """Key and value of one delta."""
    response_id = f"response-{response:06d}"
    event = {"type": "response.delta", "response_id": response_id, "seq": seq, "text": " to"}
    return response_id.encode(), json.dumps(event, separators=(",", ":")).encode()


async def bare_loop(bootstrap: str, in_topic: str, out_topic: str, n: int) -> float:
    """Seconds to consume ``n`` records, ``json.loads`` each, send each on with its key, and commit.

    Straightforward aiokafka: ``getmany``, one ``send`` per record, all acknowledgements awaited before
    the positions are committed, acks from all replicas, idempotent. Counted from the first record on.
    """
    consumer = AIOKafkaConsumer(
        in_topic,
        bootstrap_servers=bootstrap,
        group_id=f"bare-{uuid.uuid4().hex}",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, max_batch_size=BATCH_BYTES
    )
    await consumer.start()
    await producer.start()
    try:
        started, done = 0.0, 0
        while done < n:
            batches = await consumer.getmany(timeout_ms=200, max_records=BATCH)
            if batches and not started:
                started = time.perf_counter()
            sent = []
            positions = {}
            for tp, records in batches.items():
                for record in records:
                    event = json.loads(record.value or b"")
                    sent.append(
                        await producer.send(out_topic, record.value, key=event["response_id"].encode())
                    )
                done += len(records)
                positions[TopicPartition(tp.topic, tp.partition)] = records[-1].offset + 1
            if sent:
                await asyncio.wait(sent)
                for future in sent:
                    future.result()
                await consumer.commit(positions)
        return time.perf_counter() - started
    finally:
        await consumer.stop()
        await producer.stop()


class _Anything:
    async def on_assigned(self, restored: Mapping[Partition, Restored]) -> None:
        """Nothing to restore."""

    async def on_revoked(self, partitions: object) -> None:
        """Nothing to drain."""


async def transport_loop(
    bootstrap: str, in_topic: str, out_topic: str, n: int, *, parse: bool = True
) -> float:
    """Seconds for the same work through the guard's Kafka transport."""
    settings = KafkaSettings(
        bootstrap_servers=bootstrap,
        group_id=f"transport-{uuid.uuid4().hex}",
        delivery_guarantee="at_least_once",
    )
    transport = KafkaTransport(settings, [in_topic], output_topics=[out_topic])
    await transport.start(_Anything())
    try:
        started, done = 0.0, 0
        while done < n:
            records = await transport.poll(200, BATCH)
            if not records:
                continue
            started = started or time.perf_counter()
            out = []
            for record in records:
                key = json.loads(record.value or b"{}")["response_id"].encode() if parse else record.key
                out.append(OutRecord(out_topic, key, record.value))
            done += len(records)
            await transport.publish(out, {record.partition: Commit(record.offset + 1) for record in records})
        return time.perf_counter() - started
    finally:
        await transport.stop()


@contextlib.contextmanager
def kafka_for_benchmark(bootstrap: str | None) -> Iterator[str]:
    """The given broker, or one of our own for as long as the block runs."""
    if bootstrap:
        yield bootstrap
        return
    from tests.support.kafka_broker import running_broker  # needs Java; not for those who bring a broker

    with running_broker() as own:
        yield own


async def measure(bootstrap: str, n: int, partitions: int, rounds: int) -> None:
    """Print the rates, best of ``rounds`` each, in turns so that the machine's moods hit all alike."""
    quiet_client_log()
    in_topic, out_topic = f"bench-in-{uuid.uuid4().hex}", f"bench-out-{uuid.uuid4().hex}"
    await create_topic(bootstrap, in_topic, partitions)
    await create_topic(bootstrap, out_topic, partitions)
    await fill(bootstrap, in_topic, n)
    bare, ours = [], []
    for _ in range(rounds):
        bare.append(await bare_loop(bootstrap, in_topic, out_topic, n))
        ours.append(await transport_loop(bootstrap, in_topic, out_topic, n))
    print(f"{n} records of ~60 bytes, {partitions} partitions, best of {rounds}")
    print(f"bare aiokafka loop    {n / min(bare):>10,.0f} records/s")
    print(f"the guard's transport {n / min(ours):>10,.0f} records/s   ratio {min(bare) / min(ours):.2f}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap-servers", help="use this Kafka instead of starting one")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with kafka_for_benchmark(arguments.bootstrap_servers) as bootstrap:
        uvloop.run(measure(bootstrap, arguments.records, arguments.partitions, arguments.rounds))


if __name__ == "__main__":
    main()
