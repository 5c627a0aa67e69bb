"""Whatever the tokens, segments, repeats and bounds: what was delivered is read once and in order."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from guardrail.testing import check_events
from tests.support.guards import TOPICS, until
from tests.support.stages import staged

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
        bounds = {"max_stream_chars": bound, "max_total_chars": bound * 2}
        async with staged(drain_timeout_s=10.0, coalesce_ms=0, **bounds) as stage:
            answer = stage.client.guard("?", ["A source."], tokens)
            name = answer.response_id

            async def guard() -> None:
                """Delivers a segment when it has its text, and some of those before it again."""
                for number, (_, end) in enumerate(spans):
                    await until(lambda end=end: len(stage.text_sent(name)) >= end)  # type: ignore[misc]
                    for seq in (number, repeats[number]):
                        stage.segment(name, seq, text[slice(*spans[seq])], spans[seq])
                await until(lambda: stage.completed(name))  # no guard ends an answer before
                stage.complete(name, len(spans))

            async with asyncio.TaskGroup() as group:
                group.create_task(guard())
                read = "".join([piece.text async for piece in answer])
            return read, stage.text_sent(name), check_events(stage.broker.records(TOPICS.responses))

    read, sent, problems = asyncio.run(run())
    assert read == sent == text
    assert problems == []
