from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace

import pytest

from guardrail.engine import OVERLOADED
from guardrail.errors import JudgeUnavailable, ProtocolError
from guardrail.events import Context, Decision, DeliveryBlocked, Finding, Response, ResponseAborted
from guardrail.judges import Judgement, JudgeRequest, Verdict
from guardrail.judges.base import MOST_QUESTION_CHARS
from guardrail.limits import Limits
from guardrail.policy import FailPolicy, OnIncomplete, Policy
from guardrail.verdicts import unverified
from tests.support.constants import made
from tests.support.engine_bench import bench
from tests.support.guards import events_of
from tests.support.judges import FaultyJudge, GatedJudge, WordJudge
from tests.support.sessions import judgement

TEXT = "Paris is in France. Rome is in Italy. "


async def test_claims_that_come_during_a_call_go_together_in_the_next() -> None:
    judge = GatedJudge()
    async with bench(judge) as b:
        b.start()
        b.delta(0, "Paris is in France. And")
        await judge.asked.wait()
        b.delta(1, " so on. Rome is in Italy. Oslo is in Norway. ")
        b.complete(2)
        judge.gate.set()
        await b.until(lambda: bool(b.closed))
    assert sorted(len(request.claims) for request in judge.requests) == [1, 3]
    assert b.verdict().usage.judge_calls == 2


async def test_what_is_left_at_the_end_of_the_text_does_not_wait_for_the_call_under_way() -> None:
    judge = GatedJudge()
    async with bench(judge) as b:
        b.start()
        b.delta(0, "Paris is in France. Rome is in Italy. Oslo ")
        await judge.asked.wait()
        assert judge.at_once == 1
        b.delta(1, "is in Norway.")
        await asyncio.sleep(0)
        assert judge.at_once == 1  # text may still come: one call at a time
        judge.asked.clear()
        b.complete(2)
        await judge.asked.wait()
        assert judge.at_once == 2
        judge.gate.set()
        await b.until(lambda: "r1" in b.closed)
    assert judge.most_at_once == 2
    assert len(b.claims()) == 3


async def test_calls_at_once_and_claims_in_a_call_are_bounded() -> None:
    judge = GatedJudge()
    limits = made(Limits, max_concurrent_judgements=2, max_claims_per_call=1)
    async with bench(judge, limits=limits) as b:
        for name in ("a", "b", "c", "d"):
            b.whole(TEXT, name)
        for _ in range(5):  # every task gets its turn
            await asyncio.sleep(0)
        assert judge.at_once == 2
        judge.gate.set()
        await b.until(lambda: len(b.closed) == 4)
    assert judge.most_at_once == 2
    assert {len(request.claims) for request in judge.requests} == {1}


def unavailable(request: JudgeRequest) -> tuple[Judgement, ...]:
    raise JudgeUnavailable("503 from the provider")


def crashing(request: JudgeRequest) -> tuple[Judgement, ...]:
    raise RuntimeError("a text that must not get out")


def silent(request: JudgeRequest) -> tuple[Judgement, ...]:
    return ()


def inventing(request: JudgeRequest) -> tuple[Judgement, ...]:
    return (judgement("never-asked", Verdict.SUPPORTED),)


@pytest.mark.parametrize("behave", [unavailable, crashing, silent, inventing])
async def test_what_could_not_be_checked_is_never_clean(
    behave: Callable[[JudgeRequest], tuple[Judgement, ...]],
) -> None:
    async with bench(FaultyJudge(behave), Policy(on_unverified=FailPolicy.FLAG)) as b:
        await b.judged(TEXT)
        verdict = b.verdict()
        assert {claim.verdict for claim in verdict.claims} == {Verdict.UNVERIFIED}
        assert verdict.score is None
        assert verdict.decision is Decision.FLAG
        assert "must not get out" not in verdict.model_dump_json()


async def test_a_judge_that_hangs_is_given_up() -> None:
    judge = GatedJudge()
    async with bench(judge, Policy(claim_timeout_ms=20)) as b:
        await b.judged(TEXT)
        assert b.verdict().rule == "on_unverified: fail_closed"
        assert b.verdict().claims[0].verdict is Verdict.UNVERIFIED
    assert judge.cancelled == 1


async def test_the_judge_hears_whose_response_it_is_and_what_it_has_cost() -> None:
    judge = WordJudge()
    async with bench(judge) as b:
        b.start(tenant="acme")
        b.delta(0, "Paris is in France. Rome ")
        await b.until(lambda: len(b.claims()) == 1)
        b.delta(1, "is in Italy. ")
        await b.ended(2)
    asked = [(request.tenant, request.spent.judge_calls) for request in judge.requests]
    assert asked == [("acme", 0), ("acme", 1)]


async def test_a_block_cancels_the_call_under_way() -> None:
    judge = GatedJudge()
    async with bench(judge) as b:
        b.start()
        b.delta(0, TEXT)
        await judge.asked.wait()
        b.engine.handle(ResponseAborted(response_id="r1"))
        assert isinstance(b.finals()[0], DeliveryBlocked)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert judge.cancelled == 1


async def test_a_blocked_response_lets_go_of_its_contexts_before_its_input_ends() -> None:
    judge = WordJudge()
    async with bench(judge) as b:
        b.start()
        b.delta(0, "It costs wrong $79. Paris is in France. And")
        await b.until(lambda: bool(b.finals()))
        context = weakref.ref(judge.requests.pop().evidence.contexts[0])
        await asyncio.sleep(0)
        b.outputs.clear()  # the flagged case has them too
        gc.collect()
        assert b.engine.sessions == 1
        assert context() is None


async def test_a_response_from_which_nothing_comes_is_ended() -> None:
    async with bench(WordJudge(), Policy(incomplete_timeout_ms=20)) as b:
        b.start()
        b.delta(0, "Paris is in Fra")
        await b.until(lambda: bool(b.closed))
        assert b.verdict().rule == "timed out"


async def test_leaving_the_engine_cancels_what_is_under_way() -> None:
    judge = GatedJudge()
    async with bench(judge) as b:
        b.start()
        b.delta(0, TEXT)
        await judge.asked.wait()
    assert judge.cancelled == 1
    assert b.engine.sessions == 0


async def test_an_error_of_the_caller_is_not_hidden_by_the_engine() -> None:
    async def fail() -> None:
        async with bench(GatedJudge()) as b:
            b.start()
            b.delta(0, TEXT)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await fail()


# ------------------------------------------------------------------------- irregular input


async def test_contexts_over_the_limit_are_refused_and_the_response_blocked() -> None:
    async with bench(
        WordJudge(), Policy(on_incomplete=OnIncomplete.RELEASE), Limits(max_context_chars=5)
    ) as b:
        with pytest.raises(ProtocolError, match=r"limits\.max_context_chars"):
            b.start()
        assert isinstance(b.finals()[0], DeliveryBlocked)


async def test_an_answer_over_the_limit_ends_as_incomplete() -> None:
    async with bench(WordJudge(), limits=made(Limits, max_answer_chars=30)) as b:
        with pytest.raises(ProtocolError, match="longer than 30 characters"):
            b.engine.handle(Response(response_id="r1", answer=TEXT))
        assert b.closed == ["r1"]
        assert b.verdict().rule == "answer_too_long"
        assert b.verdict().decision is Decision.BLOCK


# --------------------------------------------------------------------------------- bounds


async def test_bounds_saturate_the_engine_until_there_is_room() -> None:
    judge = GatedJudge()
    async with bench(judge, limits=made(Limits, max_sessions=2, resume_at=0.6)) as b:
        for name in ("a", "b"):
            b.whole(TEXT, name)
        assert b.engine.saturated
        waiter = asyncio.create_task(b.engine.room())
        await asyncio.sleep(0)
        assert not waiter.done()
        judge.gate.set()
        await waiter
        assert not b.engine.saturated


async def test_text_and_claims_in_flight_are_bounded_too() -> None:
    async with bench(GatedJudge(), limits=Limits(max_bytes=100)) as b:
        b.start(contexts=[Context(id="c", text="x" * 60)])
        before = b.engine.saturated
        b.delta(0, "y" * 50)
        assert (before, b.engine.saturated) == (False, True)
    async with bench(GatedJudge(), limits=made(Limits, max_pending_claims=2)) as b:
        b.start()
        b.delta(0, TEXT + "And")
        assert b.engine.saturated


async def test_while_shedding_new_responses_are_turned_away_under_the_fail_policy() -> None:
    judge = WordJudge()
    async with bench(judge) as b:
        b.engine.shedding = True
        await b.judged(TEXT)
        assert b.verdict().rule == OVERLOADED
        assert isinstance(b.finals()[0], DeliveryBlocked)
    assert not judge.requests


async def test_discarded_responses_say_nothing_more() -> None:
    judge = GatedJudge()
    async with bench(judge) as b:
        b.start()
        b.delta(0, TEXT)
        await judge.asked.wait()
        before = len(b.outputs)
        b.engine.discard(["r1", "unknown"])
        judge.gate.set()
        await b.engine.drain()
        assert len(b.outputs) == before
        assert b.closed == []
        b.start()  # may start again, here or elsewhere
        assert b.engine.sessions == 1


async def test_the_oldest_text_is_as_old_as_it_is_however_late_what_follows_is_read() -> None:
    """Read on time, and what follows after a pause; or the other way round."""
    for first_late_s, then_late_s, least_s in ((0.0, 500.0, 0.0), (500.0, 0.0, 500.0)):
        judge = GatedJudge()
        async with bench(judge) as tested:
            start, delta, end = events_of("r", "Paris is in France. It is", step=100)
            for event in (start, delta):
                tested.engine.handle(event, late_s=first_late_s)  # type: ignore[arg-type]
            await judge.asked.wait()
            tested.engine.handle(end, late_s=then_late_s)  # type: ignore[arg-type]
            assert least_s <= tested.engine.oldest_held_s() <= least_s + 100
            judge.gate.set()


class HurriedJudge(FaultyJudge):
    """Has too little time at first; what it says then is what the test says."""

    def __init__(self, behave: Callable[[JudgeRequest], Iterable[Judgement]] | None = None) -> None:
        super().__init__(behave or self.in_peace)

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        if self.requests:
            async for each in super().judge(request):
                yield each
            return
        self.requests.append(request)
        for claim_id in request.claims:
            said = judgement(claim_id, Verdict.PARTIALLY_SUPPORTED)
            yield replace(said, hurried=True)

    @staticmethod
    def in_peace(request: JudgeRequest) -> Iterable[Judgement]:
        return [judgement(claim_id, Verdict.SUPPORTED) for claim_id in request.claims]


async def test_what_was_judged_in_a_hurry_is_judged_again_while_there_is_time() -> None:
    judge = HurriedJudge()
    async with bench(judge) as b:
        await b.judged(TEXT)
    assert [claim.verdict for claim in b.claims()] == [Verdict.SUPPORTED] * 2, "each is told once"
    first, again = judge.requests
    assert again.claims == first.claims
    assert (again.since or 0.0) > (first.since or 0.0)
    assert abs(again.deadline - first.deadline) < 0.1


def nothing(request: JudgeRequest) -> Iterable[Judgement]:
    return ()


def down(request: JudgeRequest) -> Iterable[Judgement]:
    raise JudgeUnavailable("it is down")


def in_a_greater_hurry(request: JudgeRequest) -> Iterable[Judgement]:
    for claim_id in request.claims:
        said = judgement(claim_id, Verdict.UNSUPPORTED)
        yield replace(said, hurried=True, findings=(Finding.CHECKED_IN_PART,))


def refused(request: JudgeRequest) -> Iterable[Judgement]:
    return [unverified(claim_id, "words", "no", refused=True) for claim_id in request.claims]


@pytest.mark.parametrize("behave", [nothing, down, in_a_greater_hurry, refused])
async def test_a_verdict_in_a_hurry_stands_where_no_better_one_comes(
    behave: Callable[[JudgeRequest], Iterable[Judgement]],
) -> None:
    judge = HurriedJudge(behave)
    async with bench(judge) as b:
        await b.judged(TEXT)
    assert [claim.verdict for claim in b.claims()] == [Verdict.PARTIALLY_SUPPORTED] * 2
    assert len(judge.requests) == 2


@pytest.mark.parametrize(
    ("behave", "verdict", "asked"),
    [
        (HurriedJudge.in_peace, Verdict.SUPPORTED, [2, 2]),
        (nothing, Verdict.PARTIALLY_SUPPORTED, [2, 2, 1]),
    ],
)
async def test_claims_that_say_the_same_share_the_second_judgement(
    behave: Callable[[JudgeRequest], Iterable[Judgement]], verdict: Verdict, asked: list[int]
) -> None:
    judge = HurriedJudge(behave)
    async with bench(judge) as b:
        await b.judged("Paris is in France. Rome is in Italy. Paris is in France. ")
    assert [claim.verdict for claim in b.claims()] == [verdict] * 3
    assert [len(request.claims) for request in judge.requests] == asked


async def test_what_was_not_judged_wholly_is_asked_anew_when_it_is_said_again() -> None:
    judge = HurriedJudge(in_a_greater_hurry)
    async with bench(judge) as b:
        b.start()
        b.delta(0, "Paris is in France. And")
        await b.until(lambda: len(b.claims()) == 1)
        judge.behave = judge.in_peace
        b.delta(1, " so on. Paris is in France. ")
        await b.ended(2)
    assert [claim.verdict for claim in b.claims() if claim.text == "Paris is in France."] == [
        Verdict.PARTIALLY_SUPPORTED,
        Verdict.SUPPORTED,
    ]


async def test_a_verdict_in_a_hurry_is_told_when_no_time_is_left_for_another() -> None:
    now = 1_000.0

    class Late(HurriedJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            nonlocal now
            now += 8.5
            async for each in super().judge(request):
                yield each

    judge = Late()
    async with bench(judge, Policy(claim_timeout_ms=10_000), clock=lambda: now) as b:
        await b.judged("Paris is in France.")
    assert [claim.verdict for claim in b.claims()] == [Verdict.PARTIALLY_SUPPORTED]
    assert len(judge.requests) == 1


async def test_judges_read_the_beginning_and_the_end_of_a_very_long_question(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is pasted in is judged neither for each claim nor silently left out."""
    judge = WordJudge()
    for length in (MOST_QUESTION_CHARS, 10 * MOST_QUESTION_CHARS):
        async with bench(judge) as b:
            b.start(question=f"What is wrong? {'x' * (length - 24)} Tell me.")
            b.delta(0, TEXT)
            await b.ended(1)
    whole, cut = (request.question for request in judge.requests)
    assert len(whole) == MOST_QUESTION_CHARS
    assert MOST_QUESTION_CHARS - 2 < len(cut) <= MOST_QUESTION_CHARS
    assert cut.startswith("What is wrong? xxx")
    assert cut.endswith("xxx Tell me.")
    assert "[…]" in cut
    told = [record.getMessage() for record in caplog.records if "judge.question_cut" in record.getMessage()]
    assert len(told) == 1
    assert "xxx" not in told[0]
