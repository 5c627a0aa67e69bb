"""Steps over a real Kafka: fencing, zombies, unknown outcomes, a broker that goes away."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Collection
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from aiokafka.producer.transaction_manager import TransactionState

from consumers.kafka import TransactionalProducer, read_state, transactional_id
from consumers.settings import KafkaSettings
from consumers.transport import Commit, OutRecord, Partition, Restored, StateRecord
from guardrail.errors import PartitionLost, StepFailed, TransportError, TransportUnavailable
from tests.chaos.transactions import settled
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_place import Place
from tests.support.transports import (
    MAX_RECORD_BYTES,
    RecordingListener,
    poll_until,
    poll_while,
)

pytestmark = pytest.mark.kafka


def nothing_unseen(caplog: pytest.LogCaptureFixture) -> None:
    """No exception was dropped unread: the loop logs that when the future or task is collected."""
    gc.collect()
    said = [r for r in caplog.records if r.name == "asyncio" and r.levelno >= logging.WARNING]
    assert [record.getMessage() for record in said] == []


def a(value: bytes) -> list[StateRecord]:
    return [StateRecord(b"a", value)]


class DiesBeforeCommit(TransactionalProducer):
    """Goes silent when everything is sent and before the commit, as a killed process does."""

    def __init__(self, settings: KafkaSettings, partition: Partition, topics: Collection[str] = ()) -> None:
        super().__init__(settings, partition, topics)
        self.silent = asyncio.Event()

    async def commit(self) -> None:
        self.silent.set()
        await asyncio.Event().wait()

    async def abort(self) -> None:
        return


async def test_the_successor_ends_the_open_transaction_of_a_killed_producer(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    partition = await place.create()
    killed = DiesBeforeCommit(place.settings, partition)
    await killed.start()
    step = asyncio.ensure_future(killed.transact(place.out(b"never"), a(b"never"), Commit(9)))
    await killed.silent.wait()
    member, listener = await place.member()
    assert listener.held == {partition: None}
    assert listener.state == {partition: {}}
    # Not after the transaction's timeout: a reader sees what comes next at once.
    await member.transact(partition, place.out(b"first"), a(b"1"), Commit(1))
    assert await place.written() == [b"first"]
    await killed.stop()
    with pytest.raises(StepFailed):
        await step
    assert await place.state() == {b"a": b"1"}
    del killed, step
    nothing_unseen(caplog)


async def test_a_zombie_that_was_replaced_writes_nothing(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    partition = await place.create()
    zombie = await place.producer(partition)
    await zombie.transact(place.out(b"one"), a(b"1"), Commit(1))
    successor = await place.producer(partition)
    with pytest.raises(StepFailed, match="another producer has fenced"):
        await zombie.transact(place.out(b"never"), a(b"never"), Commit(2))
    with pytest.raises(StepFailed, match="a step before"):
        await zombie.transact(place.out(b"never"), a(b"never"), Commit(2))
    await successor.transact(place.out(b"two"), a(b"2"), Commit(2))
    await zombie.stop()
    assert await place.written() == [b"one", b"two"]
    assert await place.state() == {b"a": b"2"}
    nothing_unseen(caplog)


async def test_a_zombie_caught_in_the_middle_of_a_step_writes_nothing(place: Place) -> None:
    partition = await place.create()
    frozen, go_on = asyncio.Event(), asyncio.Event()

    class Frozen(TransactionalProducer):
        async def send_offsets(self, commit: Commit) -> None:
            frozen.set()
            await go_on.wait()
            await super().send_offsets(commit)

    zombie = Frozen(place.settings, partition)
    await zombie.start()
    step = asyncio.ensure_future(zombie.transact(place.out(b"never"), a(b"never"), Commit(9)))
    await frozen.wait()
    member, listener = await place.member()
    assert (listener.held, listener.state) == ({partition: None}, {partition: {}})
    go_on.set()
    with pytest.raises(StepFailed):
        await step
    await zombie.stop()
    await member.transact(partition, place.out(b"first"), [], Commit(1))
    assert await place.written() == [b"first"]


async def test_a_member_that_was_fenced_and_still_holds_its_partition_recovers(place: Place) -> None:
    partition = await place.create()
    member, _ = await place.member()
    await member.transact(partition, place.out(b"one"), a(b"1"), Commit(1))
    intruder = await place.producer(partition)
    await intruder.transact([], a(b"2"), Commit(5, "intruder"))
    with pytest.raises(StepFailed, match="fenced"):
        await member.transact(partition, place.out(b"never"), a(b"never"), Commit(2))
    with pytest.raises(StepFailed):
        await member.transact(partition, place.out(b"never"), a(b"never"), Commit(2))
    restored = await member.recover(partition)
    assert restored.commit == Commit(5, "intruder")
    assert dict(restored.state) == {b"a": b"2"}
    await member.transact(partition, place.out(b"two"), a(b"3"), Commit(6))
    assert await place.written() == [b"one", b"two"]


async def test_a_frozen_member_does_not_fence_its_successor_when_it_recovers(place: Place) -> None:
    """Its heartbeats stop, the group gives its partition away, and then it wants to recover."""
    partition = await place.create()
    first, _ = await place.member(session_timeout_ms=1_500, heartbeat_interval_ms=400)
    assert first._consumer is not None
    heartbeats: Any = first._consumer._coordinator
    await heartbeats._stop_heartbeat_task()
    second, _ = await place.member(session_timeout_ms=1_500, heartbeat_interval_ms=400)
    await second.transact(partition, [], a(b"2"), Commit(2))
    with pytest.raises(StepFailed, match="fenced"):
        await first.transact(partition, place.out(b"never"), a(b"never"), Commit(9))
    with pytest.raises(PartitionLost):
        await first.recover(partition)
    await second.transact(partition, place.out(b"second"), a(b"3"), Commit(3))
    assert await place.written() == [b"second"]
    assert await place.state() == {b"a": b"3"}


@pytest.mark.parametrize("size", [MAX_RECORD_BYTES + 65_536, 9 * 1024 * 1024])
async def test_a_record_that_no_topic_takes_fails_the_step_for_good(place: Place, size: int) -> None:
    """Over the topic's limit, which only the broker knows, and over our own: the rest must not stay."""
    partition = await place.create()
    member, _ = await place.member()
    with pytest.raises(TransportError, match=r"max\.message\.bytes") as caught:
        await member.transact(partition, place.out(b"a", b"x" * size, b"b"), a(b"1"), Commit(1))
    assert not isinstance(caught.value, StepFailed)
    assert (await member.recover(partition)).commit is None
    await member.transact(partition, place.out(b"after"), [], Commit(1))
    assert await place.written() == [b"after"]
    assert await place.state() == {}


async def test_a_missing_topic_fails_the_step_in_time(place: Place) -> None:
    partition = await place.create()
    member, _ = await place.member(delivery_timeout_ms=1_000)
    records = [*place.out(b"never"), OutRecord("no-such-topic", b"k", b"never")]
    with pytest.raises(StepFailed, match=r"no answer within 1 s.*topics still exist"):
        await member.transact(partition, records, a(b"1"), Commit(1))
    assert (await member.recover(partition)).commit is None
    assert await place.written() == []


async def test_state_that_ends_in_markers_or_aborted_records_is_read_to_its_end(place: Place) -> None:
    """Three partitions: empty, all aborted, and committed ones before an aborted end; nobody waits long."""
    await place.create(partitions=3)
    aborted = await place.producer(Partition(place.topic, 1))
    mixed = await place.producer(Partition(place.topic, 2))
    for step in range(5):
        await mixed.transact([], [StepRecord(step)], Commit(step))
    for producer in (aborted, mixed):
        for step in range(3):
            await producer.begin()
            await producer.send([], [StepRecord(100 + step)] * 20)
            await producer.settled()
            await producer.abort()
            assert producer._producer._txn_manager.state == TransactionState.READY
    async with asyncio.timeout(5):
        read = await read_state(place.settings, place.sessions, [0, 1, 2])
    assert read[0] == {}
    assert read[1] == {}
    assert list(read[2]) == [b"step/%d" % step for step in range(5)]


def StepRecord(step: int) -> StateRecord:  # noqa: N802
    return StateRecord(b"step/%d" % step, b"%d" % step)


async def test_publish_and_transact_are_for_one_guarantee_each(place: Place) -> None:
    partition = await place.create()
    exact, _ = await place.member()
    with pytest.raises(TransportError, match="at_least_once"):
        await exact.publish(place.out(b"v"), {})
    other = place.harness.member(place.topic, f"{place.group}-other")
    await other.start(RecordingListener())
    with pytest.raises(TransportError, match="exactly_once"):
        await other.transact(partition, [], [], Commit(0))
    with pytest.raises(TransportError, match="exactly_once"):
        await other.recover(partition)
    await other.stop()


def test_transactional_ids_name_group_topic_and_partition() -> None:
    settings = KafkaSettings(group_id="g")
    assert transactional_id(settings, Partition("rag.responses", 3)) == "guardrail-g-rag.responses-3"


@pytest.mark.parametrize("committed", [False, True])
async def test_a_commit_whose_outcome_is_unknown_is_resolved_by_recovery(
    own_place: Place, own_kafka: KafkaBroker, *, committed: bool
) -> None:
    """The broker is killed as the commit is sent, or before its answer comes, and back while we recover.

    Not in between, while it writes the markers: Kafka 4.3.0 forgets them then (KAFKA-20734).
    """
    partition = await own_place.create()
    killing = [False]

    class Unlucky(TransactionalProducer):
        async def commit(self) -> None:
            if killing[0] and committed:
                await super().commit()
                assert await settled(own_kafka.bootstrap_servers, 10)
            if killing[0]:
                own_kafka.kill()
            if killing[0] and committed:
                raise KafkaConnectionError("the answer is lost")
            await super().commit()

    await own_place.harness.write([OutRecord(own_place.topic, b"k", b"%d" % n) for n in range(10)])
    # A session that outlasts the restart, so that the partition stays ours.
    member, _ = await own_place.member(
        producer_class=Unlucky, delivery_timeout_ms=5_000, session_timeout_ms=90_000
    )
    await member.transact(partition, own_place.out(b"one"), a(b"1"), Commit(1))
    assert await settled(own_kafka.bootstrap_servers, 10)  # on a busy machine its markers take their time
    killing[0] = True
    with pytest.raises(StepFailed, match="unknown"):
        await member.transact(partition, own_place.out(b"two"), a(b"2"), Commit(2))
    killing[0] = False
    recovery = asyncio.ensure_future(member.recover(partition))
    for _ in range(5):
        assert list(await member.poll(50, 10)) == []
    assert not recovery.done()
    own_kafka.start()
    read = await poll_until(member, lambda _: recovery.done())  # the last poll may have what comes after it
    restored = await recovery
    assert restored.commit is not None
    position = restored.commit.offset
    # Not answered, it may still be done when the broker is back: the request is on its way until we fence it.
    assert position == 2 or not committed
    assert restored == Restored(Commit(position), {b"a": b"%d" % position})
    assert await own_place.written() == [b"one", b"two"][:position]
    read = read or await poll_until(member, bool)
    assert read[0].offset >= position


async def test_a_restarted_broker_is_found_again_by_steps_and_polls(
    own_place: Place, own_kafka: KafkaBroker
) -> None:
    partition = await own_place.create()
    member, _ = await own_place.member()
    await member.transact(partition, own_place.out(b"one"), a(b"1"), Commit(0))
    own_kafka.stop()
    for _ in range(10):
        assert list(await member.poll(50, 10)) == []
    own_kafka.start()
    await own_place.harness.write([OutRecord(own_place.topic, b"k", b"v")])
    read = await poll_until(member, bool)
    try:
        await member.transact(partition, own_place.out(b"two"), a(b"2"), Commit(1))
    except StepFailed:
        assert (await member.recover(partition)).commit == Commit(0)
        await member.transact(partition, own_place.out(b"two"), a(b"2"), Commit(1))
    assert [record.value for record in read] == [b"v"]
    assert await own_place.written() == [b"one", b"two"]


async def test_a_recovery_outlasts_a_broker_that_stays_away(
    own_place: Place, own_kafka: KafkaBroker, caplog: pytest.LogCaptureFixture
) -> None:
    partition = await own_place.create()
    member, _ = await own_place.member(
        recovery_timeout_ms=1_500, request_timeout_ms=10_000, delivery_timeout_ms=10_000
    )
    own_kafka.kill()
    with pytest.raises(StepFailed, match="no answer within"):
        await member.transact(partition, own_place.out(b"one"), a(b"1"), Commit(1))
    await poll_while(member, lambda: member.waits_for() != "Kafka: no broker answers")
    async with asyncio.TaskGroup() as group:
        recovering = group.create_task(member.recover(partition))
        await asyncio.sleep(2 * 1.5)
        assert not recovering.done()
        own_kafka.start()
    await member.transact(partition, own_place.out(b"one"), a(b"1"), Commit(1))
    await member.stop()
    assert await own_place.written() == [b"one"]
    assert len([r for r in caplog.records if "guard.takeover_failed" in r.getMessage()]) <= 2
    nothing_unseen(caplog)


async def test_the_markers_of_transactions_are_no_unread_records(place: Place) -> None:
    partition = await place.create()
    member, _ = await place.member()
    producer: Any = AIOKafkaProducer(
        bootstrap_servers=place.settings.bootstrap_servers, transactional_id=f"chat-{place.group}"
    )
    await producer.start()
    try:
        for ends in (producer.commit_transaction, producer.abort_transaction):
            await producer.begin_transaction()
            await producer.send_and_wait(place.topic, b"v", partition=0)
            await ends()
    finally:
        await producer.stop()
    await poll_until(member, bool)
    await poll_while(member, lambda: member.unread(partition) != 0)


async def test_a_sessions_topic_that_deletes_by_age_is_refused(place: Place) -> None:
    await place.create()
    place.sessions = await place.harness.create_topic(1)
    made = place.harness.exact_member(place.topic, place.sessions, place.group)
    with pytest.raises(TransportUnavailable, match=r"cleanup\.policy=delete .* cleanup\.policy=compact"):
        await made.start(RecordingListener())
    await made.stop()
