"""Both transports behind one face, so that the contract suite can't tell them apart."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from consumers.kafka import KafkaTransport, KafkaWriter, TransactionalProducer
from consumers.memory import MemoryBroker, MemoryTransport
from consumers.transport import Commit, OutRecord, Partition, Record, Restored, Transport
from tests.support.kafka_settings import changed, kafka_settings

MAX_RECORD_BYTES = 4 * 1024 * 1024
_PATIENCE_S: Final = 90.0  # less than a test's own timeout, which would only show the event loop


class RecordingListener:
    """Remembers what it was told; the hooks let a test act inside a rebalance."""

    def __init__(self) -> None:
        self.held: dict[Partition, Commit | None] = {}
        self.state: dict[Partition, dict[bytes, bytes]] = {}
        self.log: list[tuple[str, tuple[Partition, ...]]] = []
        self.while_assigned: Callable[[Collection[Partition]], Awaitable[None]] | None = None
        self.while_revoked: Callable[[Collection[Partition]], Awaitable[None]] | None = None

    async def on_assigned(self, restored: Mapping[Partition, Restored]) -> None:
        if self.while_assigned is not None:
            await self.while_assigned(tuple(restored))
        self.log.append(("assigned", tuple(restored)))
        self.held |= {partition: found.commit for partition, found in restored.items()}
        self.state |= {partition: dict(found.state) for partition, found in restored.items()}

    async def on_revoked(self, partitions: Collection[Partition]) -> None:
        if self.while_revoked is not None:
            await self.while_revoked(partitions)
        self.log.append(("revoked", tuple(partitions)))
        self.held, self.state = {}, {}


class MemoryHarness:
    """The in-process broker."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()

    async def create_topic(self, partitions: int = 1, *, compacted: bool = False) -> str:
        name = f"topic-{uuid.uuid4().hex}"
        self.broker.create_topic(name, partitions, compacted=compacted)
        return name

    def member(self, topic: str, group: str, **changes: Any) -> Transport:
        return MemoryTransport(self.broker, group, topic, **changes)

    def exact_member(self, topic: str, sessions: str, group: str, **changes: Any) -> Transport:
        return MemoryTransport(self.broker, group, topic, sessions_topic=sessions, **changes)

    async def write(self, records: Sequence[OutRecord]) -> None:
        for record in records:
            self.broker.append(record.topic, record.key, record.value, record.headers)

    async def read_all(self, topic: str) -> list[Record]:
        return self.broker.records(topic)

    async def close(self) -> None:
        return


class KafkaHarness:
    """A real broker; topics and groups have names of their own, so that tests can share it."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.settings = kafka_settings(
            bootstrap_servers=bootstrap_servers,
            heartbeat_interval_ms=200,
            session_timeout_ms=10_000,
            max_partition_fetch_bytes=64 * 1024,
            fetch_max_wait_ms=50,
        )
        self._admin: AIOKafkaAdminClient | None = None

    async def create_topic(self, partitions: int = 1, *, compacted: bool = False) -> str:
        if self._admin is None:
            self._admin = AIOKafkaAdminClient(bootstrap_servers=self.settings.bootstrap_servers)
            await self._admin.start()
        name = f"topic-{uuid.uuid4().hex}"
        configs = {"max.message.bytes": str(MAX_RECORD_BYTES)}
        if compacted:
            configs["cleanup.policy"] = "compact"
        await self._admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs)])
        while name not in await self._admin.list_topics():
            continue  # a broker learns of a new topic a moment later
        return name

    def member(self, topic: str, group: str, **changes: Any) -> Transport:
        update = {"group_id": group, "delivery_guarantee": "at_least_once", **changes}
        return KafkaTransport(changed(self.settings, **update), topic, output_topics=[])

    def exact_member(self, topic: str, sessions: str, group: str, **changes: Any) -> Transport:
        topics = self.settings.topics.model_copy(update={"sessions": sessions})
        producer_class = changes.pop("producer_class", TransactionalProducer)
        settings = changed(self.settings, group_id=group, topics=topics, **changes)
        return KafkaTransport(settings, topic, output_topics=[], producer_class=producer_class)

    async def write(self, records: Sequence[OutRecord]) -> None:
        writer = KafkaWriter(self.settings)
        try:
            await writer.start()
            await writer.write(records)
        finally:
            await writer.stop()

    async def read_all(self, topic: str) -> list[Record]:
        return await committed(self.settings.bootstrap_servers, topic)

    async def close(self) -> None:
        if self._admin is not None:
            await self._admin.close()


Harness = MemoryHarness | KafkaHarness
"""Makes topics, group members that deliver at least or (``exact_member``) exactly once, and reads what was
written, once every transaction has ended."""


async def committed(servers: str, topic: str) -> list[Record]:
    """All that stands in a topic, by a plain aiokafka consumer and not by the transport under test.

    A commit is answered before its markers are written, so the end is that of uncommitted readers.
    """
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
    uncommitted = AIOKafkaConsumer(bootstrap_servers=servers)
    await consumer.start()
    try:
        await uncommitted.start()
        await consumer._client._wait_on_metadata(topic)
        tps = [TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic) or ())]
        consumer.assign(tps)
        await consumer.seek_to_beginning(*tps)
        ends = await uncommitted.end_offsets(tps)
        found: list[Record] = []
        for tp in tps:
            while await consumer.position(tp) < ends[tp]:
                # What is left may be markers and aborted records, so never wait for one record.
                for record in (await consumer.getmany(tp, timeout_ms=20)).get(tp, ()):
                    found.append(  # noqa: PERF401
                        Record(
                            Partition(*tp),
                            record.offset,
                            record.key,
                            record.value,
                            tuple(record.headers),
                            record.timestamp,
                        )
                    )
        return found
    finally:
        await consumer.stop()
        await uncommitted.stop()


async def poll_until(
    members: Transport | Sequence[Transport], enough: Callable[[list[Record]], bool], max_records: int = 500
) -> list[Record]:
    """Poll all members until ``enough`` of what they returned; after a long wait, say what each is at."""
    found: list[Record] = []
    several = members if isinstance(members, Sequence) else [members]
    deadline = time.monotonic() + _PATIENCE_S
    while not enough(found):
        if time.monotonic() > deadline:
            states = "\n".join(_state_of(member) for member in several)
            raise AssertionError(f"not enough after {_PATIENCE_S:g} s: {len(found)} records\n{states}")
        for batch in await asyncio.gather(*(member.poll(50, max_records) for member in several)):
            found += batch
    return found


def _state_of(member: Transport) -> str:
    """What a member is at, and where all tasks stand: a wait that never ends can't be seen otherwise."""
    kept = {name: value for name, value in vars(member).items() if name not in {"_settings", "_listener"}}
    stacks = [f"  {task.get_name()}: {' > '.join(_frames(task.get_coro()))}" for task in asyncio.all_tasks()]
    return "\n".join((repr(kept), *stacks))


def _frames(awaited: Any) -> Iterator[str]:
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield f"{awaited.cr_code.co_qualname}:{frame.f_lineno}"
        awaited = awaited.cr_await


async def poll_while(members: Transport | Sequence[Transport], waiting: Callable[[], bool]) -> list[Record]:
    """Poll all members as long as ``waiting``, and return what came meanwhile."""
    return await poll_until(members, lambda _: not waiting())


async def fill(
    transport: Transport, topic: str, count: int, keys: int = 7, first: int = 0
) -> list[OutRecord]:
    """Write numbered records over some keys through a started transport."""
    records = [
        OutRecord(topic, f"key-{number % keys}".encode(), f"value-{number}".encode())
        for number in range(first, first + count)
    ]
    await transport.publish(records, {})
    return records
