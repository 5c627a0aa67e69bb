"""Both transports, as fixtures of the contract suites."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from tests.support.transports import Harness, KafkaHarness, MemoryHarness


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    made: Harness
    if request.param == "memory":
        made = MemoryHarness()
    else:
        made = KafkaHarness(request.getfixturevalue("kafka_bootstrap"))
    yield made
    await made.close()


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex}"
