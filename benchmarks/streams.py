"""Answers that stream through a whole guard in process, at a generator's pace, and what came out when."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.workload import events_of
from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import Topics
from guardrail.events import (
    DeliverySegment,
    Response,
    ResponseCompleted,
    ResponseDelta,
    ResponseVerdict,
    parse_output,
)
from guardrail.judges import Judge
from guardrail.judges.streams import beside
from guardrail.routing import PolicyRouter

PARTITIONS: Final = 6
_TOKEN: Final = re.compile(r"\s*\S{1,6}|\s+$")
_FINAL: Final = {"delivery.completed", "delivery.blocked"}


@dataclass(slots=True)
class Seen:
    """What came out for one response, and when each piece went in and came out."""

    sent_at: list[tuple[int, float]] = field(default_factory=list)
    """Code points sent until then."""
    delays_s: list[float] = field(default_factory=list)
    """Of its segments, from the last token sent of each to its delivery read."""
    verdict: ResponseVerdict | None = None
    late_s: float = 0.0
    """From the last token sent to the verdict on all of it."""
    finals: int = 0


def tokens_of(text: str) -> list[str]:
    """The text in pieces of the size of tokens; joined, they give it back."""
    pieces = _TOKEN.findall(text)
    assert "".join(pieces) == text
    return pieces


async def streamed(
    responses: Sequence[Response],
    judge: Judge,
    router: PolicyRouter,
    *,
    at_once: int,
    tokens_per_second: float,
) -> dict[str, Seen]:
    """Stream every response, ``at_once`` of them at a time, whether the guard keeps up or not."""
    topics, seen = Topics(), {response.response_id: Seen() for response in responses}
    broker = MemoryBroker(dict.fromkeys(topics.names(), PARTITIONS), compacted=[topics.sessions])
    transport = MemoryTransport(broker, "guard", topics.responses, sessions_topic=topics.sessions)
    guard = GuardConsumer(transport, judge, router, GuardOptions(topics=topics, poll_timeout_ms=20))
    slots, over = asyncio.Semaphore(at_once), asyncio.Event()

    async def write(response: Response) -> None:
        async with slots:
            due, sent = time.perf_counter(), 0
            for event in events_of(response, tokens_of(response.answer)):
                # The end comes with the last token.
                if not isinstance(event, ResponseCompleted):
                    await asyncio.sleep(max(0.0, due - time.perf_counter()))
                    due += 1 / tokens_per_second
                if isinstance(event, ResponseDelta):
                    sent += len(event.text)
                seen[response.response_id].sent_at.append((sent, time.perf_counter()))
                broker.append(topics.responses, response.response_id.encode(), event.to_json())

    async def read(topic: str) -> None:
        async for record in broker.subscribe(topic):
            event = parse_output(record.value or b"")
            entry, now = seen[event.response_id], time.perf_counter()
            if isinstance(event, DeliverySegment):
                entry.delays_s.append(now - next(t for n, t in entry.sent_at if n >= event.span[1]))
            elif isinstance(event, ResponseVerdict):
                entry.verdict, entry.late_s = event, now - entry.sent_at[-1][1]
            if isinstance(event, ResponseVerdict) or event.type in _FINAL:
                entry.finals += 1
                if all(each.finals == 2 for each in seen.values()):
                    over.set()

    async with beside(read(topics.deliveries)), beside(read(topics.verdicts)), asyncio.TaskGroup() as group:
        group.create_task(guard.run(over))
        for response in responses:
            group.create_task(write(response))
    return seen
