"""One client's answers are made to take long: the others' right answers are released all the same."""

from __future__ import annotations

import asyncio

import pytest

from guardrail.events import (
    Context,
    Decision,
    DeliveryBlocked,
    DeliveryCompleted,
    Response,
    ResponseVerdict,
)
from guardrail.judges.local import LocalJudge
from guardrail.policy import Policy
from guardrail.routing import PolicyRouter
from tests.support.kafka_guards import kafka_guard, kafka_side

pytestmark = pytest.mark.kafka

PAID = "Refunds are paid within 14 days."
SOURCE = f"The Pro plan costs $49 per month. {PAID}"
OTHERS = 24
LONG = 400_000


def hostile(kind: str, name: str) -> Response:
    head = {
        "response_id": name,
        "question": "When?",
        "contexts": [{"id": "c", "text": SOURCE}],
        "answer": PAID,
    }
    texts: dict[str, dict[str, object]] = {
        "items": {"answer": "- a\n" * 24_750},
        "distinct items": {"answer": "".join(f"- The plan has item {n}.\n" for n in range(3_500))},
        "table rows": {"answer": "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 9_900},
        "figures in a context": {"contexts": [{"id": "c", "text": f"{SOURCE} {'1/' * LONG}"}]},
        "figures apart": {"contexts": [{"id": "c", "text": f"{SOURCE} {'0/1 1/0 ' * (LONG // 8)}"}]},
        "question": {"question": "2026-01-01 12:03:04 INFO 34 ms\n" * 12_000, "answer": f"{PAID} " * 20},
        "contexts": {"contexts": [{"id": str(n), "text": PAID} for n in range(9_999)]},
    }
    return Response.model_validate(head | texts[kind])


def right(name: str) -> Response:
    contexts = (Context(id="c", text=SOURCE),)
    return Response(response_id=name, question="When are refunds paid?", contexts=contexts, answer=PAID)


@pytest.mark.parametrize(
    "kind",
    [
        "items",
        "distinct items",
        "table rows",
        "figures in a context",
        "figures apart",
        "question",
        "contexts",
    ],
)
async def test_right_answers_beside_a_hostile_client_are_neither_blocked_nor_flagged(
    kafka_bootstrap: str, kind: str
) -> None:
    """Time is not what is tested here: however busy the machine is, each claim has a minute."""
    judge = LocalJudge()
    router = PolicyRouter.single(Policy(claim_timeout_ms=60_000))
    names = [f"right{n}" for n in range(OTHERS)]
    async with kafka_side(kafka_bootstrap) as side, kafka_guard(side.settings, judge, router):
        topics = side.settings.topics
        await side.send([hostile(kind, "hostile0"), hostile(kind, "hostile1"), *map(right, names)])
        async with asyncio.timeout(240):
            while True:
                events = await side.read(topics.deliveries)
                finals = {
                    event.response_id: event
                    for event in events
                    if isinstance(event, DeliveryCompleted | DeliveryBlocked)
                }
                if finals.keys() >= set(names):
                    break
                await asyncio.sleep(0.05)
        assert {name: type(finals[name]) for name in names} == dict.fromkeys(names, DeliveryCompleted)
        verdicts = [e for e in await side.read(topics.verdicts) if isinstance(e, ResponseVerdict)]
        assert {e.decision for e in verdicts if e.response_id in names} == {Decision.RELEASE}
    await judge.aclose()
