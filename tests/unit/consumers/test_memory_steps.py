"""Exactly-once steps of the in-process transport, beyond the transport contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence

import pytest

from consumers.memory import MemoryBroker, MemoryTransport
from consumers.transport import Commit, OutRecord, Partition, Record, Restored, StateRecord
from guardrail.errors import PartitionLost, StepFailed, TransportError, TransportUnavailable

ONE = Partition("in", 0)
TWO = Partition("in", 1)
STEP = ([OutRecord("out", b"k", b"v")], [StateRecord(b"s", b"1")])


class Listener:
    def __init__(self) -> None:
        self.held: dict[Partition, Restored] = {}

    async def on_assigned(self, restored: Mapping[Partition, Restored]) -> None:
        self.held = dict(restored)

    async def on_revoked(self, partitions: Collection[Partition]) -> None:
        self.held = {}


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker({"in": 2, "out": 1, "state": 2}, compacted=["state"])


@pytest.fixture
async def member(broker: MemoryBroker) -> AsyncIterator[MemoryTransport]:
    transport = MemoryTransport(broker, "g", ["in"], sessions_topic="state")
    await joined(transport)
    yield transport
    await transport.stop()


async def joined(transport: MemoryTransport, share: int = 2) -> Listener:
    listener = Listener()
    await transport.start(listener)
    while len(listener.held) != share:
        await transport.poll(1, 1)
    return listener


def state(broker: MemoryBroker, index: int) -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in broker.read("state", index)}


def untouched(broker: MemoryBroker) -> bool:
    return not (broker.records("out") or broker.records("state") or broker.committed("g", ONE))


async def test_state_goes_to_the_partition_with_the_number_of_the_input(
    broker: MemoryBroker, member: MemoryTransport
) -> None:
    await member.transact(TWO, [], [StateRecord(b"a", b"1"), StateRecord(b"b", b"2")], Commit(1))
    await member.transact(TWO, [], [StateRecord(b"a", None)], Commit(2, "note"))
    await member.transact(ONE, [], [StateRecord(b"a", b"3")], Commit(0))
    assert state(broker, 0) == {b"g/a": b"3"}
    assert state(broker, 1) == {b"g/b": b"2"}
    assert await member.recover(TWO) == Restored(Commit(2, "note"), {b"b": b"2"})


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


async def test_a_cancelled_step_writes_all_or_nothing(broker: MemoryBroker, member: MemoryTransport) -> None:
    step = asyncio.create_task(member.transact(ONE, *STEP, Commit(1)))
    await asyncio.sleep(0)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert untouched(broker)


async def test_a_partition_that_went_to_another_member_is_lost(
    broker: MemoryBroker, member: MemoryTransport
) -> None:
    other = MemoryTransport(broker, "g", ["in"], sessions_topic="state")
    listener = await joined(other, share=1)
    (lost,) = listener.held
    with pytest.raises(PartitionLost, match="not held"):
        await member.transact(lost, *STEP, Commit(1))
    with pytest.raises(PartitionLost, match="not held"):
        await member.recover(lost)
    assert untouched(broker)
    await other.transact(lost, *STEP, Commit(1))
    await other.stop()


async def test_what_was_read_and_not_committed_comes_again_after_a_recovery(
    broker: MemoryBroker, member: MemoryTransport
) -> None:
    for _ in range(10):
        broker.append("in", b"k", b"v")
    (partition,) = {record.partition for record in broker.records("in")}
    assert [r.offset for r in await member.poll(10, 6)] == list(range(6))
    await member.transact(partition, [], [], Commit(2))
    await member.recover(partition)
    assert [r.offset for r in await member.poll(10, 100)] == list(range(2, 10))


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


async def test_latest_recovers_to_where_it_began(broker: MemoryBroker) -> None:
    """Going to the end once more would lose what was read since the partition came."""
    broker.append("in", b"k", b"before")
    member = MemoryTransport(broker, "g", ["in"], sessions_topic="state", auto_offset_reset="latest")
    await joined(member)
    broker.append("in", b"k", b"after")
    (read,) = await member.poll(10, 10)
    restored = await member.recover(read.partition)
    assert restored.commit == Commit(1)
    again: Sequence[Record] = await member.poll(10, 10)
    assert [record.value for record in again] == [b"after"]
    await member.stop()


async def test_a_paused_partition_stays_paused_over_a_recovery(
    broker: MemoryBroker, member: MemoryTransport
) -> None:
    place = broker.append("in", b"k", b"v").partition
    member.pause([place])
    await member.recover(place)
    assert list(await member.poll(1, 10)) == []
    member.resume([place])
    assert len(await member.poll(10, 10)) == 1


async def test_without_a_sessions_topic_steps_are_refused(broker: MemoryBroker) -> None:
    member = MemoryTransport(broker, "g", ["in"])
    listener = await joined(member)
    assert listener.held == {ONE: Restored(None, {}), TWO: Restored(None, {})}
    with pytest.raises(TransportError, match="sessions topic"):
        await member.transact(ONE, *STEP, Commit(1))
    with pytest.raises(TransportError, match="sessions topic"):
        await member.recover(ONE)
    await member.stop()
    assert untouched(broker)


async def test_a_stopped_member_neither_steps_nor_recovers(
    broker: MemoryBroker, member: MemoryTransport
) -> None:
    await member.stop()
    with pytest.raises(TransportError, match="after stop"):
        await member.transact(ONE, *STEP, Commit(1))
    with pytest.raises(TransportError, match="after stop"):
        await member.recover(ONE)


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
    member = MemoryTransport(MemoryBroker(topics, compacted=compacted), "g", ["in"], sessions_topic="state")
    with pytest.raises(TransportUnavailable, match=match):
        await member.start(Listener())
    await member.stop()


def test_two_inputs_can_not_share_a_sessions_topic(broker: MemoryBroker) -> None:
    with pytest.raises(ValueError, match="one input topic"):
        MemoryTransport(broker, "g", ["in", "out"], sessions_topic="state")
