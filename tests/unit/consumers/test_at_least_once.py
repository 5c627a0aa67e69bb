"""At least once: what is committed when, and what is written again."""

from __future__ import annotations

import asyncio

import pytest

from consumers.guard import GuardConsumer
from consumers.memory import MemoryTransport
from consumers.transport import Commit, Partition
from guardrail.errors import PartitionLost, TransportError
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.guards import (
    TOPICS,
    Reader,
    events_of,
    member_of,
    new_broker,
    running,
    running_guard,
    send,
    until,
)
from tests.support.judges import GatedJudge, WordJudge

FAITHFUL = "Paris is in France. Rome is in Italy. "


def guard_on(transport: MemoryTransport, commit_interval_ms: int = 500) -> GuardConsumer:
    return GuardConsumer(
        transport,
        WordJudge(),
        PolicyRouter.single(Policy()),
        poll_timeout_ms=5,
        delivery_guarantee="at_least_once",
        commit_interval_ms=commit_interval_ms,
    )


async def test_nothing_is_committed_before_it_is_written() -> None:
    """The position stays at the start of a response until its last output is out."""
    broker = new_broker(1)
    judge = GatedJudge()
    partition = Partition(TOPICS.responses, 0)
    async with running_guard(broker, judge, delivery_guarantee="at_least_once"):
        send(broker, events_of("done", "Hello! "))
        send(broker, events_of("held", FAITHFUL))
        await judge.asked.wait()
        start_of_held = len(events_of("done", "Hello! "))
        await until(lambda: (broker.committed("guard", partition) or Commit(-1)).offset == start_of_held)
        judge.gate.set()
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    assert Reader(broker).shown("held") == FAITHFUL


async def test_a_response_in_flight_is_read_again_by_the_next_guard_and_nothing_is_lost() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    judge = GatedJudge()
    started = events_of("r", FAITHFUL)
    finished = events_of("finished", "Hello! ")
    async with running_guard(broker, judge, drain_timeout_ms=1, delivery_guarantee="at_least_once"):
        send(broker, [finished[0], *started[:4], *finished[1:], *started[4:-1]])
        await judge.asked.wait()
        await until(lambda: bool(read.finals("finished")))
    assert broker.lag("guard", TOPICS.responses) > 0
    async with running_guard(broker, WordJudge(), delivery_guarantee="at_least_once"):
        send(broker, started[-1:])
        await until(lambda: "r" in read.verdicts())
    assert read.shown("r") == FAITHFUL
    assert not read.dead_letters(), "the tail of a finished response is recognised, not dead-lettered"
    assert len(read.finals("finished")) == 1


async def test_a_partition_lost_while_committing_costs_no_output() -> None:
    broker = new_broker(1)
    read = Reader(broker)

    class Lost(MemoryTransport):
        async def publish(self, records, commits) -> None:  # type: ignore[no-untyped-def]
            if commits:
                raise PartitionLost("given to another member; nothing was written")
            await super().publish(records, commits)

    transport = member_of(Lost, broker)
    guard = guard_on(transport, commit_interval_ms=1)
    send(broker, events_of("r", FAITHFUL))
    async with running(guard):
        await until(lambda: bool(read.verdicts()))
    assert read.shown("r") == FAITHFUL


async def test_what_is_being_written_when_the_guard_stops_is_written_to_the_end() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    writing, go_on = asyncio.Event(), asyncio.Event()

    class Slow(MemoryTransport):
        async def publish(self, records, commits) -> None:  # type: ignore[no-untyped-def]
            if records:
                writing.set()
                await go_on.wait()
            await super().publish(records, commits)

    transport = member_of(Slow, broker)
    guard = guard_on(transport)
    stop = asyncio.Event()
    send(broker, events_of("r", FAITHFUL))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(guard.run(stop))
        await writing.wait()
        stop.set()
        await asyncio.wait({running}, timeout=0.05)
        assert not running.done()
        go_on.set()
    assert read.shown("r") == FAITHFUL
    assert broker.lag("guard", TOPICS.responses) == 0


async def test_a_failure_to_write_ends_the_guard_and_commits_nothing() -> None:
    broker = new_broker(1)

    class Failing(MemoryTransport):
        async def publish(self, records, commits) -> None:  # type: ignore[no-untyped-def]
            raise TransportError("the broker is gone")

    transport = member_of(Failing, broker)
    guard = guard_on(transport)
    send(broker, events_of("r", FAITHFUL))
    with pytest.raises(TransportError, match="the broker is gone"):
        await guard.run(asyncio.Event())
    assert broker.committed("guard", Partition(TOPICS.responses, 0)) is None
