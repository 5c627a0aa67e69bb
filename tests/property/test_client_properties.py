"""Whatever the tokens, segments, repeats and bounds: what was delivered is read once and in order."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.client import GuardClient
from guardrail.events import (
    Decision,
    DeliveryCompleted,
    DeliverySegment,
    ResponseCompleted,
    ResponseDelta,
    parse_input,
)
from guardrail.testing import MemoryClientTransport, check_events
from tests.support.guards import TOPICS, new_broker, until

TOKENS = st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=30).filter(
    lambda t: "".join(t).strip()
)


@settings(max_examples=60)
@given(data=st.data(), tokens=TOKENS, spare=st.integers(0, 20))
def test_what_is_delivered_is_read_once_in_order_and_what_is_sent_is_the_answer(
    data: st.DataObject, tokens: list[str], spare: int
) -> None:
    text = "".join(tokens)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)) | {0, len(text)})
    spans = list(pairwise(cuts))
    bound = max(end - start for start, end in spans) + spare  # a segment must fit
    repeats = [data.draw(st.integers(0, number)) for number in range(len(spans))]

    async def run() -> tuple[str, str, list[str]]:
        broker = new_broker()
        transport = MemoryClientTransport(broker, TOPICS.responses, TOPICS.deliveries)
        async with GuardClient(
            transport=transport, max_stream_chars=bound, max_total_chars=bound * 2, coalesce_ms=0
        ) as client:
            answer = client.guard("?", ["A source."], tokens)
            key = answer.response_id.encode()

            def segment(number: int) -> None:
                start, end = spans[number]
                event = DeliverySegment(
                    id=str(number),
                    response_id=answer.response_id,
                    seq=number,
                    text=text[start:end],
                    span=(start, end),
                    decision=Decision.RELEASE,
                )
                broker.append(TOPICS.deliveries, key, event.to_json())

            def sent() -> str:
                events = [parse_input(record.value or b"") for record in broker.records(TOPICS.responses)]
                return "".join(event.text for event in events if isinstance(event, ResponseDelta))

            def completed() -> bool:
                events = [parse_input(record.value or b"") for record in broker.records(TOPICS.responses)]
                return any(isinstance(event, ResponseCompleted) for event in events)

            async def guard() -> None:
                """Delivers a segment when it has its text, and some of those before it again."""
                for number, (_, end) in enumerate(spans):
                    await until(lambda end=end: len(sent()) >= end)  # type: ignore[misc]
                    segment(number)
                    segment(repeats[number])
                await until(completed)  # no guard ends an answer before
                final = DeliveryCompleted(
                    id="end",
                    response_id=answer.response_id,
                    seq=len(spans),
                    decision=Decision.RELEASE,
                    rule="passed",
                )
                broker.append(TOPICS.deliveries, key, final.to_json())

            async with asyncio.TaskGroup() as group:
                group.create_task(guard())
                read = "".join([piece.text async for piece in answer])
            return read, sent(), check_events(broker.records(TOPICS.responses))

    read, sent, problems = asyncio.run(run())
    assert read == sent == text
    assert problems == []
