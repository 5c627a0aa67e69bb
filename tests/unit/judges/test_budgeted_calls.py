"""Budgets hold for every call that the LLM judge sends, and what a call took that its own verdict cancelled
is told of the response, as far as anyone knows.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from guardrail import Guard
from guardrail.events import Decision, ResponseVerdict, Usage
from guardrail.judges import Judge, Verdict
from guardrail.judges.cascade import CascadeSettings
from guardrail.judges.factory import build_judge
from guardrail.judges.recorder import recording
from guardrail.judges.settings import JudgeSettings
from guardrail.judges.spending import BudgetExhausted, UsageLedger
from guardrail.policy import Policy
from guardrail.telemetry import REGISTRY
from tests.support.constants import made, make_retries_quick
from tests.support.judges import reply_of
from tests.support.llm_server import (
    Hang,
    LlmServer,
    Recorded,
    Reply,
    Status,
    Wire,
    member,
    missing,
    obliging,
    refusing,
    verdicts,
)
from tests.unit.judges.doubles import request


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    make_retries_quick(monkeypatch)


CLAIM = "The basic plan costs $50 a month."
OTHER = "The basic plan costs $70 a month."


def judging(
    server: LlmServer, bound: dict[str, Any], ledger: UsageLedger | None = None, **changes: Any
) -> Judge:
    llm = {"model": "judge-1b", "base_url": server.url}
    budgets = {"per_minute": bound} | changes.pop("budgets", {})
    settings = {"kind": "llm", "llm": llm | changes, "budgets": budgets}
    return build_judge(made(JudgeSettings, **settings), ledger=ledger)


async def test_a_call_that_is_tried_again_is_tried_as_often_as_there_is_room_for() -> None:
    ledger = UsageLedger()
    async with LlmServer(Status(503)) as server:
        judge = judging(server, {"calls": 3}, ledger, max_retries=5)
        reply = await reply_of(judge, request(CLAIM))
        await judge.aclose()
    assert len(server.calls) == 3
    (left,) = reply.judgements
    assert (left.verdict, left.judge, left.attempts) == (Verdict.SUPPORTED, "local", 4)
    (why,) = left.degraded_from
    assert why.startswith("llm:judge-1b: the server answered 503; not tried again: budget per minute used up")
    assert reply.usage == ledger.total() == Usage(judge_calls=3)


async def test_fallbacks_find_room_likewise() -> None:
    async with LlmServer(Status(503)) as server:
        fallbacks = [{"model": f"spare-{n}"} for n in range(4)]
        judge = judging(
            server, {"calls": 2}, max_retries=0, fallbacks=fallbacks, budgets={"on_budget": "unverified"}
        )
        refused = request(CLAIM)
        with pytest.raises(BudgetExhausted, match=r"spare-0: .*503; llm:spare-1: budget"):
            await reply_of(judge, refused)
        await judge.aclose()
    assert [call.body["model"] for call in server.calls] == ["judge-1b", "spare-0"]
    assert refused.meter.attempts == 2


async def test_what_was_left_out_is_not_asked_for_again_without_room_for_it() -> None:
    async with LlmServer(Reply(missing)) as server:
        judge = judging(server, {"calls": 1})
        known, left = (await reply_of(judge, request(CLAIM, OTHER))).judgements
        await judge.aclose()
    assert len(server.calls) == 1
    assert (known.judge, known.attempts, left.verdict) == ("llm:judge-1b", 1, Verdict.UNVERIFIED)
    assert left.reasoning.startswith("left out of the first reply, and not asked again: budget per minute")


async def test_a_refused_argument_without_room_to_ask_again_is_a_failed_call_and_one_step() -> None:
    def calls(outcome: str) -> float:
        return (
            REGISTRY.get_sample_value(
                "guardrail_judge_call_seconds_count", {"model": "refused-1b", "outcome": outcome}
            )
            or 0.0
        )

    before = calls("ok"), calls("failed")
    async with LlmServer(refusing("json_schema")) as server:
        judge = judging(server, {"calls": 1}, model="refused-1b", budgets={"on_budget": "unverified"})
        with recording() as steps, pytest.raises(BudgetExhausted, match="per minute used up: 1 of 1 calls"):
            await reply_of(judge, request(CLAIM))
        await judge.aclose()
    assert len(server.calls) == 1
    (step,) = (each for each in steps.steps if each.kind == "call")
    assert "budget per minute used up" in (step.error or "")
    assert (calls("ok") - before[0], calls("failed") - before[1]) == (0, 1)


@pytest.mark.parametrize("calls", [1, 2])
async def test_a_call_that_cost_nothing_leaves_its_room_when_the_next_one_answers(calls: int) -> None:
    """A server that is busy bills nothing: what is booked is what the answer took."""
    async with LlmServer(*[Status(503)] * calls, Reply(obliging)) as server:
        judge = judging(server, {"tokens": 4_000}, max_retries=2)
        first = await reply_of(judge, request(CLAIM))
        assert first.usage.judge_calls == calls + 1
        assert 0 < first.usage.input_tokens < 2_000
        again = await reply_of(judge, request(CLAIM, question="Another one?"))
        await judge.aclose()
    assert [first.judgements[0].judge, again.judgements[0].judge] == ["llm:judge-1b"] * 2


CONTEXTS = [{"id": "pricing", "text": "The Basic plan costs $50 a month and includes 3 users."}]
ANSWER = "The Basic plan costs $60 a month. A user more is ten dollars on top of it. "


def contradicting(call: Recorded) -> Hang:
    """A verdict that blocks, and then nothing: the count of tokens would come at the end of the reply."""
    said = verdicts(*(member(label, "CONTRADICTED", evidence=[1]) for label in call.asked))
    whole = Wire(chunk_chars=len(said) * 3 // 4)
    return Hang(2, Reply(said, wire=whole))


async def verdict_of(
    server: LlmServer, kind: str, contexts: list[dict[str, str]] = CONTEXTS, **changes: Any
) -> tuple[ResponseVerdict, Usage]:
    """The verdict on the answer, and what the ledger has once all is closed."""
    llm = {"model": "judge-1b", "base_url": server.url}
    ledger = UsageLedger()
    settings = {"kind": kind, "llm": llm, "prices": {"judge-1b": {"input": 10.0, "output": 10.0}}}
    judge = build_judge(JudgeSettings.model_validate(settings | changes), ledger=ledger)
    async with Guard(judge, Policy(claim_timeout_ms=5_000)) as guard:
        verdict = await guard.check("What does Basic cost?", contexts, ANSWER)
    await judge.aclose()
    return verdict, ledger.total()


@pytest.mark.parametrize("kind", ["llm", "cascade"])
@pytest.mark.parametrize("ttl_seconds", [3_600, 0])
async def test_a_call_that_is_cancelled_by_the_block_is_counted(kind: str, ttl_seconds: int) -> None:
    async with LlmServer(contradicting) as server:
        verdict, booked = await verdict_of(server, kind, cache={"ttl_seconds": ttl_seconds})
    assert verdict.decision is Decision.BLOCK
    assert verdict.usage == booked == Usage(judge_calls=len(server.calls))
    assert booked.judge_calls >= 1


async def test_what_calls_before_it_told_is_counted_with_it() -> None:
    async with LlmServer(Status(503), Reply("Of no use."), contradicting) as server:
        verdict, booked = await verdict_of(server, "llm")
    assert verdict.decision is Decision.BLOCK
    assert verdict.usage == booked
    assert (booked.judge_calls, booked.input_tokens, booked.output_tokens) == (3, 100, 20)
    assert booked.cost_usd == pytest.approx(1.2e-3)


async def test_what_is_cancelled_before_its_first_call_took_nothing() -> None:
    ledger = UsageLedger()
    async with LlmServer() as server:
        llm = {"model": "judge-1b", "base_url": server.url}
        values = {"kind": "llm", "llm": llm, "budgets": {"per_minute": {"calls": 1}}}
        judge = build_judge(JudgeSettings.model_validate(values), ledger=ledger)
        asking = asyncio.create_task(reply_of(judge, request("The plan costs $50.")))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert ledger.total() == Usage()
        found = (await reply_of(judge, request("The plan costs $50."))).judgements
        await judge.aclose()
    assert [each.judge for each in found] == ["llm:judge-1b"]  # there was room for the one call


async def test_where_nothing_is_asked_nothing_is_consumed() -> None:
    async with LlmServer() as server:
        verdict, booked = await verdict_of(server, "llm", contexts=[])
    assert verdict.decision is Decision.FLAG
    assert verdict.usage == booked == Usage()


async def test_a_call_that_is_late_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CascadeSettings, "reserve_ms", 4_000)
    async with LlmServer(Reply("Of no use."), Hang()) as server:
        verdict, booked = await verdict_of(server, "cascade")
    assert verdict.usage.judge_calls == booked.judge_calls == len(server.calls)
    assert verdict.usage.input_tokens == 100
