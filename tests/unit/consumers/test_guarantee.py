"""At least once: what is committed when, what is written again, and what a second reading makes of the note
beside a position. What was decided before a restart stays decided, whatever the second reading meets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.guarantee import AtLeastOnce, HeldPartition, StartStatus, read_note, write_note
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.transport import Commit, OutRecord, Partition
from guardrail.errors import PartitionLost, TransportError
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


# -------------------------------------------------------------------------------------- the second reading


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


# ---------------------------------------------------------------------- positions and the note beside them


def held(commit: Commit | None) -> HeldPartition:
    owner = AtLeastOnce(MemoryTransport(MemoryBroker(), "g", "in"), commit_interval_ms=1)
    return HeldPartition(Partition("in", 0), commit, owner)


def never(response_id: str) -> bool:
    del response_id
    return False


def committed(found: HeldPartition) -> Commit:
    commit = found.commit(never)
    assert commit is not None
    return commit


def read(offsets: range, in_flight: dict[str, int], commit: Commit | None = None) -> HeldPartition:
    """Read so far, with these responses in flight from where they began."""
    found = held(commit)
    found.open.update(in_flight)
    for offset in offsets:
        found.taken(offset, None)
    return found


def test_nothing_read_nothing_to_commit() -> None:
    assert held(None).commit(never) is None


def test_the_oldest_response_in_flight_holds_the_position() -> None:
    found = read(range(4), {"a": 0, "b": 1})
    assert committed(found).offset == 0
    del found.open["a"]
    assert committed(found).offset == 1
    del found.open["b"]
    assert committed(found).offset == 4


def test_unchanged_positions_are_not_committed_again() -> None:
    found = read(range(1), {})
    found.committed = found.commit(never)
    assert found.commit(never) is None
    found.taken(1, None)
    assert committed(found).offset == 2


def test_after_a_restart_only_what_was_in_flight_begins_again() -> None:
    found = read(range(50), {"a": 0, "decided": 2, "b": 40})
    again = held(found.commit(lambda name: name == "decided"))
    meaning = {offset: again.reading(offset) for offset in (0, 1, 2, 3, 40, 49, 50)}
    assert meaning == {
        0: StartStatus.AGAIN,
        1: StartStatus.OVER,
        2: StartStatus.DECIDED,
        3: StartStatus.OVER,
        40: StartStatus.AGAIN,
        49: StartStatus.OVER,
        50: StartStatus.FIRST,
    }


def test_a_second_restart_during_the_second_reading_keeps_the_note() -> None:
    found = read(range(2), {"a": 0}, Commit(0, write_note(0, 10, {0: False})))
    assert found.commit(never) is None
    for offset in range(2, 11):
        found.taken(offset, None)
    assert committed(found) == Commit(0, write_note(0, 11, {0: False}))


def test_more_starts_than_a_note_can_hold_begin_again_all_of_them() -> None:
    commit = committed(read(range(90_001), {f"r{offset}": offset for offset in range(0, 90_000, 30)}))
    assert len(commit.metadata) <= 4096
    again = held(commit)
    statuses = [again.reading(offset) for offset in (30, 31, 90_001)]
    assert statuses == [StartStatus.AGAIN, StartStatus.AGAIN, StartStatus.FIRST]


def test_a_topic_that_was_made_anew_is_read_as_new() -> None:
    found = held(Commit(1_000, write_note(1_000, 2_000, {})))
    assert [found.reading(offset) for offset in (0, 1_500)] == [StartStatus.FIRST] * 2


@given(
    offset=st.integers(0, 2**40),
    starts=st.dictionaries(st.integers(0, 10**6), st.booleans(), max_size=300),
)
def test_a_note_is_read_as_it_was_written(offset: int, starts: dict[int, bool]) -> None:
    absolute = {offset + distance: decided for distance, decided in starts.items()}
    note = write_note(offset, offset + 10**6, absolute)
    assert read_note(Commit(offset, note)) == (offset + 10**6, absolute)


@pytest.mark.parametrize(
    "note",
    [
        "",
        "x",
        "[]",
        '{"v":2,"position":5}',
        '{"v":1,"position":"5"}',
        "null",
        '{"v":1,"position":5,"open":"?"}',
    ],
)
def test_a_note_that_is_not_ours_is_ignored(note: str) -> None:
    assert read_note(Commit(3, note)) == (0, None)
    assert held(Commit(3, note)).reading(3) is StartStatus.FIRST
