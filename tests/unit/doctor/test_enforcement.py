"""The proof, on guards in memory: one that enforces, and those that don't."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from guardrail import Guard
from guardrail.client import GuardClient
from guardrail.doctor import PROOF_ROUTE, Check, is_proof, prove
from guardrail.doctor.checks import CONTEXT, QUESTION, WRONG
from guardrail.events import FlaggedCase, ResponseVerdict
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter, Route
from guardrail.testing import MemoryBroker, MemoryClientTransport, MemoryGuard, ScriptedJudge

JUDGE = {"$95": "CONTRADICTED"}
BLOCKING = Policy(rules=["verdict CONTRADICTED: block"])


async def proven(policy: Policy, script: dict[str, str] | None = None, **options: Any) -> dict[str, Check]:
    async with (
        MemoryGuard(ScriptedJudge(JUDGE if script is None else script), policy, **options) as guard,
        GuardClient(transport=guard.transport()) as client,
    ):
        checks = {check.about: check for check in await prove(client, policy, within_s=30)}
        told = [*guard.outputs("flagged"), *guard.outputs("verdicts")]
    whole = [event for event in told if isinstance(event, FlaggedCase | ResponseVerdict)]
    assert len(whole) >= 3 or policy.mode == "observe", "whose verdicts follow the text"
    assert all(map(is_proof, whole)), "its answers are known again, whatever the policy did to them"
    return checks


RIGHT, STREAMED, WHOLE = "right answer, streamed", "wrong answer, streamed", "wrong answer, whole"


@pytest.mark.parametrize("mode", ["hold", "stream"])
async def test_a_guard_that_blocks_is_proven_to(mode: str) -> None:
    checks = await proven(BLOCKING.model_copy(update={"mode": mode}))
    assert {about: check.state for about, check in checks.items()} == dict.fromkeys(
        (RIGHT, STREAMED, WHOLE), "ok"
    )
    assert checks[STREAMED].detail.startswith("blocked by 'verdict CONTRADICTED: block' after")
    assert checks[STREAMED].detail.endswith("what is wrong was never shown")


async def test_a_redacted_answer_is_told_as_such() -> None:
    checks = await proven(Policy(rules=["verdict CONTRADICTED: redact"]))
    assert (checks[WHOLE].state, checks[WHOLE].detail[:8]) == ("ok", "redacted")


async def test_a_guard_that_observes_is_found() -> None:
    checks = await proven(BLOCKING.model_copy(update={"mode": "observe"}))
    assert (checks[RIGHT].state, checks[STREAMED].state, checks[WHOLE].state) == ("ok", "fail", "fail")
    assert "policy 'default' only observes: set mode hold or stream" in checks[WHOLE].remedy
    assert f"or route '{PROOF_ROUTE}'" in checks[WHOLE].remedy


async def test_a_guard_that_only_flags_is_found() -> None:
    checks = await proven(Policy(rules=["verdict CONTRADICTED: flag"]))
    assert checks[STREAMED].state == "fail"
    assert "flagged by 'verdict CONTRADICTED: flag' but not withheld" in checks[STREAMED].detail
    assert "withholds nothing: give it a rule that blocks" in checks[STREAMED].remedy


async def test_a_judge_that_sees_nothing_is_found() -> None:
    checks = await proven(BLOCKING, {})
    assert "the guard released it" in checks[WHOLE].detail
    assert f"policy.digest {BLOCKING.ref.digest}" in checks[WHOLE].remedy


async def test_a_block_for_want_of_a_verdict_proves_nothing() -> None:
    checks = await proven(BLOCKING, {"plan": "UNVERIFIED"})
    assert (checks[RIGHT].state, checks[STREAMED].state, checks[WHOLE].state) == ("fail", "warn", "warn")
    assert "only because the judge gave no verdict" in checks[WHOLE].detail


async def test_a_right_answer_that_is_withheld_is_a_failure() -> None:
    checks = await proven(BLOCKING, {"plan": "CONTRADICTED"})
    assert checks[RIGHT].state == "fail"
    assert "withheld or changed by 'verdict CONTRADICTED: block'" in checks[RIGHT].detail


async def test_a_right_answer_that_is_flagged_is_a_warning() -> None:
    checks = await proven(Policy(rules=["verdict CONTRADICTED: block", "always: flag"]))
    assert checks[RIGHT].state == "warn"


async def test_the_route_can_have_a_policy_of_its_own() -> None:
    policies = {"default": Policy(mode="observe"), "strict": BLOCKING.model_copy(update={"name": "strict"})}
    router = PolicyRouter(policies, [Route(route=PROOF_ROUTE, policy="strict")])
    async with (
        MemoryGuard(ScriptedJudge(JUDGE), router=router) as guard,
        GuardClient(transport=guard.transport()) as client,
    ):
        checks = await prove(client, router.choose(PROOF_ROUTE, None), within_s=30)
    assert {check.state for check in checks} == {"ok"}


ORDINARY: Final = {
    "another answer": "Our premium plan costs $95 per month. It can be cancelled at any time.",
    "more than the proof": "The standard plan costs $95 per month. The premium plan costs $195 per month.",
    "the proof in another's words": "the standard plan costs $95 per month.",
}


async def judged(
    text: str, context: str = CONTEXT, **head: Any
) -> tuple[FlaggedCase | ResponseVerdict, FlaggedCase | ResponseVerdict]:
    """The case and the verdict of an answer that an ordinary sender asks about as the doctor does."""

    async def model() -> AsyncIterator[str]:
        yield text

    async with Guard(ScriptedJudge({"$": "CONTRADICTED", "cost": "CONTRADICTED"}), BLOCKING) as guard:
        events = [event async for event in guard.stream(QUESTION, [context], model(), **head)]
    told = [event for event in events if isinstance(event, FlaggedCase | ResponseVerdict)]
    assert {type(event) for event in told} == {FlaggedCase, ResponseVerdict}
    told.sort(key=lambda event: isinstance(event, ResponseVerdict))
    return told[0], told[1]


@pytest.mark.parametrize("text", ORDINARY.values(), ids=ORDINARY)
async def test_an_answer_that_only_bears_the_marks_of_a_proof_is_not_hidden(text: str) -> None:
    case, verdict = await judged(text, route=PROOF_ROUTE, metadata={"guardrail": "doctor"})
    assert not is_proof(case)
    # Of an answer that was blocked at its first sentence the verdict has no other one.
    assert is_proof(verdict) == (text == ORDINARY["more than the proof"])


async def test_the_texts_of_a_proof_about_other_documents_or_on_another_route_are_an_answer() -> None:
    assert not any(map(is_proof, await judged(WRONG, route="sales")))
    case, _ = await judged(WRONG, "The standard plan costs $30.", route=PROOF_ROUTE)
    assert not is_proof(case)


async def test_without_a_guard_the_remedy_asks_for_one() -> None:
    broker = MemoryBroker({"rag.responses": 1, "rag.deliveries": 1})
    async with GuardClient(transport=MemoryClientTransport(broker)) as client:
        [check] = await prove(client, BLOCKING, within_s=0.1)
    assert check.state == "fail"
    assert check.remedy.startswith("is 'guardrail run' running on these topics, in this group?")
