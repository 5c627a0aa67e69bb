"""What ``guardrail doctor`` finds: all that it finds without Kafka, and then brokers, topics, rights, other
guards, and the guard that runs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from consumers.gateway.settings import NOT_INSTALLED
from consumers.kafka.client import client_options
from consumers.kafka.examiner import ClusterSeen, Examiner, Right, Rights, TopicSeen, examining
from consumers.kafka.watch import OtherGroup
from consumers.settings import GuardSettings, KafkaSettings
from consumers.topics import plan_topics
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
