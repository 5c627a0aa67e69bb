"""What a call took that its own verdict cancelled is told of the response, as far as anyone knows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from guardrail import Guard
from guardrail.events import Decision, ResponseVerdict, Usage
from guardrail.judges.cascade import CascadeSettings
from guardrail.judges.factory import build_judge
from guardrail.judges.settings import JudgeSettings
from guardrail.judges.spending import UsageLedger
from guardrail.policy import Policy
from tests.support.judges import reply_of
from tests.support.llm_server import Hang, LlmServer, Recorded, Reply, Status, Wire, member, verdicts
from tests.unit.judges.doubles import request

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
