"""Lanes: where responses are read from and written to; and taking them up in another process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from guardrail.engine import Engine
from guardrail.errors import ProtocolError
from guardrail.events import (
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    ResponseAborted,
    ResponseVerdict,
)
from guardrail.judges import Judgement, JudgeRequest, Verdict
from guardrail.limits import Limits
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.constants import made
from tests.support.engine_bench import TRACE, captured_halfway, process
from tests.support.judges import GatedJudge, WordJudge

TEXT = "Paris is in France. Rome is in Italy. "
TWO = f"{TEXT}And"
"""Text with two claims to be judged at once."""


async def test_outputs_and_closings_say_their_lane() -> None:
    async with process(WordJudge()) as p:
        p.start(lane=("topic", 3), born=41)
        p.delta(0, TEXT, lane=("topic", 3))
        p.complete(1, lane=("topic", 3))
        await p.until(lambda: bool(p.closed))
        assert {output.lane for output in p.outputs} == {("topic", 3)}
        [closed] = p.closings
        assert (closed.response_id, closed.lane, closed.born, closed.next_seq) == ("r1", ("topic", 3), 41, 1)
        assert len(bytes.fromhex(closed.digest)) == 8
        assert p.changes["r1"].take() is None


async def test_a_response_goes_on_in_another_process() -> None:
    first, progress = await captured_halfway()
    judge = WordJudge()
    async with process(judge) as p:
        p.restore(first.head, progress, first.policy)
        assert p.outputs == []
        assert p.engine.pending_claims == 1
        assert p.engine.knows("r1")
        p.delta(0, "Paris is in France. And ")  # repeated by a producer
        p.delta(2, " in Norway.")
        await p.ended(3)
        assert [claim.text for request in judge.requests for claim in request.claims.values()] == [
            "And Rome is in Italy.",
            "Oslo is in Norway.",
        ]
        assert [event.seq for event in p.events if isinstance(event, DeliverySegment)] == [1, 2]
        [verdict] = p.of(ResponseVerdict)
        assert verdict.counts.supported == 3
        assert verdict.usage.judge_calls == 1 + len(judge.requests)
        assert p.of(DeliveryCompleted)
        assert {output.headers for output in p.outputs} == {TRACE}
        [closed] = p.closings
        assert (closed.lane, closed.born, closed.next_seq) == ("p0", 7, 3)


async def test_the_policy_it_began_with_goes_on() -> None:
    first, progress = await captured_halfway(Policy(version="old", fallback_message="old message"))
    async with process(WordJudge(), Policy(version="new")) as p:
        p.restore(first.head, progress, first.policy)
        p.engine.handle(ResponseAborted(response_id="r1"), lane="p0")
        [verdict] = p.of(ResponseVerdict)
        assert verdict.policy.version == "old"
        [blocked] = p.of(DeliveryBlocked)
        assert blocked.message == "old message"


async def test_the_usual_judge_stands_in_for_one_that_is_not_set_up_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, progress = await captured_halfway()
    async with process(judge := WordJudge()) as p:
        p.restore(first.head, progress, first.policy.model_copy(update={"judge": "llm"}))
        await p.until(lambda: bool(judge.requests))
    assert "judge.not_set_up policy=" in caplog.text


async def test_the_deadline_counts_from_the_start_in_whichever_process() -> None:
    judge = GatedJudge()
    async with process(judge) as p:
        p.start(deadline_ms=86_400_000)
        p.delta(0, TEXT)
        captured = p.capture()
    assert captured.head is not None
    overdue = {**captured.head, "started_ms": captured.head["started_ms"] - 86_400_000}
    async with process(GatedJudge()) as p:
        p.restore(overdue, [captured.progress], captured.policy)
        await p.until(lambda: bool(p.of(DeliveryBlocked)))
        [verdict] = p.of(ResponseVerdict)
        assert {claim.verdict for claim in verdict.claims} <= {Verdict.UNVERIFIED}
        assert verdict.timings.total_ms >= 86_400_000


async def test_one_that_was_begun_on_two_lanes_is_not_taken_up_twice() -> None:
    first, progress = await captured_halfway()
    async with process(GatedJudge()) as p:
        p.restore(first.head, progress, first.policy, lane="p0", born=7)
        p.restore(first.head, progress, first.policy, lane="p1", born=9)
        assert [(closed.lane, closed.born) for closed in p.closings] == [("p1", 9)]
        assert [event.rule for event in p.events if isinstance(event, DeliveryBlocked)] == ["wrong_partition"]


async def test_each_lane_remembers_its_own_finished_responses() -> None:
    async with process(WordJudge()) as p:
        p.start()
        p.complete(0)
        p.start()  # a duplicate
        with pytest.raises(ProtocolError) as raised:
            p.delta(0, TEXT, lane="p1")
        assert raised.value.reason == "unknown_response"
        with pytest.raises(ProtocolError) as raised:
            p.delta(0, TEXT)
        assert raised.value.reason == "response_finished"


async def test_what_finished_in_another_process_is_remembered() -> None:
    limits = made(Limits, finished_response_ttl_ms=60_000, finished_responses_remembered=2)
    async with process(WordJudge(), limits=limits) as p:
        p.start()
        p.complete(0)
        [closed] = p.closings
    async with process(WordJudge(), limits=limits) as p:
        p.engine.remember("p0", "old", closed.digest, 4, 61.0)
        p.engine.remember("p0", "r1", closed.digest, 4, 59.0)
        p.start()
        p.delta(3, "seen. ")
        assert p.engine.sessions == 0
        with pytest.raises(ProtocolError, match="after the end"):
            p.delta(4, "not seen. ")
        with pytest.raises(ProtocolError, match="finished already"):
            p.start(question="Something else?")
        with pytest.raises(ProtocolError) as raised:
            p.delta(0, "forgotten", "old")
        assert raised.value.reason == "unknown_response"


async def test_a_dropped_lane_is_forgotten_without_a_word() -> None:
    judge = GatedJudge()
    async with process(judge) as p:
        for lane in ("p0", "p1"):
            p.start(lane, lane)
            p.delta(0, TEXT, lane, lane)
            p.start(f"over-{lane}", lane)
            p.complete(0, f"over-{lane}", lane)
        await p.until(lambda: len(p.closed) == 2)
        p.outputs.clear()
        await asyncio.sleep(0)
        before = p.engine.load("p1")
        p.engine.drop_lane("p0")
        p.engine.drop_lane("never there")
        assert not p.engine.knows("p0")
        assert p.engine.knows("p1")
        assert p.engine.load("p0") == 0.0
        assert p.engine.load("p1") == before
        judge.gate.set()
        await p.until(lambda: len(p.events) == 2)
        assert {output.lane for output in p.outputs} == {"p1"}
        assert set(p.engine._table.by_id) == {"p1"}
        with pytest.raises(ProtocolError) as raised:
            p.delta(0, TEXT, "over-p0", "p0")
        assert raised.value.reason == "unknown_response"


class StubbornJudge(WordJudge):
    """Answers although it was cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.answered = asyncio.Event()

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.answered.set()
        async for each in super().judge(request):
            yield each


async def test_a_late_verdict_for_a_dropped_lane_says_nothing() -> None:
    judge = StubbornJudge()
    async with process(judge) as p:
        p.start()
        p.delta(0, TEXT)
        await judge.asked.wait()
        p.engine.drop_lane("p0")
        await judge.answered.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        assert p.outputs == []
        assert p.engine.pending_claims == 0


async def test_a_hot_lane_does_not_keep_others_from_the_judge() -> None:
    judge = GatedJudge()
    async with process(judge, limits=Limits(max_concurrent_judgements=1)) as p:
        for n in range(5):
            p.start(f"hot{n}", "hot")
            p.delta(0, TEXT, f"hot{n}", "hot")
        await judge.asked.wait()
        p.start("cold", "cold")
        p.delta(0, TEXT, "cold", "cold")
        await asyncio.sleep(0)
        judge.gate.set()
        await p.until(lambda: len({output.event.response_id for output in p.outputs}) == 6)
        order = [request.response_id for request in judge.requests]
        assert order.index("cold") <= 2


async def test_lanes_over_their_share_are_paused_before_all_are() -> None:
    limits = made(Limits, max_pending_claims=10, max_sessions=100)
    async with process(GatedJudge(), limits=limits) as p:
        lanes = ["a", "b"]
        for n in range(3):
            p.start(f"a{n}", "a")
            p.delta(0, TWO, f"a{n}", "a")
        assert p.engine.load("a") == 0.6
        assert p.engine.lanes_to_pause(lanes) == set()
        p.start("b0", "b")
        p.delta(0, TWO, "b0", "b")
        assert p.engine.lanes_to_pause(lanes) == {"a"}
        p.start("b1", "b")
        p.delta(0, TWO, "b1", "b")
        assert p.engine.saturated
        assert p.engine.lanes_to_pause(lanes) == {"a", "b"}
        p.engine.shedding = True
        assert p.engine.lanes_to_pause(lanes) == set()
        p.engine.discard(["b1", "a0"])
        assert p.engine.lanes_to_pause(lanes) == set()


async def test_nothing_is_kept_of_closed_responses_but_a_bounded_number_of_ids() -> None:
    limits = made(Limits, finished_responses_remembered=10)
    async with process(WordJudge(), limits=limits) as p:
        for n in range(50):
            p.start(f"r{n}", f"p{n % 2}")
            p.delta(0, TEXT, f"r{n}", f"p{n % 2}")
            p.complete(1, f"r{n}", f"p{n % 2}")
            p.capture(f"r{n}")
        await p.until(lambda: len(p.closed) == 50)
        table = p.engine._table
        assert table.by_id == {}
        assert table.bounds.total.sessions == table.bounds.total.chars == table.bounds.total.pending == 0
        assert {key: len(lane.finished) for key, lane in table.lanes.items()} == {"p0": 10, "p1": 10}
        assert all(lane.runs == {} for lane in table.lanes.values())


async def test_an_engine_that_stores_nothing_restores_nothing() -> None:
    engine = Engine(WordJudge(), PolicyRouter.single(Policy()), emit=lambda _: None)
    async with engine:
        with pytest.raises(TypeError, match="on_change"):
            engine.restore("r1", {}, [], Policy(), lane=None, born=0)


async def test_a_change_is_said_once_until_it_is_taken() -> None:
    async with process(WordJudge()) as p:
        p.start()
        change = p.changes.pop("r1")
        p.delta(0, "Paris is ")
        assert p.changes == {}, "the change at hand holds this, too"
        taken = change.take()
        assert taken is not None
        assert taken.head is not None
        assert taken.progress is not None
        assert taken.progress["text"] == "Paris is "
        p.delta(1, "in France.")
        again = p.changes["r1"].take()
        assert again is not None
        assert (again.head, again.progress and again.progress["text"]) == (None, "in France.")
