"""Steps over a real Kafka while members come and go, and while state is restored."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from unittest.mock import AsyncMock

import pytest
from aiokafka.errors import KafkaError

from consumers.kafka import TransactionalProducer
from consumers.transport import Commit, Partition, StateRecord
from guardrail import telemetry
from guardrail.errors import PartitionLost, TransportUnavailable
from tests.support.kafka_place import Place
from tests.support.transports import RecordingListener, poll_until, poll_while

pytestmark = pytest.mark.kafka


async def test_a_static_member_that_stops_leaves_its_partitions_to_the_others(place: Place) -> None:
    """At once: its session would last for longer than this test."""
    await place.create(partitions=2)
    one, two = RecordingListener(), RecordingListener()
    members = [
        place.harness.exact_member(
            place.topic,
            place.sessions,
            place.group,
            group_instance_id=name,
            session_timeout_ms=600_000,
            rebalance_timeout_ms=10_000,
        )
        for name in ("a", "b")
    ]
    for member, listener in zip(members, (one, two), strict=True):
        await member.start(listener)
    await poll_while(members, lambda: len(one.held) != 1 or len(two.held) != 1)
    await members[0].stop()
    await poll_while(members[1], lambda: len(two.held) != 2)
    await members[1].stop()


async def test_long_state_is_restored_while_the_membership_is_kept(place: Place) -> None:
    """Restoring takes longer than the session timeout, and nobody is expelled."""
    partition = await place.create()
    slow = asyncio.Event()

    class SlowStart(TransactionalProducer):
        async def start(self) -> None:
            await super().start()
            await asyncio.wait_for(slow.wait(), 60)

    listener = RecordingListener()
    made = place.harness.exact_member(
        place.topic,
        place.sessions,
        place.group,
        producer_class=SlowStart,
        session_timeout_ms=1_200,
        heartbeat_interval_ms=300,
    )
    await made.start(listener)
    asyncio.get_running_loop().call_later(3.0, slow.set)
    await poll_while(made, lambda: not listener.held)
    assert listener.log == [("assigned", (partition,))]
    await made.transact(partition, place.out(b"one"), [], Commit(1))
    await made.stop()
    assert await place.written() == [b"one"]


class FailsOnOne(TransactionalProducer):
    """Can't be started for the first partition until that is mended."""

    mended = False
    hangs = False

    async def start(self) -> None:
        while self._partition.index == 0 and not FailsOnOne.mended:
            if not FailsOnOne.hangs:
                raise KafkaError("nothing helps this partition")
            await asyncio.sleep(0.01)
        await super().start()


@pytest.mark.parametrize("hangs", [False, True], ids=["fails", "hangs"])
async def test_a_partition_that_cannot_be_taken_over_keeps_no_other_one(
    place: Place, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    bad = await place.create(partitions=3)
    monkeypatch.setattr(FailsOnOne, "mended", False)
    monkeypatch.setattr(FailsOnOne, "hangs", hangs)
    # Far below request_timeout_ms, after which what hangs fails.
    monkeypatch.setattr("consumers.kafka.recovery._TOGETHER_S", 0.5)
    monkeypatch.setattr("consumers.kafka.recovery._REST_S", 0.5)
    failed = telemetry.FAILED_TAKEOVERS._value.get()
    listener = RecordingListener()
    # Longer away than that, the guard would give up, were there no other partitions.
    made = place.harness.exact_member(
        place.topic,
        place.sessions,
        place.group,
        producer_class=FailsOnOne,
        recovery_timeout_ms=1,
        request_timeout_ms=300_000,
    )
    await made.start(listener)
    await poll_while(made, lambda: not listener.held)
    assert set(listener.held) == {Partition(place.topic, 1), Partition(place.topic, 2)}
    await made.transact(Partition(place.topic, 1), place.out(b"one"), [], Commit(1))
    await poll_while(made, lambda: not hangs and telemetry.FAILED_TAKEOVERS._value.get() < failed + 3)
    assert made.waits_for() == f"partitions that can't be taken over yet: {place.topic}[0]"
    monkeypatch.setattr(FailsOnOne, "mended", True)
    await poll_while(made, lambda: bad not in listener.held)
    await poll_while(made, lambda: bool(made.waits_for()))
    await made.transact(bad, place.out(b"two"), [], Commit(1))
    await made.stop()
    assert await place.written() == [b"one", b"two"]
    assert [kind for kind, _ in listener.log] == ["assigned", "assigned"]


async def test_a_rebalance_ends_what_a_partition_waits_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await place.create(partitions=2)
    monkeypatch.setattr(FailsOnOne, "mended", False)
    one, two = RecordingListener(), RecordingListener()
    first = place.harness.exact_member(place.topic, place.sessions, place.group, producer_class=FailsOnOne)
    await first.start(one)
    await poll_while(first, lambda: not one.held)
    second = place.harness.exact_member(place.topic, place.sessions, place.group)
    await second.start(two)
    monkeypatch.setattr(FailsOnOne, "mended", True)
    await poll_while([first, second], lambda: len(one.held) != 1 or len(two.held) != 1)
    assert bad in {*one.held, *two.held}
    assert not first.waits_for()
    await first.stop()
    await second.stop()


async def test_a_rebalance_ends_a_restoring_that_is_under_way(place: Place) -> None:
    await place.create(partitions=2)
    hanging = [True]

    class Hangs(TransactionalProducer):
        async def start(self) -> None:
            await super().start()
            if hanging[0]:
                await asyncio.Event().wait()

    one, two = RecordingListener(), RecordingListener()
    first = place.harness.exact_member(place.topic, place.sessions, place.group, producer_class=Hangs)
    await first.start(one)
    for _ in range(10):
        assert list(await first.poll(50, 10)) == []
    hanging[0] = False
    second = place.harness.exact_member(place.topic, place.sessions, place.group)
    await second.start(two)
    await poll_while([first, second], lambda: not (len(one.held) == len(two.held) == 1))
    assert [what for what, _ in one.log] == ["assigned"]
    await first.stop()
    await second.stop()


async def test_a_rebalance_ends_a_recovery_that_is_under_way(place: Place) -> None:
    partition = await place.create(partitions=2)
    hanging = [False]

    class Hangs(TransactionalProducer):
        async def start(self) -> None:
            await super().start()
            if hanging[0]:
                await asyncio.Event().wait()

    first, one = await place.member(producer_class=Hangs)
    hanging[0] = True
    recovery = asyncio.ensure_future(first.recover(partition))

    async def wait(partitions: Collection[Partition]) -> None:
        hanging[0] = False
        with pytest.raises(PartitionLost):
            await recovery

    one.while_revoked = wait
    two = RecordingListener()
    second = place.harness.exact_member(place.topic, place.sessions, place.group)
    await second.start(two)
    await poll_while([first, second], lambda: not (len(one.held) == len(two.held) == 1))
    assert recovery.done()
    one.while_revoked = None
    for listener, member in ((one, first), (two, second)):
        for held in listener.held:
            await member.transact(held, place.out(b"v"), [], Commit(1))
    await second.stop()
    assert await place.written() == [b"v", b"v"]


async def test_a_static_member_that_crashed_and_comes_back_gets_its_partitions_without_a_rebalance(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.create(partitions=2)
    names = {"group_instance_id": "one"}, {"group_instance_id": "two"}
    one, two = RecordingListener(), RecordingListener()
    first = place.harness.exact_member(place.topic, place.sessions, place.group, **names[0])
    second = place.harness.exact_member(place.topic, place.sessions, place.group, **names[1])
    await first.start(one)
    await second.start(two)
    await poll_while([first, second], lambda: not (len(one.held) == len(two.held) == 1))
    (held,) = two.held
    await second.transact(held, place.out(b"one"), [StateRecord(b"a", b"1")], Commit(1))
    before = len(one.log)
    with monkeypatch.context() as patched:
        patched.setattr(
            "consumers.kafka.workarounds.Membership.leave", AsyncMock()
        )  # a process that is killed says nothing
        await second.stop()
    back, again = await place.member(**names[1])
    await poll_until([first, back], lambda _: bool(again.held))
    assert again.held == {held: Commit(1)}
    assert again.state == {held: {b"a": b"1"}}
    assert len(one.log) == before
    await first.stop()


async def test_a_sessions_topic_with_too_few_partitions_is_told(place: Place) -> None:
    await place.create(partitions=3)
    place.sessions = await place.harness.create_topic(1, compacted=True)
    made = place.harness.exact_member(place.topic, place.sessions, place.group)
    await made.start(RecordingListener())
    with pytest.raises(TransportUnavailable, match=r"1 partitions.*give it as many"):
        await poll_until(made, lambda found: False)
    await made.stop()
