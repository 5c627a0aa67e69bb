"""At least once: what is committed when, and what is written again."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from consumers.memory import MemoryTransport
from consumers.transport import Commit, Partition
from guardrail.errors import PartitionLost, TransportError
from tests.support.guards import (
    TOPICS,
    Reader,
    events_of,
    guard_on,
    member_of,
    new_broker,
    running_guard,
    send,
    until,
)
from tests.support.judges import GatedJudge

FAITHFUL = "Paris is in France. Rome is in Italy. "
at_least_once = partial(running_guard, delivery_guarantee="at_least_once")


async def test_nothing_is_committed_before_it_is_written() -> None:
    """The position stays at the start of a response until its last output is out."""
    broker = new_broker(1)
    judge = GatedJudge()
    partition = Partition(TOPICS.responses, 0)
    async with at_least_once(broker, judge):
        send(broker, events_of("done", "Hello! "))
        send(broker, events_of("held", FAITHFUL))
        await judge.asked.wait()
        start_of_held = len(events_of("done", "Hello! "))
        await until(lambda: (broker.committed("guard", partition) or Commit(-1)).offset == start_of_held)
        judge.gate.set()
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    assert Reader(broker).shown("held") == FAITHFUL


async def test_a_partition_lost_while_committing_costs_no_output() -> None:
    broker = new_broker(1)
    read = Reader(broker)

    class Lost(MemoryTransport):
        async def publish(self, records, commits) -> None:  # type: ignore[no-untyped-def]
            if commits:
                raise PartitionLost("given to another member; nothing was written")
            await super().publish(records, commits)

    send(broker, events_of("r", FAITHFUL))
    async with at_least_once(member_of(Lost, broker), commit_interval_ms=1):
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

    guard = guard_on(member_of(Slow, broker), delivery_guarantee="at_least_once")
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

    guard = guard_on(member_of(Failing, broker), delivery_guarantee="at_least_once")
    send(broker, events_of("r", FAITHFUL))
    with pytest.raises(TransportError, match="the broker is gone"):
        await guard.run(asyncio.Event())
    assert broker.committed("guard", Partition(TOPICS.responses, 0)) is None
