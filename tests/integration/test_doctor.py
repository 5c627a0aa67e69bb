"""``guardrail doctor`` as operators run it: a process, a real Kafka, a guard that runs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.admin import CreateAclsRequest

from consumers.cases import CaseFilter, CaseRow, open_store
from consumers.doctor import Right, check_access, examining
from consumers.flagged import FlaggedSubscriber
from consumers.settings import KafkaSettings
from consumers.topics import create_topics
from guardrail.client import GuardClient
from guardrail.doctor import prove
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from guardrail.telemetry import REGISTRY
from guardrail.testing import ScriptedJudge
from tests.conftest import own_broker
from tests.support.guards import until
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_guards import KafkaSide, in_a_file, kafka_guard, kafka_side, own_settings
from tests.support.kafka_settings import changed

pytestmark = pytest.mark.kafka

JUDGE = {"$95": "CONTRADICTED"}
BLOCKING = Policy(rules=["verdict CONTRADICTED: block"])


class Told(NamedTuple):
    """What the command said, and its status."""

    status: int
    checks: dict[tuple[str, str], dict[str, str]]

    def states(self, area: str) -> set[str]:
        return {check["state"] for (place, _), check in self.checks.items() if place == area}


async def doctor(settings: KafkaSettings, folder: Path, *options: str, **sections: Any) -> Told:
    kafka = in_a_file(settings)
    if settings.sasl_password is not None:
        kafka |= {
            "security_protocol": settings.security_protocol,
            "sasl_username": settings.sasl_username,
            "sasl_password": settings.sasl_password.read("kafka.sasl_password", "password"),
        }
    path = folder / "guardrail.yaml"
    path.write_text(yaml.safe_dump({"kafka": kafka, **sections}), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from guardrail.cli import main; main()"),
        *("doctor", "--config", str(path), "--json", *options),
        env={name: value for name, value in os.environ.items() if not name.startswith("GUARDRAIL_")},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    checks = json.loads(out)["checks"]
    assert process.returncode is not None
    return Told(process.returncode, {(check["area"], check["about"]): check for check in checks})


async def stored_cases(settings: KafkaSettings, folder: Path) -> list[CaseRow]:
    """What a subscriber has stored once it has read the six proofs of the topic."""

    def skipped() -> float:
        return REGISTRY.get_sample_value("guardrail_cases_total", {"outcome": "proof"}) or 0

    stop, before = asyncio.Event(), skipped()
    async with open_store(f"sqlite:///{folder}/cases.db", "store", create=True) as store:
        subscriber = asyncio.create_task(FlaggedSubscriber(settings, store).run(stop))
        while skipped() < before + 6:
            await store.count(CaseFilter())
        stop.set()
        await subscriber
        return list(await store.newest(CaseFilter(), 99))


@asynccontextmanager
async def guarded(bootstrap: str, policy: Policy) -> AsyncIterator[KafkaSide]:
    router = PolicyRouter.single(policy)
    async with kafka_side(bootstrap) as side, kafka_guard(side.settings, ScriptedJudge(JUDGE), router):
        yield side


async def test_a_guard_that_enforces_is_proven_to_and_nothing_is_left_behind(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    async with guarded(kafka_bootstrap, BLOCKING) as side:
        first = await doctor(side.settings, tmp_path)
        again = await asyncio.gather(*(doctor(side.settings, tmp_path) for _ in range(2)))
        assert first.states("access") == {"ok"}
        for told in (first, *again):
            assert told.status == 0, told
            assert told.states("enforcement") == {"ok"}
            # Of two at once, one may end the transaction of the other.
            assert told.states("access") <= {"ok", "skip"}
            assert told.checks["broker", "reachable"]["detail"].endswith("Kafka 4.2") or (
                "GUARDRAIL_KAFKA_VERSION" in os.environ
            )
        wrote = await side.read_raw(side.settings.topics.responses)
        assert all(b"guardrail-doctor" in value for value in wrote if b'"response.started"' in value)
        assert await side.read_raw(side.settings.topics.dead_letters) == []
        assert len(await side.read_raw(side.settings.topics.flagged)) == 6
        assert await stored_cases(side.settings, tmp_path) == [], "a proof is not a case for a reviewer"


async def test_without_a_guard_the_remedy_asks_for_one(kafka_bootstrap: str, tmp_path: Path) -> None:
    async with kafka_side(kafka_bootstrap) as side:
        told = await doctor(side.settings, tmp_path, "--timeout-ms", "1000")
        left_out = await doctor(side.settings, tmp_path, "--no-prove")
    assert told.status == 1
    assert "is 'guardrail run' running" in told.checks["enforcement", "the guard"]["remedy"]
    assert (left_out.status, left_out.checks["enforcement", "the guard"]["state"]) == (0, "skip")


async def test_where_only_a_gateway_writes_to_kafka_no_guard_is_a_warning(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    async with kafka_side(kafka_bootstrap) as side:
        serve = {"publish": True, "upstream": "http://127.0.0.1:9/v1"}
        told = await doctor(side.settings, tmp_path, "--timeout-ms", "1000", serve=serve)
    assert told.checks["enforcement", "the guard"]["state"] == "warn"
    assert told.checks["gateway", "chat completions, streamed, wrong answer"]["state"] == "ok"
    assert told.checks["gateway", "upstream http://127.0.0.1:9/v1"]["state"] == "fail"


async def test_missing_topics_and_other_numbers_of_partitions_are_found(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    settings = own_settings(kafka_bootstrap)
    topics = settings.topics
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await admin.start()
    try:
        await admin.create_topics(
            [
                NewTopic(topics.responses, 4, 1),
                NewTopic(topics.sessions, 2, 1, topic_configs={"cleanup.policy": "compact"}),
                NewTopic(topics.deliveries, 4, 1, topic_configs={"cleanup.policy": "compact"}),
            ]
        )
        while not set(topics.names()[:2]) <= set(await admin.list_topics()):
            continue  # a broker learns of a new topic a moment later
        told = await doctor(settings, tmp_path, "--no-prove")
        there = await admin.list_topics()
    finally:
        await admin.close()
    assert told.status == 1
    missing = told.checks["topics", "missing"]
    assert missing["detail"] == ", ".join((topics.verdicts, topics.flagged, topics.dead_letters))
    assert topics.verdicts not in there, "asking for a topic made it"
    assert told.checks["topics", topics.sessions]["state"] == "fail"
    assert told.checks["topics", topics.deliveries]["state"] == "fail"
    assert "compression.type" in told.checks["topics", topics.responses]["detail"]


async def test_the_clock_is_compared_where_the_broker_stamps_records(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    settings = own_settings(kafka_bootstrap)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
    await admin.start()
    stamped = {"message.timestamp.type": "LogAppendTime"}
    await admin.create_topics([NewTopic(settings.topics.responses, 4, 1, topic_configs=stamped)])
    await admin.close()
    await create_topics(settings, partitions=4, replication_factor=1)
    async with kafka_guard(settings, ScriptedJudge(JUDGE), PolicyRouter.single(BLOCKING)):
        told = await doctor(settings, tmp_path)
    assert told.checks["clock", "this machine"]["detail"] == "within 5 s of the broker"


@pytest.fixture(scope="module")
def guarding_broker(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    """A broker that asks for rights; the user of its plain listener may do all, guard nothing yet."""
    broker = own_broker(
        request.config,
        sasl_users={"guard": "right-one"},
        properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        },
    )
    try:
        yield broker
    finally:
        broker.close()


_TYPES = {"topic": 2, "group": 3, "transactional-id": 5}
_OPERATIONS = {"Read": 3, "Write": 4, "Describe": 8}
_LITERAL, _PREFIXED, _ALLOW = 3, 4, 3


async def grant(broker: KafkaBroker, rights: Sequence[Right]) -> None:
    client = AIOKafkaClient(bootstrap_servers=broker.bootstrap_servers)
    await client.bootstrap()
    try:
        for right in rights:
            pattern = _PREFIXED if right.name.endswith("*") else _LITERAL
            name = right.name.removesuffix("*")
            operation = _OPERATIONS[right.operation]
            acl = (_TYPES[right.kind], name, pattern, "User:guard", "*", operation, _ALLOW)
            answer: Any = await client.send(client.get_random_node(), CreateAclsRequest(*acl))
            assert [code for code, _ in answer.creation_responses] == [0]
    finally:
        await client.close()


async def test_another_group_of_guards_is_told(
    kafka_bootstrap: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that writes to the same deliveries, one with outputs of its own, and a group that reads along."""
    router = PolicyRouter.single(BLOCKING)
    async with kafka_side(kafka_bootstrap, partitions=2) as side:
        settings = side.settings
        same = changed(settings, group_id=f"{settings.group_id}-same")
        topics = settings.topics
        own_topics = topics.model_copy(update={"deliveries": f"own-{topics.deliveries}"})
        own = changed(settings, group_id=f"{settings.group_id}-own", topics=own_topics)
        await create_topics(own, partitions=2, replication_factor=1)
        along = AIOKafkaConsumer(
            topics.responses, bootstrap_servers=kafka_bootstrap, group_id=f"{settings.group_id}-along"
        )
        await along.start()
        try:
            async with kafka_guard(settings, ScriptedJudge(JUDGE), router):
                told = await doctor(settings, tmp_path)
                assert told.checks["enforcement", "other groups"]["state"] == "ok"
                async with (
                    kafka_guard(same, ScriptedJudge(JUDGE), router) as one,
                    kafka_guard(own, ScriptedJudge(JUDGE), router) as two,
                ):
                    await until(lambda: not one.waits_for() and not two.waits_for())
                    told = await doctor(settings, tmp_path)
                    await until(lambda: "guard.other_group" in caplog.text)
        finally:
            await along.stop()
    assert told.status == 1
    about = {name: check["state"] for (_, name), check in told.checks.items() if name.startswith("group ")}
    assert about == {f"group {same.group_id}": "fail", f"group {own.group_id}": "warn"}
    assert settings.group_id in caplog.text
    # The proof obeys the group that it was told.
    assert told.checks["enforcement", "wrong answer, streamed"]["state"] == "ok"
    alone = await doctor(changed(settings, group_id="nobody"), tmp_path, "--timeout-ms", "500")
    assert "of the group nobody" in alone.checks["enforcement", "the guard"]["detail"]


async def test_what_the_doctor_says_is_missing_is_all_that_a_guard_and_the_proof_need(
    guarding_broker: KafkaBroker, tmp_path: Path
) -> None:
    guarding_broker.start()
    plain = own_settings(guarding_broker.bootstrap_servers)
    await create_topics(plain, partitions=2, replication_factor=1)
    settings = changed(
        plain,
        bootstrap_servers=guarding_broker.sasl_bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_username="guard",
        sasl_password="right-one",
    )
    granted: list[Right] = []
    async with examining(settings) as examiner:
        rights = await examiner.rights(await examiner.cluster())
        assert rights.granted == []
        while rights.denied or rights.unknown:
            new = [
                right for right in rights.denied if right not in granted
            ]  # brokers hear of it a little late
            await grant(guarding_broker, new)
            granted += new
            rights = await examiner.rights(await examiner.cluster())
    topics = settings.topics
    assert sorted(granted) == sorted(
        [
            Right("Read", "topic", topics.responses),
            Right("Read", "topic", topics.sessions),
            Right("Read", "group", settings.group_id),
            Right("Describe", "transactional-id", "guardrail*"),
            Right("Write", "transactional-id", "guardrail*"),
            *(Right("Write", "topic", name) for name in (*topics.outputs(), topics.sessions)),
        ]
    )
    assert {check.state for check in check_access(settings, rights)} == {"ok"}
    # And it is enough: a guard with these rights withholds.
    async with (
        kafka_guard(settings, ScriptedJudge(JUDGE), PolicyRouter.single(BLOCKING)),
        GuardClient(
            plain.bootstrap_servers,
            responses_topic=topics.responses,
            deliveries_topic=topics.deliveries,
        ) as client,
    ):
        assert {check.state for check in await prove(client, BLOCKING, within_s=60)} == {"ok"}
        # The proof as that user lacks two rights that no guard needs, and is told them.
        told = await doctor(settings, tmp_path)
        wanted = [Right("Write", "topic", topics.responses), Right("Read", "topic", topics.deliveries)]
        assert told.status == 1
        assert told.checks["enforcement", "the guard"]["state"] == "skip"
        lacking = [check for check in told.checks.values() if check["state"] == "fail"]
        commands = [f"--operation {right.operation} --topic {right.name}" for right in wanted]
        assert [
            check["remedy"][-len(one) :] for one, check in zip(commands, lacking, strict=True)
        ] == commands
        await grant(guarding_broker, wanted)
        async with examining(settings) as examiner:
            while (await examiner.rights_of_proof(await examiner.cluster())).denied:
                continue
        told = await doctor(settings, tmp_path)
        assert (told.status, told.states("enforcement")) == (0, {"ok"}), told
