"""What the in-process broker has beyond the transport contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from consumers.memory import Member, MemoryBroker, MemoryTransport, assign_ranges
from consumers.transport import Commit, OutRecord, Partition, Record
from guardrail.errors import TransportError, TransportUnavailable
from tests.support.transports import RecordingListener, poll_until, poll_while


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


def test_retention_keeps_the_newest_and_their_offsets() -> None:
    broker = MemoryBroker({"t": 1}, retention_records=10)
    for number in range(1_000):
        broker.append("t", b"k", b"%d" % number)
    kept = broker.records("t")
    assert 10 <= len(kept) < 20
    assert kept[-1].offset == 999
    assert [int(record.value or b"") for record in kept] == offsets(kept)


async def test_a_reader_behind_the_retention_goes_on_at_the_oldest_kept() -> None:
    broker = MemoryBroker({"t": 1}, retention_records=10)
    transport = MemoryTransport(broker, "g", ["t"])
    listener = RecordingListener()
    await transport.start(listener)
    await poll_while(transport, lambda: not listener.held)
    for number in range(100):
        broker.append("t", b"k", b"%d" % number)
    oldest = broker.records("t")[0].offset
    read = await poll_until(transport, lambda found: bool(found) and found[-1].offset == 99)
    assert offsets(read) == list(range(oldest, 100))
    await transport.stop()


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


async def test_subscribe_sees_what_is_appended_while_it_hands_out() -> None:
    broker = MemoryBroker({"t": 1})
    broker.append("t", b"a", b"0")
    stream = broker.subscribe("t", from_offset=1)
    broker.append("t", b"a", b"1")
    assert (await anext(stream)).value == b"1"
    broker.append("t", b"a", b"2")
    assert (await anext(stream)).value == b"2"


async def test_lag_and_committed() -> None:
    broker = MemoryBroker({"t": 1})
    for _ in range(10):
        broker.append("t", b"k", b"v")
    transport = MemoryTransport(broker, "g", ["t"])
    listener = RecordingListener()
    await transport.start(listener)
    await poll_while(transport, lambda: not listener.held)
    assert broker.lag("g", "t") == 10
    await transport.publish([], {Partition("t", 0): Commit(4, "note")})
    assert broker.lag("g", "t") == 6
    assert broker.committed("g", Partition("t", 0)) == Commit(4, "note")
    assert broker.lag("another", "t") == 10
    await transport.stop()


async def test_a_backlog_does_not_starve_other_tasks() -> None:
    """poll gives the loop a turn even when records are there."""
    broker = MemoryBroker({"t": 1})
    transport = MemoryTransport(broker, "g", ["t"])
    listener = RecordingListener()
    await transport.start(listener)
    await poll_while(transport, lambda: not listener.held)
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


async def test_publish_to_a_missing_topic() -> None:
    transport = MemoryTransport(MemoryBroker({"a": 1}), "g", ["a"])
    await transport.start(RecordingListener())
    with pytest.raises(TransportUnavailable, match="topic c"):
        await transport.publish([OutRecord("c", b"k", b"v")], {})
    await transport.stop()


async def test_start_twice_is_an_error() -> None:
    transport = MemoryTransport(MemoryBroker({"a": 1}), "g", ["a"])
    await transport.start(RecordingListener())
    with pytest.raises(TransportError, match="twice"):
        await transport.start(RecordingListener())
    await transport.stop()


@pytest.mark.parametrize(
    ("members", "expected"), [(1, [7]), (2, [4, 3]), (3, [3, 2, 2]), (9, [1] * 7 + [0] * 2)]
)
def test_ranges_are_contiguous_and_even(members: int, expected: list[int]) -> None:
    async def ignore(_: object) -> None: ...

    partitions = tuple(Partition(topic, index) for topic in ("in", "state") for index in range(7))
    joined = [Member(f"m{n}", partitions, ignore, ignore, lambda _: None) for n in range(members)]
    shares = [share for _, share in assign_ranges(joined)]
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
