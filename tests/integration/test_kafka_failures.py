"""The Kafka transport when Kafka is missing, refuses, goes away and comes back."""

from __future__ import annotations

import asyncio
import gc
import uuid
from collections.abc import AsyncIterator, Collection

import pytest

from consumers.kafka import KafkaTransport, connect_admin
from consumers.settings import KafkaSettings
from consumers.transport import Commit, OutRecord, Partition
from guardrail.errors import TransportError, TransportUnavailable
from tests.support.kafka_broker import KafkaBroker, free_ports
from tests.support.kafka_settings import kafka_settings
from tests.support.transports import KafkaHarness, RecordingListener, fill, poll_until, poll_while

pytestmark = pytest.mark.kafka


@pytest.fixture
async def harness(kafka_bootstrap: str) -> AsyncIterator[KafkaHarness]:
    made = KafkaHarness(kafka_bootstrap)
    yield made
    await made.close()


def fails_fast(bootstrap_servers: str, **changes: object) -> KafkaSettings:
    return kafka_settings(
        **{
            "bootstrap_servers": bootstrap_servers,
            "connect_timeout_ms": 2_000,
            "request_timeout_ms": 2_000,
            "delivery_timeout_ms": 3_000,
            "delivery_guarantee": "at_least_once",
            **changes,
        }
    )


def nothing_left_open() -> None:
    """No task goes on; a client or socket that nobody closed would fail the test as a ResourceWarning."""
    gc.collect()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert [task for task in others if not task.cancelling()] == []


async def start_fails(settings: KafkaSettings) -> str:
    """The message of the failed start."""
    transport = KafkaTransport(settings, "in", output_topics=[])
    with pytest.raises(TransportUnavailable) as caught:
        await transport.start(RecordingListener())
    await transport.stop()
    del transport
    nothing_left_open()
    return str(caught.value)


async def test_nobody_listens() -> None:
    (port,) = free_ports(1)
    message = await start_fails(fails_fast(f"127.0.0.1:{port}", connect_timeout_ms=500))
    assert f"127.0.0.1:{port} within 500 ms" in message
    assert "start it, or check bootstrap_servers" in message


async def test_somebody_else_listens() -> None:
    """A server that accepts and says nothing: bounded all the same."""
    accepted: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    address = "{}:{}".format(*silent.sockets[0].getsockname())
    message = await start_fails(fails_fast(address, connect_timeout_ms=500))
    assert "can't be reached" in message
    silent.close()
    for writer in accepted:
        writer.close()
        await writer.wait_closed()


async def test_missing_outputs_are_named_all_together(kafka_bootstrap: str) -> None:
    transport = KafkaTransport(fails_fast(kafka_bootstrap), "no-in", output_topics=["no-out", "no-verdicts"])
    with pytest.raises(
        TransportUnavailable, match=r"no topic no-in, no-out, no-verdicts.*guardrail topics create"
    ):
        await transport.start(RecordingListener())


async def test_a_restarted_broker_is_found_again(own_kafka: KafkaBroker) -> None:
    own_kafka.start()
    harness = KafkaHarness(own_kafka.bootstrap_servers)
    topic = await harness.create_topic()
    transport = harness.member(topic, "g", delivery_timeout_ms=60_000)
    listener = RecordingListener()
    await transport.start(listener)
    await fill(transport, topic, 100)
    read = await poll_until(transport, lambda found: len(found) >= 100)
    await transport.publish([], {Partition(topic, 0): Commit(100, "note")})
    own_kafka.stop()
    assert list(await transport.poll(50, 10)) == []
    own_kafka.start()
    written = await fill(transport, topic, 100, first=100)
    read += await poll_until(transport, lambda found: len(found) >= 100)
    assert [record.value for record in read[100:]] == [record.value for record in written]
    await transport.publish([], {Partition(topic, 0): Commit(200, "later")})
    await transport.stop()
    again = RecordingListener()
    second = harness.member(topic, "g")
    await second.start(again)
    await poll_while(second, lambda: not again.held)
    assert again.held == {Partition(topic, 0): Commit(200, "later")}
    await second.stop()
    await harness.close()


async def test_a_slow_rebalance_elsewhere_does_not_hold_up_a_poll(harness: KafkaHarness) -> None:
    """The library's own poll waits for the end of a rebalance; ours comes back and takes it up again."""
    topic = await harness.create_topic(partitions=2)
    go_on = asyncio.Event()
    one, two = RecordingListener(), RecordingListener()

    async def slow(partitions: Collection[Partition]) -> None:
        await go_on.wait()

    group = uuid.uuid4().hex
    first, second = harness.member(topic, group), harness.member(topic, group)
    await first.start(one)
    await poll_while(first, lambda: not one.held)
    one.while_revoked = slow
    await second.start(two)
    for _ in range(5):
        assert list(await first.poll(10, 10)) == []
        assert list(await second.poll(10, 10)) == []
    assert not two.held
    go_on.set()
    await poll_while([first, second], lambda: not (one.held and two.held))
    await fill(first, topic, 100, keys=20)
    assert len(await poll_until([first, second], lambda found: len(found) >= 100)) == 100
    await first.stop()
    await second.stop()


async def test_writing_to_a_topic_that_was_deleted_names_it_and_the_remedy(
    harness: KafkaHarness, kafka_bootstrap: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept, deleted = await harness.create_topic(), await harness.create_topic()
    settings = fails_fast(kafka_bootstrap, request_timeout_ms=20_000, delivery_timeout_ms=2_000)
    admin = await connect_admin(settings)
    while not {kept, deleted} <= set(await admin.list_topics()):
        pass  # a broker learns of a new topic a moment later
    transport = KafkaTransport(settings, kept, output_topics=[deleted])
    await transport.start(RecordingListener())
    records = [OutRecord(topic, b"k", b"v") for topic in (kept, deleted)]
    await transport.publish(records, {})
    await admin.delete_topics([deleted])
    await admin.close()

    async def publish_until_it_fails() -> None:
        while True:  # the broker answers for it until its deletion has come through
            await transport.publish(records, {})

    with pytest.raises(TransportError, match=f"topic {deleted}: .*guardrail topics create"):
        await publish_until_it_fails()
    lines = [record.getMessage() for record in caplog.records if deleted in record.getMessage()]
    assert len(lines) == len(set(lines))
    await transport.stop()


async def test_writing_to_a_dead_broker_says_that_the_outcome_is_unknown(own_kafka: KafkaBroker) -> None:
    own_kafka.start()
    harness = KafkaHarness(own_kafka.bootstrap_servers)
    topic = await harness.create_topic()
    settings = fails_fast(own_kafka.bootstrap_servers, request_timeout_ms=20_000, delivery_timeout_ms=500)
    transport = KafkaTransport(settings, topic, output_topics=[])
    listener = RecordingListener()
    await transport.start(listener)
    await poll_while(transport, lambda: not listener.held)
    own_kafka.kill()
    with pytest.raises(TransportError, match="unknown"):
        await transport.publish([OutRecord(topic, b"k", b"v")], {})
    with pytest.raises(TransportError, match="unknown"):
        await transport.publish([], {Partition(topic, 0): Commit(0)})
    await harness.close()
    await transport.stop()
    del transport
    nothing_left_open()
