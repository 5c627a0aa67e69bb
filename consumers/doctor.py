"""What ``guardrail doctor`` finds: all that it finds without Kafka, and then brokers, topics, rights, other
guards, and the guard that runs; and how it asks Kafka.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
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

from consumers.gateway.settings import NOT_INSTALLED
from consumers.kafka.client import asking, client_options, closed_in_time, connected_admin, described_configs
from consumers.kafka.watch import GroupWatch, OtherGroup
from consumers.kafka.workarounds import Asker
from consumers.reading import Range, open_topic
from consumers.settings import GuardSettings, KafkaSettings
from consumers.topics import plan_topics
from consumers.transport import LOG_APPEND_TIME
from guardrail.client import GuardClient
from guardrail.doctor import (
    PROOF_ROUTE,
    Area,
    Check,
    Machine,
    State,
    check_clock,
    check_judges,
    check_machine,
    check_policies,
    check_settings,
    endpoint_time_s,
    prove,
)
from guardrail.errors import ConfigError, GuardrailError
from guardrail.judges.factory import all_kinds
from guardrail.render import counted

_BROKER: Final = Area("broker")
_TOPICS: Final = Area("topics")
_ACCESS: Final = Area("access")
_ENFORCEMENT: Final = Area("enforcement")
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_LOSES_TRANSACTIONS: Final = "4.3"
_THE_GUARD: Final = "the guard"


async def examine(settings: GuardSettings, prove_within_s: float | None) -> AsyncIterator[Check]:
    """Every check, as it becomes known; the guard may say nothing for ``prove_within_s``, None: no proof."""
    notes = (*settings.flagged.notes(), *settings.serve.notes())
    for check in (*check_settings(settings, notes), *check_policies(settings)):
        yield check
    kafka = _of_kafka(settings, prove_within_s) if needs_kafka(settings) else _without_kafka(settings)
    gateway = [_of_gateway(settings, prove_within_s)] if _serves(settings) else []
    for checks in (check_judges(settings), *gateway, kafka):
        async for check in checks:
            yield check


def needs_kafka(settings: GuardSettings) -> bool:
    """Whether Kafka is looked at: a gateway needs it only where it is to write to it."""
    return not _serves(settings) or settings.serve.publish or "kafka" in settings.model_fields_set


def _serves(settings: GuardSettings) -> bool:
    return "serve" in settings.model_fields_set


async def _of_gateway(settings: GuardSettings, prove_within_s: float | None) -> AsyncIterator[Check]:
    try:
        from consumers.gateway import examine_gateway
    except ImportError:
        yield Area("gateway").error("serve", ConfigError(NOT_INSTALLED))
        return
    async for check in examine_gateway(settings, prove_within_s):
        yield check


async def _without_kafka(settings: GuardSettings) -> AsyncIterator[Check]:
    yield _BROKER.skip("reachable", "there is no section kafka: the gateway does without")
    for check in (*check_machine(settings, Machine.here()), await _clock(settings)):
        if check.state != "skip":
            yield check


async def _of_kafka(settings: GuardSettings, prove_within_s: float | None) -> AsyncIterator[Check]:
    """Everything that Kafka tells; the machine's limits and its clock too, which it tells more of."""
    kafka = settings.kafka
    seen: ClusterSeen | None = None
    begun_s = time.time()
    try:
        async with examining(kafka) as examiner:
            seen = await examiner.cluster()
            for check in (*check_broker(kafka, seen), *check_topics(kafka, seen)):
                yield check
            for check in check_access(kafka, await examiner.rights(seen)):
                yield check
            shared = seen.topics.get(kafka.topics.responses)
            partitions = None if shared is None else shared.partitions
            for check in check_machine(settings, Machine.here(), partitions=partitions, brokers=seen.brokers):
                yield check
            for check in check_groups(kafka, await examiner.other_groups()):
                yield check
            told_s, answered = None, False
            async for check in _prove(settings, seen, examiner, prove_within_s):
                answered |= check.state in {"ok", "warn"}
                yield check
            # The broker's own time is on the answers of the proof, where the topic is set to that.
            stamps = {} if shared is None else shared.configs or {}
            if answered and stamps.get("message.timestamp.type") == "LogAppendTime":
                told_s = await examiner.newest_append_s(kafka.topics.responses)
            if told_s is None:
                yield await _clock(settings)
            else:
                yield check_clock(told_s, begun_s, time.time(), "the broker")
    except GuardrailError as error:
        yield _BROKER.error("reachable" if seen is None else "answers", error)
        if seen is None:
            for check in check_machine(settings, Machine.here()):
                yield check
            alone = (
                "" if _serves(settings) else "; for guardrail serve alone name a file with a section serve"
            )
            yield _ENFORCEMENT.skip(_THE_GUARD, f"not proven: Kafka can't be reached{alone}")
            yield await _clock(settings)


async def _prove(
    settings: GuardSettings, seen: ClusterSeen, examiner: Examiner, within_s: float | None
) -> AsyncIterator[Check]:
    if within_s is None:
        yield _ENFORCEMENT.skip(_THE_GUARD, "not proven: --no-prove was given")
        return
    kafka, held = settings.kafka, settings.kafka.producers
    if held is not None and PROOF_ROUTE not in held.routes:
        told = f"not proven: producers may not name the route {PROOF_ROUTE}"
        yield _ENFORCEMENT.skip(_THE_GUARD, told, "name it in kafka.producers.routes, and give it a policy")
        return
    policy = settings.router().choose(PROOF_ROUTE, None if held is None else held.tenant)
    rights = await examiner.rights_of_proof(seen)
    if rights.denied or rights.unknown:
        for check in check_access(kafka, Rights(denied=rights.denied)):
            yield check
        why = "this user lacks a right that the proof needs" if rights.denied else "topics are missing"
        yield _ENFORCEMENT.skip(_THE_GUARD, f"not proven: {why}")
        return
    try:
        async with GuardClient(
            responses_topic=kafka.topics.responses,
            deliveries_topic=kafka.topics.deliveries,
            group=kafka.group_id,
            connect_timeout_s=kafka.connect_timeout_ms / 1000,
            drain_timeout_s=0.0,
            **client_options(kafka),
        ) as client:
            for check in await prove(client, policy, within_s=within_s):
                if check.about == _THE_GUARD and settings.serve.publish:  # Kafka may be for the gateway alone
                    told = f"{check.detail}, as it should be where there is but the gateway"
                    yield _ENFORCEMENT.warn(_THE_GUARD, told, check.remedy)
                else:
                    yield check
    except GuardrailError as error:
        yield _ENFORCEMENT.error(_THE_GUARD, error)


async def _clock(settings: GuardSettings) -> Check:
    """By the LLM judge's endpoint, where there is one."""
    begun_s, told_s = time.time(), None
    if any("llm" in each.kinds() for each in all_kinds(settings.judge, settings.policies.values())):
        told_s = await endpoint_time_s(settings.judge.llm.base_url)
    return check_clock(told_s, begun_s, time.time(), "the judge's endpoint", exact_to_s=1.0)


def check_broker(settings: KafkaSettings, seen: ClusterSeen) -> Iterator[Check]:
    """The brokers, and their settings that the guard depends on."""
    release = "Kafka of an unknown release" if seen.release is None else f"Kafka {seen.release}"
    answers = f"{settings.bootstrap_servers} answers in {seen.took_ms:.0f} ms"
    yield _BROKER.ok("reachable", f"{answers}, {counted(seen.brokers, 'broker')}, {release}")
    if seen.release == _LOSES_TRANSACTIONS and seen.brokers == 1:
        yield _BROKER.warn(
            "release",
            "Kafka 4.3.0 loses transactions where its only broker is stopped (docs/reliability.md)",
            "run 3 brokers, or another release, such as 4.2.0",
        )
    if seen.configs is None:
        remedy = "grant DescribeConfigs on the cluster to have them checked"
        yield _BROKER.skip("settings", "this user may not see the brokers' settings", remedy)
        return
    most = _number(seen.configs, "transaction.max.timeout.ms")
    if most is not None and settings.delivery_guarantee == "exactly_once":
        wanted = settings.transaction_timeout_ms
        fits = wanted <= most
        yield _BROKER.fits(
            fits,
            "transactions",
            f"kafka.client.transaction_timeout_ms {wanted:,} is {'within' if fits else 'over'} the broker's "
            f"transaction.max.timeout.ms {most:,}",
            "lower the first, or raise the second",
        )
    low = _number(seen.configs, "group.min.session.timeout.ms")
    high = _number(seen.configs, "group.max.session.timeout.ms")
    if low is not None and high is not None:
        wanted = settings.session_timeout_ms
        fits = low <= wanted <= high
        yield _BROKER.fits(
            fits,
            "group",
            f"kafka.client.session_timeout_ms {wanted:,} is {'' if fits else 'not '}within the broker's "
            f"{low:,} to {high:,}",
            "set it within them, or change group.min/max.session.timeout.ms",
        )
    minutes = _number(seen.configs, "offsets.retention.minutes")
    if minutes is not None:
        responses = seen.topics.get(settings.topics.responses)
        kept = None if responses is None else _number(responses.configs or {}, "retention.ms")
        told = f"positions of a group that is away are kept {_span(minutes * _MINUTE_MS)}"
        if kept is not None and (kept < 0 or minutes * _MINUTE_MS < kept):
            told += f", less than {settings.topics.responses} is: it would then begin anew"
            yield _BROKER.warn("positions", told, "raise offsets.retention.minutes")
        else:
            yield _BROKER.ok("positions", told)


def check_topics(settings: KafkaSettings, seen: ClusterSeen) -> Iterator[Check]:
    """Every topic: whether it is there, and whether it is as it should be."""
    names = settings.topics.names()
    there = [name for name in names if name in seen.topics]
    missing = [name for name in names if name not in seen.topics and name not in seen.hidden]
    if missing:
        yield _TOPICS.fail("missing", ", ".join(missing), settings.create_command)
    for name in names:
        topic = seen.topics.get(name)
        if name in seen.hidden:
            yield _TOPICS.skip(name, "this user may not see it")
        elif topic is not None:
            wrong = [*_of_partitions(settings, name, topic, seen), *_of_configs(settings, name, topic)]
            yield from wrong or [_TOPICS.ok(name, _as_it_is(topic))]
    single = [name for name in there if seen.topics[name].replicas == 1]
    if single:
        which = "all topics have" if single == there else f"{', '.join(single)}:"
        yield _TOPICS.warn(
            "replicas",
            f"{which} 1 replica: with its broker, answers are lost",
            ("" if seen.brokers > 1 else "run 3 brokers, and ") + "make them with --replication-factor 3",
        )


def _as_it_is(topic: TopicSeen) -> str:
    size = f"{counted(topic.partitions, 'partition')}, {counted(topic.replicas, 'replica')}"
    if topic.configs is None:
        return f"{size}, its settings may not be seen by this user (DescribeConfigs)"
    if topic.configs.get("cleanup.policy") == "compact":
        return f"{size}, compacted"
    kept = _number(topic.configs, "retention.ms")
    return size if kept is None else f"{size}, kept {_span(kept)}"


def _of_partitions(
    settings: KafkaSettings, name: str, topic: TopicSeen, seen: ClusterSeen
) -> Iterator[Check]:
    topics = settings.topics
    shared = seen.topics.get(topics.responses)
    if name == topics.sessions and shared is not None and topic.partitions != shared.partitions:
        yield _TOPICS.fail(
            name,
            f"{counted(topic.partitions, 'partition')}, and {topics.responses} has {shared.partitions}: "
            "a guard would not find the answers in flight",
            f"stop the guards, delete {name}, then: {settings.create_command}",
        )
    if topic.leaderless:
        without = f"{counted(topic.leaderless, 'partition')} of {topic.partitions} without a leader"
        yield _TOPICS.fail(name, without, "bring the brokers that hold it back")
    elif topic.in_sync < topic.replicas:
        lagging = f"a partition has {topic.in_sync} of {topic.replicas} replicas in sync"
        yield _TOPICS.warn(name, lagging, "look after the brokers that lag or are away")


def _of_configs(settings: KafkaSettings, name: str, topic: TopicSeen) -> Iterator[Check]:
    for state, detail, setting, value in _wrong_configs(settings, name, topic, topic.configs or {}):
        remedy = (
            f"kafka-configs --bootstrap-server {settings.bootstrap_servers} --alter --entity-type topics "
            f"--entity-name {name} --add-config {setting}={value}"
        )
        yield Check("topics", name, state, detail, remedy)


def _wrong_configs(
    settings: KafkaSettings, name: str, topic: TopicSeen, configs: Mapping[str, str]
) -> Iterator[tuple[State, str, str, object]]:
    """How bad it is and what, the setting to change and its value."""
    plan = next(one for one in plan_topics(settings, 1, 1) if one.name == name).configs
    is_input = name == settings.topics.responses

    setting, wanted = "cleanup.policy", plan["cleanup.policy"]
    policy = configs.get(setting, wanted)
    if policy != wanted:
        lost = (
            "answers in flight would be deleted by age"
            if wanted == "compact"
            else "all events of an answer have one key, so all but the last would go"
        )
        yield "fail", f"{setting}={policy}: {lost}", setting, wanted

    setting, synced, replicas = "min.insync.replicas", _number(configs, "min.insync.replicas"), topic.replicas
    if synced is not None and replicas > 1:
        of = f"{setting}={synced} of {replicas}"
        if synced > replicas:
            yield "fail", f"{of} replicas: nothing can be written", setting, replicas - 1
        elif synced == replicas:
            yield "warn", f"{of}: writing stops when one is away", setting, replicas - 1
        elif synced == 1:
            yield "warn", f"{of}: what is acknowledged may be on one broker", setting, replicas - 1

    setting, largest, asked = (
        "max.message.bytes",
        _number(configs, "max.message.bytes"),
        int(plan["max.message.bytes"]),
    )
    if largest is not None and is_input and largest > asked:
        beyond = f"what is larger than {asked:,} does not fit the dead letters"
        yield "warn", f"{setting}={largest:,}: {beyond}", setting, asked
    elif largest is not None and not is_input and largest < settings.max_request_bytes:
        under = f"is under kafka.client.max_request_size {settings.max_request_bytes:,}"
        yield "fail", f"{setting}={largest:,} {under}: the guard would stop at a large record", setting, asked

    if not is_input:
        return
    setting, compression = "compression.type", configs.get("compression.type", "uncompressed")
    if compression != "uncompressed":
        unpacks = "a small record may unpack to more than the guard's memory"
        yield "warn", f"{setting}={compression}: {unpacks}", setting, "uncompressed"
    kept = _number(configs, "retention.ms")
    if kept is not None and 0 <= kept < _DAY_MS:
        lost = "an outage of the guard that is longer loses answers"
        yield "warn", f"kept {_span(kept)}: {lost}", "retention.ms", plan["retention.ms"]
    size = _number(configs, "retention.bytes")
    if size is not None and size >= 0:
        lost = "answers may be deleted before the guard has read them"
        yield "warn", f"retention.bytes={size:,}: {lost}", "retention.bytes", -1


def _number(configs: Mapping[str, str], name: str) -> int | None:
    try:
        return int(configs[name])
    except (KeyError, ValueError):
        return None


def _span(milliseconds: int) -> str:
    if milliseconds < 0:
        return "for ever"
    for unit, size in (("days", _DAY_MS), ("hours", _HOUR_MS), ("minutes", _MINUTE_MS)):
        if milliseconds >= 2 * size or (milliseconds >= size and not milliseconds % size):
            return f"{milliseconds / size:.3g} {unit}".replace("1 days", "1 day").replace("1 hours", "1 hour")
    return f"{milliseconds:,} ms"


def check_groups(settings: KafkaSettings, others: Sequence[OtherGroup]) -> Iterator[Check]:
    """Other groups of guards: one that writes to the same deliveries undoes what this one withholds."""
    topics = settings.topics
    if not others:
        told = f"none on {topics.responses}, of those that this user may describe"
        yield _ENFORCEMENT.ok("other groups", told)
    for each in others:
        if each.deliveries == topics.deliveries:
            bad = _ENFORCEMENT.fail
            told = f"its guards write to {topics.deliveries} as well: readers show whichever group is first"
            remedy = (
                "stop it, or give it outputs of its own (kafka.topics); GuardClient(group=…) obeys one alone"
            )
        else:
            bad = _ENFORCEMENT.warn
            told = f"its guards judge the same responses, and write to {each.deliveries}"
            remedy = (
                "right where one of the two is for a comparison; else stop the one whose outputs nobody reads"
            )
        yield bad(f"group {each.group}", told, remedy)


def check_access(settings: KafkaSettings, rights: Rights) -> Iterator[Check]:
    """What became of trying rights; each that is missing with the ACL to grant."""
    grant = (
        f"kafka-acls --bootstrap-server {settings.bootstrap_servers} --add --allow-principal "
        f"User:{settings.sasl_username or 'NAME'}"
    )
    for right in rights.denied:
        name, prefixed = right.name.removesuffix("*"), right.name.endswith("*")
        acl = f"{grant} --operation {right.operation} --{right.kind} {name}"
        acl += " --resource-pattern-type prefixed" if prefixed else ""
        yield _ACCESS.fail(f"{right.kind} {right.name}", f"this user lacks {right.operation}", acl)
    for what, names in _by(rights.granted, lambda right: f"{right.operation} {right.kind}").items():
        yield _ACCESS.ok(what, ", ".join(right.name for right in names))
    for why, which in _by(rights.unknown, rights.unknown.__getitem__).items():
        yield _ACCESS.skip("untried", f"{', '.join(f'{one.operation} {one.name}' for one in which)}: {why}")


def _by(rights: Iterable[Right], key: Callable[[Right], str]) -> dict[str, list[Right]]:
    found: dict[str, list[Right]] = {}
    for right in rights:
        found.setdefault(key(right), []).append(right)
    return found


# -------------------------------------------------------------------------------------------- asking Kafka
#
# Nothing is changed. Rights are shown by using them in ways that leave nothing behind: a fetch from beyond
# the end, a write without records, a heartbeat of a member that nobody is, and a transactional id with which
# no transaction is begun. What it means is told above, which is tested with any answer.

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
