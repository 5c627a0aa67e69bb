"""A steady load of all sorts of responses: streamed, aborted, abandoned by their producer, and bad records.

Part of ``benchmarks.soak``; runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator
from multiprocessing.sharedctypes import Synchronized

import uvloop
from aiokafka import AIOKafkaProducer

from benchmarks.workload import sentences
from consumers.kafka.client import quiet_client_log
from guardrail.events import (
    Context,
    Event,
    ResponseAborted,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
)

DELTA_CHARS = 4
TICK_S = 0.05
ABORTED, ABANDONED, BAD = 0.02, 0.01, 0.01
"""Shares of the responses: aborted, never ended by their producer, with a bad record beside them."""


def write_load(
    bootstrap: str,
    topic: str,
    at_once: int,
    tokens_per_second: float,
    seconds: float,
    seed: int,
    started: Synchronized[int],
    stopped: Callable[[], bool],
) -> int:
    """Keep ``at_once`` streams going for ``seconds`` and then end them; how many bad records were written.

    ``started`` counts the responses that a final event is owed for. ``stopped`` ends it at once.
    """
    return uvloop.run(
        _write_load(bootstrap, topic, at_once, tokens_per_second, seconds, seed, started, stopped)
    )


async def _write_load(
    bootstrap: str,
    topic: str,
    at_once: int,
    tokens_per_second: float,
    seconds: float,
    seed: int,
    started: Synchronized[int],
    stopped: Callable[[], bool],
) -> int:
    quiet_client_log()
    rng = random.Random(seed)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    await producer.start()
    bad = 0
    try:
        begun = time.monotonic()
        live: list[Iterator[Event]] = []
        owed = 0.0  # tokens of each stream that are due
        tick = begun
        while (live or time.monotonic() - begun < seconds) and not stopped():
            while len(live) < at_once and time.monotonic() - begun < seconds:
                live.append(_stream(rng, started.value))
                with started.get_lock():
                    started.value += 1
                if rng.random() < BAD:
                    # No response is owed for these: the key is none, the id unknown.
                    bad += 1
                    await producer.send(topic, rng.choice((b"{", b"\xff", _unknown(started.value))))
            owed += tokens_per_second * TICK_S
            for _ in range(int(owed)):
                live = [stream for stream in live if await _send_next(producer, topic, stream)]
            owed -= int(owed)
            tick = max(tick + TICK_S, time.monotonic() - 1.0)  # behind schedule: not all at once afterwards
            await asyncio.sleep(max(0.0, tick - time.monotonic()))
    finally:
        await producer.stop()
    return bad


async def _send_next(producer: AIOKafkaProducer, topic: str, stream: Iterator[Event]) -> bool:
    event = next(stream, None)
    if event is None:
        return False
    value = event.to_json()
    await producer.send(topic, value, key=event.response_id.encode())  # type: ignore[attr-defined]
    return True


def _stream(rng: random.Random, number: int) -> Iterator[Event]:
    """One response; its texts are made when it begins, so that only those in flight are held."""
    response_id = f"soak-{number:08d}"
    answer, context = sentences(rng, rng.randint(1, 20)), sentences(rng, rng.randint(1, 12))
    fate = rng.random()
    yield ResponseStarted(
        response_id=response_id, question="What is covered?", contexts=(Context(id="c1", text=context),)
    )
    seq = 0
    for start in range(0, len(answer), DELTA_CHARS):
        if fate < ABORTED + ABANDONED and start > len(answer) / 2:
            if fate < ABORTED:
                yield ResponseAborted(response_id=response_id, reason="cancelled")
            return
        yield ResponseDelta(response_id=response_id, seq=seq, text=answer[start : start + DELTA_CHARS])
        seq += 1
    yield ResponseCompleted(response_id=response_id, seq=seq)


def _unknown(number: int) -> bytes:
    event = {"type": "response.delta", "response_id": f"never-begun-{number}", "seq": 0, "text": "?"}
    return json.dumps(event).encode()
