"""What was decided before a restart stays decided, whatever the second reading meets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from consumers.memory import MemoryBroker, MemoryTransport
from consumers.transport import Commit, OutRecord, Partition
from guardrail.errors import TransportError
from guardrail.events import DeliveryBlocked, Event, ResponseCompleted, ResponseDelta, ResponseStarted
from guardrail.limits import Limits
from guardrail.policy import Policy
from tests.support.constants import made
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
from tests.support.judges import GatedJudge, WordJudge

FAITHFUL = "Paris is in France. Rome is in Italy. "
at_least_once = partial(running_guard, delivery_guarantee="at_least_once")


def start(response_id: str, question: str = "") -> Event:
    return ResponseStarted(response_id=response_id, question=question)


async def committed_up_to(broker: MemoryBroker, position: int) -> None:
    """Wait until the note beside the committed position says that this much has been read."""
    partition = Partition(TOPICS.responses, 0)

    def noted() -> bool:
        commit = broker.committed("guard", partition)
        return commit is not None and f'"position":{position}' in commit.metadata

    await until(noted)


async def test_a_response_blocked_by_rubbish_stays_blocked() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    events = events_of("r", FAITHFUL)
    async with at_least_once(broker):
        send(broker, events[:3])
        broker.append(TOPICS.responses, b"r", b"rubbish")
        await until(lambda: bool(read.finals("r")))
        await committed_up_to(broker, 4)
    async with at_least_once(broker):
        send(broker, events[3:])
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    assert [type(final) for final in read.finals("r")] == [DeliveryBlocked]
    assert len(read.dead_letters()) == 1


async def test_a_start_that_was_refused_is_not_taken_up() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    text = [ResponseDelta(response_id="r", seq=0, text=FAITHFUL), ResponseCompleted(response_id="r", seq=1)]
    async with at_least_once(broker):
        send(broker, [start("r", "A"), start("older"), start("r", "B"), *text])
        await until(lambda: bool(read.finals("r")))
        await committed_up_to(broker, 5)
    async with at_least_once(broker):
        send(broker, [ResponseCompleted(response_id="older", seq=0)])
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    assert [type(final) for final in read.finals("r")] == [DeliveryBlocked]
    assert read.shown("r") == ""


async def test_a_response_that_timed_out_is_not_judged_again_when_its_text_stands_there_complete() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    events = events_of("r", FAITHFUL)
    async with at_least_once(broker, WordJudge(), Policy(incomplete_timeout_ms=20)):
        send(broker, [start("older"), *events[:3]])
        await until(lambda: bool(read.finals("r")))
    broker.group("guard").committed[Partition(TOPICS.responses, 0)] = Commit(
        0, '{"v":1,"position":4,"open":"0"}'
    )  # as if the older one were in flight still
    async with at_least_once(broker):
        send(broker, events[3:])
        send(broker, [ResponseCompleted(response_id="older", seq=0)])
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    assert [type(final) for final in read.finals("r")] == [DeliveryBlocked]


async def test_responses_that_had_ended_are_not_written_again() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    judge = GatedJudge()
    async with at_least_once(broker, judge, drain_timeout_ms=1):
        send(broker, [start("older"), *events_of("done", "Hello! ")])
        await until(lambda: bool(read.finals("done")))
    async with at_least_once(broker):
        send(broker, [ResponseCompleted(response_id="older", seq=0)])
        await until(lambda: bool(read.finals("older")))
    assert len(read.finals("done")) == 1


async def test_after_a_failed_write_nothing_is_committed_not_even_by_a_rebalance() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    writing = asyncio.Event()

    class Flaky(MemoryTransport):
        async def publish(self, records: Sequence[OutRecord], commits: Mapping[Partition, Commit]) -> None:
            if records and not writing.is_set():
                writing.set()
                await asyncio.sleep(0.05)  # the broker does not answer, and is back right afterwards
                raise TransportError("no answer from Kafka in time")
            await super().publish(records, commits)

    send(broker, events_of("r", FAITHFUL))
    flaky = guard_on(member_of(Flaky, broker), delivery_guarantee="at_least_once", commit_interval_ms=1)
    failing = asyncio.ensure_future(flaky.run(asyncio.Event()))
    await writing.wait()
    async with at_least_once(broker, commit_interval_ms=1):  # joins: the first one's partitions are revoked
        with pytest.raises(TransportError, match="no answer"):
            await failing
        await until(lambda: broker.lag("guard", TOPICS.responses) == 0)
    assert read.shown("r") == FAITHFUL
    assert len(read.finals("r")) == 1


async def test_rubbish_under_many_keys_takes_no_room_from_others() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    limits = made(Limits, max_sessions=10, overload_grace_ms=1, bad_record_share=1)
    async with at_least_once(broker, WordJudge(), limits=limits):
        for number in range(100):
            broker.append(TOPICS.responses, f"k{number}".encode(), b"x")
        send(broker, events_of("r", FAITHFUL))
        await until(lambda: "r" in read.verdicts())
    assert read.shown("r") == FAITHFUL
    assert len(read.dead_letters()) == 100


async def test_under_a_policy_that_observes_text_leaves_whatever_becomes_of_the_judging() -> None:
    broker = new_broker(1)
    read = Reader(broker)
    events = events_of("r", FAITHFUL)
    async with at_least_once(broker, WordJudge(), Policy(mode="observe")):
        send(broker, events[:3])
        broker.append(TOPICS.responses, b"r", b"rubbish")
        send(broker, [*events[3:5], *events[6:]])  # and a gap
        await until(lambda: bool(read.finals("r")))
    assert read.shown("r") == FAITHFUL.replace(events[5].text, "", 1)  # type: ignore[attr-defined]
    assert read.verdicts()["r"].decision == "block"
    assert read.verdicts()["r"].rule == "invalid_json"
