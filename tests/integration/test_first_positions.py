"""Taking over partitions without a committed position while no broker answers just then."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Collection

import pytest
from aiokafka.errors import KafkaConnectionError

from consumers.kafka import Positions
from consumers.transport import Commit, OutRecord, Partition, Transport
from tests.support.transports import KafkaHarness, RecordingListener, poll_until, poll_while

pytestmark = pytest.mark.kafka


@pytest.fixture
async def harness(kafka_bootstrap: str) -> AsyncIterator[KafkaHarness]:
    made = KafkaHarness(kafka_bootstrap)
    yield made
    await made.close()


@pytest.fixture(params=["exactly_once", "at_least_once"])
def guarantee(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def member(harness: KafkaHarness, topic: str, guarantee: str, **changes: object) -> Transport:
    group = f"group-{uuid.uuid4().hex}"
    if guarantee == "at_least_once":
        return harness.member(topic, group, **changes)
    return harness.exact_member(topic, await harness.create_topic(compacted=True), group, **changes)


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the question for first positions fails, by call; after the last it is answered."""
    planned: list[bool] = []
    ask = Positions.first

    async def first(self: Positions, partitions: Collection[Partition]) -> dict[Partition, int]:
        if planned and planned.pop(0):
            raise KafkaConnectionError("no broker")
        return await ask(self, partitions)

    monkeypatch.setattr(Positions, "first", first)
    return planned


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 3)])
async def test_the_first_position_is_asked_for_again(
    harness: KafkaHarness, failures: list[bool], guarantee: str, reset: str, first: int
) -> None:
    topic = await harness.create_topic()
    await harness.write([OutRecord(topic, b"k", b"%d" % number) for number in range(3)])
    failures += [True, True]
    listener = RecordingListener()
    reading = await member(harness, topic, guarantee, auto_offset_reset=reset)
    try:
        await reading.start(listener)
        read = await poll_while(reading, lambda: not listener.held)
        assert failures == []
        assert listener.held == {Partition(topic, 0): Commit(first) if reset == "latest" else None}
        await harness.write([OutRecord(topic, b"k", b"3")])
        read += await poll_until(reading, lambda found: len(read) + len(found) >= 4 - first)
    finally:
        await reading.stop()
    assert [record.offset for record in read] == list(range(first, 4))
