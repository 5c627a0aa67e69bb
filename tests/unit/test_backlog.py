"""Whether the judge is behind: what that follows from, and what the engine and its callers do then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from guardrail import Guard, Policy, Verdict
from guardrail.engine import Engine
from guardrail.engine.load import Backlog
from guardrail.events import Decision, DeliveryCompleted, ResponseVerdict
from guardrail.limits import Limits
from tests.support.engine_bench import bench
from tests.support.guards import Reader, events_of, new_broker, paused, running_guard, send, until
from tests.support.judges import GatedJudge, WordJudge

ONE_AT_A_TIME = Limits(max_concurrent_judgements=1)
TEXT = "Paris is in France. Rome is in Italy. "


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def is_behind(it: Backlog | Engine) -> bool:
    """It may change between two questions, which mypy doesn't expect of an attribute."""
    return it.behind


def backlog_of(clock: Clock, at_once: int = 2) -> Backlog:
    backlog = Backlog(at_once, 0.8, clock)
    backlog.timeout_s = 10.0
    return backlog


def judged_at_a_pace(backlog: Backlog, clock: Clock, pace_s: float, claims: int = 100) -> None:
    """Requests wait for a turn, and so many claims are judged, one every ``pace_s``."""
    backlog.calls = 100
    backlog.look(0)
    for _ in range(claims):
        clock.now += pace_s
        backlog.look(0, 1)


def test_it_is_behind_when_a_claim_would_wait_for_a_quarter_of_its_time() -> None:
    clock = Clock()
    backlog = backlog_of(clock)
    judged_at_a_pace(backlog, clock, 0.01)
    assert not backlog.look(240)
    assert backlog.wait_s == pytest.approx(2.4, rel=0.05)
    assert backlog.look(260)  # it tells of the change only
    assert not backlog.look(260)
    assert not backlog.caught_up.is_set()
    backlog.look(210)
    assert is_behind(backlog)
    backlog.look(190)
    assert not is_behind(backlog)
    assert backlog.caught_up.is_set()


def test_the_pace_follows_the_judge_and_not_the_claims() -> None:
    clock = Clock()
    backlog = backlog_of(clock)
    judged_at_a_pace(backlog, clock, 0.01)
    backlog.calls = 2  # no request waits: verdicts come as slowly as claims do
    backlog.look(0)
    for _ in range(50):
        clock.now += 1.0
        backlog.look(1, 1)
    assert backlog.wait_s == 0.0
    backlog.calls = 3
    backlog.look(100)
    assert backlog.wait_s == pytest.approx(1.0, rel=0.05)
    judged_at_a_pace(backlog, clock, 0.05, 600)
    backlog.look(100)
    assert backlog.wait_s == pytest.approx(5.0, rel=0.05)


def test_before_the_pace_is_known_few_may_wait() -> None:
    clock = Clock()
    backlog = backlog_of(clock, at_once=64)
    backlog.calls = 64
    backlog.look(10_000)
    assert not is_behind(backlog)  # all of them are with the judge
    backlog.calls = 65
    backlog.look(255)
    assert not is_behind(backlog)
    assert backlog.look(256)


def test_a_judge_that_says_nothing_is_broken_and_nobody_waits_for_it() -> None:
    clock = Clock()
    backlog = backlog_of(clock)
    judged_at_a_pace(backlog, clock, 0.01)
    assert backlog.look(1_000)
    clock.now += 9.9
    backlog.look(1_000)
    assert is_behind(backlog)
    clock.now += 0.2
    backlog.look(1_000)
    assert not is_behind(backlog)
    backlog.look(1_000, 1)
    assert is_behind(backlog)


def test_time_behind_adds_up() -> None:
    clock = Clock()
    backlog = backlog_of(clock)
    judged_at_a_pace(backlog, clock, 0.01)
    for _ in range(2):
        backlog.look(1_000)
        clock.now += 3.0
        assert backlog.behind_s % 3.0 == pytest.approx(0.0)
        backlog.look(0, 300)
        clock.now += 1.0
    assert backlog.behind_s == pytest.approx(6.0)


def test_without_a_time_limit_it_is_never_behind() -> None:
    backlog = Backlog(1, 0.8, Clock())
    backlog.calls = 2
    backlog.look(1_000_000)
    assert not is_behind(backlog)


async def test_an_engine_behind_pauses_all_lanes_and_says_so_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    judge, clock = GatedJudge(), Clock()
    async with bench(judge, limits=ONE_AT_A_TIME, clock=clock) as b:
        for name in "abc":
            b.whole(TEXT, name)
        assert is_behind(b.engine)
        assert b.engine.judge_wait_s >= 2.5
        assert not b.engine.saturated
        assert b.engine.lanes_to_pause([None, "other"]) == {None, "other"}
        b.engine.shedding = True  # only reading can make room
        assert b.engine.lanes_to_pause([None]) == set()
        b.engine.shedding = False
        judge.gate.set()
        told: list[int] = []
        for names, later_s in ("def", 30.0), ("ghi", 29.0), ("jkl", 1.0):
            await until(lambda: not b.engine._backlog.calls)
            assert not is_behind(b.engine)
            clock.now += later_s
            judge.gate.clear()
            b.engine._backlog._known = 0  # as at the start
            for name in names:
                b.whole(TEXT, name)
            assert is_behind(b.engine)
            told.append(sum(record.getMessage().startswith("judge.behind") for record in caplog.records))
            judge.gate.set()
        assert told == [1, 1, 2]


async def test_a_request_says_since_when_its_claims_wait() -> None:
    judge = GatedJudge()
    async with bench(judge, Policy(claim_timeout_ms=60_000), ONE_AT_A_TIME) as b:
        for name in "ab":
            b.whole(TEXT, name)
        judge.gate.set()
        await b.engine.drain()
        for request in judge.requests:
            assert request.since is not None
            assert request.deadline - request.since == pytest.approx(60.0, abs=1.0)
        # The second waited for its turn, and its time ran from its cut.
        assert judge.requests[-1].since <= judge.requests[0].deadline - 60.0 + 1.0  # type: ignore[operator]


async def test_a_response_is_not_incomplete_for_text_that_was_not_read() -> None:
    judge, clock = GatedJudge(), Clock()
    async with bench(judge, Policy(incomplete_timeout_ms=5_000), ONE_AT_A_TIME, clock=clock) as b:
        b.start("under way")
        b.delta(0, "Paris is", "under way")
        for name in "abc":
            b.whole(TEXT, name)
        assert is_behind(b.engine)
        run = b.engine._runs["under way"]
        clock.now += 8.0
        b.engine._on_timer(run)
        assert not run.session.decided
        judge.gate.set()
        await b.engine.caught_up()
        clock.now += 4.0
        b.engine._on_timer(run)
        assert not run.session.decided
        clock.now += 2.0
        b.engine._on_timer(run)
        assert b.verdict("under way").rule == "timed out"


class CountingModel:
    """Counts the deltas that were taken from it."""

    def __init__(self) -> None:
        self.given = 0

    async def deltas(self) -> AsyncIterator[str]:
        for text in (TEXT, "Oslo is in Norway. ", "Bern is in Switzerland. ", "Wien is in Austria."):
            self.given += 1
            yield text


async def test_streams_wait_for_a_judge_that_is_behind() -> None:
    judge = GatedJudge()
    model = CountingModel()
    async with Guard(judge, limits=ONE_AT_A_TIME) as guard, asyncio.TaskGroup() as group:
        checks = [group.create_task(guard.check("", ["A source."], TEXT)) for _ in range(10)]
        await judge.asked.wait()
        assert guard._engine is not None
        assert guard._engine.behind
        assert guard._engine.pending_claims == 4  # the others are not taken yet

        async def read() -> list[object]:
            return [event async for event in guard.stream("", ["A source."], model.deltas())]

        reading = group.create_task(read())
        for _ in range(20):
            await asyncio.sleep(0)
        assert model.given == 0
        judge.gate.set()
        verdicts = [await check for check in checks]
        events = await reading
    assert {verdict.decision for verdict in verdicts} == {Decision.RELEASE}
    assert any(isinstance(event, ResponseVerdict) for event in events)
    assert model.given == 4


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
async def test_a_guard_takes_no_more_than_the_judge_keeps_up_with(guarantee: str) -> None:
    """All records come with one reading; nothing is withheld or lost, and the order stays."""
    judge, broker = GatedJudge(), new_broker()
    read = Reader(broker)
    names = [f"r{number}" for number in range(40)]
    for name in names:
        send(broker, events_of(name, TEXT, step=10))
    with capture_logs():
        async with running_guard(
            broker,
            judge,
            limits=ONE_AT_A_TIME,
            delivery_guarantee=guarantee,
        ) as guard:
            await until(lambda: guard.state().judge_behind and paused(guard))
            state = guard.state()
            assert state.pending_claims <= 4 + 8  # of a slice of eight records, at most all end a claim
            assert state.judge_wait_s >= 2.5
            assert all(partition.paused for partition in state.partitions)
            judge.gate.set()
            await until(lambda: len(read.verdicts()) == len(names))
            assert not guard.state().judge_behind
    assert {verdict.decision for verdict in read.verdicts().values()} == {Decision.RELEASE}
    assert {c.verdict for v in read.verdicts().values() for c in v.claims} == {Verdict.SUPPORTED}
    assert not read.dead_letters()
    assert all(read.shown(name) == TEXT for name in names)
    assert all(isinstance(read.finals(name)[0], DeliveryCompleted) for name in names)


async def test_a_guard_that_is_stopped_behind_leaves_the_rest_to_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    judge, broker = GatedJudge(), new_broker()
    read = Reader(broker)
    names = [f"r{number}" for number in range(20)]
    for name in names:
        send(broker, events_of(name, TEXT, step=10))
    async with running_guard(broker, judge, limits=ONE_AT_A_TIME, drain_timeout_ms=10) as guard:
        await until(lambda: guard.state().judge_behind and paused(guard))
    assert len(read.verdicts()) < len(names)
    async with running_guard(broker, WordJudge()):
        await until(lambda: len(read.verdicts()) == len(names))
    assert all(read.shown(name) == TEXT for name in names)
    assert not read.dead_letters()


async def test_of_one_long_answer_only_the_next_call_counts() -> None:
    """The others of its claims wait for its own calls, and delay no other answer."""

    class Paced(GatedJudge):
        def wait_s(self, more: int = 0) -> float:
            return more * 0.1

    judge = Paced()
    async with bench(judge) as b:
        b.start("long")
        b.delta(0, "".join(f"Town {number} is in France. " for number in range(120)), "long")
        b.complete(1, "long")
        await judge.asked.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        assert b.engine.pending_claims > 100
        assert b.engine.judge_wait_s == pytest.approx(1.6)
        assert not is_behind(b.engine)
        judge.gate.set()
        await b.until(lambda: bool(b.closed))
        assert b.engine.judge_wait_s == 0.0
