"""Token streams at the pace of generators, written to Kafka, and what readers see of them when.

All times are readings of the monotonic clock, which the processes of one machine share. Writer and reader
are to run in processes of their own, so that neither waits for the other or for the guard.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from typing import NamedTuple

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.workload import sentences
from consumers.kafka.client import quiet_client_log
from guardrail.claims import BuiltinSeverityRater, ClaimCutter
from guardrail.events import Context, Event, ResponseCompleted, ResponseDelta, ResponseStarted
from guardrail.policy import Policy

SILENCE_S = 60.0
DELTA_CHARS = 4
SENTENCE_CHARS = 62


@dataclass(frozen=True, slots=True)
class Phase:
    """``responses`` streams side by side into one topic, each of ``tokens_per_second`` for ``seconds``."""

    name: str
    topic: str
    responses: int
    tokens_per_second: float
    seconds: float
    seed: int

    def ids(self) -> list[str]:
        """Ids of its responses."""
        return [f"{self.name}-{number}" for number in range(self.responses)]


class Due(NamedTuple):
    """One event, when it is due after the phase's start, and the segments that are whole with it."""

    at: float
    response_id: str
    value: bytes
    completes: tuple[int, ...] = ()


@dataclass(slots=True)
class Written:
    """When the event was sent that makes a segment whole, by response and segment."""

    completing: dict[tuple[str, int], float] = field(default_factory=dict)
    worst_lag_s: float = 0.0
    events: int = 0


class Seen(NamedTuple):
    """One delivered segment, and when a read_committed reader had it."""

    response_id: str
    segment: int
    at: float
    claim_ids: tuple[str, ...]


def schedule(phase: Phase) -> Iterator[Due]:
    """Every event of the phase in the order of time; streams begin evenly spread over their first second."""
    rater = BuiltinSeverityRater(Policy().severity)
    rng = random.Random(phase.seed)
    chars = round(phase.seconds * phase.tokens_per_second * DELTA_CHARS)
    streams = []
    for number, response_id in enumerate(phase.ids()):
        text = sentences(rng, chars // SENTENCE_CHARS + 1)[:chars]
        begin = number / phase.responses
        streams.append(_stream(response_id, text, sentences(rng, 10), begin, phase.tokens_per_second, rater))
    return merge(*streams, key=lambda due: due.at)


def _stream(
    response_id: str, text: str, context: str, begin: float, rate: float, rater: BuiltinSeverityRater
) -> Iterator[Due]:
    contexts = (Context(id="c1", text=context),)
    head: Event = ResponseStarted(response_id=response_id, question="What is covered?", contexts=contexts)
    yield Due(begin, response_id, head.to_json())
    # The guard's own cutter says which delta makes a segment whole, so that no other delay is counted.
    cutter = ClaimCutter(rater, max_segment_chars=Policy().max_segment_chars)
    seq = 0
    for start in range(0, len(text), DELTA_CHARS):
        piece = text[start : start + DELTA_CHARS]
        whole = tuple(cut.segment.index for cut in cutter.feed(piece))
        event = ResponseDelta(response_id=response_id, seq=seq, text=piece)
        seq += 1
        yield Due(begin + seq / rate, response_id, event.to_json(), whole)
    rest = tuple(cut.segment.index for cut in cutter.finish())
    end = ResponseCompleted(response_id=response_id, seq=seq)
    yield Due(begin + (seq + 1) / rate, response_id, end.to_json(), rest)


def write_phases(bootstrap: str, phases: Sequence[Phase], pause_s: float) -> Written:
    """Write the phases one after the other; the body of a process."""
    return uvloop.run(_write_phases(bootstrap, phases, pause_s))


async def _write_phases(bootstrap: str, phases: Sequence[Phase], pause_s: float) -> Written:
    quiet_client_log()
    written = Written()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    await producer.start()
    try:
        for phase in phases:
            dues = list(schedule(phase))
            await asyncio.sleep(pause_s)
            await _write(producer, phase.topic, dues, written)
    finally:
        await producer.stop()
    return written


async def _write(producer: AIOKafkaProducer, topic: str, dues: Sequence[Due], written: Written) -> None:
    start = time.monotonic()
    for due in dues:
        wait = start + due.at - time.monotonic()
        if wait > 0.001:
            await asyncio.sleep(wait)
        now = time.monotonic()
        written.worst_lag_s = max(written.worst_lag_s, now - start - due.at)
        for segment in due.completes:
            written.completing[due.response_id, segment] = now
        await producer.send(topic, due.value, key=due.response_id.encode())
    written.events += len(dues)
    await producer.flush()


def read_until_final(bootstrap: str, topics: Sequence[str], responses: set[str]) -> list[Seen]:
    """All segments delivered of these responses, until each has its final event; the body of a process.

    Gives up, with what there is, when nothing comes for a minute.
    """
    return uvloop.run(_read_until_final(bootstrap, topics, set(responses)))


async def _read_until_final(bootstrap: str, topics: Sequence[str], waiting: set[str]) -> list[Seen]:
    quiet_client_log()
    wanted = frozenset(waiting)
    consumer = AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=f"reader-{uuid.uuid4().hex}",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    seen: list[Seen] = []
    await consumer.start()
    last = time.monotonic()
    try:
        while waiting and time.monotonic() - last < SILENCE_S:
            batches = await consumer.getmany(timeout_ms=200)
            now = time.monotonic()
            for records in batches.values():
                last = now
                for record in records:
                    event = json.loads(record.value or b"")
                    response_id = event["response_id"]
                    if response_id not in wanted:
                        continue
                    if event["type"] == "delivery.segment":
                        seen.append(Seen(response_id, event["segment"], now, tuple(event["claim_ids"])))
                    else:
                        waiting.discard(response_id)
    finally:
        await consumer.stop()
    return seen
