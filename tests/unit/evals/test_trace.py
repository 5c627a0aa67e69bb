"""The steps to a verdict: what judges were asked and said, and no secret among it."""

from __future__ import annotations

import asyncio
import json

import pytest

from guardrail.evals.evaluation import checker, traced
from guardrail.evals.results import EvaluationResult, TraceStep
from guardrail.events import Context, Response, ResponseVerdict
from guardrail.guard import Guard
from guardrail.judges import Judge
from guardrail.judges.cascade import CascadeJudge
from guardrail.judges.llm import LlmJudge
from guardrail.judges.local import LocalJudge
from guardrail.judges.recorder import recorder, recording
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.constants import make_retries_quick
from tests.support.judges import WordJudge
from tests.support.llm_server import LlmServer, Reply, Status, Wire, member, obliging, verdicts
from tests.unit.judges.llm.asking import settings

CONTEXT = Context(id="plans", text="The basic plan costs $49 a month. Support answers within a day.")
ANSWER = "The basic plan costs $79 a month. Support will answer within a day."
KEY = "sk-that-nobody-may-see"


def response(response_id: str = "r1", answer: str = ANSWER) -> Response:
    return Response(
        response_id=response_id, question="What does it cost?", contexts=(CONTEXT,), answer=answer
    )


async def trace_of(judge: Judge, asked: Response | None = None) -> tuple[ResponseVerdict, list[TraceStep]]:
    check = checker(judge, PolicyRouter.single(Policy(mode="observe")))
    try:
        verdict, steps = await traced(check, asked or response())
    finally:
        await judge.aclose()
    return verdict, list(steps)


@pytest.mark.parametrize("stream", [True, False])
async def test_every_call_with_its_messages_and_its_reply_as_it_came(stream: bool) -> None:
    said = f"Here they are:\n{verdicts(member('c1', evidence=[1]), member('c2', evidence=[2]))}"
    async with LlmServer(Reply(said, wire=Wire(ignore_stream=not stream))) as server:
        verdict, steps = await trace_of(LlmJudge(settings(server)))
    assert [step.step for step in steps] == ["statements", "call", "verdicts"]
    statements, call, last = steps
    ids = tuple(claim.claim_id for claim in verdict.claims)
    assert statements.claim_ids == call.claim_ids == last.claim_ids == ids
    assert statements.reply == "The basic plan costs $79 a month.\nSupport will answer within a day."
    sent = server.calls[0].body["messages"]
    assert call.prompt == "\n\n".join(f"{each['role']}:\n{each['content']}" for each in sent)
    assert (call.reply, call.judge, call.error) == (said, "llm:test", None)
    assert call.latency_ms is not None
    assert call.latency_ms > 0
    told = [json.loads(line) for line in (last.reply or "").splitlines()]
    assert [each["verdict"] for each in told] == [claim.verdict for claim in verdict.claims]


async def test_a_call_that_failed_is_a_step_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    make_retries_quick(monkeypatch)
    async with LlmServer(Status(503), Reply(obliging)) as server:
        _, steps = await trace_of(LlmJudge(settings(server)))
    assert [(step.step, step.error) for step in steps] == [
        ("statements", None),
        ("call", "the server answered 503"),
        ("call", None),
        ("verdicts", None),
    ]
    assert steps[1].reply == ""


async def test_no_key_and_no_header_is_in_a_trace() -> None:
    async with LlmServer(Reply(obliging)) as server:
        judge = LlmJudge(settings(server, api_key=KEY, extra_headers={"x-team": KEY}))
        verdict, steps = await trace_of(judge)
    assert server.calls[0].headers["x-team"] == KEY
    result = EvaluationResult(verdict=verdict, trace=tuple(steps))
    assert KEY.encode() not in result.to_json()


async def test_what_the_local_judge_read_and_made_of_it() -> None:
    verdict, steps = await trace_of(LocalJudge())
    assert [step.step for step in steps] == ["statements", "reading", "reading", "verdicts"]
    for claim, step in zip(verdict.claims, steps[1:3], strict=True):
        assert step.claim_ids == (claim.claim_id,)
        assert step.judge == "local"
        assert "[1] The basic plan costs $49 a month." in (step.prompt or "")
        assert (step.reply or "").splitlines()[-1].startswith(f"{claim.verdict}, support 0.")


async def test_a_cascade_shows_both_judges() -> None:
    async with LlmServer(Reply(obliging)) as server:
        llm = LlmJudge(settings(server))
        _, steps = await trace_of(CascadeJudge(LocalJudge(), llm))
    assert {step.judge for step in steps} == {None, "local", "llm:test"}


async def test_answers_that_are_judged_at_once_have_traces_of_their_own() -> None:
    check = checker(WordJudge(), PolicyRouter.single(Policy(mode="observe")))
    answers = [response(f"r{n}", f"Plan {n} is new. It costs ${n} a month.") for n in range(8)]
    for asked, (verdict, steps) in zip(
        answers, await asyncio.gather(*(traced(check, each) for each in answers)), strict=True
    ):
        assert [step.step for step in steps] == ["statements", "verdicts"]
        assert steps[0].claim_ids == tuple(claim.claim_id for claim in verdict.claims)
        assert asked.answer.split(". ")[0] in (steps[0].reply or "")


async def test_lone_surrogates_in_a_reply_can_be_stored() -> None:
    async with LlmServer(Reply("\ud800 nothing")) as server:
        verdict, steps = await trace_of(LlmJudge(settings(server, max_retries=0, ask_again=False)))
    EvaluationResult(verdict=verdict, trace=tuple(steps)).to_json()
    assert any(step.error for step in steps)


async def test_nothing_is_recorded_unless_asked_for() -> None:
    assert recorder() is None
    with recording() as outer:
        with recording() as inner:
            assert recorder() is inner
        assert recorder() is outer
    async with Guard(WordJudge()) as guard:
        await guard.check("", [CONTEXT], ANSWER)
    assert (outer.steps, inner.steps, recorder()) == ([], [], None)
