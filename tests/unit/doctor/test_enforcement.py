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


@pytest.mark.parametrize(
    ("policy", "script", "states", "about", "said"),
    [
        (["redact"], JUDGE, "ok ok ok", WHOLE, "redacted"),
        ({"mode": "observe"}, JUDGE, "ok fail fail", WHOLE, "only observes: set mode hold or stream"),
        ({"mode": "observe"}, JUDGE, "ok fail fail", WHOLE, f"or route '{PROOF_ROUTE}'"),
        (
            ["flag"],
            JUDGE,
            "ok fail fail",
            STREAMED,
            "flagged by 'verdict CONTRADICTED: flag' but not withheld",
        ),
        (["flag"], JUDGE, "ok fail fail", STREAMED, "withholds nothing: give it a rule that blocks"),
        ({}, {}, "ok fail fail", WHOLE, "the guard released it"),
        ({}, {}, "ok fail fail", WHOLE, f"policy.digest {BLOCKING.ref.digest}"),
        # A block for want of a verdict proves nothing.
        ({}, {"plan": "UNVERIFIED"}, "fail warn warn", WHOLE, "only because the judge gave no verdict"),
        (
            {},
            {"plan": "CONTRADICTED"},
            "fail ok ok",
            RIGHT,
            "withheld or changed by 'verdict CONTRADICTED: b",
        ),
        (["block", "always: flag"], JUDGE, "warn ok ok", RIGHT, "but flagged by 'always: flag'"),
    ],
)
async def test_what_a_guard_does_with_the_answers_is_told(
    policy: dict[str, Any] | list[str], script: dict[str, str], states: str, about: str, said: str
) -> None:
    """With a policy of these rules on what is contradicted, or with these changes of one that blocks."""
    if isinstance(policy, list):
        given = Policy(rules=[f"verdict CONTRADICTED: {policy[0]}", *policy[1:]])
    else:
        given = BLOCKING.model_copy(update=policy)
    checks = await proven(given, script)
    assert " ".join(checks[each].state for each in (RIGHT, STREAMED, WHOLE)) == states
    assert said in f"{checks[about].detail}; {checks[about].remedy}"


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
