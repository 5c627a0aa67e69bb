"""``GuardClient`` and the guard on a real Kafka: replies, restarts, a killed guard, a broker that bounces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

from consumers.settings import KafkaSettings
from consumers.topics import create_topics
from guardrail.client import AnswerBlocked, GuardClient, Piece
from guardrail.errors import TransportError, TransportUnavailable
from guardrail.events import DeliverySegment
from guardrail.log_events import CODE, FIELDS
from guardrail.partitioning import partition_of
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from guardrail.testing import ScriptedJudge, check_events
from tests.conftest import own_broker
from tests.support.guards import until
from tests.support.kafka_broker import KafkaBroker, free_ports
from tests.support.kafka_guards import KafkaSide, in_a_file, kafka_guard, kafka_side, own_settings
from tests.support.programs import running

pytestmark = pytest.mark.kafka

CONTEXTS = ["The Pro plan costs $20 per month. It can be cancelled at any time."]
RIGHT = "The Pro plan costs $20 per month. It can be cancelled at any time."
WRONG = "The Pro plan costs $35 per month. It can be cancelled at any time."
JUDGE = {"$35": "CONTRADICTED"}
BLOCKING = PolicyRouter.single(Policy(rules=["verdict CONTRADICTED: block"]))


async def slowly(text: str, gate: asyncio.Event | None = None, after: int = 45) -> AsyncIterator[str]:
    """Tokens; after that many characters the model waits for the gate."""
    for start in range(0, len(text), 3):
        if gate is not None and start > after:
            await gate.wait()
        yield text[start : start + 3]
        await asyncio.sleep(0.001)


async def shown(pieces: AsyncIterator[Piece]) -> str:
    return "".join([piece.text async for piece in pieces])


def client_of(settings: KafkaSettings, **options: Any) -> GuardClient:
    return GuardClient(
        settings.bootstrap_servers,
        responses_topic=settings.topics.responses,
        deliveries_topic=settings.topics.deliveries,
        **options,
    )


@asynccontextmanager
async def guarded(
    bootstrap: str, partitions: int = 4, **options: Any
) -> AsyncIterator[tuple[KafkaSide, GuardClient]]:
    async with (
        kafka_side(bootstrap, partitions) as side,
        kafka_guard(side.settings, ScriptedJudge(JUDGE), BLOCKING),
        client_of(side.settings, **options) as client,
    ):
        yield side, client


async def test_right_answers_come_back_and_wrong_ones_are_blocked(kafka_bootstrap: str) -> None:
    async with guarded(kafka_bootstrap) as (side, client):

        async def right() -> None:
            assert await shown(client.guard("What does Pro cost?", CONTEXTS, slowly(RIGHT))) == RIGHT

        async def wrong() -> None:
            with pytest.raises(AnswerBlocked):
                await shown(client.guard("What does Pro cost?", CONTEXTS, slowly(WRONG)))

        async with asyncio.TaskGroup() as group:
            for number in range(40):
                group.create_task(wrong() if number % 4 == 0 else right())
        assert (await client.check("?", CONTEXTS, RIGHT)).text == RIGHT
        written = await side.read_raw(side.settings.topics.responses)
        assert check_events(written) == []


async def test_two_processes_get_their_own_replies_on_the_same_partitions(kafka_bootstrap: str) -> None:
    async with (
        guarded(kafka_bootstrap, 1) as (side, first),
        client_of(side.settings) as second,
    ):
        texts = [f"Plan {number} costs $20 per month." for number in range(20)]
        answers = [
            (first if number % 2 else second).guard("?", CONTEXTS, slowly(text))
            for number, text in enumerate(texts)
        ]
        assert await asyncio.gather(*(shown(answer) for answer in answers)) == texts


async def test_only_the_partitions_of_its_ids_are_read_and_those_of_ids_given(kafka_bootstrap: str) -> None:
    async with guarded(kafka_bootstrap, 8, reply_partitions=1) as (_, client):
        made_up = [client.guard("?", CONTEXTS, slowly(RIGHT)) for _ in range(5)]
        assert len({partition_of(answer.response_id.encode(), 8) for answer in made_up}) == 1
        given = [client.guard("?", CONTEXTS, slowly(RIGHT), response_id=f"mine-{n}") for n in range(12)]
        assert len({partition_of(answer.response_id.encode(), 8) for answer in given}) > 3
        assert await asyncio.gather(*(shown(answer) for answer in [*made_up, *given])) == [RIGHT] * 17


async def test_answers_go_on_where_the_deliveries_get_more_partitions(kafka_bootstrap: str) -> None:
    """By whatever number of partitions the guard writes in the minutes until all know of the new one."""
    gate = asyncio.Event()
    async with guarded(kafka_bootstrap, 2, metadata_max_age_ms=300) as (side, client):
        open_ones = [client.guard("?", CONTEXTS, slowly(RIGHT, gate)) for _ in range(12)]
        firsts = [(await anext(answer)).text for answer in open_ones]
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
        await admin.start()
        await admin.create_partitions({side.settings.topics.deliveries: NewPartitions(7)})
        await admin.close()
        consumer = client._transport._consumer  # type: ignore[attr-defined]
        await until(lambda: len(consumer.partitions_for_topic(side.settings.topics.deliveries)) == 7)
        gate.set()
        later = [client.guard("?", CONTEXTS, slowly(RIGHT)) for _ in range(12)]
        rests = await asyncio.gather(*(shown(answer) for answer in open_ones))
        assert [first + rest for first, rest in zip(firsts, rests, strict=True)] == [RIGHT] * 12
        assert await asyncio.gather(*(shown(answer) for answer in later)) == [RIGHT] * 12


async def test_an_answer_survives_a_guard_that_is_killed_in_the_middle(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    async with kafka_side(kafka_bootstrap) as side, client_of(side.settings, timeout_s=120) as client:
        kafka = in_a_file(side.settings, session_timeout_ms=6_000, heartbeat_interval_ms=500)
        with running(tmp_path, {"kafka": kafka}):  # and killed at its end
            answers = [client.guard("What does Pro cost?", CONTEXTS, slowly(RIGHT, gate)) for _ in range(8)]
            firsts = [(await anext(answer)).text for answer in answers]
        gate.set()
        with running(tmp_path, {"kafka": kafka}):
            rests = await asyncio.gather(*(shown(answer) for answer in answers))
        assert [first + rest for first, rest in zip(firsts, rests, strict=True)] == [RIGHT] * 8
        deliveries = await side.read(side.settings.topics.deliveries)
        told = [(e.response_id, e.seq) for e in deliveries if isinstance(e, DeliverySegment)]
        assert len(told) == len(set(told)) == 16


async def test_answers_go_on_through_a_bounce_of_the_broker(own_kafka: KafkaBroker) -> None:
    own_kafka.start()
    settings = own_settings(own_kafka.bootstrap_servers)
    await create_topics(settings, partitions=2, replication_factor=1)
    gate = asyncio.Event()
    async with (
        kafka_guard(settings, ScriptedJudge(JUDGE), BLOCKING),
        client_of(settings, timeout_s=120) as client,
    ):
        answers = [client.guard("?", CONTEXTS, slowly(RIGHT, gate)) for _ in range(6)]
        firsts = [(await anext(answer)).text for answer in answers]
        await asyncio.to_thread(own_kafka.stop)
        gate.set()
        later = client.guard("?", CONTEXTS, slowly(RIGHT))
        reading = asyncio.ensure_future(shown(later))
        await asyncio.to_thread(own_kafka.start)
        rests = await asyncio.gather(*(shown(answer) for answer in answers))
        assert [first + rest for first, rest in zip(firsts, rests, strict=True)] == [RIGHT] * 6
        assert await reading == RIGHT


async def test_a_broker_that_comes_back_without_topics_is_told_in_one_line(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (port,) = free_ports(1)
    settings = own_settings(f"127.0.0.1:{port}")

    def lines(code: str) -> list[logging.LogRecord]:
        return [record for record in caplog.records if getattr(record, CODE, None) == code]

    async def writing() -> AsyncIterator[str]:
        while not lines("client.topics_missing"):
            yield "It goes on. "
            await asyncio.sleep(0.05)

    with own_broker(request.config, port=port) as kafka:
        await create_topics(settings, partitions=2, replication_factor=1)
        async with client_of(settings, timeout_s=120) as client:
            unheard = asyncio.ensure_future(shown(client.guard("?", CONTEXTS, writing())))
            await asyncio.to_thread(kafka.kill)
            await until(lambda: bool(lines("client.kafka_away")))
            with own_broker(request.config, port=port):
                await until(lambda: bool(lines("client.topics_missing")))
                assert {"topics", "remedy"} <= vars(lines("client.topics_missing")[0])[FIELDS].keys()
                await create_topics(settings, partitions=2, replication_factor=1)
                await until(lambda: bool(lines("client.topics_back")))
                async with kafka_guard(settings, ScriptedJudge(JUDGE), BLOCKING):
                    assert await shown(client.guard("?", CONTEXTS, slowly(RIGHT))) == RIGHT
            unheard.cancel()
    codes = ("client.kafka_away", "client.kafka_back", "client.topics_missing", "client.topics_back")
    assert [len(lines(code)) for code in codes] == [1, 1, 1, 1]
    of_library = [record for record in caplog.records if record.name.startswith("aiokafka")]
    assert len([record for record in of_library if "not found in cluster metadata" in record.msg]) < 10


async def test_aiokafkas_own_parameters_log_the_client_in(own_kafka: KafkaBroker) -> None:
    own_kafka.start()
    settings = own_settings(own_kafka.bootstrap_servers)
    await create_topics(settings, partitions=2, replication_factor=1)
    login: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "guard",
        "sasl_plain_password": "right-one",
    }
    login["responses_topic"] = settings.topics.responses
    login["deliveries_topic"] = settings.topics.deliveries
    async with (
        kafka_guard(settings, ScriptedJudge(JUDGE), BLOCKING),
        GuardClient(own_kafka.sasl_bootstrap_servers, **login) as client,
    ):
        assert (await client.check("?", CONTEXTS, RIGHT)).text == RIGHT
    wrong = login | {"sasl_plain_password": "wrong-one"}
    with pytest.raises(
        TransportUnavailable, match="check bootstrap_servers, security_protocol and the login"
    ):
        async with GuardClient(own_kafka.sasl_bootstrap_servers, **wrong, connect_timeout_s=5):
            pass


async def test_contexts_that_no_record_holds_are_told_as_such(kafka_bootstrap: str) -> None:
    async with guarded(kafka_bootstrap) as (_, client):
        with pytest.raises(TransportError, match="too large; send fewer or shorter contexts"):
            await shown(client.guard("?", ["x" * 9_000_000], slowly(RIGHT)))
        assert await shown(client.guard("?", CONTEXTS, slowly(RIGHT))) == RIGHT


async def test_a_broker_or_a_topic_that_is_not_there_is_an_error_with_the_remedy(
    kafka_bootstrap: str,
) -> None:
    (port,) = free_ports(1)
    with pytest.raises(TransportUnavailable, match=rf"can't be reached at 127.0.0.1:{port} \(.*start it"):
        async with GuardClient(f"127.0.0.1:{port}", connect_timeout_s=2):
            pass
    with pytest.raises(TransportUnavailable, match=r"no topic no-in, no-out.*guardrail topics create"):
        async with GuardClient(kafka_bootstrap, responses_topic="no-in", deliveries_topic="no-out"):
            pass
