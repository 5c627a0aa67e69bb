"""Fixtures of the tests over a real Kafka."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_place import Place


@pytest.fixture
async def place(kafka_bootstrap: str) -> AsyncIterator[Place]:
    made = Place(kafka_bootstrap)
    yield made
    await made.close()


@pytest.fixture
async def own_place(own_kafka: KafkaBroker) -> AsyncIterator[Place]:
    own_kafka.start()
    made = Place(own_kafka.bootstrap_servers)
    yield made
    await made.close()
