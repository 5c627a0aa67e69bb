"""Creates the topics, with settings that fit the purpose of each.

It is safe to run again: existing topics are compared and reported, never changed. Partitions are not added to
an existing topic either, because later deltas of a response would then go to another partition than its
first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.errors import (
    InvalidReplicationFactorError,
    NoError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from consumers.kafka.client import asking, connected_admin, described_configs
from consumers.settings import MEBIBYTE, KafkaSettings
from guardrail.errors import ConfigError, TransportError, TransportUnavailable
from guardrail.render import counted

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_QUARTER_MS: Final = _HOUR_MS // 4
_SEGMENT_BYTES: Final = 16 * MEBIBYTE
_FRAMING_BYTES: Final = 65_536
"""Room for key, headers and batch framing above the largest value."""
_POLL_S: Final = 0.1

Outcome = Literal["created", "exists", "differs"]


class TopicReport(NamedTuple):
    """The result for one topic. ``detail`` says what differs, or how a new one was created."""

    name: str
    outcome: Outcome
    detail: str


class TopicPlan(NamedTuple):
    """The intended configuration of a topic; ``follows`` names another that it gets the partitions of."""

    name: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]
    follows: str = ""

    @property
    def width(self) -> str:
        """Why it has so many partitions."""
        return f"as many as {self.follows} has" if self.follows else "as asked"


def plan_topics(settings: KafkaSettings, partitions: int, replication_factor: int) -> list[TopicPlan]:
    """The intended configuration of every topic in ``settings``.

    One replica may be down without stopping the writers, which wait for all in-sync replicas.
    """
    topics = settings.topics
    common = {
        "min.insync.replicas": str(max(1, replication_factor - 1)),
        "max.message.bytes": str(settings.max_request_bytes + _FRAMING_BYTES),
        "compression.type": "producer",
    }

    def kept(days: int) -> dict[str, str]:
        return {**common, "cleanup.policy": "delete", "retention.ms": str(days * _DAY_MS)}

    compacted = {
        **common,
        "cleanup.policy": "compact",
        # Restoring reads the whole partition, and the segment being written is never compacted: keep that
        # segment small.
        "segment.bytes": str(max(_SEGMENT_BYTES, 2 * (settings.max_request_bytes + _FRAMING_BYTES))),
        "segment.ms": str(_QUARTER_MS),
        "min.cleanable.dirty.ratio": "0.1",
        "max.compaction.lag.ms": str(2 * _QUARTER_MS),
        # Tombstones are most of what is written here. They only have to outlast one reading.
        "delete.retention.ms": str(max(_QUARTER_MS, 2 * settings.recovery_timeout_ms)),
    }
    # Smaller than the others, so that every record fits into the dead letters together with the reasons.
    # Kafka applies the limit to what it stores, and a client unpacks a whole batch: stored compressed, a few
    # kilobytes of zeros could exceed the guard's memory. Uncompressed, the limit applies to the contents.
    input_limits = {
        "max.message.bytes": str(settings.max_request_bytes - _FRAMING_BYTES),
        "compression.type": "uncompressed",
    }
    configs = {
        topics.responses: {**kept(days=7), **input_limits},
        topics.deliveries: kept(days=3),
        topics.verdicts: kept(days=14),
        topics.flagged: kept(days=30),
        topics.dead_letters: kept(days=90),
        topics.sessions: compacted,
        # Not compacted: a response may have many labels. They cost people's time, so they are kept long.
        topics.labels: kept(days=730),
    }
    return [TopicPlan(name, partitions, replication_factor, config) for name, config in configs.items()]


async def create_topics(
    settings: KafkaSettings, partitions: int, replication_factor: int
) -> list[TopicReport]:
    """Create the missing topics and report all, in the order of ``Topics.names``, the labels last.

    The sessions topic always gets as many partitions as the input, so that the guard that reads a response
    finds its state. Raises TransportUnavailable, ConfigError, TransportError.
    """
    async with (
        connected_admin(settings) as admin,
        asking(f"making topics at {settings.bootstrap_servers}", settings.request_timeout_ms),
    ):
        existing = await _describe(admin)
        plans = plan_topics(settings, partitions, replication_factor)
        shared = existing.get(settings.topics.responses)
        if shared is not None and shared.partitions != partitions:
            plans = [
                plan._replace(partitions=shared.partitions, follows=settings.topics.responses)
                if plan.name == settings.topics.sessions
                else plan
                for plan in plans
            ]
        created = await _create(admin, [plan for plan in plans if plan.name not in existing])
        configs = await described_configs(
            admin,
            ConfigResourceType.TOPIC,
            {plan.name: plan.configs for plan in plans if plan.name in existing},
        )
        await _until_known(admin, created)
    return [
        _compare(plan, existing[plan.name], configs.get(plan.name, {}))
        if plan.name in existing
        else _made(plan, created)
        for plan in plans
    ]


class _Existing(NamedTuple):
    partitions: int
    replication_factor: int


async def _describe(admin: AIOKafkaAdminClient) -> dict[str, _Existing]:
    return {
        topic["topic"]: _Existing(
            len(topic["partitions"]), min((len(one["replicas"]) for one in topic["partitions"]), default=0)
        )
        for topic in await admin.describe_topics()
    }


async def _create(admin: AIOKafkaAdminClient, plans: Sequence[TopicPlan]) -> set[str]:
    """Names of the topics created now; not of one that somebody else created at the same moment."""
    if not plans:
        return set()
    wanted = {plan.name: plan for plan in plans}
    answer: Any = await admin.create_topics(
        [
            NewTopic(plan.name, plan.partitions, plan.replication_factor, topic_configs=plan.configs)
            for plan in plans
        ]
    )
    created = set()
    for name, code, message in answer.topic_errors:
        kind = for_code(code)
        if kind is NoError:
            created.add(name)
        elif kind is InvalidReplicationFactorError:
            raise ConfigError(
                f"topic {name} can't have {wanted[name].replication_factor} replicas: {message}; "
                "lower --replication-factor to the number of brokers"
            )
        elif kind is TopicAuthorizationFailedError:
            raise TransportUnavailable(
                f"this user may not create topic {name}; grant it, or have it made for you"
            )
        elif kind is not TopicAlreadyExistsError:
            raise TransportError(f"topic {name} could not be created: {kind.__name__}: {message}")
    return created


async def _until_known(admin: AIOKafkaAdminClient, created: set[str]) -> None:
    """Brokers learn about a new topic a moment later; the next command should find it."""
    while True:
        known = {name for name, topic in (await _describe(admin)).items() if topic.partitions}
        if created <= known:
            return
        await asyncio.sleep(_POLL_S)


def _made(plan: TopicPlan, created: set[str]) -> TopicReport:
    if plan.name not in created:
        return TopicReport(plan.name, "exists", "made by someone else in this moment")
    compacted = plan.configs["cleanup.policy"] == "compact"
    kind = "compacted" if compacted else f"kept {int(plan.configs['retention.ms']) // _DAY_MS} days"
    width = f", {plan.width}" if plan.follows else ""
    replicas = counted(plan.replication_factor, "replica")
    detail = f"{counted(plan.partitions, 'partition')}, {replicas}, {kind}{width}"
    return TopicReport(plan.name, "created", detail)


def _compare(plan: TopicPlan, existing: _Existing, configs: Mapping[str, Any]) -> TopicReport:
    differences = []
    if existing.partitions != plan.partitions:
        differences.append(f"{counted(existing.partitions, 'partition')} instead of {plan.partitions}")
    if existing.replication_factor != plan.replication_factor:
        differences.append(
            f"{counted(existing.replication_factor, 'replica')} instead of {plan.replication_factor}"
        )
    differences += [
        f"{name}={configs[name]} instead of {value}"
        for name, value in plan.configs.items()
        if name in configs and configs[name] != value
    ]
    if differences:
        return TopicReport(plan.name, "differs", ", ".join(differences))
    return TopicReport(plan.name, "exists", f"{counted(existing.partitions, 'partition')}, {plan.width}")
