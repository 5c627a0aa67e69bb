"""Records with header names that are not UTF-8, on a real Kafka: no reader of ours stops at one."""

from __future__ import annotations

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from consumers.dead_letter_replay import DeadLetter, read_letter
from consumers.kafka import read_state
from consumers.reading import open_topic
from consumers.sessions_topic import key_prefix
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.guards import events_of
from tests.support.judges import WordJudge
from tests.support.kafka_guards import KafkaSide, kafka_guard, kafka_side
from tests.support.odd_headers import Content, write_raw

pytestmark = pytest.mark.kafka

ODD = (b"a\xffb", b"\xfe")


async def letters_of(side: KafkaSide) -> list[DeadLetter]:
    async with open_topic(side.settings, side.settings.topics.dead_letters) as reader:
        return [read_letter(record) async for record in reader.until_end()]


async def test_a_guard_uses_what_it_can_and_the_rest_becomes_a_dead_letter(kafka_bootstrap: str) -> None:
    trace = (b"traceparent", b"00-ab-cd-01")
    events = events_of("r1", "Paris is in France. Rome is in Italy.")
    records: list[Content] = [(b"r1", event.to_json(), [trace, ODD]) for event in events]
    records.insert(1, (b"nobody", b"no JSON", [ODD, (b"\xc3\xbc", b"2")]))
    async with kafka_side(kafka_bootstrap, partitions=1) as side:
        topics = side.settings.topics
        await write_raw(kafka_bootstrap, topics.responses, records)
        async with kafka_guard(side.settings, WordJudge(), PolicyRouter.single(Policy())):
            await side.completed()
        (letter,) = await letters_of(side)
        outputs = await headers_in(side, topics.deliveries)
    assert (letter.reason, letter.record.value) == ("invalid_json", b"no JSON")
    assert letter.headers == ((r"a\xffb", b"\xfe"), ("ü", b"2"))
    assert letter.origin is not None
    assert letter.origin.offset == 1
    answered = [headers for key, headers in outputs if key == b"r1"]
    assert answered
    assert {headers[0] for headers in answered} == {("traceparent", b"00-ab-cd-01")}
    assert {headers[1:] for headers in answered} == {(("guardrail-group", side.settings.group_id.encode()),)}


async def test_readers_of_dead_letters_and_of_the_state_go_on(kafka_bootstrap: str) -> None:
    async with kafka_side(kafka_bootstrap, partitions=1) as side:
        topics = side.settings.topics
        records: list[Content] = [(b"one", b"1", []), (b"two", b"2", [ODD]), (b"three", b"3", [])]
        await write_raw(kafka_bootstrap, topics.dead_letters, records)
        own = key_prefix(side.settings.group_id)
        await write_raw(
            kafka_bootstrap,
            topics.sessions,
            [(own + (key or b""), value, names) for key, value, names in records],
        )
        letters = await letters_of(side)
        state = await read_state(side.settings, topics.sessions, [0])
    assert [letter.record.value for letter in letters] == [b"1", b"2", b"3"]
    assert letters[1].headers == ((r"a\xffb", b"\xfe"),)
    assert state == {0: {b"one": b"1", b"two": b"2", b"three": b"3"}}


async def headers_in(
    side: KafkaSide, topic: str
) -> list[tuple[bytes | None, tuple[tuple[str, bytes | None], ...]]]:
    """Key and headers of everything in partition 0 of ``topic``, read by a plain client."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=side.settings.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    await consumer.start()
    try:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        end = (await consumer.end_offsets([tp]))[tp]
        found: list[tuple[bytes | None, tuple[tuple[str, bytes | None], ...]]] = []
        while await consumer.position(tp) < end:
            batch = (await consumer.getmany(tp, timeout_ms=100)).get(tp, [])
            found += [(record.key, tuple(record.headers)) for record in batch]
        return found
    finally:
        await consumer.stop()
