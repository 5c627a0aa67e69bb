"""The whole guard on the LLM judge, over a real socket: verdicts, outages, and what is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from guardrail import Guard
from guardrail.events import (
    AnyOutputEvent,
    ClaimVerdict,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    DeliverySegment,
    ResponseVerdict,
)
from guardrail.judges import Verdict
from guardrail.judges.llm import LlmJudge, LlmJudgeSettings
from guardrail.policy import FailPolicy, Policy
from guardrail.schema import json_schemas
from tests.support.llm_server import Behaviour, Hang, LlmServer, Recorded, Reply, Status, member, verdicts

CONTEXTS = [{"id": "pricing", "text": "The Basic plan costs $50 a month and includes 3 users."}]
DELTAS = ["The Basic plan inc", "ludes 3 users. It co", "sts $60 a month. Support is free of charge."]


def _by_price(call: Recorded) -> str:
    """CONTRADICTED for the claim that names $60, SUPPORTED with evidence for all others."""
    said = []
    for label in call.asked:
        claim = call.user.partition(f" claim {label}]\n")[2].partition("\n[")[0]
        said.append(member(label, "CONTRADICTED" if "$60" in claim else "SUPPORTED", evidence=[1]))
    return verdicts(*said)


async def _run(behaviour: Behaviour, policy: Policy | None = None) -> tuple[list[AnyOutputEvent], LlmServer]:
    async with LlmServer(behaviour) as server:
        settings = LlmJudgeSettings(base_url=server.url, model="m")
        judge = LlmJudge(settings)
        async with Guard(judge, policy) as guard:
            events = [event async for event in guard.stream("What does Basic cost?", CONTEXTS, DELTAS)]
        await judge.aclose()
    return events, server


def _valid(events: list[AnyOutputEvent]) -> None:
    schemas: dict[str, dict[str, Any]] = json_schemas()
    for event in events:
        Draft202012Validator(schemas[event.type]).validate(json.loads(event.to_json()))


async def test_a_contradicted_price_blocks_and_what_was_supported_had_left() -> None:
    events, server = await _run(Reply(_by_price))
    _valid(events)
    shown = "".join(event.text for event in events if isinstance(event, DeliverySegment))
    assert shown == "The Basic plan includes 3 users. "
    (blocked,) = (event for event in events if isinstance(event, DeliveryBlocked))
    assert blocked.rule == Policy().rules[0].name
    claims = [event for event in events if isinstance(event, ClaimVerdict)]
    assert {claim.judge for claim in claims} == {"llm:m"}
    (price,) = (claim for claim in claims if claim.verdict is Verdict.CONTRADICTED)
    assert [evidence.quote for evidence in price.evidence] == [CONTEXTS[0]["text"]]
    (verdict,) = (event for event in events if isinstance(event, ResponseVerdict))
    assert verdict.usage.judge_calls >= 1
    assert len({call.system for call in server.calls}) == 1


@pytest.mark.parametrize("trouble", [Status(503), Hang(), Reply("All is well, trust me.")])
@pytest.mark.parametrize(
    ("fail", "decision"),
    [
        (FailPolicy.FAIL_CLOSED, Decision.BLOCK),
        (FailPolicy.FLAG, Decision.FLAG),
        (FailPolicy.FAIL_OPEN, Decision.RELEASE),
    ],
)
async def test_a_judge_that_can_not_answer_is_never_taken_for_a_yes(
    trouble: Behaviour, fail: FailPolicy, decision: Decision
) -> None:
    events, _ = await _run(trouble, Policy(on_unverified=fail, claim_timeout_ms=300))
    _unchecked(events, decision)


@pytest.mark.parametrize(
    ("rules", "decision"), [((), Decision.FLAG), (("finding judge_refused: block",), Decision.BLOCK)]
)
async def test_what_a_judge_refuses_is_decided_by_rules(rules: tuple[str, ...], decision: Decision) -> None:
    policy = Policy.model_validate({"rules_before": rules, "on_unverified": "fail_closed"})
    events, _ = await _run(Reply(None, refusal="no"), policy)
    _unchecked(events, decision)


def _unchecked(events: list[AnyOutputEvent], decision: Decision) -> None:
    _valid(events)
    (verdict,) = (event for event in events if isinstance(event, ResponseVerdict))
    assert verdict.decision is decision
    assert verdict.counts.supported == 0
    assert verdict.counts.unverified == len(verdict.claims) > 0
    assert all(claim.support is None for claim in verdict.claims)
    closing = [event for event in events if isinstance(event, DeliveryBlocked | DeliveryCompleted)]
    assert len(closing) == 1
    assert isinstance(closing[0], DeliveryBlocked) is (decision is Decision.BLOCK)
