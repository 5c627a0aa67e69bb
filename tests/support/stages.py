"""A client on a broker without a guard: the test says what is delivered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from consumers.memory import MemoryBroker
from guardrail.client import GuardClient
from guardrail.events import (
    GROUP_HEADER,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    Event,
    ResponseCompleted,
    ResponseDelta,
    parse_input,
)
from guardrail.testing import MemoryClientTransport
from tests.support.guards import TOPICS, new_broker


class Stage:
    """The client, and the broker."""

    def __init__(self, client: GuardClient, broker: MemoryBroker) -> None:
        self.client = client
        self.broker = broker

    def deliver(self, response_id: str, event: Event, group: str | None = None) -> None:
        headers = () if group is None else ((GROUP_HEADER, group.encode()),)
        self.broker.append(TOPICS.deliveries, response_id.encode(), event.to_json(), headers)

    def segment(
        self, response_id: str, seq: int, text: str, span: tuple[int, int], group: str | None = None
    ) -> None:
        about = {"id": f"{seq}", "response_id": response_id, "seq": seq, "decision": Decision.RELEASE}
        self.deliver(response_id, DeliverySegment(**about, text=text, span=span), group)

    def complete(self, response_id: str, seq: int) -> None:
        about = {"id": "end", "response_id": response_id, "seq": seq, "rule": "passed"}
        self.deliver(response_id, DeliveryCompleted(**about, decision=Decision.RELEASE))

    def block(self, response_id: str, seq: int) -> None:
        about = {"id": "end", "response_id": response_id, "seq": seq, "rule": "r"}
        self.deliver(response_id, DeliveryBlocked(**about, message="no", released_chars=0))

    def fail(self, response_id: str) -> None:
        """A delivery that can't be read: what comes after it can't be verified."""
        self.broker.append(TOPICS.deliveries, response_id.encode(), b"{}")

    def sent(self, response_id: str) -> list[Any]:
        records = self.broker.records(TOPICS.responses)
        return [parse_input(each.value or b"") for each in records if each.key == response_id.encode()]

    def text_sent(self, response_id: str) -> str:
        return "".join(event.text for event in self.sent(response_id) if isinstance(event, ResponseDelta))

    def completed(self, response_id: str) -> bool:
        """Has the client sent the whole answer?"""
        return any(isinstance(event, ResponseCompleted) for event in self.sent(response_id))


@asynccontextmanager
async def staged(**options: Any) -> AsyncIterator[Stage]:
    broker = new_broker()
    transport = MemoryClientTransport(broker, TOPICS.responses, TOPICS.deliveries)
    async with GuardClient(transport=transport, **{"drain_timeout_s": 0.0, **options}) as client:
        yield Stage(client, broker)
