"""The demo's stage: a broker in this process, the guard of production, a feed before and a view behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from consumers.guard import GuardConsumer
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import Topics
from guardrail.config import Settings
from guardrail.demo.board import Board, BoardEvent, StreamEvent, play, schedule
from guardrail.demo.views import View
from guardrail.errors import only_cause
from guardrail.events import Response, parse_input, parse_output
from guardrail.judges.factory import JudgeSet

PARTITIONS: Final = 3
_GROUP_ID: Final = "guardrail"
_TICK_S: Final = 0.1
_LAST_WORD_S: Final = 30.0
"""How long the last verdicts may take after the last answer is written; milliseconds are the rule."""


async def play_all(
    responses: Sequence[Response], settings: Settings, board: Board, view: View, speed: float
) -> None:
    """Feed, guard and view, each a task; over when the last answer is decided, which ``board`` then knows."""
    topics = Topics()
    broker = MemoryBroker(dict.fromkeys(topics.names(), PARTITIONS), compacted=[topics.sessions])
    transport = MemoryTransport(broker, _GROUP_ID, [topics.responses], sessions_topic=topics.sessions)
    router = settings.router()
    judges = JudgeSet(settings.judge, router.policies)
    guard = GuardConsumer(
        transport, judges.default, router, judges=judges.by_kind, limits=settings.limits, topics=topics
    )
    steps = schedule(responses)
    stop, done = asyncio.Event(), asyncio.Event()

    def send(event: StreamEvent) -> None:
        broker.append(topics.responses, event.response_id.encode(), event.to_json())

    async def feed() -> None:
        await play(steps, send, speed)
        try:
            async with asyncio.timeout(_LAST_WORD_S):
                await done.wait()
        except TimeoutError:
            done.set()

    view.open(responses)
    try:
        async with asyncio.TaskGroup() as group:
            guarding = group.create_task(guard.run(stop))
            watching = [
                group.create_task(_follow(broker, topics, board, view, len(responses), done)),
                group.create_task(_draw(board, view)),
            ]
            await feed()
            stop.set()
            await guarding
            for task in watching:
                task.cancel()
        view.tick(board)
    except BaseExceptionGroup as errors:
        raise only_cause(errors) from None
    finally:
        view.close()
        await judges.aclose()


async def _follow(
    broker: MemoryBroker, topics: Topics, board: Board, view: View, answers: int, done: asyncio.Event
) -> None:
    """Read the topics as any consumer could, and show what is in them; ``done`` when all is said."""
    arrived: asyncio.Queue[tuple[int, BoardEvent]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def subscribe(topic: str) -> None:
        parse = parse_input if topic == topics.responses else parse_output
        async for record in broker.subscribe(topic):
            event = parse(record.value or b"")
            if not isinstance(event, Response):  # the feed sends streams only
                arrived.put_nowait((_rank(event), event))

    async with asyncio.TaskGroup() as group:
        for topic in (topics.responses, topics.verdicts, topics.deliveries, topics.flagged):
            group.create_task(subscribe(topic))
        while True:
            batch = [await arrived.get()]
            while not arrived.empty():
                batch.append(arrived.get_nowait())
            # Topics have no order among each other; what came at once is told as it happened.
            for _, event in sorted(batch, key=lambda item: item[0]):
                card = board.apply(event, loop.time())
                if card is not None:
                    view.show(event, card)
            if len(board.finished) == answers:
                done.set()


def _rank(event: BoardEvent) -> int:
    """Text, its verdicts, its release, the final verdict, the case."""
    first = event.type.split(".")
    return {"response": 0, "verdict": 3 if first[-1] == "response" else 1, "delivery": 2, "case": 4}[first[0]]


async def _draw(board: Board, view: View) -> None:
    while True:
        view.tick(board)
        await asyncio.sleep(_TICK_S)
