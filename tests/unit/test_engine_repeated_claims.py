"""Of claims of a response that say the same one is judged; and what one response takes of the engine."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from guardrail.claims.cutter import MOST_CLAIMS
from guardrail.events import Decision, Response, ResponseDelta, ResponseStarted, Usage
from guardrail.judges import Verdict
from guardrail.limits import Limits
from guardrail.policy import FailPolicy, Policy
from guardrail.session import Session
from tests.support.engine_bench import Bench, bench
from tests.support.judges import FaultyJudge, GatedJudge, WordJudge
from tests.support.sessions import judgement


def asked_of(judge: WordJudge) -> list[str]:
    return [claim.text for request in judge.requests for claim in request.claims.values()]


def answer(b: Bench, text: str, response_id: str = "r1") -> None:
    b.engine.handle(Response.model_validate({"response_id": response_id, "answer": text}), lane=response_id)


async def test_a_claim_that_is_said_many_times_is_judged_once() -> None:
    judge = WordJudge()
    async with bench(judge) as b:
        answer(b, "- Paris is in France.\n" * 600)
        await b.until(lambda: bool(b.closed))
    assert asked_of(judge) == ["Paris is in France."]
    assert len({claim.claim_id for claim in b.claims()}) == len(b.claims()) == 600
    assert {claim.verdict for claim in b.claims()} == {Verdict.SUPPORTED}
    assert b.verdict().usage.judge_calls == 1
    assert [claim.usage for claim in b.claims() if claim.usage] == []


async def test_each_gets_what_the_one_cost_no_second_time() -> None:
    judge = FaultyJudge(
        lambda request: [
            replace(judgement(claim_id, Verdict.SUPPORTED), usage=Usage(input_tokens=7))
            for claim_id in request.claims
        ]
    )
    async with bench(judge) as b:
        answer(b, "- Paris is in France.\n" * 3)
        await b.until(lambda: bool(b.closed))
    assert [claim.usage and claim.usage.input_tokens for claim in b.claims()] == [7, None, None]


async def test_claims_that_lean_on_something_else_are_others() -> None:
    judge = WordJudge()
    async with bench(judge) as b:
        answer(b, "Paris is in France. It is large. Rome is in Italy. It is large.")
        await b.until(lambda: bool(b.closed))
    assert asked_of(judge).count("It is large.") == 2


async def test_an_equal_claim_that_comes_later_has_its_verdict_at_once() -> None:
    judge, text = WordJudge(), "Rome is a wrong town of Italy."
    async with bench(judge, Policy(mode="observe")) as b:
        b.start()
        b.delta(0, f"{text} And")
        await b.until(lambda: len(b.claims()) == 1)
        b.delta(1, f" so on. {text}")
        await b.ended(2)
    assert asked_of(judge).count(text) == 1
    assert [claim.verdict for claim in b.claims() if claim.text == text] == [Verdict.CONTRADICTED] * 2


async def test_a_judge_that_gives_no_verdict_on_the_first_is_not_asked_for_each_of_the_others() -> None:
    """But for those that are cut later, since it may be back by then."""
    judge = FaultyJudge(lambda request: [])
    async with bench(judge, Policy(on_unverified=FailPolicy.FLAG)) as b:
        answer(b, "- Paris is in France.\n" * 40)
        await b.until(lambda: bool(b.closed))
    assert len(judge.requests) <= 40 / Session.MOST_CUT_CLAIMS
    assert {claim.verdict for claim in b.claims()} == {Verdict.UNVERIFIED}
    assert b.verdict().decision is Decision.FLAG


async def test_when_the_first_is_given_up_before_its_turn_the_next_is_asked_about() -> None:
    """``first`` waits while others are judged, and its time runs out."""
    now = 0.0
    judge = GatedJudge()
    limits = Limits.model_validate({"max_concurrent_judgements": 1})
    policy = Policy(on_unverified=FailPolicy.FLAG, claim_timeout_ms=1_000)
    async with bench(judge, policy, limits, clock=lambda: now) as b:
        answer(b, "Rome is in Italy.", "other")
        await judge.asked.wait()
        b.start()
        b.delta(0, "Paris is in France. And")
        now = 0.9
        b.delta(1, " so on. Paris is in France. And")
        run = b.engine._runs["r1"]
        now = 1.1
        b.engine._carry_out(run, run.session.tick(now), now)
        assert [claim.verdict for claim in b.claims()] == [Verdict.UNVERIFIED]
        judge.gate.set()
        await b.ended(2)
    assert asked_of(judge).count("Paris is in France.") == 1
    assert [c.verdict for c in b.claims() if c.text == "Paris is in France."] == [
        Verdict.UNVERIFIED,
        Verdict.SUPPORTED,
    ]


async def test_of_an_answer_of_thousands_of_claims_the_first_are_judged_and_no_lane_pauses() -> None:
    """Whatever the judge does: those that wait for it are a small part of all that may wait."""
    judge = GatedJudge()
    text = "".join(f"- Item {number} is right.\n" for number in range(4_000))
    async with bench(judge) as b:
        for name in ("a", "b", "c", "d"):
            answer(b, text, name)
        for _ in range(200):
            await asyncio.sleep(0)
        assert 0 < b.engine.pending_claims <= 4 * (Session.MOST_AHEAD + 2 * Session.MOST_CUT_CLAIMS)
        assert not b.engine.saturated
        assert not b.engine.lanes_to_pause(["a", "b", "c", "d", "e"])
        judge.gate.set()
        await b.until(lambda: len(b.closed) == 4)
    assert len(asked_of(judge)) == 4 * MOST_CLAIMS
    assert b.verdict("a").decision is Decision.FLAG


async def test_the_loop_has_a_turn_every_so_many_outputs() -> None:
    """For the verdicts of equal claims, and for those that nobody judges."""
    turns: list[int] = []
    async with bench(WordJudge()) as b:

        async def count() -> None:
            while True:
                before = len(b.outputs)
                await asyncio.sleep(0)
                turns.append(len(b.outputs) - before)

        counting = asyncio.create_task(count())
        answer(b, "- a\n" * 24_750)
        await b.until(lambda: bool(b.closed))
        counting.cancel()
    assert sum(turns) > 2_000
    assert max(turns) <= 4 * Session.MOST_CUT_CLAIMS


async def test_a_text_that_is_not_cut_yet_does_not_pass_for_idle() -> None:
    async with bench(GatedJudge()) as b:
        b.engine.handle(ResponseStarted(response_id="r"))
        text = "Paris is in France. " * Session.MOST_CUT_CHARS
        b.engine.handle(ResponseDelta(response_id="r", seq=0, text=text[: 2 * Session.MOST_CUT_CHARS]))
        assert b.engine.pending_claims == 1
