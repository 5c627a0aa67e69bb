"""The process stood still: claims and calls in flight get that time again, and texts go on to age."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from guardrail.awake import AwakeClock, awake
from guardrail.errors import JudgeUnavailable
from guardrail.events import Decision, Verdict
from guardrail.integrations.background import end_all
from guardrail.judges import Judgement, JudgeRequest
from guardrail.policy import Policy
from tests.support.engine_bench import bench
from tests.support.judges import GatedJudge, WordJudge

pytestmark = pytest.mark.usefixtures("nobody_else_beats")
POLICY = Policy(claim_timeout_ms=3_000, incomplete_timeout_ms=3_000)
STOOD_S = 3.5
"""Longer than a claim has."""


@pytest.fixture
def nobody_else_beats() -> None:
    """A guard that an earlier test left in a thread of its own would keep the process's clock going."""
    end_all()
    for thread in threading.enumerate():
        if thread.name.endswith("guard"):  # that is ending already
            thread.join(10)
            assert not thread.is_alive()


class Machine:
    """The monotonic clock of a machine, and a process on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr("guardrail.awake.time", SimpleNamespace(monotonic=lambda: self.now))


def test_what_lies_between_two_beats_is_half_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, clock = Machine(monkeypatch), AwakeClock()
    clock.start()
    began = clock()
    machine.now += 0.4
    assert clock() == pytest.approx(began + 0.4)
    clock.beat()
    machine.now += 100.0
    assert clock() == pytest.approx(began + 0.9), "before anybody has noticed"
    clock.beat()
    assert clock() == pytest.approx(began + 0.9)
    assert clock.stood_s == pytest.approx(99.5)
    machine.now += 0.1
    assert clock() == pytest.approx(began + 1.0)


def test_without_beats_it_is_the_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, clock = Machine(monkeypatch), AwakeClock()
    machine.now += 100.0
    assert clock() == 1_100.0
    clock.start()
    clock.start()
    clock.stop()
    machine.now += 10.0
    assert clock() == 1_100.5
    clock.stop()
    machine.now += 10.0
    assert clock() == pytest.approx(1_110.5)


def test_one_that_ended_without_saying_so_stops_nobody_s_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, clock = Machine(monkeypatch), AwakeClock()
    clock.start()
    machine.now += 599.0
    assert clock() == pytest.approx(1_000.5)
    machine.now += 2.0
    assert clock() == 1_601.0
    machine.now += 5.0
    assert clock() == 1_606.0
    clock.beat()
    assert clock() == 1_606.0


class ByItsOwnClock(WordJudge):
    """Gives up on its first request when its time is over by the machine's clock, as clients do."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        self.asked.set()
        if not self.requests:
            self.requests.append(request)
            await asyncio.sleep(request.deadline - time.monotonic())
            raise JudgeUnavailable("no answer in time")
        async for each in super().judge(request):
            yield each


async def test_claims_in_flight_get_the_time_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    judge = GatedJudge()
    async with bench(judge, POLICY, clock=awake) as b:
        b.start()
        b.delta(0, "Paris is in France. Rome")
        await judge.asked.wait()
        time.sleep(STOOD_S)  # noqa: ASYNC251 - the process stands still
        await asyncio.sleep(0.3)
        assert b.engine.oldest_held_s() >= STOOD_S, "the text goes on to age"
        judge.gate.set()
        await b.ended(1)
    assert b.verdict().decision is Decision.RELEASE
    assert "guard.stood_still" in caplog.text


async def test_a_judge_that_gave_up_for_a_standstill_is_asked_again() -> None:
    judge = ByItsOwnClock()
    async with bench(judge, POLICY, clock=awake) as b:
        b.start()
        b.delta(0, "Paris is in France. Rome")
        await judge.asked.wait()
        time.sleep(STOOD_S)  # noqa: ASYNC251
        await b.ended(1)
    assert [claim.verdict for claim in b.claims()] == [Verdict.SUPPORTED, Verdict.SUPPORTED]
    again = judge.requests[1]
    assert (again.since or 0.0) > judge.requests[0].deadline
