"""Streams of judgements: checked, bounded, merged; one that is left early leaves nothing running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from guardrail.errors import JudgeUnavailable
from guardrail.judges import Judgement, JudgeRequest, Meter, Usage, Verdict, checked, closing, merged
from guardrail.judges.spending import Budget, BudgetSettings, MeteredJudge, PriceTable, UsageLedger
from guardrail.judges.streams import beside, from_callback, within
from tests.support.judges import FaultyJudge
from tests.unit.judges.doubles import ScriptedJudge, judgement, request

T = TypeVar("T")
S, N, U = Verdict.SUPPORTED, Verdict.UNSUPPORTED, Verdict.UNVERIFIED


class Endless:
    """Says one thing and then nothing more, until it is closed or cancelled."""

    def __init__(self, name: str = "one") -> None:
        self.name = name
        self.ended = ""

    async def stream(self) -> AsyncIterator[str]:
        try:
            yield self.name
            await asyncio.Event().wait()
        except BaseException as error:
            self.ended = type(error).__name__
            raise

    async def work(self, tell: Callable[[str], None]) -> None:
        async for each in self.stream():
            tell(each)


async def read(stream: AsyncIterator[T], found: list[T], pause_s: float = 0.0) -> None:
    """All of ``stream``, kept also when it raises; the reader takes its time between any two."""
    async for each in stream:
        found.append(each)
        await asyncio.sleep(pause_s)


@pytest.fixture(autouse=True)
async def _nothing_is_left_behind() -> AsyncIterator[None]:
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_of_what_a_judge_says_the_first_that_makes_sense_counts() -> None:
    unusable = replace(judgement("k2"), confidence=7.0)
    said = [
        judgement("nobody asked"),
        judgement("k0", S),
        judgement("k0", N, 0.1),
        replace(judgement("k1"), support=None),
        judgement("k1", N, 0.1),
        unusable,
    ]
    asked = request("a", "b", "c", "d")
    found = [each async for each in checked(FaultyJudge(lambda _: said), asked)]
    assert [(each.claim_id, each.verdict) for each in found] == [("k0", S), ("k1", N), ("k2", U)]
    assert found[-1].reasoning == "the judge's verdict on this claim is unusable"


async def test_what_came_before_an_error_was_said() -> None:
    inner = ScriptedJudge({"a": S, "b": S}, early=["a"], error=JudgeUnavailable("cut"))
    found: list[Judgement] = []
    with pytest.raises(JudgeUnavailable, match="cut"):
        await read(checked(inner, request("a", "b")), found)
    assert [each.claim_id for each in found] == ["k0"]


async def test_a_stream_that_goes_on_too_long_is_cancelled_and_its_reader_is_not() -> None:
    endless = Endless()
    found: list[str] = []
    with pytest.raises(TimeoutError):
        await read(within(0.01, endless.stream()), found, pause_s=0.02)  # whose own time is not bounded
    assert (found, endless.ended) == (["one"], "CancelledError")
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


@pytest.mark.parametrize("how", ["from_callback", "merged", "within"])
async def test_a_stream_that_is_left_early_ends_what_is_behind_it(how: str) -> None:
    endless, other = Endless(), Endless("two")
    streams: dict[str, AsyncIterator[str]] = {
        "from_callback": from_callback(endless.work),
        "merged": merged(endless.stream(), other.stream()),
        "within": within(60.0, endless.stream()),
    }
    async with closing(streams[how]) as stream:
        async for each in stream:
            if each == "one":
                break
    assert endless.ended == ("GeneratorExit" if how == "within" else "CancelledError")
    assert other.ended == ("CancelledError" if how == "merged" else "")


@pytest.mark.parametrize("how", ["from_callback", "merged"])
async def test_who_is_cancelled_while_waiting_ends_what_is_behind_it(how: str) -> None:
    endless = Endless()
    began = asyncio.Event()

    async def listen() -> None:
        stream = from_callback(endless.work) if how == "from_callback" else merged(endless.stream())
        async with closing(stream):
            async for _ in stream:
                began.set()

    reading = asyncio.create_task(listen())
    await began.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert endless.ended == "CancelledError"


async def test_the_first_error_of_merged_streams_is_raised_as_it_is_and_ends_the_others() -> None:
    endless = Endless()

    async def failing() -> AsyncIterator[str]:
        yield "three"
        raise ZeroDivisionError

    found: list[str] = []
    with pytest.raises(ZeroDivisionError):
        await read(merged(endless.stream(), failing()), found)
    assert sorted(found) == ["one", "three"]
    assert endless.ended == "CancelledError"


async def test_work_beside_has_ended_however_often_its_owner_is_cancelled() -> None:
    ended = asyncio.Event()
    slow = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            slow.set()
            await asyncio.sleep(0.02)
            ended.set()

    async def own() -> None:
        async with beside(work()):
            await asyncio.Event().wait()

    owner = asyncio.create_task(own())
    await asyncio.sleep(0)
    owner.cancel()
    await slow.wait()
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    assert ended.is_set()


@pytest.mark.parametrize("counts", [True, False])
async def test_a_call_that_its_reader_leaves_is_booked(*, counts: bool) -> None:
    taken = Usage(judge_calls=2, input_tokens=7)

    class Counting(ScriptedJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            if counts:
                request.meter.add(taken)
            async for each in super().judge(request):
                yield each

    ledger = UsageLedger()
    inner = Counting({"a": S, "b": S}, early=["a"], gate=asyncio.Event(), usage=None)
    judge = MeteredJudge(
        inner, "m", budget=Budget(BudgetSettings()), ledger=ledger, prices=PriceTable(), max_context_chars=100
    )
    asked = request("a", "b")
    async with closing(judge.judge(asked)) as stream:
        async for _ in stream:
            break
    assert ledger.total(model="m") == asked.meter.usage == (taken if counts else Usage(judge_calls=1))


def test_a_meter_passes_on_what_its_children_record() -> None:
    meter = Meter()
    one, other = Meter(meter), Meter(meter)
    assert (meter.attempts, one.attempts) == (1, 1)
    one.add(Usage())
    assert (meter.attempts, one.attempts, other.attempts) == (0, 0, 1)
    one.add(Usage(judge_calls=1))
    other.add(Usage(judge_calls=1, input_tokens=5))
    assert (meter.attempts, one.attempts, other.attempts) == (2, 1, 1)
    assert meter.usage == Usage(judge_calls=2, input_tokens=5)
