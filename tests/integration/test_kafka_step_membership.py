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
from tests.support.transports import poll_until, poll_while

pytestmark = pytest.mark.kafka


async def test_a_static_member_that_stops_leaves_its_partitions_to_the_others(place: Place) -> None:
    """At once: its session would last for longer than this test."""
    await place.create(partitions=2)
    patient = {"session_timeout_ms": 600_000, "rebalance_timeout_ms": 10_000}
    first, one = await place.join(group_instance_id="a", **patient)
    second, two = await place.join(group_instance_id="b", **patient)
    await poll_while([first, second], lambda: len(one.held) != 1 or len(two.held) != 1)
    await first.stop()
    await poll_while(second, lambda: len(two.held) != 2)


async def test_long_state_is_restored_while_the_membership_is_kept(place: Place) -> None:
    """Restoring takes longer than the session timeout, and nobody is expelled."""
    partition = await place.create()
    slow = asyncio.Event()

    class SlowStart(TransactionalProducer):
        async def start(self) -> None:
            await super().start()
            await asyncio.wait_for(slow.wait(), 60)

    made, listener = await place.join(
        producer_class=SlowStart, session_timeout_ms=1_200, heartbeat_interval_ms=300
    )
    asyncio.get_running_loop().call_later(3.0, slow.set)
    await poll_while(made, lambda: not listener.held)
    assert listener.log == [("assigned", (partition,))]
    await made.transact(partition, place.out(b"one"), [], Commit(1))
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
    # Longer away than that, the guard would give up, were there no other partitions.
    made, listener = await place.join(
        producer_class=FailsOnOne, recovery_timeout_ms=1, request_timeout_ms=300_000
    )
    await poll_while(made, lambda: not listener.held)
    assert set(listener.held) == {Partition(place.topic, 1), Partition(place.topic, 2)}
    await made.transact(Partition(place.topic, 1), place.out(b"one"), [], Commit(1))
    await poll_while(made, lambda: not hangs and telemetry.FAILED_TAKEOVERS._value.get() < failed + 3)
    assert made.waits_for() == f"partitions that can't be taken over yet: {place.topic}[0]"
    monkeypatch.setattr(FailsOnOne, "mended", True)
    await poll_while(made, lambda: bad not in listener.held)
    await poll_while(made, lambda: bool(made.waits_for()))
    await made.transact(bad, place.out(b"two"), [], Commit(1))
    assert await place.written() == [b"one", b"two"]
    assert [kind for kind, _ in listener.log] == ["assigned", "assigned"]


async def test_a_rebalance_ends_what_a_partition_waits_for(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await place.create(partitions=2)
    monkeypatch.setattr(FailsOnOne, "mended", False)
    first, one = await place.join(producer_class=FailsOnOne)
    await poll_while(first, lambda: not one.held)
    second, two = await place.join()
    monkeypatch.setattr(FailsOnOne, "mended", True)
    await poll_while([first, second], lambda: len(one.held) != 1 or len(two.held) != 1)
    assert bad in {*one.held, *two.held}
    assert not first.waits_for()


class Hangs(TransactionalProducer):
    """Does not come back from its start while it is told so."""

    hanging = False

    async def start(self) -> None:
        await super().start()
        if Hangs.hanging:
            await asyncio.Event().wait()


async def test_a_rebalance_ends_a_restoring_that_is_under_way(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.create(partitions=2)
    monkeypatch.setattr(Hangs, "hanging", True)
    first, one = await place.join(producer_class=Hangs)
    for _ in range(10):
        assert list(await first.poll(50, 10)) == []
    Hangs.hanging = False
    second, two = await place.join()
    await poll_while([first, second], lambda: not (len(one.held) == len(two.held) == 1))
    assert [what for what, _ in one.log] == ["assigned"]


async def test_a_rebalance_ends_a_recovery_that_is_under_way(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = await place.create(partitions=2)
    monkeypatch.setattr(Hangs, "hanging", False)
    first, one = await place.member(producer_class=Hangs)
    Hangs.hanging = True
    recovery = asyncio.ensure_future(first.recover(partition))

    async def wait(partitions: Collection[Partition]) -> None:
        Hangs.hanging = False
        with pytest.raises(PartitionLost):
            await recovery

    one.while_revoked = wait
    second, two = await place.join()
    await poll_while([first, second], lambda: not (len(one.held) == len(two.held) == 1))
    assert recovery.done()
    one.while_revoked = None
    for listener, member in ((one, first), (two, second)):
        for held in listener.held:
            await member.transact(held, place.out(b"v"), [], Commit(1))
    assert await place.written() == [b"v", b"v"]


async def test_a_static_member_that_crashed_and_comes_back_gets_its_partitions_without_a_rebalance(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.create(partitions=2)
    names = {"group_instance_id": "one"}, {"group_instance_id": "two"}
    first, one = await place.join(**names[0])
    second, two = await place.join(**names[1])
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


async def test_a_sessions_topic_with_too_few_partitions_is_told(place: Place) -> None:
    await place.create(partitions=3)
    place.sessions = await place.harness.create_topic(1, compacted=True)
    made, _ = await place.join()
    with pytest.raises(TransportUnavailable, match=r"1 partitions.*give it as many"):
        await poll_until(made, lambda found: False)
    await made.stop()
