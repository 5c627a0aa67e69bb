"""``create_topics`` on a real Kafka."""

from __future__ import annotations

import gzip
import uuid

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import MessageSizeTooLargeError
from aiokafka.structs import RecordMetadata

from consumers.settings import MEBIBYTE, KafkaSettings, Topics
from consumers.topics import create_topics
from guardrail.errors import ConfigError
from tests.support.kafka_settings import changed

pytestmark = pytest.mark.kafka


@pytest.fixture
def settings(kafka_bootstrap: str) -> KafkaSettings:
    tag = uuid.uuid4().hex
    names = {field: f"{field}-{tag}" for field in Topics.model_fields}
    return KafkaSettings(bootstrap_servers=kafka_bootstrap, topics=Topics(**names))


async def make_plain(admin: AIOKafkaAdminClient, topic: str, partitions: int) -> None:
    """A topic with nothing but the broker's defaults."""
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    while topic not in await admin.list_topics():
        continue  # a broker learns of a new topic a moment later


async def test_first_run_creates_and_second_finds_all(settings: KafkaSettings) -> None:
    first = await create_topics(settings, partitions=3, replication_factor=1)
    assert [report.name for report in first] == [*settings.topics.names(), settings.topics.labels]
    assert {report.outcome for report in first} == {"created"}
    assert "compacted" in first[-2].detail
    second = await create_topics(settings, partitions=3, replication_factor=1)
    assert {report.outcome for report in second} == {"exists"}


async def test_differences_are_told_and_nothing_is_changed(settings: KafkaSettings) -> None:
    await create_topics(settings, partitions=2, replication_factor=1)
    wider = changed(settings, max_request_size=1_000_000)
    reports = {report.name: report for report in await create_topics(wider, 4, 1)}
    responses = reports[settings.topics.responses]
    assert responses.outcome == "differs"
    assert "2 partitions instead of 4" in responses.detail
    assert "max.message.bytes=8323072 instead of 934464" in responses.detail
    more = {report.name: report for report in await create_topics(settings, 4, 1)}
    sessions = more[settings.topics.sessions]
    assert sessions.outcome == "exists"
    assert sessions.detail == f"2 partitions, as many as {settings.topics.responses} has"
    again = {report.name: report for report in await create_topics(settings, 2, 1)}
    assert {report.outcome for report in again.values()} == {"exists"}


async def write_compressed(settings: KafkaSettings, value: bytes, codec: str) -> RecordMetadata:
    """As a producer does that has no limit of its own."""
    producer = AIOKafkaProducer(
        bootstrap_servers=settings.bootstrap_servers,
        compression_type=codec,
        max_request_size=2 * len(value),
        max_batch_size=2 * len(value),
    )
    await producer.start()
    try:
        written: RecordMetadata = await producer.send_and_wait(
            settings.topics.responses, value, key=b"k", partition=0
        )
    finally:
        await producer.stop()
    return written


async def test_the_input_takes_no_record_that_unpacks_to_more_than_its_limit(settings: KafkaSettings) -> None:
    await create_topics(settings, partitions=1, replication_factor=1)
    bomb = bytes(32 * MEBIBYTE)
    assert len(gzip.compress(bomb)) < settings.max_request_bytes / 100
    with pytest.raises(MessageSizeTooLargeError):
        await write_compressed(settings, bomb, "gzip")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_the_input_takes_what_producers_compress(settings: KafkaSettings, codec: str) -> None:
    await create_topics(settings, partitions=1, replication_factor=1)
    value = b"an answer, delta by delta " * 40_000
    written = await write_compressed(settings, value, codec)
    consumer = AIOKafkaConsumer(bootstrap_servers=settings.bootstrap_servers)
    await consumer.start()
    try:
        tp = TopicPartition(settings.topics.responses, 0)
        consumer.assign([tp])
        consumer.seek(tp, written.offset)
        read = await consumer.getone()
    finally:
        await consumer.stop()
    assert (read.key, read.value) == (b"k", value)


async def test_an_input_that_keeps_compressed_batches_is_reported(settings: KafkaSettings) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    await admin.start()
    try:
        await make_plain(admin, settings.topics.responses, partitions=1)
    finally:
        await admin.close()
    reports = {report.name: report for report in await create_topics(settings, 1, 1)}
    responses = reports[settings.topics.responses]
    assert responses.outcome == "differs"
    assert "compression.type=producer instead of uncompressed" in responses.detail


async def test_sessions_have_as_many_partitions_as_an_input_that_was_there_before(
    settings: KafkaSettings,
) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    await admin.start()
    await make_plain(admin, settings.topics.responses, partitions=5)
    reports = {report.name: report for report in await create_topics(settings, 2, 1)}
    described = {topic["topic"]: topic for topic in await admin.describe_topics()}
    await admin.close()
    assert reports[settings.topics.responses].outcome == "differs"
    assert len(described[settings.topics.sessions]["partitions"]) == 5
    assert len(described[settings.topics.verdicts]["partitions"]) == 2


async def test_more_replicas_than_brokers(settings: KafkaSettings) -> None:
    with pytest.raises(ConfigError, match=r"3 replicas.*lower --replication-factor"):
        await create_topics(settings, partitions=1, replication_factor=3)
