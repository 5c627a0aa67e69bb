"""What ``GuardClient`` costs a chat service: many answers over one client, against a bare aiokafka pair.

    python -m benchmarks.client --streams 1000 [--bootstrap-servers HOST:PORT]

Every answer is 1,000 characters in tokens of 4. In place of the guard, a process of its own releases each
delta as it comes, so that the service's side is what is measured. The bare pair is what anybody would write:
one ``send`` for each token, one consumer, ``json.loads``, texts joined by response. The client minds ids,
order, repeats, time-outs, bounds and cancellation as well, and sends tokens together that come within 10 ms,
or, at 0 ms, while the last write is under way. Prints tokens per second from the first one sent to the last
one read, and the processor time of the service's process for each token: in turns, best of the rounds, with
the ratios to the bare pair. Without an address it starts a Kafka of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.bare_loops import BATCH_BYTES
from benchmarks.frame import command_line, create_topic, kafka_for_benchmark
from consumers.kafka.client import quiet_client_log
from guardrail.client import GuardClient

PARTITIONS = 6
TOKENS = ["word"] * 250
CONTEXT = "The basic plan costs $49 a month."


async def release(bootstrap: str, responses: str, deliveries: str) -> None:
    """In place of the guard: release every delta as it comes, for ever."""
    consumer = AIOKafkaConsumer(responses, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", max_batch_size=BATCH_BYTES)
    await consumer.start()
    await producer.start()
    ends: dict[bytes, int] = defaultdict(int)
    print("ready", flush=True)
    while True:
        for records in (await consumer.getmany(timeout_ms=200)).values():
            for record in records:
                event = json.loads(record.value or b"")
                key = record.key or b""
                out = {"schema": 1, "id": "x", "response_id": event["response_id"], "decision": "release"}
                if event["type"] == "response.delta":
                    start = ends[key]
                    ends[key] += len(event["text"])
                    out |= {"type": "delivery.segment", "seq": event["seq"], "text": event["text"]}
                    out |= {"span": [start, ends[key]], "segment": event["seq"]}
                elif event["type"] == "response.completed":
                    out |= {"type": "delivery.completed", "seq": event["seq"], "rule": "passed", "score": 1.0}
                else:
                    continue
                await producer.send(deliveries, json.dumps(out).encode(), key=key)


@asynccontextmanager
async def releasing(bootstrap: str, responses: str, deliveries: str) -> AsyncIterator[None]:
    """``release`` in a process of its own, for as long as the block runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.client", "--release", bootstrap, responses, deliveries),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def bare(bootstrap: str, responses: str, deliveries: str, streams: int) -> None:
    """What anybody would write."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", max_batch_size=BATCH_BYTES)
    consumer = AIOKafkaConsumer(deliveries, bootstrap_servers=bootstrap, isolation_level="read_committed")
    await producer.start()
    await consumer.start()
    await consumer.seek_to_end()
    texts: dict[bytes, list[str]] = {uuid.uuid4().hex.encode(): [] for _ in range(streams)}
    left = streams

    async def send(key: bytes, **event: object) -> None:
        value = json.dumps({"schema": 1, "response_id": key.decode(), **event}).encode()
        await producer.send(responses, value, key=key)

    async def write() -> None:
        contexts = [{"id": "c1", "text": CONTEXT}]
        for key in texts:
            await send(key, type="response.started", question="?", contexts=contexts)
        for seq, token in enumerate(TOKENS):
            for key in texts:
                await send(key, type="response.delta", seq=seq, text=token)
        for key in texts:
            await send(key, type="response.completed", seq=len(TOKENS))

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        while left:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                for record in records:
                    text = texts.get(record.key or b"")
                    if text is None:
                        continue
                    event = json.loads(record.value or b"")
                    if event["type"] == "delivery.segment":
                        text.append(event["text"])
                    else:
                        left -= 1
    assert all("".join(text) == "".join(TOKENS) for text in texts.values())
    await producer.stop()
    await consumer.stop()


async def with_client(
    bootstrap: str, responses: str, deliveries: str, streams: int, coalesce_ms: float
) -> None:
    """The same answers over one client."""

    async def one(client: GuardClient) -> None:
        pieces = [piece.text async for piece in client.guard("?", [CONTEXT], TOKENS)]
        assert "".join(pieces) == "".join(TOKENS)

    async with (
        GuardClient(
            bootstrap,
            responses_topic=responses,
            deliveries_topic=deliveries,
            reply_partitions=None,
            coalesce_ms=coalesce_ms,
        ) as client,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(streams):
            group.create_task(one(client))


async def measure(bootstrap: str, streams: int, rounds: int) -> None:
    """Print the rates and the ratios."""
    quiet_client_log()
    responses, deliveries = f"bench-in-{uuid.uuid4().hex}", f"bench-out-{uuid.uuid4().hex}"
    for topic in (responses, deliveries):
        await create_topic(bootstrap, topic, PARTITIONS)
    best: dict[str, tuple[float, float]] = {}
    tokens = streams * len(TOKENS)
    async with releasing(bootstrap, responses, deliveries):
        for _ in range(rounds):
            for name, run in (
                ("bare aiokafka pair", bare(bootstrap, responses, deliveries, streams)),
                ("GuardClient", with_client(bootstrap, responses, deliveries, streams, 10)),
                ("GuardClient, 0 ms", with_client(bootstrap, responses, deliveries, streams, 0)),
            ):
                started, used = time.perf_counter(), time.process_time()
                await run
                taken = time.perf_counter() - started, time.process_time() - used
                best[name] = min(best.get(name, taken), taken)
    print(f"{streams} answers at once, {tokens:,} tokens, best of {rounds}")
    wall, cpu = best["bare aiokafka pair"]
    for name, (seconds, used_s) in best.items():
        print(
            f"{name:<20}{tokens / seconds:>10,.0f} tokens/s   {used_s / tokens * 1e6:>6.1f} µs of processor "
            f"a token   ratios {wall / seconds:.2f}, {cpu / used_s:.2f}"
        )


def main() -> None:
    """Command line."""
    parser = command_line(__doc__, kafka=True)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--release", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.release:
        uvloop.run(release(*arguments.release))
        return
    with kafka_for_benchmark(arguments.bootstrap_servers) as bootstrap:
        uvloop.run(measure(bootstrap, arguments.streams, arguments.rounds))


if __name__ == "__main__":
    main()
