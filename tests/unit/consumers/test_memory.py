"""What the in-process broker has beyond the transport contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from consumers.memory import CompactedLog, Member, MemoryBroker, MemoryTransport, assign_ranges
from consumers.transport import Commit, OutRecord, Partition, Record, StateRecord
from guardrail.errors import StepFailed, TransportError, TransportUnavailable
from tests.support.transports import RecordingListener, poll_while


def offsets(records: list[Record]) -> list[int]:
    return [record.offset for record in records]


def test_append_and_read() -> None:
    broker = MemoryBroker({"t": 1})
    for number in range(5):
        broker.append("t", b"k", b"%d" % number)
    assert offsets(broker.read("t", offset=3)) == [3, 4]
    assert offsets(broker.read("t", offset=1, max_records=2)) == [1, 2]
    assert broker.read("t", offset=9) == []


def test_records_without_key_go_around_the_partitions() -> None:
    broker = MemoryBroker({"t": 3})
    for _ in range(9):
        broker.append("t", None, b"v")
    assert [len(broker.read("t", index)) for index in range(3)] == [3, 3, 3]


async def test_subscribe_follows_all_partitions() -> None:
    broker = MemoryBroker({"t": 2})
    broker.append("t", b"a", b"before")
    stream: AsyncIterator[Record] = broker.subscribe("t")
    assert (await anext(stream)).value == b"before"

    async def take() -> Record:
        return await anext(stream)

    following = asyncio.create_task(take())
    await asyncio.sleep(0)
    assert not following.done()
    broker.append("t", b"b", b"after")
    assert (await following).value == b"after"
    for number in range(50):
        broker.append("t", b"%d" % number, b"x")
    assert len([await anext(stream) for _ in range(50)]) == 50


async def test_lag_and_committed() -> None:
    broker = MemoryBroker({"t": 1})
    for _ in range(10):
        broker.append("t", b"k", b"v")
    transport = MemoryTransport(broker, "g", "t")
    await joined(transport)
    assert broker.lag("g", "t") == 10
    await transport.publish([], {Partition("t", 0): Commit(4, "note")})
    assert broker.lag("g", "t") == 6
    assert broker.committed("g", Partition("t", 0)) == Commit(4, "note")
    assert broker.lag("another", "t") == 10
    await transport.stop()


async def test_a_backlog_does_not_starve_other_tasks() -> None:
    """poll gives the loop a turn even when records are there."""
    broker = MemoryBroker({"t": 1})
    transport = MemoryTransport(broker, "g", "t")
    await joined(transport)
    for _ in range(100):
        broker.append("t", b"k", b"v")
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(20):
        assert await transport.poll(1000, 1)
    assert turns >= 20
    task.cancel()
    await transport.stop()


def test_topics_are_named_when_one_is_missing() -> None:
    broker = MemoryBroker({"a": 1, "b": 1})
    with pytest.raises(TransportUnavailable, match=r"topic c does not exist \(there are: a, b\)"):
        broker.append("c", b"k", b"v")


async def test_start_twice_is_an_error() -> None:
    transport = MemoryTransport(MemoryBroker({"a": 1}), "g", "a")
    await transport.start(RecordingListener())
    with pytest.raises(TransportError, match="twice"):
        await transport.start(RecordingListener())
    await transport.stop()


@pytest.mark.parametrize(
    ("count", "expected"), [(1, [7]), (2, [4, 3]), (3, [3, 2, 2]), (9, [1] * 7 + [0] * 2)]
)
def test_ranges_are_contiguous_and_even(count: int, expected: list[int]) -> None:
    async def ignore(_: object) -> None: ...

    partitions = tuple(Partition(topic, index) for topic in ("in", "state") for index in range(7))
    members = [Member(f"m{n}", partitions, ignore, ignore, lambda _: None) for n in range(count)]
    shares = [share for _, share in assign_ranges(members)]
    for share in shares:
        # Co-partitioned: the same indexes of every topic, in one piece.
        of_in = [p.index for p in share if p.topic == "in"]
        assert of_in == [p.index for p in share if p.topic == "state"]
        assert of_in == list(range(of_in[0], of_in[0] + len(of_in))) if of_in else True
    assert [len(share) // 2 for share in shares] == expected
    assert sorted(p for share in shares for p in share) == sorted(partitions)


def test_a_topic_keeps_its_number_of_partitions() -> None:
    broker = MemoryBroker({"a": 2})
    broker.create_topic("a", 2)
    with pytest.raises(ValueError, match="2 partitions, not 3"):
        broker.create_topic("a", 3)


# ------------------------------------------------------------------------------------ compacted topics


def test_nothing_is_kept_of_dead_keys() -> None:
    log = CompactedLog(Partition("state", 0))
    for number in range(10_000):
        log.append(b"%d" % number, b"x" * 100, (), 1)
        log.append(b"same", b"%d" % number, (), 1)
        log.append(b"%d" % number, None, (), 1)
    assert log.latest() == {b"same": b"9999"}
    assert log.end == 30_000


def test_a_record_without_a_key_is_refused() -> None:
    broker = MemoryBroker({"state": 1}, compacted=["state"])
    with pytest.raises(TransportError, match="needs a key"):
        broker.append("state", None, b"v")


def test_a_topic_stays_compacted_or_not() -> None:
    broker = MemoryBroker({"state": 1, "other": 1}, compacted=["state"])
    broker.create_topic("state", compacted=True)
    with pytest.raises(ValueError, match="exists and is not compacted"):
        broker.create_topic("other", compacted=True)
    with pytest.raises(ValueError, match="exists and is compacted"):
        broker.create_topic("state")


# ----------------------------------------------------------------------------------------------- steps

ONE = Partition("in", 0)
TWO = Partition("in", 1)
STEP = ([OutRecord("out", b"k", b"v")], [StateRecord(b"s", b"1")])


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker({"in": 2, "out": 1, "state": 2}, compacted=["state"])


@pytest.fixture
async def member(broker: MemoryBroker) -> AsyncIterator[MemoryTransport]:
    transport = MemoryTransport(broker, "g", "in", sessions_topic="state")
    await joined(transport)
    yield transport
    await transport.stop()


async def joined(transport: MemoryTransport) -> RecordingListener:
    listener = RecordingListener()
    await transport.start(listener)
    await poll_while(transport, lambda: not listener.held)
    return listener


def untouched(broker: MemoryBroker) -> bool:
    return not (broker.records("out") or broker.records("state") or broker.committed("g", ONE))


@pytest.mark.parametrize(
    ("records", "commit", "error", "match"),
    [
        ([OutRecord("none", b"k", b"v")], Commit(1), TransportUnavailable, "topic none"),
        ([OutRecord("state", None, b"v")], Commit(1), TransportError, "needs a key"),
        ([], Commit(1, "x" * 4097), TransportError, "4096 bytes"),
    ],
)
async def test_what_is_refused_leaves_nothing_behind(
    broker: MemoryBroker,
    member: MemoryTransport,
    records: Sequence[OutRecord],
    commit: Commit,
    error: type[TransportError],
    match: str,
) -> None:
    with pytest.raises(error, match=match):
        await member.transact(ONE, [*STEP[0], *records], STEP[1], commit)
    assert untouched(broker)
    await member.transact(ONE, *STEP, Commit(1))
    assert not untouched(broker)


async def test_a_fenced_holder_fails_until_it_recovers(broker: MemoryBroker, member: MemoryTransport) -> None:
    broker.group("g").fence(ONE)
    for _ in range(2):
        with pytest.raises(StepFailed, match=r"in\[0\] was fenced"):
            await member.transact(ONE, *STEP, Commit(1))
    assert untouched(broker)
    await member.transact(TWO, [], [], Commit(0))
    await member.recover(ONE)
    await member.transact(ONE, *STEP, Commit(1))
    assert broker.committed("g", ONE) == Commit(1)


async def test_a_step_that_waits_is_fenced_by_the_recovery_that_overtakes_it(
    broker: MemoryBroker, member: MemoryTransport
) -> None:
    step = asyncio.create_task(member.transact(ONE, *STEP, Commit(1)))
    await asyncio.sleep(0)
    await member.recover(ONE)
    with pytest.raises(StepFailed):
        await step
    assert untouched(broker)


async def test_a_poll_under_way_returns_nothing_from_before_the_recovery(
    broker: MemoryBroker, member: MemoryTransport
) -> None:
    for _ in range(10):
        broker.append("in", b"k", b"v")
    (partition,) = {record.partition for record in broker.records("in")}
    assert len(await member.poll(10, 5)) == 5
    polling = asyncio.create_task(member.poll(10, 100))
    await asyncio.sleep(0)
    await member.recover(partition)
    assert [record.offset for record in await polling] == list(range(10))


async def test_without_a_sessions_topic_steps_are_refused(broker: MemoryBroker) -> None:
    member = MemoryTransport(broker, "g", "in")
    listener = await joined(member)
    assert listener.held == {ONE: None, TWO: None}
    with pytest.raises(TransportError, match="sessions topic"):
        await member.transact(ONE, *STEP, Commit(1))
    with pytest.raises(TransportError, match="sessions topic"):
        await member.recover(ONE)
    await member.stop()
    assert untouched(broker)


@pytest.mark.parametrize(
    ("topics", "compacted", "match"),
    [
        ({"in": 2}, [], "topic state does not exist"),
        ({"in": 2, "state": 2}, [], "state is not compacted"),
        ({"in": 2, "state": 3}, ["state"], "state has 3 partitions and in has 2"),
    ],
)
async def test_a_sessions_topic_that_does_not_fit_is_refused_at_start(
    topics: dict[str, int], compacted: list[str], match: str
) -> None:
    member = MemoryTransport(MemoryBroker(topics, compacted=compacted), "g", "in", sessions_topic="state")
    with pytest.raises(TransportUnavailable, match=match):
        await member.start(RecordingListener())
    await member.stop()
