"""What the doctor tells of Kafka, for any answer of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from consumers.doctor import (
    ClusterSeen,
    Right,
    Rights,
    TopicSeen,
    _prove,
    check_access,
    check_broker,
    check_topics,
    release_of,
)
from consumers.settings import GuardSettings, KafkaSettings, load_settings
from consumers.topics import plan_topics
from guardrail.doctor import Check
from tests.support.kafka_settings import kafka_settings

SETTINGS = KafkaSettings()
TOPICS = SETTINGS.topics
BROKER = {
    "transaction.max.timeout.ms": "900000",
    "offsets.retention.minutes": "10080",
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
}


def cluster(changes: dict[str, dict[str, Any]] | None = None, **other: Any) -> ClusterSeen:
    """Three brokers with the topics as they are planned, but for ``changes`` in some of them."""
    topics = {
        plan.name: TopicSeen(12, 3, 3, configs={**plan.configs, "retention.bytes": "-1"})
        for plan in plan_topics(SETTINGS, 12, 3)
    }
    for name, change in (changes or {}).items():
        configs = {**(topics[name].configs or {}), **change.pop("configs", {})}
        topics[name] = replace(topics[name], **{"configs": configs, **change})
    return ClusterSeen(**{"brokers": 3, "took_ms": 4.2, "topics": topics, "configs": BROKER, **other})


def bad(checks: Iterable[Check]) -> list[Check]:
    return [check for check in checks if check.state != "ok"]


def only(checks: Iterable[Check]) -> Check:
    [check] = bad(checks)
    return check


async def test_a_guard_whose_producers_may_not_name_the_proof_is_not_proven() -> None:
    settings = GuardSettings.model_validate({"kafka": {"producers": {"routes": ["shop"]}}})
    nobody: Any = None
    (check,) = [each async for each in _prove(settings, cluster(), nobody, 1.0)]
    assert (check.state, "kafka.producers.routes" in check.remedy) == ("skip", True)


def test_topics_as_the_guard_makes_them_are_well() -> None:
    checks = list(check_topics(SETTINGS, cluster()))
    assert bad(checks) == []
    told = {check.about: check.detail for check in checks}
    assert told["rag.responses"] == "12 partitions, 3 replicas, kept 7 days"
    assert told["guardrail.sessions"] == "12 partitions, 3 replicas, compacted"


def test_the_remedy_for_missing_topics_makes_those_of_the_settings_file(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("kafka: {topics: {responses: nope.r}}", encoding="utf-8")
    settings = load_settings(path).kafka
    [missing] = [check for check in bad(check_topics(settings, cluster())) if check.about == "missing"]
    assert missing.detail == "nope.r"
    assert missing.remedy == f"guardrail topics create -c {path} --bootstrap-servers localhost:9092"


def test_missing_topics_are_told_together_and_hidden_ones_apart() -> None:
    seen = cluster()
    left = {
        name: topic for name, topic in seen.topics.items() if name not in {TOPICS.verdicts, TOPICS.flagged}
    }
    checks = check_topics(SETTINGS, replace(seen, topics=left, hidden=frozenset({TOPICS.flagged})))
    missing, hidden = bad(checks)
    assert (missing.state, missing.detail) == ("fail", "rag.verdicts")
    assert missing.remedy == "guardrail topics create --bootstrap-servers localhost:9092"
    assert (hidden.state, hidden.about) == ("skip", "rag.flagged")


@pytest.mark.parametrize(
    ("topic", "change", "state", "detail", "remedy"),
    [
        (TOPICS.sessions, {"partitions": 6}, "fail", "6 partitions, and rag.responses has 12", "delete"),
        (TOPICS.deliveries, {"leaderless": 2}, "fail", "2 partitions of 12 without a leader", "bring"),
        (TOPICS.verdicts, {"in_sync": 2}, "warn", "2 of 3 replicas in sync", "brokers that lag"),
        (
            TOPICS.sessions,
            {"configs": {"cleanup.policy": "delete"}},
            "fail",
            "answers in flight would be deleted by age",
            "cleanup.policy=compact",
        ),
        (
            TOPICS.deliveries,
            {"configs": {"cleanup.policy": "compact"}},
            "fail",
            "all but the last would go",
            "cleanup.policy=delete",
        ),
        (
            TOPICS.flagged,
            {"configs": {"min.insync.replicas": "1"}},
            "warn",
            "may be on one broker",
            "min.insync.replicas=2",
        ),
        (TOPICS.flagged, {"configs": {"min.insync.replicas": "3"}}, "warn", "writing stops", "=2"),
        (TOPICS.flagged, {"configs": {"min.insync.replicas": "4"}}, "fail", "nothing can be written", "=2"),
        (
            TOPICS.sessions,
            {"configs": {"max.message.bytes": "1048588"}},
            "fail",
            "1,048,588 is under kafka.client.max_request_size 8,388,608",
            "max.message.bytes=8454144",
        ),
        (
            TOPICS.responses,
            {"configs": {"max.message.bytes": "9000000"}},
            "warn",
            "does not fit the dead letters",
            "max.message.bytes=8323072",
        ),
        (
            TOPICS.responses,
            {"configs": {"compression.type": "producer"}},
            "warn",
            "may unpack to more",
            "compression.type=uncompressed",
        ),
        (
            TOPICS.responses,
            {"configs": {"retention.ms": "3600000"}},
            "warn",
            "kept 1 hour",
            "retention.ms=604800000",
        ),
        (
            TOPICS.responses,
            {"configs": {"retention.bytes": "1000"}},
            "warn",
            "before the guard has read",
            "retention.bytes=-1",
        ),
    ],
)
def test_what_a_topic_should_not_be_is_told_with_its_remedy(
    topic: str, change: dict[str, Any], state: str, detail: str, remedy: str
) -> None:
    check = only(check_topics(SETTINGS, cluster({topic: change})))
    assert (check.about, check.state) == (topic, state)
    assert detail in check.detail
    assert remedy in check.remedy


def test_single_replicas_are_told_once() -> None:
    seen = cluster({name: {"replicas": 1, "in_sync": 1} for name in TOPICS.names()}, brokers=1)
    check = only(check_topics(SETTINGS, seen))
    assert (check.state, check.detail) == (
        "warn",
        "all topics have 1 replica: with its broker, answers are lost",
    )
    assert "run 3 brokers" in check.remedy
    one = only(check_topics(SETTINGS, cluster({TOPICS.flagged: {"replicas": 1, "in_sync": 1}})))
    assert one.detail.startswith("rag.flagged: 1 replica")


def test_settings_that_may_not_be_seen_are_not_called_well() -> None:
    seen = cluster()
    blind = {name: replace(topic, configs=None) for name, topic in seen.topics.items()}
    checks = list(check_topics(SETTINGS, replace(seen, topics=blind)))
    assert all("may not be seen" in check.detail for check in checks)
    assert only(check_broker(SETTINGS, replace(seen, configs=None))).state == "skip"


@pytest.mark.parametrize(
    ("configs", "changes", "about", "state", "detail"),
    [
        ({"transaction.max.timeout.ms": "10000"}, {}, "transactions", "fail", "is over the broker's"),
        (
            {"group.max.session.timeout.ms": "6500"},
            {},
            "group",
            "fail",
            "7,000 is not within the broker's 6,000 to 6,500",
        ),
        ({"group.min.session.timeout.ms": "31000"}, {}, "group", "fail", "not within"),
        (
            {"offsets.retention.minutes": "60"},
            {},
            "positions",
            "warn",
            "kept 1 hour, less than rag.responses",
        ),
    ],
)
def test_settings_of_brokers_that_do_not_fit_are_told(
    configs: dict[str, str], changes: dict[str, Any], about: str, state: str, detail: str
) -> None:
    check = only(check_broker(kafka_settings(**changes), cluster(configs={**BROKER, **configs})))
    assert (check.about, check.state) == (about, state)
    assert detail in check.detail
    assert check.remedy


def test_brokers_that_fit_are_told_with_their_release() -> None:
    checks = list(check_broker(SETTINGS, cluster(release="4.2")))
    assert bad(checks) == []
    assert checks[0].detail == "localhost:9092 answers in 4 ms, 3 brokers, Kafka 4.2"


def test_the_release_that_loses_transactions_is_told_where_it_does() -> None:
    assert only(check_broker(SETTINGS, cluster(release="4.3", brokers=1))).about == "release"
    assert bad(check_broker(SETTINGS, cluster(release="4.3"))) == []


@pytest.mark.parametrize(
    ("version", "release"), [(29, "4.2"), (28, "4.2"), (30, "4.3"), (31, "later than 4.3"), (21, "3.9")]
)
def test_the_release_follows_from_the_metadata_version(version: int, release: str) -> None:
    assert release_of(version) == release


def test_each_missing_right_is_told_with_the_acl_to_grant() -> None:
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "guard",
        "sasl_password": "secret",
    }
    rights = Rights(
        granted=[Right("Read", "topic", "rag.responses"), Right("Read", "topic", "guardrail.sessions")],
        denied=[Right("Write", "topic", "rag.verdicts"), Right("Write", "transactional-id", "guardrail*")],
        unknown={Right("Write", "topic", "rag.flagged"): "it takes a transaction to try"},
    )
    topic, transactions, granted, untried = check_access(kafka_settings(**login), rights)
    acls = "kafka-acls --bootstrap-server localhost:9092 --add --allow-principal User:guard --operation Write"
    assert (topic.state, topic.remedy) == ("fail", f"{acls} --topic rag.verdicts")
    assert transactions.remedy == f"{acls} --transactional-id guardrail --resource-pattern-type prefixed"
    assert (granted.state, granted.detail) == ("ok", "rag.responses, guardrail.sessions")
    assert (untried.state, untried.detail) == ("skip", "Write rag.flagged: it takes a transaction to try")
