"""What ``guardrail doctor`` asks Kafka: brokers, topics, the rights that a guard needs, the broker's clock.

Nothing is changed. Rights are shown by using them in ways that leave nothing behind: a fetch from beyond the
end, a write without records, a heartbeat of a member that nobody is, and a transactional id with which no
transaction is begun. Asking and telling are apart, so that what is told can be tested with any answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    ConcurrentTransactions,
    GroupAuthorizationFailedError,
    KafkaError,
    NoError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    for_code,
)

from consumers.kafka.asking import Asker, ErrorKind
from consumers.kafka.client import (
    client_options,
    close_consumer,
    closed_in_time,
    connect_admin,
    groupless_options,
    translated,
)
from consumers.kafka.groups import GroupWatch, OtherGroup
from consumers.settings import KafkaSettings
from consumers.topics import plan_topics
from guardrail.doctor import Check, State
from guardrail.render import counted

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_MINUTE_MS: Final = 60_000
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
_LOSES_TRANSACTIONS: Final = "4.3"
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


# ------------------------------------------------------------------------------------------- what is there


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


class Examiner:
    """Asks the brokers, as ``async with``. Raises TransportUnavailable and ConfigError where none answers."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._stack = AsyncExitStack()
        self._admin: AIOKafkaAdminClient
        self._asker: Asker
        self._leaders: dict[str, int] = {}
        """Of the first partition of each topic; -1 where it has none."""

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._admin = await connect_admin(self._settings)
            stack.push_async_callback(self._admin.close)
            self._asker = Asker(client_options(self._settings))
            stack.push_async_callback(self._close)
            try:
                async with asyncio.timeout(self._settings.connect_timeout_ms / 1000):
                    await self._asker.start()
            except (KafkaError, OSError, TimeoutError) as error:
                raise translated(error, f"asking {self._settings.bootstrap_servers}") from error
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _close(self) -> None:
        await closed_in_time("client", self._asker.close(), _CLOSE_S)

    async def cluster(self) -> ClusterSeen:
        """What is there. Raises TransportError."""
        names = self._settings.topics.names()
        try:
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                begun = time.monotonic()
                # Asked for by name, a topic that may not be seen is told from one that is missing; and none
                # is made by being asked for.
                answer = await self._asker.metadata(list(names))
                took_ms = (time.monotonic() - begun) * 1000
                described = {topic["topic"]: topic for topic in answer["topics"]}
                hidden = {
                    name
                    for name, topic in described.items()
                    if for_code(topic["error_code"]) is TopicAuthorizationFailedError
                }
                there = {
                    name: topic
                    for name, topic in described.items()
                    if name not in hidden and topic["partitions"]
                }
                brokers = [broker["node_id"] for broker in answer["brokers"]]
                self._leaders = {name: topic["partitions"][0]["leader"] for name, topic in there.items()}
                configs = await self._topic_configs(sorted(there))
                broker_configs = await self._broker_configs(brokers)
                release = release_of(await self._asker.metadata_version())
        except (KafkaError, OSError, TimeoutError) as error:
            raise translated(error, f"asking {self._settings.bootstrap_servers} for topics") from error
        topics = {name: _seen(topic, configs.get(name)) for name, topic in there.items()}
        return ClusterSeen(len(brokers), took_ms, topics, frozenset(hidden), broker_configs, release)

    async def _topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        asked = dict.fromkeys(_TOPIC_CONFIGS, "")
        return await self._configs(
            [ConfigResource(ConfigResourceType.TOPIC, name, configs=asked) for name in names]
        )

    async def _broker_configs(self, brokers: Sequence[int]) -> dict[str, str] | None:
        if not brokers:
            return None
        asked = dict.fromkeys(_BROKER_CONFIGS, "")
        name = str(min(brokers))
        found = await self._configs([ConfigResource(ConfigResourceType.BROKER, name, configs=asked)])
        return found.get(name)

    async def _configs(self, resources: Sequence[ConfigResource]) -> dict[str, dict[str, str]]:
        if not resources:
            return {}
        found: dict[str, dict[str, str]] = {}
        answers: Sequence[Any] = await self._admin.describe_configs(list(resources))
        for answer in answers:
            for code, _message, _kind, name, entries in answer.resources:
                if for_code(code) is NoError:
                    found[name] = {entry[0]: entry[1] for entry in entries}
        return found

    # --------------------------------------------------------------------------------------------- rights

    async def rights(self, seen: ClusterSeen) -> Rights:
        """Try what the guard does, harmlessly. Raises TransportError where the brokers don't answer."""
        topics, found = self._settings.topics, Rights()
        async with self._trying("the guard"):
            for name in (topics.responses, topics.sessions):
                await self._try_topic("Read", name, seen, found)
            await self._may_join(found)
            for name in (*topics.outputs(), topics.sessions):
                await self._try_topic("Write", name, seen, found)
            if self._settings.delivery_guarantee == "exactly_once":
                await self._may_begin(found)
        return found

    async def rights_of_proof(self, seen: ClusterSeen) -> Rights:
        """As ``rights``: what the proof does and the guard itself doesn't."""
        topics, found = self._settings.topics, Rights()
        async with self._trying("the proof"):
            await self._try_topic("Write", topics.responses, seen, found)
            await self._try_topic("Read", topics.deliveries, seen, found)
        return found

    @asynccontextmanager
    async def _trying(self, whom: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                yield
        except (KafkaError, OSError, TimeoutError) as error:
            raise translated(error, f"trying what {whom} may do") from error

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
            _sort(found, right, error is TopicAuthorizationFailedError)

    async def _may_join(self, found: Rights) -> None:
        group = self._settings.group_id
        right = Right("Read", "group", group)
        try:
            node = await _patiently(lambda: self._asker.group_coordinator(group))
        except GroupAuthorizationFailedError:
            found.denied.append(right)
            return
        # Of a member that is in no group: refused for that, or before that for want of the right.
        error = await self._asker.heartbeat_of_nobody(group, node)
        _sort(found, right, error is GroupAuthorizationFailedError)

    async def _may_begin(self, found: Rights) -> None:
        settings = self._settings
        prefix = f"{settings.transactional_id_prefix}*"
        transactional_id = f"{settings.transactional_id_prefix}-doctor"
        describe, write = (
            Right("Describe", "transactional-id", prefix),
            Right("Write", "transactional-id", prefix),
        )
        try:
            node = await _patiently(lambda: self._asker.transaction_coordinator(transactional_id))
        except TransactionalIdAuthorizationFailed:
            found.denied += [describe, write]
            return
        found.granted.append(describe)
        for _ in range(_ATTEMPTS):
            error = await self._asker.producer(transactional_id, settings.transaction_timeout_ms, node)
            if not _passes(error):
                break
            await asyncio.sleep(_AGAIN_S)
        if error is NoError or error is TransactionalIdAuthorizationFailed:
            _sort(found, write, error is not NoError)
        else:
            found.unknown[write] = error.__name__

    async def other_groups(self) -> list[OtherGroup]:
        """Other groups of guards that read the same topic. Raises TransportError."""
        try:
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                return await GroupWatch(self._settings, self._admin).look()
        except (KafkaError, OSError, TimeoutError) as error:
            raise translated(error, "asking for other groups of guards") from error

    # ---------------------------------------------------------------------------------------------- clock

    async def newest_append_s(self, topic: str, partitions: int) -> float | None:
        """The broker's time of the newest records of a topic, in seconds since 1970; None where it has none,
        or where producers set the time. Raises TransportError."""
        consumer = AIOKafkaConsumer(**groupless_options(self._settings))
        newest: float | None = None
        try:
            async with asyncio.timeout(self._settings.request_timeout_ms / 1000):
                await consumer.start()
                places = [TopicPartition(topic, number) for number in range(partitions)]
                consumer.assign(places)
                ends = await consumer.end_offsets(places)
                begins = await consumer.beginning_offsets(places)
                left = {place for place in places if begins[place] < ends[place]}
                for place in left:
                    consumer.seek(place, max(begins[place], ends[place] - _READ_BACK))
                while left:
                    for records in (await consumer.getmany(*left, timeout_ms=200)).values():
                        times = [record.timestamp / 1000 for record in records if record.timestamp_type == 1]
                        newest = max([*times, *([] if newest is None else [newest])], default=None)
                    left = {place for place in left if await consumer.position(place) < ends[place]}
        except (KafkaError, OSError, TimeoutError) as error:
            raise translated(error, f"reading {topic}") from error
        finally:
            await close_consumer(consumer, _CLOSE_S)
        return newest


def _passes(error: ErrorKind) -> bool:
    """A coordinator that is still loading, or the transaction of another doctor that is being aborted."""
    return error is ConcurrentTransactions or error.retriable


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


def _sort(found: Rights, right: Right, denied: bool) -> None:
    (found.denied if denied else found.granted).append(right)


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


# ------------------------------------------------------------------------------------------- what it means


def check_broker(settings: KafkaSettings, seen: ClusterSeen) -> list[Check]:
    """The brokers, and their settings that the guard depends on."""
    told = [
        f"{settings.bootstrap_servers} answers in {seen.took_ms:.0f} ms",
        counted(seen.brokers, "broker"),
        "Kafka of an unknown release" if seen.release is None else f"Kafka {seen.release}",
    ]
    checks = [Check("broker", "reachable", "ok", ", ".join(told))]
    if seen.release == _LOSES_TRANSACTIONS and seen.brokers == 1:
        checks.append(
            Check(
                "broker",
                "release",
                "warn",
                "Kafka 4.3.0 loses transactions where its only broker is stopped (docs/reliability.md)",
                "run 3 brokers, or another release, such as 4.2.0",
            )
        )
    if seen.configs is None:
        checks.append(
            Check(
                "broker",
                "settings",
                "skip",
                "this user may not see the brokers' settings",
                "grant DescribeConfigs on the cluster to have them checked",
            )
        )
        return checks
    return checks + list(_of_broker_configs(settings, seen, seen.configs))


def _of_broker_configs(
    settings: KafkaSettings, seen: ClusterSeen, configs: Mapping[str, str]
) -> Iterator[Check]:
    most = _number(configs, "transaction.max.timeout.ms")
    if most is not None and settings.delivery_guarantee == "exactly_once":
        wanted = settings.transaction_timeout_ms
        fits = wanted <= most
        yield Check(
            "broker",
            "transactions",
            "ok" if fits else "fail",
            f"kafka.client.transaction_timeout_ms {wanted:,} is {'within' if fits else 'over'} the broker's "
            f"transaction.max.timeout.ms {most:,}",
            "" if fits else "lower the first, or raise the second",
        )
    low = _number(configs, "group.min.session.timeout.ms")
    high = _number(configs, "group.max.session.timeout.ms")
    if low is not None and high is not None:
        wanted = settings.session_timeout_ms
        fits = low <= wanted <= high
        yield Check(
            "broker",
            "group",
            "ok" if fits else "fail",
            f"kafka.client.session_timeout_ms {wanted:,} is {'' if fits else 'not '}within the broker's "
            f"{low:,} to {high:,}",
            "" if fits else "set it within them, or change group.min/max.session.timeout.ms",
        )
    minutes = _number(configs, "offsets.retention.minutes")
    if minutes is not None:
        responses = seen.topics.get(settings.topics.responses)
        kept = None if responses is None else _number(responses.configs or {}, "retention.ms")
        short = kept is not None and (kept < 0 or minutes * _MINUTE_MS < kept)
        yield Check(
            "broker",
            "positions",
            "warn" if short else "ok",
            f"positions of a group that is away are kept {_span(minutes * _MINUTE_MS)}"
            + (f", less than {settings.topics.responses} is: it would then begin anew" if short else ""),
            "raise offsets.retention.minutes" if short else "",
        )


def _number(configs: Mapping[str, str], name: str) -> int | None:
    value = configs.get(name)
    try:
        return None if value is None else int(value)
    except ValueError:
        return None


def _span(milliseconds: int) -> str:
    if milliseconds < 0:
        return "for ever"
    for unit, size in (("days", _DAY_MS), ("hours", _HOUR_MS), ("minutes", _MINUTE_MS)):
        if milliseconds >= 2 * size or (milliseconds >= size and not milliseconds % size):
            return f"{milliseconds / size:.3g} {unit}".replace("1 days", "1 day").replace("1 hours", "1 hour")
    return f"{milliseconds:,} ms"


def check_topics(settings: KafkaSettings, seen: ClusterSeen) -> list[Check]:
    """Every topic: whether it is there, and whether it is as it should be."""
    topics = settings.topics
    checks: list[Check] = []
    missing = [name for name in topics.names() if name not in seen.topics and name not in seen.hidden]
    if missing:
        checks.append(Check("topics", "missing", "fail", ", ".join(missing), settings.create_command))
    for name in topics.names():
        topic = seen.topics.get(name)
        if name in seen.hidden:
            checks.append(Check("topics", name, "skip", "this user may not see it"))
        elif topic is not None:
            wrong = [*_of_partitions(settings, name, topic, seen), *_of_configs(settings, name, topic)]
            checks += wrong or [Check("topics", name, "ok", _as_it_is(topic))]
    single = [name for name in topics.names() if name in seen.topics and seen.topics[name].replicas == 1]
    if single:
        there = [name for name in topics.names() if name in seen.topics]
        which = "all topics have" if single == there else f"{', '.join(single)}:"
        checks.append(
            Check(
                "topics",
                "replicas",
                "warn",
                f"{which} 1 replica: with its broker, answers are lost",
                "make them with --replication-factor 3"
                if seen.brokers > 1
                else "run 3 brokers, and make them with --replication-factor 3",
            )
        )
    return checks


def _as_it_is(topic: TopicSeen) -> str:
    parts = [counted(topic.partitions, "partition"), counted(topic.replicas, "replica")]
    if topic.configs is None:
        parts.append("its settings may not be seen by this user (DescribeConfigs)")
    elif topic.configs.get("cleanup.policy") == "compact":
        parts.append("compacted")
    elif (kept := _number(topic.configs, "retention.ms")) is not None:
        parts.append(f"kept {_span(kept)}")
    return ", ".join(parts)


def _of_partitions(
    settings: KafkaSettings, name: str, topic: TopicSeen, seen: ClusterSeen
) -> Iterator[Check]:
    topics = settings.topics
    shared = seen.topics.get(topics.responses)
    if name == topics.sessions and shared is not None and topic.partitions != shared.partitions:
        yield Check(
            "topics",
            name,
            "fail",
            f"{counted(topic.partitions, 'partition')}, and {topics.responses} has {shared.partitions}: "
            "a guard would not find the answers in flight",
            f"stop the guards, delete {name}, then: {settings.create_command}",
        )
    if topic.leaderless:
        yield Check(
            "topics",
            name,
            "fail",
            f"{counted(topic.leaderless, 'partition')} of {topic.partitions} without a leader",
            "bring the brokers that hold it back",
        )
    elif topic.in_sync < topic.replicas:
        yield Check(
            "topics",
            name,
            "warn",
            f"a partition has {topic.in_sync} of {topic.replicas} replicas in sync",
            "look after the brokers that lag or are away",
        )


def _of_configs(settings: KafkaSettings, name: str, topic: TopicSeen) -> Iterator[Check]:
    if topic.configs is None:
        return
    configs = topic.configs

    def wrong(state: State, detail: str, setting: str, value: object) -> Check:
        remedy = (
            f"kafka-configs --bootstrap-server {settings.bootstrap_servers} --alter --entity-type topics "
            f"--entity-name {name} --add-config {setting}={value}"
        )
        return Check("topics", name, state, detail, remedy)

    plan = next(one for one in plan_topics(settings, 1, 1) if one.name == name).configs
    policy = configs.get("cleanup.policy")
    wanted = plan["cleanup.policy"]
    if policy is not None and policy != wanted:
        why = (
            "answers in flight would be deleted by age"
            if wanted == "compact"
            else "all events of an answer have one key, so all but the last would go"
        )
        yield wrong("fail", f"cleanup.policy={policy}: {why}", "cleanup.policy", wanted)
    synced = _number(configs, "min.insync.replicas")
    if synced is not None and topic.replicas > 1:
        if synced > topic.replicas:
            detail = f"min.insync.replicas={synced} of {topic.replicas} replicas: nothing can be written"
            yield wrong("fail", detail, "min.insync.replicas", topic.replicas - 1)
        elif synced == topic.replicas:
            detail = f"min.insync.replicas={synced} of {topic.replicas}: writing stops when one is away"
            yield wrong("warn", detail, "min.insync.replicas", topic.replicas - 1)
        elif synced == 1:
            detail = f"min.insync.replicas=1 of {topic.replicas}: what is acknowledged may be on one broker"
            yield wrong("warn", detail, "min.insync.replicas", topic.replicas - 1)
    yield from _of_sizes(settings, name, configs, plan, wrong)
    yield from _of_retention(settings, name, configs, plan, wrong)


def _of_sizes(
    settings: KafkaSettings, name: str, configs: Mapping[str, str], plan: Mapping[str, str], wrong: Any
) -> Iterator[Check]:
    largest = _number(configs, "max.message.bytes")
    asked = int(plan["max.message.bytes"])
    if largest is None:
        return
    if name == settings.topics.responses:
        if largest > asked:
            yield wrong(
                "warn",
                f"max.message.bytes={largest:,}: what is larger than {asked:,} does not fit the dead letters",
                "max.message.bytes",
                asked,
            )
        if configs.get("compression.type", "uncompressed") != "uncompressed":
            yield wrong(
                "warn",
                f"compression.type={configs['compression.type']}: a small record may unpack to more than the "
                "guard's memory",
                "compression.type",
                "uncompressed",
            )
    elif largest < settings.max_request_bytes:
        yield wrong(
            "fail",
            f"max.message.bytes={largest:,} is under kafka.client.max_request_size "
            f"{settings.max_request_bytes:,}: the guard would stop at a large record",
            "max.message.bytes",
            asked,
        )


def _of_retention(
    settings: KafkaSettings, name: str, configs: Mapping[str, str], plan: Mapping[str, str], wrong: Any
) -> Iterator[Check]:
    if name != settings.topics.responses:
        return
    kept = _number(configs, "retention.ms")
    if kept is not None and 0 <= kept < _DAY_MS:
        yield wrong(
            "warn",
            f"kept {_span(kept)}: an outage of the guard that is longer loses answers",
            "retention.ms",
            plan["retention.ms"],
        )
    if (size := _number(configs, "retention.bytes")) is not None and size >= 0:
        yield wrong(
            "warn",
            f"retention.bytes={size:,}: answers may be deleted before the guard has read them",
            "retention.bytes",
            -1,
        )


def check_groups(settings: KafkaSettings, others: Sequence[OtherGroup]) -> list[Check]:
    """Other groups of guards: one that writes to the same deliveries undoes what this one withholds."""
    topics = settings.topics
    if not others:
        told = f"none on {topics.responses}, of those that this user may describe"
        return [Check("enforcement", "other groups", "ok", told)]
    return [
        Check(
            "enforcement",
            f"group {each.group}",
            "fail",
            f"its guards write to {topics.deliveries} as well: readers show whichever group is first",
            "stop it, or give it outputs of its own (kafka.topics); GuardClient(group=…) obeys one alone",
        )
        if each.deliveries == topics.deliveries
        else Check(
            "enforcement",
            f"group {each.group}",
            "warn",
            f"its guards judge the same responses, and write to {each.deliveries}",
            "right where one of the two is for a comparison; else stop the one whose outputs nobody reads",
        )
        for each in others
    ]


def check_access(settings: KafkaSettings, rights: Rights) -> list[Check]:
    """What became of trying rights; each that is missing with the ACL to grant."""
    user = settings.sasl_username or "NAME"
    checks = []
    for right in rights.denied:
        name, prefixed = right.name.removesuffix("*"), right.name.endswith("*")
        checks.append(
            Check(
                "access",
                f"{right.kind} {right.name}",
                "fail",
                f"this user lacks {right.operation}",
                f"kafka-acls --bootstrap-server {settings.bootstrap_servers} --add --allow-principal "
                f"User:{user} --operation {right.operation} --{right.kind} {name}"
                + (" --resource-pattern-type prefixed" if prefixed else ""),
            )
        )
    kinds: dict[tuple[str, str], list[str]] = {}
    for right in rights.granted:
        kinds.setdefault((right.operation, right.kind), []).append(right.name)
    checks += [
        Check("access", f"{operation} {kind}", "ok", ", ".join(names))
        for (operation, kind), names in kinds.items()
    ]
    reasons: dict[str, list[str]] = {}
    for right, why in rights.unknown.items():
        reasons.setdefault(why, []).append(f"{right.operation} {right.name}")
    checks += [
        Check("access", "untried", "skip", f"{', '.join(which)}: {why}") for why, which in reasons.items()
    ]
    return checks
