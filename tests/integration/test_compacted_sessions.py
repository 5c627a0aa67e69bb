"""A topic of stored sessions that Kafka has really compacted, with what compaction leaves of transactions."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.client import AIOKafkaClient, CoordinationType
from aiokafka.errors import GroupCoordinatorNotAvailableError
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from consumers.doctor import examining
from consumers.kafka import TransactionalProducer
from consumers.settings import KafkaSettings
from consumers.topics import create_topics
from consumers.transport import Commit, Partition, StateRecord
from guardrail.errors import StepFailed
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.conftest import own_broker
from tests.support.guards import events_of
from tests.support.judges import WordJudge
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_guards import KafkaSide, kafka_guard, own_settings
from tests.support.kafka_settings import changed

pytestmark = pytest.mark.kafka

_CLEANED_SOON = {
    "cleanup.policy": "compact",
    "segment.ms": "300",
    "delete.retention.ms": "300",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "300",
}
_CLEANS = {"log.cleaner.backoff.ms": "100", "log.cleaner.dedupe.buffer.size": "2000000"}  # in a small heap
_HEADER = struct.Struct(">qiib4xh")  # offset, length, epoch, magic and, behind the checksum, attributes
_COUNT = struct.Struct(">i")
_COUNT_AT = 57
_CONTROL = 0x20


@pytest.fixture
def cleaning_broker(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    with own_broker(request.config, properties=_CLEANS) as broker:
        yield broker


def control_batches(folder: Path, topic: str) -> list[int]:
    """How many records each control batch of the topic's first partition has, on the broker's disk."""
    found: list[int] = []
    for segment in sorted((folder / "data").glob(f"{topic}-0/*.log")):
        with suppress(FileNotFoundError):  # cleaned in this moment
            found += _control_batches(segment.read_bytes())
    return found


def _control_batches(data: bytes) -> Iterator[int]:
    at = 0
    while at + _COUNT_AT + _COUNT.size <= len(data):
        _, length, _, _, attributes = _HEADER.unpack_from(data, at)
        if attributes & _CONTROL:
            yield from _COUNT.unpack_from(data, at + _COUNT_AT)
        at += 12 + length


async def aborted_transaction(settings: KafkaSettings) -> None:
    """As a producer leaves it that added the partition, wrote nothing to it and aborted."""
    client = AIOKafkaClient(bootstrap_servers=settings.bootstrap_servers)
    await client.bootstrap()
    try:
        begun: Any = None
        while begun is None or begun.error_code:
            try:
                node = await client.coordinator_lookup(CoordinationType.TRANSACTION, "of-another")
                begun = await client.send(node, InitProducerIdRequest("of-another", 10_000))
            except GroupCoordinatorNotAvailableError:  # Kafka makes the topic for it on the first question
                await asyncio.sleep(0.1)
        producer = ("of-another", begun.producer_id, begun.producer_epoch)
        place = [(settings.topics.sessions, [0])]
        added: Any = await client.send(node, AddPartitionsToTxnRequest(*producer, place))
        assert added.errors == [(settings.topics.sessions, [(0, 0)])]
        ended: Any = await client.send(node, EndTxnRequest(*producer, False))
        assert ended.error_code == 0
    finally:
        await client.close()


async def compacted(broker: KafkaBroker, settings: KafkaSettings) -> None:
    """Return once the marker of the transaction is cleaned away, and its batch stays."""
    producer = AIOKafkaProducer(bootstrap_servers=settings.bootstrap_servers)
    await producer.start()
    try:
        while 0 not in control_batches(broker.folder, settings.topics.sessions):
            await producer.send_and_wait(settings.topics.sessions, b"x", key=b"busy", partition=0)
            await asyncio.sleep(0.1)
    finally:
        await producer.stop()


async def killed_guard(settings: KafkaSettings) -> None:
    """What one leaves that was killed within a step, and whose successor wrote nothing to this partition."""
    partition = Partition(settings.topics.responses, 0)
    killed, successor = Silent(settings, partition), TransactionalProducer(settings, partition)
    await killed.start()
    step = asyncio.create_task(killed.transact([], [StateRecord(b"r0", b"{}")], Commit(0)))
    await killed.sent.wait()
    await successor.start()
    await successor.stop()
    await killed.stop()
    with pytest.raises(StepFailed):
        await step


class Silent(TransactionalProducer):
    """Goes silent when everything is sent and before the commit, as a killed process does."""

    def __init__(self, settings: KafkaSettings, partition: Partition) -> None:
        super().__init__(settings, partition)
        self.sent = asyncio.Event()

    async def commit(self) -> None:
        self.sent.set()
        await asyncio.Event().wait()

    async def abort(self) -> None:
        return


@pytest.mark.parametrize(
    "others",
    [None, {"group_id": "others"}, {"transactional_id_prefix": "former"}],
    ids=["another producer", "a second group", "a former prefix"],
)
async def test_a_cleaned_transaction_of_others_stops_no_guard(
    cleaning_broker: KafkaBroker, others: dict[str, str] | None
) -> None:
    settings = own_settings(cleaning_broker.bootstrap_servers)
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(settings.topics.sessions, 1, 1, topic_configs=_CLEANED_SOON)])
    finally:
        await admin.close()
    await create_topics(settings, partitions=1, replication_factor=1)
    if others is None:
        await aborted_transaction(settings)
    else:
        await killed_guard(changed(settings, **others))
    await compacted(cleaning_broker, settings)
    side = KafkaSide(settings, partitions=1)
    await side.start()
    try:
        async with kafka_guard(settings, WordJudge(), PolicyRouter.single(Policy())):
            await side.send(events_of("r1", "Paris is in France."))
            await side.completed()
    finally:
        await side.stop()


async def test_the_doctor_leaves_nothing_in_a_topic(kafka_bootstrap: str) -> None:
    settings = own_settings(kafka_bootstrap)
    await create_topics(settings, partitions=1, replication_factor=1)
    async with examining(settings) as examiner:
        rights = await examiner.rights(await examiner.cluster())
        assert {right.operation for right in rights.granted} == {"Read", "Write", "Describe"}
        assert not rights.denied
        assert not rights.unknown
        for topic in (*settings.topics.outputs(), settings.topics.sessions):
            assert await end_of(settings, topic) == 0


async def end_of(settings: KafkaSettings, topic: str) -> int:
    """The next offset of a topic's first partition, behind all markers."""
    consumer = AIOKafkaConsumer(bootstrap_servers=settings.bootstrap_servers)
    await consumer.start()
    try:
        place = TopicPartition(topic, 0)
        return int((await consumer.end_offsets([place]))[place])
    finally:
        await consumer.stop()
