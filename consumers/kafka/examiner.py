"""What ``guardrail doctor`` asks Kafka: brokers, topics, the rights that a guard needs, the broker's clock.

Nothing is changed. Rights are shown by using them in ways that leave nothing behind: a fetch from beyond the
end, a write without records, a heartbeat of a member that nobody is, and a transactional id with which no
transaction is begun. What it means is told by ``consumers.doctor``, which is tested with any answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.errors import (
    ConcurrentTransactions,
    GroupAuthorizationFailedError,
    KafkaError,
    NoError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    for_code,
)

from consumers.kafka.client import asking, client_options, closed_in_time, connected_admin, described_configs
from consumers.kafka.watch import GroupWatch, OtherGroup
from consumers.kafka.workarounds import Asker
from consumers.reading import Range, open_topic
from consumers.settings import KafkaSettings
from consumers.transport import LOG_APPEND_TIME

_ATTEMPTS: Final = 20
_AGAIN_S: Final = 0.1
_CLOSE_S: Final = 2.0
_READ_BACK: Final = 20
_RELEASES: Final = (
    (7, "3.3"),
    (8, "3.4"),
    (11, "3.5"),
    (14, "3.6"),
    (19, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (25, "4.0"),
    (27, "4.1"),
    (29, "4.2"),
    (30, "4.3"),
)
"""The highest metadata.version of each release of Kafka."""
_BROKER_CONFIGS: Final = (
    "transaction.max.timeout.ms",
    "offsets.retention.minutes",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
)
_TOPIC_CONFIGS: Final = (
    "cleanup.policy",
    "compression.type",
    "max.message.bytes",
    "message.timestamp.type",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
)


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """One topic as the brokers tell it. ``configs`` is None where this user may not see them."""

    partitions: int
    replicas: int
    in_sync: int
    """The fewest of any partition."""
    leaderless: int = 0
    configs: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The cluster as this user sees it: ``topics`` are those that it may describe, ``hidden`` the others that
    it may not. ``configs`` are a broker's, None where this user may not see them."""

    brokers: int
    took_ms: float
    topics: Mapping[str, TopicSeen]
    hidden: frozenset[str] = frozenset()
    configs: Mapping[str, str] | None = None
    release: str | None = None


Operation = Literal["Read", "Write", "Describe"]
Kind = Literal["topic", "group", "transactional-id"]


class Right(NamedTuple):
    """Something that the guard's user must be allowed to do; ``name`` with a * at its end is a prefix."""

    operation: Operation
    kind: Kind
    name: str


@dataclass(slots=True)
class Rights:
    """What became of trying. ``unknown`` could not be tried, and why."""

    granted: list[Right] = field(default_factory=list)
    denied: list[Right] = field(default_factory=list)
    unknown: dict[Right, str] = field(default_factory=dict)

    def add(self, right: Right, *, denied: bool) -> None:
        """What trying has shown."""
        (self.denied if denied else self.granted).append(right)


class Examiner:
    """Asks the brokers. Its calls raise TransportError; made by ``examining``."""

    def __init__(self, settings: KafkaSettings, admin: AIOKafkaAdminClient, asker: Asker) -> None:
        self._settings = settings
        self._admin = admin
        self._asker = asker
        self._leaders: dict[str, int] = {}
        """Of the first partition of each topic; -1 where it has none."""
        self._in_time = partial(asking, within_ms=settings.request_timeout_ms)

    async def cluster(self) -> ClusterSeen:
        """What is there."""
        names = self._settings.topics.names()
        async with self._in_time(f"asking {self._settings.bootstrap_servers} for topics"):
            begun = time.monotonic()
            # Asked for by name, a topic that may not be seen is told from one that is missing; and none is
            # made by being asked for.
            answer = await self._asker.metadata(list(names))
            took_ms = (time.monotonic() - begun) * 1000
            described = {topic["topic"]: topic for topic in answer["topics"]}
            hidden = frozenset(
                name
                for name, topic in described.items()
                if for_code(topic["error_code"]) is TopicAuthorizationFailedError
            )
            there = {name: one for name, one in described.items() if name not in hidden and one["partitions"]}
            self._leaders = {name: topic["partitions"][0]["leader"] for name, topic in there.items()}
            configs = await described_configs(
                self._admin, ConfigResourceType.TOPIC, dict.fromkeys(sorted(there), _TOPIC_CONFIGS)
            )
            brokers = [str(broker["node_id"]) for broker in answer["brokers"]]
            first = sorted(brokers, key=int)[:1]
            of_broker = await described_configs(
                self._admin, ConfigResourceType.BROKER, dict.fromkeys(first, _BROKER_CONFIGS)
            )
            release = release_of(await self._asker.metadata_version())
        topics = {name: _seen(topic, configs.get(name)) for name, topic in there.items()}
        return ClusterSeen(
            len(brokers), took_ms, topics, hidden, next(iter(of_broker.values()), None), release
        )

    async def rights(self, seen: ClusterSeen) -> Rights:
        """Try what the guard does, harmlessly."""
        topics, found = self._settings.topics, Rights()
        async with self._in_time("trying what the guard may do"):
            for name in (topics.responses, topics.sessions):
                await self._try_topic("Read", name, seen, found)
            await self._try_to_join(found)
            for name in (*topics.outputs(), topics.sessions):
                await self._try_topic("Write", name, seen, found)
            if self._settings.delivery_guarantee == "exactly_once":
                await self._try_to_begin(found)
        return found

    async def rights_of_proof(self, seen: ClusterSeen) -> Rights:
        """As ``rights``: what the proof does and the guard itself doesn't."""
        topics, found = self._settings.topics, Rights()
        async with self._in_time("trying what the proof may do"):
            await self._try_topic("Write", topics.responses, seen, found)
            await self._try_topic("Read", topics.deliveries, seen, found)
        return found

    async def _try_topic(self, operation: Operation, name: str, seen: ClusterSeen, found: Rights) -> None:
        right = Right(operation, "topic", name)
        if name in seen.hidden:
            found.denied.append(right)
        elif name not in seen.topics:
            found.unknown[right] = "there is no such topic"
        else:
            leader = self._leaders.get(name, -1)
            if operation == "Write":
                error = await self._asker.write_nothing(name)
            else:
                error = await self._asker.fetch_nothing(name, None if leader < 0 else leader)
            found.add(right, denied=error is TopicAuthorizationFailedError)

    async def _try_to_join(self, found: Rights) -> None:
        group = self._settings.group_id
        right = Right("Read", "group", group)
        try:
            node = await _patiently(lambda: self._asker.group_coordinator(group))
        except GroupAuthorizationFailedError:
            found.denied.append(right)
            return
        # Of a member that is in no group: refused for that, or before that for want of the right.
        error = await self._asker.heartbeat_of_nobody(group, node)
        found.add(right, denied=error is GroupAuthorizationFailedError)

    async def _try_to_begin(self, found: Rights) -> None:
        settings = self._settings
        name = f"{settings.transactional_id_prefix}*"
        describe, write = (
            Right("Describe", "transactional-id", name),
            Right("Write", "transactional-id", name),
        )
        transactional_id = f"{settings.transactional_id_prefix}-doctor"
        try:
            node = await _patiently(lambda: self._asker.transaction_coordinator(transactional_id))
        except TransactionalIdAuthorizationFailed:
            found.denied += [describe, write]
            return
        found.granted.append(describe)
        for _ in range(_ATTEMPTS):
            error = await self._asker.producer(transactional_id, settings.transaction_timeout_ms, node)
            # Not one that is still loading, nor one that aborts the transaction of another doctor.
            if error is not ConcurrentTransactions and not error.retriable:
                break
            await asyncio.sleep(_AGAIN_S)
        if error is NoError or error is TransactionalIdAuthorizationFailed:
            found.add(write, denied=error is not NoError)
        else:
            found.unknown[write] = error.__name__

    async def other_groups(self) -> list[OtherGroup]:
        """Other groups of guards that read the same topic."""
        async with self._in_time("asking for other groups of guards"):
            return await GroupWatch(self._settings, self._admin).look()

    async def newest_append_s(self, topic: str) -> float | None:
        """The broker's time of the newest records of a topic, in seconds since 1970; None where it has none,
        or where producers set the time."""
        async with open_topic(self._settings, topic, part=Range(last=_READ_BACK)) as reader:
            times = [
                record.timestamp_ms / 1000
                async for record in reader.until_end()
                if record.timestamp_type == LOG_APPEND_TIME
            ]
        return max(times, default=None)


@asynccontextmanager
async def examining(settings: KafkaSettings) -> AsyncIterator[Examiner]:
    """Connected. Raises TransportUnavailable and ConfigError where no broker answers."""
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(connected_admin(settings))
        asker = Asker(client_options(settings))
        stack.push_async_callback(lambda: closed_in_time("client", asker.close(), _CLOSE_S))
        async with asking(f"asking {settings.bootstrap_servers}", settings.connect_timeout_ms):
            await asker.start()
        yield Examiner(settings, admin, asker)


async def _patiently(ask: Callable[[], Awaitable[int]]) -> int:
    """A new cluster makes the topic behind a coordinator when it is first asked for one."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await ask()
        except KafkaError as error:
            if not error.retriable:
                raise
        await asyncio.sleep(_AGAIN_S)
    return await ask()


def release_of(metadata_version: int | None) -> str | None:
    """The release of Kafka, as "4.2", by the highest metadata.version that it holds. No answer names it."""
    if metadata_version is None:
        return None
    known = next((release for highest, release in _RELEASES if metadata_version <= highest), None)
    return known or f"later than {_RELEASES[-1][1]}"


def _seen(topic: Mapping[str, Any], configs: Mapping[str, str] | None) -> TopicSeen:
    partitions = topic["partitions"]
    return TopicSeen(
        len(partitions),
        min(len(one["replicas"]) for one in partitions),
        min(len(one["isr"]) for one in partitions),
        sum(one["leader"] < 0 for one in partitions),
        configs,
    )
