"""What a stream leaves behind: nothing that only a full collection of garbage would find."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Iterator

import pytest

from consumers.gateway import GuardedCompletion
from tests.support.chat_upstream import ChatUpstream, events
from tests.unit.gateway.chats import COMPLETIONS, RIGHT, ask
from tests.unit.gateway.conftest import Opens


@pytest.fixture
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_collection")
@pytest.mark.parametrize("ends", ["in order", "left"])
async def test_a_stream_keeps_no_texts(gateway: Opens, upstream: ChatUpstream, ends: str) -> None:
    """Each may hold megabytes of documents. Where something is left, this test ends by its time limit."""
    client = await gateway()
    upstream.streams(events(RIGHT, RIGHT, RIGHT))
    if ends == "left":
        upstream.holds_before = 3
    async with client.stream("POST", COMPLETIONS, json=ask(stream=True)) as reply:
        async for _ in reply.aiter_raw():
            if ends == "left":
                break
    if ends == "left":
        await upstream.left.wait()
    while any(isinstance(each, GuardedCompletion) for each in gc.get_objects()):  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(0.01)


async def test_a_stream_keeps_what_was_asked_once(gateway: Opens, upstream: ChatUpstream) -> None:
    client = await gateway()
    upstream.streams(events(RIGHT, RIGHT))
    upstream.holds_before = 1
    asked = ask(stream=True)
    asked["messages"].insert(0, {"role": "assistant", "content": "x" * 4_000_000})
    body, headers = json.dumps(asked).encode(), {"content-type": "application/json"}
    tracemalloc.start()
    try:
        async with client.stream("POST", COMPLETIONS, content=body, headers=headers):
            await upstream.held.wait()
            upstream.asked.clear()
            gc.collect()
            kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    upstream.going_on.set()
    assert kept < 2.5 * len(body)  # the upstream of the tests keeps it too
