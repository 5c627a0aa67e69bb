"""The batcher: what runs together, what is dropped, and how it ends. The model is a gate the test opens."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
import pytest_asyncio

from guardrail.errors import JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.judges.model import Pair
from guardrail.judges.model.classifier import Scores
from guardrail.judges.model.judge import Batcher


class Gate:
    """A model that records its batches and answers when the test lets it."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.entered = threading.Semaphore(0)
        self.leave = threading.Semaphore(0)

    def __call__(self, pairs: Sequence[Pair]) -> list[Scores | JudgeError]:
        self.batches.append([pair.hypothesis for pair in pairs])
        self.entered.release()
        self.leave.acquire()
        if any(pair.hypothesis == "boom" for pair in pairs):
            raise RuntimeError("secret text of a context")
        return [
            JudgeReplyError("not a number") if pair.hypothesis == "nan" else Scores(0.9, 0.0)
            for pair in pairs
        ]


def pairs(name: str, count: int = 1) -> list[Pair]:
    return [Pair("", 0, 0, name)] * count


def later(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest_asyncio.fixture
async def batcher(gate: Gate) -> AsyncIterator[Batcher]:
    made = Batcher(gate, batch_size=4, max_queued=9, name="test-batcher")
    yield made
    gate.leave.release(1000)
    await made.aclose()


async def held(gate: Gate, batcher: Batcher) -> asyncio.Future[list[Scores]]:
    """A first batch that the model sits on, so that what follows waits."""
    first = batcher.submit(pairs("first"), later())
    await asyncio.to_thread(gate.entered.acquire)
    return first


async def test_claims_of_different_requests_share_a_batch(gate: Gate, batcher: Batcher) -> None:
    first = await held(gate, batcher)
    waiting = [batcher.submit(pairs(name, 2), later(60 + n)) for n, name in enumerate("abc")]
    gate.leave.release(10)
    results = await asyncio.gather(first, *waiting)
    assert [len(scores) for scores in results] == [1, 2, 2, 2]
    assert gate.batches == [["first"], ["a", "a", "b", "b"], ["c", "c"]]


async def test_the_most_urgent_claim_goes_first(gate: Gate, batcher: Batcher) -> None:
    await held(gate, batcher)
    calm, urgent = batcher.submit(pairs("calm", 4), later(90)), batcher.submit(pairs("urgent", 4), later(30))
    gate.leave.release(10)
    await asyncio.gather(calm, urgent)
    assert [batch[0] for batch in gate.batches] == ["first", "urgent", "calm"]


async def test_what_was_cancelled_or_is_too_late_is_not_run(gate: Gate, batcher: Batcher) -> None:
    await held(gate, batcher)
    cancelled = batcher.submit(pairs("cancelled", 3), later())
    late = batcher.submit(pairs("late", 3), time.monotonic() - 1)
    good = batcher.submit(pairs("good", 2), later())
    cancelled.cancel()
    await asyncio.sleep(0)
    gate.leave.release(10)
    assert len(await good) == 2
    with pytest.raises(JudgeUnavailable, match="deadline"):
        await late
    assert gate.batches == [["first"], ["good", "good"]]


async def test_a_full_queue_refuses_and_cancelling_makes_room(gate: Gate, batcher: Batcher) -> None:
    await held(gate, batcher)
    waiting = batcher.submit(pairs("waiting", 6), later())
    with pytest.raises(JudgeUnavailable, match="6 pairs wait"):
        await batcher.submit(pairs("more", 4), later())
    waiting.cancel()
    await asyncio.sleep(0)
    # Alone a claim is taken whatever its size: refused for ever it could never be judged.
    huge = batcher.submit(pairs("huge", 20), later())
    gate.leave.release(10)
    assert len(await huge) == 20


async def test_a_failure_is_its_claims_alone_and_tells_no_text(gate: Gate, batcher: Batcher) -> None:
    first = await held(gate, batcher)
    nan, good = batcher.submit(pairs("nan"), later()), batcher.submit(pairs("good", 3), later())
    boom, after = batcher.submit(pairs("boom", 4), later(61)), batcher.submit(pairs("after"), later(62))
    gate.leave.release(10)
    await first
    with pytest.raises(JudgeReplyError):
        await nan
    assert len(await good) == 3
    with pytest.raises(JudgeUnavailable, match=r"the model failed \(RuntimeError\)") as caught:
        await boom
    assert "secret" not in str(caught.value)
    assert len(await after) == 1


async def test_closing_fails_what_waits_and_ends_the_thread(gate: Gate) -> None:
    batcher = Batcher(gate, batch_size=1, max_queued=8, name="test-closing")
    first = await held(gate, batcher)
    waiting = batcher.submit(pairs("waiting"), later())
    closing = asyncio.ensure_future(batcher.aclose())
    with pytest.raises(JudgeUnavailable, match="closed"):
        await waiting
    gate.leave.release(10)
    await closing
    assert len(await first) == 1
    assert not any(thread.name == "test-closing" for thread in threading.enumerate())
    with pytest.raises(JudgeUnavailable, match="closed"):
        await batcher.submit(pairs("x"), later())
    assert gate.batches == [["first"]]


def test_a_loop_that_is_gone_is_no_failure(gate: Gate) -> None:
    """The loop of a request can end before the model does."""
    made: list[Batcher] = []

    async def ask(then: Callable[[], None]) -> None:
        made.append(Batcher(gate, batch_size=1, max_queued=8, name="test-orphan"))
        await held(gate, made[0])
        then()

    asyncio.run(ask(lambda: None))
    gate.leave.release(10)
    asyncio.run(made[0].aclose())
    assert gate.batches == [["first"]]
