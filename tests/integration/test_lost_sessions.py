"""What docs/upgrade.md says of a sessions topic that is lost."""

from __future__ import annotations

import json

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from consumers.topics import create_topics
from guardrail.events import DeliveryBlocked, DeliveryCompleted, DeliverySegment
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.guards import events_of
from tests.support.judges import WordJudge
from tests.support.kafka_guards import kafka_guard, kafka_side

pytestmark = pytest.mark.kafka

ROUTER = PolicyRouter.single(Policy())


async def test_without_its_sessions_guards_go_on_and_answers_in_flight_never_end(
    kafka_bootstrap: str,
) -> None:
    async with kafka_side(kafka_bootstrap) as side:
        topics = side.settings.topics
        events = events_of("open", "Paris is in France. Oslo is in Norway. ")
        begun, rest = events[:-2], events[-2:]
        async with kafka_guard(side.settings, WordJudge(), ROUTER):
            await side.send(begun)
            while not await side.read(topics.deliveries):
                continue
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka_bootstrap)
        await admin.start()
        await admin.delete_topics([topics.sessions])
        while topics.sessions in await admin.list_topics():
            continue
        await admin.close()
        reports = await create_topics(side.settings, partitions=4, replication_factor=1)
        assert [one.name for one in reports if one.outcome == "created"] == [topics.sessions]
        async with kafka_guard(side.settings, WordJudge(), ROUTER):
            await side.send([*rest, *events_of("next", "Oslo is in Norway. ")])
            await side.completed()
            while len(dead := await side.read_raw(topics.dead_letters)) < len(rest):
                continue
        deliveries = await side.read(topics.deliveries)
    assert [json.loads(value)["response_id"] for value in dead] == ["open"] * len(rest)
    ends = [event for event in deliveries if isinstance(event, DeliveryCompleted | DeliveryBlocked)]
    assert [event.response_id for event in ends] == ["next"]
    shown = [event for event in deliveries if isinstance(event, DeliverySegment)]
    assert len({event.id for event in shown}) == len(shown), "nothing is delivered twice"
