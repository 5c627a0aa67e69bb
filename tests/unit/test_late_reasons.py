"""Reasons that come after their verdicts: in the session, in the engine, and from a chat model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from guardrail import Guard, UsageLedger, build_judge
from guardrail.claims import ClaimCutter
from guardrail.errors import JudgeUnavailable
from guardrail.events import (
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    FlaggedCase,
    ResponseStarted,
    ResponseVerdict,
    Usage,
)
from guardrail.judges import Judgement, JudgeRequest, Verdict
from guardrail.judges.settings import JudgeSettings
from guardrail.policy import Policy
from guardrail.session import AskJudge, Emit, StoredSession
from guardrail.session.machine import MOST_REASONS, REASONS_WITHIN_S
from tests.support.decisions_server import MODEL, DecisionsServer
from tests.support.engine_bench import Bench, process
from tests.support.guards import (
    TOPICS,
    DeliveryGuarantee,
    Reader,
    events_of,
    new_broker,
    running_guard,
    send,
    until,
)
from tests.support.judges import WordJudge
from tests.support.llm_server import Behaviour, LlmServer, Reply, Status
from tests.support.sessions import Driver, PlainRater, judgement, later

FLAGGING = Policy.model_validate({"rules": ["verdict CONTRADICTED|UNSUPPORTED: flag"]})
WRONG = "Rome is wrong in Italy. "
TEXT = f"Paris is in France. {WRONG}Oslo is unbacked in Norway."


def test_the_final_verdict_waits_for_reasons_and_nothing_else_does() -> None:
    driver = Driver(FLAGGING, explaining=True)
    driver.whole(TEXT)
    assert isinstance(driver.final, DeliveryCompleted)
    assert driver.shown == TEXT
    assert len(driver.claims) == 3
    wrong, unbacked = driver.unexplained  # nobody asks why a claim is supported
    driver.explain(unbacked, "Nothing is said of Oslo.")
    assert (driver.told, driver.session.closed) == (False, False)
    driver.explain(wrong, "It lies elsewhere.")
    driver.check_end()
    assert [claim.reasoning for claim in driver.verdict.claims] == [
        "",
        "It lies elsewhere. ",
        "Nothing is said of Oslo. ",
    ]
    assert driver.case.claims == driver.verdict.claims
    assert {claim.reasoning for claim in driver.claims} == {""}
    assert driver.session.closed


def test_a_reason_that_comes_while_the_answer_goes_on_delays_nothing() -> None:
    driver = Driver(FLAGGING, explaining=True)
    driver.feed(f"{WRONG}Paris")
    driver.answer_claims()
    driver.explain(driver.unexplained[0], "It lies elsewhere.")
    driver.feed(" is in France.")
    driver.complete()
    driver.answer_claims()
    assert driver.verdict.claims[0].reasoning == "It lies elsewhere. "
    driver.check_end()


def test_an_answer_is_blocked_at_once_and_only_what_its_verdict_names_is_waited_for() -> None:
    driver = Driver(Policy(), explaining=True)
    driver.feed("Oslo is partly in Norway. It costs wrong $5. Bern is unbacked in Peru. Lima is")
    names = list(driver.pending)
    driver.answer_claims([names[0], names[2]])
    driver.answer_claims([names[1]])
    assert isinstance(driver.final, DeliveryBlocked)
    assert not driver.told
    driver.explain(names[1], "It costs $6.")
    driver.explain(names[0])
    assert [claim.reasoning for claim in driver.verdict.claims] == ["", "It costs $6. "]
    driver.explain(names[2], "Too late.")
    driver.complete()
    driver.check_end()


def test_the_final_verdict_waits_only_a_moment_which_its_timings_do_not_count() -> None:
    driver = Driver(FLAGGING, explaining=True)
    driver.now = 1.0
    driver.whole(WRONG)
    driver.pass_time(REASONS_WITHIN_S - 0.1)
    assert not driver.told
    driver.pass_time(0.1)
    assert driver.verdict.timings.total_ms == 1000
    driver.explain(driver.unexplained[0], "Too late.")
    assert driver.verdict.claims[0].reasoning == ""
    driver.check_end()


def test_only_some_claims_of_a_long_answer_are_explained() -> None:
    driver = Driver(FLAGGING, explaining=True)
    driver.whole(WRONG * (MOST_REASONS + 5))
    assert driver.unexplained == [claim.claim_id for claim in driver.claims[:MOST_REASONS]]
    for claim_id in list(driver.unexplained):
        driver.explain(claim_id, "It lies elsewhere.")
    driver.check_end()


def test_who_takes_a_response_over_tells_when_it_was_decided() -> None:
    head = ResponseStarted(response_id="r1")
    first = StoredSession(head, FLAGGING, ClaimCutter(PlainRater()), now=0.0, max_answer_chars=1_000)
    [asked, *_] = first.answer(WRONG, 1.0)
    assert isinstance(asked, AskJudge)
    said = [judgement(claim_id, Verdict.CONTRADICTED) for claim_id, _ in asked.claims]
    first.judged([replace(each, explain=later) for each in said], 2.0)
    written = first.capture(lambda reading: round(reading * 1000))
    assert written is not None
    again = StoredSession.restored(
        head,
        FLAGGING,
        [written],
        new_cutter=lambda: ClaimCutter(PlainRater()),
        started_at=0.0,
        now=600.0,
        reading=lambda unix_ms: unix_ms / 1000,
        max_answer_chars=1_000,
    )
    verdict, _ = [effect.event for effect in again.resume(600.0) if isinstance(effect, Emit)]
    assert isinstance(verdict, ResponseVerdict)
    assert verdict.timings.total_ms == 2000


# ------------------------------------------------------------------------------------- in the engine


class Explaining(WordJudge):
    """Gives reasons when the test opens the gate."""

    def __init__(self, reason: Any = "Because.") -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.asked: list[Judgement] = []
        self.cancelled = 0
        self._said = reason

    async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
        async for each in super().judge(request):
            yield replace(each, explain=self._explain)

    async def _explain(self, final: Judgement) -> str:
        self.asked.append(final)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self._said, Exception):
            raise self._said
        said: str = self._said
        return said


async def delivered(bench: Bench) -> None:
    """A response of which all is told but the final verdict."""
    bench.whole(TEXT)

    def over() -> bool:
        judged = 2 if bench.of(DeliveryBlocked) else 3
        return bool(bench.finals()) and len(bench.claims()) == judged

    await bench.until(over)


async def test_a_response_is_closed_when_its_reasons_have_come() -> None:
    judge = Explaining()
    async with process(judge, FLAGGING) as p:
        await delivered(p)
        assert p.closed == []
        judge.gate.set()
        await p.until(lambda: bool(p.closed))
    assert [claim.reasoning for claim in p.verdict().claims] == ["", "Because. ", "Because. "]


async def test_the_model_of_a_blocked_answer_is_not_read_on_while_reasons_are_waited_for() -> None:
    judge, left = Explaining(), asyncio.Event()

    async def model() -> AsyncIterator[str]:
        try:
            while True:
                yield "It costs wrong $5. "
                await asyncio.sleep(0)
        finally:
            left.set()

    async with Guard(judge, policy=Policy()) as guard:
        async for event in guard.stream("", ["A source."], model()):
            if isinstance(event, DeliveryBlocked):
                await left.wait()
                judge.gate.set()
    assert isinstance(event, FlaggedCase)
    assert event.claims[0].reasoning == "Because. "


@pytest.mark.parametrize("reason", [ValueError("a fault"), None, 7])
async def test_a_judge_that_fails_to_explain_harms_nobody(reason: Any) -> None:
    judge = Explaining(reason)
    async with process(judge, FLAGGING) as p:
        await delivered(p)
        judge.gate.set()
        await p.until(lambda: bool(p.closed))
    assert {claim.reasoning for claim in p.verdict().claims} == {""}


async def test_a_judge_that_can_t_explain_is_complained_of_once_a_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    judge = Explaining(JudgeUnavailable("no budget"))
    judge.gate.set()
    async with process(judge, FLAGGING) as p:
        await p.judged(TEXT)
    assert len(judge.asked) == 2
    assert caplog.text.count("no reason in words: JudgeUnavailable: no budget") == 1


@pytest.mark.parametrize("told", [True, False])
async def test_nobody_explains_what_is_told_or_not_wanted_any_more(told: bool) -> None:
    judge = Explaining()
    async with process(judge, FLAGGING) as p:
        await delivered(p)
        await until(lambda: len(judge.asked) == 2)
        if told:
            p.engine.tell_verdicts()
        else:
            p.engine.discard(["r1"])
        await until(lambda: judge.cancelled == 2)
        assert len(p.of(ResponseVerdict)) == told


async def test_a_blocked_answer_that_waits_for_reasons_counts_with_its_texts_and_without_its_claims() -> None:
    judge = Explaining()
    async with process(judge, Policy()) as p:
        p.start()
        p.delta(0, "It costs wrong $5. ")
        p.delta(1, "Bern is in Peru. Lima is in Chile. ")
        await p.until(lambda: bool(p.finals()))
        await p.engine.drain()
        assert p.engine.pending_claims == 0
        assert (p.engine.chars > 0, p.engine.sessions) == (True, 1)
        p.engine.tell_verdicts()
        assert p.engine.chars == 0
        assert p.closed == []
        p.complete(2)
    assert p.closed == ["r1"]


async def test_a_reason_is_for_the_verdict_that_is_told() -> None:
    judge = Explaining()
    judge.gate.set()
    async with process(judge, FLAGGING) as p:
        await p.judged("Paris is ~~not~~ in France. Rome is in Italy.")
    assert [said.verdict for said in judge.asked] == [Verdict.UNSUPPORTED]
    assert p.verdict().claims[0].verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
async def test_a_guard_that_leaves_tells_its_verdicts_without_reasons(guarantee: DeliveryGuarantee) -> None:
    broker = new_broker()
    reader = Reader(broker)
    send(broker, events_of("r1", TEXT))
    async with running_guard(broker, Explaining(), FLAGGING, delivery_guarantee=guarantee):
        await until(lambda: bool(reader.finals("r1")))
        assert reader.verdicts() == {}
    assert [claim.reasoning for claim in reader.verdicts()["r1"].claims] == ["", "", ""]
    assert len(reader.events(TOPICS.flagged)) == 1


async def test_a_reason_that_is_no_utf_8_can_be_told() -> None:
    judge = Explaining("\ud800")
    judge.gate.set()
    async with process(judge, FLAGGING) as p:
        await p.judged(TEXT)
    assert p.verdict().to_json()


@pytest.mark.parametrize("policy", [FLAGGING, Policy(), Policy(mode="observe"), Policy(mode="hold")])
async def test_who_takes_a_response_over_tells_its_verdict_without_reasons(policy: Policy) -> None:
    async with process(Explaining(), policy) as first:
        await delivered(first)
        captured = first.capture()
    again = Explaining()
    async with process(again, policy) as p:
        p.restore(captured.head, [captured.progress], captured.policy)
        assert p.closed == ["r1"]
        assert p.finals() == [], "the end of the delivery is told once"
    assert again.requests == []
    assert [claim.verdict for claim in p.verdict().claims][:2] == [Verdict.SUPPORTED, Verdict.CONTRADICTED]
    assert len(p.of(FlaggedCase)) == 1


async def test_an_unreadable_rest_of_a_delivered_response_is_not_delivered_again() -> None:
    async with process(Explaining(), FLAGGING) as first:
        await delivered(first)
        captured = first.capture()
    assert captured.progress is not None
    async with process(WordJudge(), FLAGGING) as p:
        p.restore(captured.head, [captured.progress | {"claims": "none"}], captured.policy)
        assert p.outputs == []


# --------------------------------------------------------------------------------- from a chat model

CONTEXT = "People who take the basic plan may write to support on weekdays."
ANSWER = "Whoever takes the basic plan may call (contradicted). The plan helps on weekdays (supported)."


@asynccontextmanager
async def judged_by(
    *behaviours: Behaviour, **given: Any
) -> AsyncIterator[tuple[Guard, LlmServer, UsageLedger]]:
    """A guard with a decision model whose verdicts a chat model explains."""
    async with DecisionsServer() as server, LlmServer(*behaviours) as chat:
        decisions = {"base_url": server.url, "api_key": "k", "reasoning": "not_supported"}
        judge = {
            "kind": "decisions",
            "decisions": decisions,
            "llm": {"base_url": chat.url, "model": "chat"},
            "prices": {"chat": {"input": 1.0, "output": 1.0}, MODEL: {"input": 0.0, "output": 0.0}},
            **given,
        }
        ledger = UsageLedger()
        made = build_judge(JudgeSettings.model_validate(judge), ledger=ledger)
        async with Guard(made, policy=FLAGGING) as guard:
            yield guard, chat, ledger
        await made.aclose()


def saying(text: str) -> Reply:
    return Reply(json.dumps({"explanation": text}))


@pytest.mark.parametrize("kind", ["decisions", "cascade"])
async def test_a_chat_model_says_why_a_claim_is_not_supported(kind: str) -> None:
    async with judged_by(saying("They may write, not call."), kind=kind) as (guard, chat, ledger):
        verdict = await guard.check("", [CONTEXT], ANSWER)
    wrong, right = verdict.claims
    assert wrong.judge == f"decisions:{MODEL}"
    assert wrong.reasoning.startswith("They may write, not call. The model gives 0.90 to 'contradicted'")
    assert right.verdict is Verdict.SUPPORTED
    assert "call." not in right.reasoning
    [asked] = chat.calls
    told = asked.body["messages"][1]["content"]
    assert "Whoever takes the basic plan may call (contradicted)." in told
    assert f"quote for claim 1]\n{CONTEXT}" in told
    assert ledger.total(model="chat") == Usage(
        judge_calls=1, input_tokens=100, cached_input_tokens=64, output_tokens=20, cost_usd=120 / 1e6
    )
    assert verdict.usage.output_tokens == 20
    assert verdict.decision is Decision.FLAG


@pytest.mark.parametrize(
    ("behaviour", "given", "calls"),
    [
        (Status(401), {}, 1),
        (Reply("nothing of the kind"), {}, 3),
        (saying("Why."), {"budgets": {"per_minute": {"tokens": 1_000}, "on_budget": "unverified"}}, 0),
    ],
)
async def test_a_reason_that_does_not_come_is_not_there(
    behaviour: Behaviour, given: dict[str, Any], calls: int
) -> None:
    async with judged_by(behaviour, **given) as (guard, chat, _):
        verdict = await guard.check("", [CONTEXT], ANSWER)
    assert len(chat.calls) == calls
    assert verdict.claims[0].verdict is Verdict.CONTRADICTED
    assert verdict.claims[0].reasoning.startswith("The model gives")


async def test_without_the_setting_no_chat_model_is_asked() -> None:
    settings = JudgeSettings.model_validate({"kind": "decisions"})
    assert settings.kinds() == {"decisions"}
    asking = JudgeSettings.model_validate({"kind": "decisions", "decisions": {"reasoning": "not_supported"}})
    assert asking.kinds() == {"decisions", "llm"}
