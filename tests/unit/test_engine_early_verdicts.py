"""Verdicts that a judge tells before its reply is whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from guardrail.engine import judging
from guardrail.errors import JudgeUnavailable
from guardrail.events import Context, Decision, Response
from guardrail.judges import Judgement, JudgeRequest, Usage, Verdict
from guardrail.limits import Limits
from guardrail.policy import FailPolicy, Policy
from tests.support.constants import made
from tests.support.engine_bench import bench
from tests.support.judges import GatedJudge, WordJudge
from tests.support.sessions import judgement

TEXT = "Paris is in France. Rome is in Italy. "


async def test_a_verdict_that_comes_before_the_reply_is_used_at_once() -> None:
    """Of a call that then fails, what had come stays; the rest could not be checked."""

    class Telling(GatedJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            first, second = request.claims
            yield judgement("unasked", Verdict.SUPPORTED)
            yield judgement(first, Verdict.SUPPORTED)
            yield judgement(first, Verdict.CONTRADICTED)
            yield replace(judgement(second, Verdict.SUPPORTED), confidence=7.0)
            await self.gate.wait()
            raise JudgeUnavailable("the connection was cut")

    judge = Telling()
    async with bench(judge) as b:
        contexts = (Context(id="c1", text="A source."),)
        b.engine.handle(Response(response_id="r1", contexts=contexts, answer=TEXT))
        await b.until(lambda: bool(b.claims()))
        assert [claim.verdict for claim in b.claims()] == [Verdict.SUPPORTED]
        judge.gate.set()
        await b.until(lambda: "r1" in b.closed)
    assert [claim.verdict for claim in b.claims()] == [Verdict.SUPPORTED, Verdict.UNVERIFIED]


async def test_the_verdict_on_a_response_tells_what_a_call_took_whose_verdicts_all_came_early() -> None:
    class Eager(WordJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            for claim_id in request.claims:
                yield judgement(claim_id, Verdict.SUPPORTED)
            await asyncio.sleep(0)
            request.meter.add(Usage(judge_calls=1))

    async with bench(Eager()) as b:
        b.engine.handle(Response(response_id="r1", answer=TEXT))
        await b.until(lambda: "r1" in b.closed)
    assert b.verdict().usage.judge_calls == 1
    assert [claim.verdict for claim in b.claims()] == [Verdict.SUPPORTED, Verdict.SUPPORTED]


async def test_what_a_call_has_taken_is_counted_once_whether_it_ends_fails_or_is_given_up() -> None:
    class Telling(WordJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            request.meter.add(Usage(judge_calls=1))
            request.meter.add(Usage(judge_calls=1, input_tokens=10))
            ((claim_id, claim),) = request.claims.items()
            if "Paris" in claim.text:
                request.meter.add(Usage(input_tokens=20))
                yield judgement(claim_id, Verdict.SUPPORTED)
                return
            if "Rome" in claim.text:
                raise JudgeUnavailable("it tells nothing")
            await asyncio.Event().wait()
            raise AssertionError

    policy = Policy(claim_timeout_ms=200, on_unverified=FailPolicy.FAIL_OPEN)
    async with bench(Telling(), policy, made(Limits, max_claims_per_call=1)) as b:
        b.engine.handle(Response(response_id="r1", answer=TEXT + "Oslo is in Norway."))
        await b.until(lambda: "r1" in b.closed)
    assert b.verdict().usage == Usage(judge_calls=6, input_tokens=50)


async def test_a_verdict_that_is_known_is_not_lost_to_a_reply_that_does_not_end() -> None:
    class Endless(WordJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            (claim_id,) = request.claims
            yield judgement(claim_id, Verdict.CONTRADICTED)
            await asyncio.Event().wait()
            raise AssertionError

    policy = Policy(claim_timeout_ms=200, on_unverified=FailPolicy.FAIL_OPEN)
    async with bench(Endless(), policy) as b:
        b.engine.handle(Response(response_id="r1", answer="Paris is in France."))
        await b.until(lambda: "r1" in b.closed)
    assert [claim.verdict for claim in b.claims()] == [Verdict.CONTRADICTED]
    assert b.verdict().decision is Decision.BLOCK


async def test_a_verdict_is_not_held_until_its_own_claim_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claims of one call that were cut at different times are given up at different times."""
    monkeypatch.setattr(judging, "LAST_HELD_S", 60.0)
    first_ends = asyncio.Event()

    class Endless(WordJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            if not self.requests:
                await first_ends.wait()
                async for each in super().judge(request):
                    yield each
                return
            second, third = request.claims
            yield judgement(third, Verdict.SUPPORTED)
            yield judgement(second, Verdict.CONTRADICTED)
            await asyncio.Event().wait()
            raise AssertionError

    policy = Policy(claim_timeout_ms=1_500, on_unverified=FailPolicy.FAIL_OPEN)
    async with bench(Endless(), policy) as b:
        b.start()
        b.delta(0, "Paris is in France. Rome ")
        await asyncio.sleep(0)
        b.delta(1, "is in Italy. Oslo ")
        await asyncio.sleep(0.3)
        b.delta(2, "is in Norway. And ")
        first_ends.set()
        await b.until(lambda: Verdict.CONTRADICTED in {claim.verdict for claim in b.claims()})
    assert Verdict.UNVERIFIED not in {claim.verdict for claim in b.claims()}
