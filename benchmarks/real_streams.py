"""Answers streamed through the whole guard at a generator's pace, in process and over a real Kafka.

Part of ``benchmarks.real_answers`` (``--streamed``, ``--kafka``): every answer is cut into token-sized deltas
and streamed, several at a time. Reports decisions, verdicts and latencies, and whether both gave the same
verdicts and delivered the same text. ``--find-most`` looks for how many may stream at once, in process,
before the judge reads less than it would have (``degraded_from``), or has no verdict in time.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.frame import PARTITIONS, kafka_for_benchmark, new_topics
from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.kafka import KafkaTransport
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import KafkaSettings, Topics
from consumers.transport import OutRecord, Transport
from guardrail.config import Settings
from guardrail.events import (
    DeliverySegment,
    Event,
    Response,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
    parse_output,
)
from guardrail.judges import Verdict
from guardrail.judges.factory import build_judge
from guardrail.routing import PolicyRouter

FEWEST = 4
HURRIED = 0.01
"""Share of the claims that may be judged by less before there are too many streams."""
TOKEN = re.compile(r"\s*\S{1,6}|\s+$")
Send = Callable[[Sequence[OutRecord]], Awaitable[None]]


@dataclass
class Seen:
    """What came out for one response, and when each piece went in and came out."""

    sent_at: list[tuple[int, float]] = field(default_factory=list)  # code points sent until then
    text: str = ""
    delays_ms: list[float] = field(default_factory=list)
    verdict: ResponseVerdict | None = None


def events_of(response: Response) -> list[Event]:
    """The response as it streams."""
    head = response.model_dump(exclude={"type", "answer", "metadata"})
    pieces = TOKEN.findall(response.answer)
    assert "".join(pieces) == response.answer
    found: list[Event] = [ResponseStarted.model_validate(head)]
    found += [ResponseDelta(response_id=response.response_id, seq=n, text=p) for n, p in enumerate(pieces)]
    return [*found, ResponseCompleted(response_id=response.response_id, seq=len(pieces))]


async def stream(
    responses: Sequence[Response], send: Send, seen: dict[str, Seen], at_once: int, rate: float
) -> None:
    """Send every response at ``rate`` tokens a second, ``at_once`` of them at a time."""
    slots = asyncio.Semaphore(at_once)

    async def one(response: Response) -> None:
        async with slots:
            due = time.perf_counter()
            sent = 0
            for event in events_of(response):
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                due += 1 / rate
                if isinstance(event, ResponseDelta):
                    sent += len(event.text)
                seen[response.response_id].sent_at.append((sent, time.perf_counter()))
                await send([OutRecord("", response.response_id.encode(), event.to_json())])

    async with asyncio.TaskGroup() as group:
        for response in responses:
            group.create_task(one(response))


def note(value: bytes, seen: dict[str, Seen]) -> bool:
    """Take in one output; true when it is the last of its response."""
    event = parse_output(value)
    entry = seen[event.response_id]
    if isinstance(event, DeliverySegment):
        now = time.perf_counter()
        entry.text += event.text
        entry.delays_ms.append((now - next(t for n, t in entry.sent_at if n >= event.span[1])) * 1000)
    elif isinstance(event, ResponseVerdict):
        entry.verdict = event
        return True
    return False


async def run_guard(
    transport: Transport,
    topics: Topics,
    outputs: AsyncIterator[bytes],
    feed: Callable[[dict[str, Seen]], Awaitable[None]],
    ids: Sequence[str],
    settings: Settings,
) -> dict[str, Seen]:
    """Guard, feed and read until every response has its verdict and every delivery has been read."""
    seen = {response_id: Seen() for response_id in ids}
    stop = asyncio.Event()
    judge = build_judge(settings.judge)
    router = PolicyRouter(settings.policies, settings.routes, settings.default_policy)
    guard = GuardConsumer(transport, judge, router, GuardOptions(topics=topics, poll_timeout_ms=20))

    async def read() -> None:
        finished: Counter[str] = Counter()
        async for value in outputs:
            last_verdict = note(value, seen)
            final = b'"delivery.completed"' in value or b'"delivery.blocked"' in value
            if last_verdict or final:
                finished[json.loads(value)["response_id"]] += 1
            if len(finished) == len(ids) and min(finished.values()) == 2:
                break
        stop.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(guard.run(stop))
        group.create_task(read())
        await feed(seen)
    await judge.aclose()
    return seen


async def embedded(
    responses: Sequence[Response], at_once: int, rate: float, settings: Settings
) -> dict[str, Seen]:
    """On the in-process transport."""
    topics = Topics()
    broker = MemoryBroker(dict.fromkeys(topics.names(), PARTITIONS), compacted=[topics.sessions])
    queue: asyncio.Queue[bytes] = asyncio.Queue()

    async def follow(topic: str) -> None:
        async for record in broker.subscribe(topic):
            queue.put_nowait(record.value or b"")

    async def outputs() -> AsyncIterator[bytes]:
        while True:
            yield await queue.get()

    async def send(records: Sequence[OutRecord]) -> None:
        for record in records:
            broker.append(topics.responses, record.key, record.value)

    followers = [asyncio.create_task(follow(topic)) for topic in (topics.deliveries, topics.verdicts)]
    try:
        transport = MemoryTransport(broker, "guard", topics.responses, sessions_topic=topics.sessions)
        return await run_guard(
            transport,
            topics,
            outputs(),
            lambda seen: stream(responses, send, seen, at_once, rate),
            ids_of(responses),
            settings,
        )
    finally:
        for follower in followers:
            follower.cancel()
        await asyncio.gather(*followers, return_exceptions=True)


async def over_kafka(
    bootstrap: str, responses: Sequence[Response], at_once: int, rate: float, settings: Settings
) -> dict[str, Seen]:
    """On a real Kafka."""
    topics = await new_topics(bootstrap)
    kafka = KafkaSettings(bootstrap_servers=bootstrap, group_id=topics.responses, topics=topics)
    consumer = AIOKafkaConsumer(
        topics.deliveries, topics.verdicts, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    )
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    await consumer.start()
    await producer.start()

    async def outputs() -> AsyncIterator[bytes]:
        async for record in consumer:
            yield record.value or b""

    async def send(records: Sequence[OutRecord]) -> None:
        for record in records:
            await producer.send(topics.responses, record.value, key=record.key)

    try:
        return await run_guard(
            KafkaTransport(kafka),
            topics,
            outputs(),
            lambda seen: stream(responses, send, seen, at_once, rate),
            ids_of(responses),
            settings,
        )
    finally:
        await producer.stop()
        await consumer.stop()


def ids_of(responses: Sequence[Response]) -> list[str]:
    return [response.response_id for response in responses]


def outcome(seen: Seen) -> dict[str, Any]:
    """What must not depend on the transport: everything but times."""
    assert seen.verdict is not None
    found = seen.verdict.model_dump(mode="json", exclude={"timings", "usage"})
    for claim in found["claims"]:
        del claim["latency_ms"]
    return {"text": seen.text, **found}


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def report(name: str, seen: dict[str, Seen]) -> None:
    """Decisions, verdicts and latencies of one run."""
    verdicts = [s.verdict for s in seen.values() if s.verdict is not None]
    claims = [claim for verdict in verdicts for claim in verdict.claims]
    delays = [delay for s in seen.values() for delay in s.delays_ms]
    latencies = [claim.latency_ms for claim in claims]
    print(f"\n{name}: {len(verdicts)} responses, {len(claims)} claims judged")
    print("  decisions ", dict(Counter(v.decision.value for v in verdicts).most_common()))
    print("  verdicts  ", {v.value: n for v in Verdict if (n := sum(c.verdict is v for c in claims))})
    print("  rules     ", dict(Counter(v.rule for v in verdicts if v.decision != "release").most_common(4)))
    scores = [v.score for v in verdicts if v.score is not None]
    print(f"  score      mean {statistics.mean(scores):.2f}, median {statistics.median(scores):.2f}")
    for what, values in (
        ("claim to verdict", latencies),
        ("last token of a segment sent to its delivery read", delays),
    ):
        print(f"  {what}: p50 {percentile(values, 0.5):.1f} ms, p99 {percentile(values, 0.99):.1f} ms")


def for_seconds(responses: Sequence[Response], at_once: int, rate: float, seconds: float) -> list[Response]:
    """Answers, again and again under ids of their own, that take about so long to stream."""
    left, found = at_once * rate * seconds, list[Response]()
    for number, response in enumerate(itertools.cycle(responses)):
        if left <= 0:
            break
        found.append(response.model_copy(update={"response_id": f"{response.response_id}-{number}"}))
        left -= len(TOKEN.findall(response.answer))
    return found


def hurried(responses: Sequence[Response], at_once: int, options: argparse.Namespace) -> bool:
    """Whether too many claims are judged by less where so many answers stream at once; printed."""
    rate = options.tokens_per_second
    streamed = for_seconds(responses, at_once, rate, options.find_most)
    begun, worked = time.perf_counter(), time.process_time()
    seen = uvloop.run(embedded(streamed, at_once, rate, options.settings))
    took, worked = time.perf_counter() - begun, time.process_time() - worked
    claims = [claim for each in seen.values() if each.verdict is not None for claim in each.verdict.claims]
    less = sum(bool(claim.degraded_from) for claim in claims)
    without = sum(claim.verdict is Verdict.UNVERIFIED for claim in claims)
    waits = [claim.latency_ms for claim in claims]
    print(
        f"  {at_once} at once: {len(claims) / took:.1f} claims a second, {less} of {len(claims)} judged by "
        f"less, {without} UNVERIFIED; claim to verdict p50 {percentile(waits, 0.5):.0f} ms, "
        f"p99 {percentile(waits, 0.99):.0f} ms; {100 * worked / took:.0f} % of a processor",
        flush=True,
    )
    return less + without > HURRIED * len(claims)


def find_most(responses: Sequence[Response], options: argparse.Namespace) -> int:
    """The most answers that may stream at once, within an eighth."""
    print(f"answers that stream at once, at {options.tokens_per_second:g} tokens a second each:")
    low, high = 0, FEWEST
    while not hurried(responses, high, options):
        low, high = high, 2 * high
    while high - low > max(1, low // 8):
        middle = (low + high) // 2
        if hurried(responses, middle, options):
            high = middle
        else:
            low = middle
    print(f"at {low} the judge reads all that it would; at {high} more than {HURRIED:.0%} are judged by less")
    return 0


def compare(responses: Sequence[Response], options: argparse.Namespace) -> int:
    """Stream in process and, if ``options`` say so, over Kafka; 1 where the two differ."""
    at_once, rate = options.at_once, options.tokens_per_second
    first = uvloop.run(embedded(responses, at_once, rate, options.settings))
    report("embedded", first)
    if not (options.kafka or options.bootstrap_servers):
        return 0
    with kafka_for_benchmark(options.bootstrap_servers) as bootstrap:
        second = uvloop.run(over_kafka(bootstrap, responses, at_once, rate, options.settings))
    report("Kafka", second)
    different = [i for i in first if outcome(first[i]) != outcome(second[i])]
    print(f"\nsame verdicts and delivered text on both: {len(first) - len(different)} of {len(first)}")
    for response_id in different[:5]:
        print(f"  differs: {response_id}")
    return 1 if different else 0
