"""A guard on an in-process broker, and what comes out of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

from consumers.guarantee import GuardOptions
from consumers.guard import GuardConsumer
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import Topics
from consumers.transport import Headers, Record
from guardrail.events import (
    AnyOutputEvent,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Event,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
    parse_output,
)
from guardrail.judges import Judge
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.judges import WordJudge

TOPICS = Topics()
DeliveryGuarantee = Literal["exactly_once", "at_least_once"]
Member = TypeVar("Member", bound=MemoryTransport)


def new_broker(partitions: int = 2) -> MemoryBroker:
    return MemoryBroker(dict.fromkeys(TOPICS.names(), partitions), compacted=[TOPICS.sessions])


def events_of(response_id: str, text: str, step: int = 4, *, complete: bool = True) -> list[Event]:
    """A response as it streams."""
    head = {"response_id": response_id, "contexts": [{"id": "c1", "text": "A source."}]}
    found: list[Event] = [ResponseStarted.model_validate(head)]
    pieces = [text[start : start + step] for start in range(0, len(text), step)]
    found += [ResponseDelta(response_id=response_id, seq=n, text=piece) for n, piece in enumerate(pieces)]
    if complete:
        found.append(ResponseCompleted(response_id=response_id, seq=len(pieces)))
    return found


def send(broker: MemoryBroker, events: Iterable[Event], headers: Headers = ()) -> None:
    for event in events:
        key: str = event.response_id  # type: ignore[attr-defined]
        broker.append(TOPICS.responses, key.encode(), event.to_json(), headers)


class Reader:
    """What a chat service, a verdict reader and a reviewer see."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker

    def events(self, topic: str) -> list[AnyOutputEvent]:
        return [parse_output(record.value or b"") for record in self.broker.records(topic)]

    def dead_letters(self) -> list[Record]:
        return self.broker.records(TOPICS.dead_letters)

    def verdicts(self) -> dict[str, ResponseVerdict]:
        return {e.response_id: e for e in self.events(TOPICS.verdicts) if isinstance(e, ResponseVerdict)}

    def shown(self, response_id: str) -> str:
        """The text of a response, segments that were written twice counted once."""
        segments = {
            e.seq: e.text
            for e in self.events(TOPICS.deliveries)
            if isinstance(e, DeliverySegment) and e.response_id == response_id
        }
        return "".join(segments[seq] for seq in sorted(segments))

    def finals(self, response_id: str) -> list[DeliveryCompleted | DeliveryBlocked]:
        return [
            e
            for e in self.events(TOPICS.deliveries)
            if isinstance(e, DeliveryCompleted | DeliveryBlocked) and e.response_id == response_id
        ]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other tasks bring about (the test's own time limit bounds it)."""
    while not condition():  # noqa: ASYNC110 - outputs and logs are looked at, not the guard's insides
        await asyncio.sleep(0.002)


def member(broker: MemoryBroker) -> MemoryTransport:
    """A member of the group of guards."""
    return member_of(MemoryTransport, broker)


def member_of(kind: type[Member], broker: MemoryBroker) -> Member:
    """The same, of a kind that a test made."""
    return kind(broker, "guard", TOPICS.responses, sessions_topic=TOPICS.sessions)


def guard_on(
    place: MemoryBroker | MemoryTransport,
    judge: Judge | None = None,
    policy: Policy | None = None,
    *,
    router: PolicyRouter | None = None,
    **options: Any,
) -> GuardConsumer:
    """A guard on a broker, or as the member of the group that a test made; ``options`` of GuardOptions."""
    quick: dict[str, Any] = {"poll_timeout_ms": 5, "commit_interval_ms": 5, "drain_timeout_ms": 1_000}
    return GuardConsumer(
        member(place) if isinstance(place, MemoryBroker) else place,
        judge or WordJudge(),
        router or PolicyRouter.single(policy or Policy()),
        GuardOptions(**{**quick, **options}),
    )


def paused(guard: GuardConsumer) -> bool:
    """Is reading of any partition paused?"""
    return any(partition.paused for partition in guard.state().partitions)


@asynccontextmanager
async def running_guard(
    place: MemoryBroker | MemoryTransport,
    judge: Judge | None = None,
    policy: Policy | None = None,
    **options: Any,
) -> AsyncIterator[GuardConsumer]:
    """A guard that runs while the block does, and leaves cleanly at its end."""
    guard = guard_on(place, judge, policy, **options)
    async with running(guard):
        yield guard


@asynccontextmanager
async def running(guard: GuardConsumer) -> AsyncIterator[None]:
    """The guard runs while the block does, and leaves cleanly at its end."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(guard.run(stop))
        try:
            yield
        finally:
            stop.set()
