"""Policies that change under a running engine, the judges that they name, and their challengers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from guardrail import Guard
from guardrail.engine.engine import Engine, Output
from guardrail.errors import ConfigError
from guardrail.events import (
    Context,
    Decision,
    DeliveryBlocked,
    Response,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
)
from guardrail.policy import Policy
from guardrail.routing import Challenger, PolicyRouter, Route
from guardrail.telemetry import REGISTRY, count_output
from tests.support.guards import until
from tests.support.judges import GatedJudge, WordJudge

CONTEXTS = [Context(id="c1", text="A source.")]
WRONG = "It costs wrong $79."
BLOCKING = Policy.model_validate({"rules": ["verdict CONTRADICTED: block"]})
OBSERVING = Policy(name="watch", mode="observe", rules=BLOCKING.rules)


def policy(**given: Any) -> Policy:
    return Policy.model_validate(given)


class NamedJudge(WordJudge):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


async def test_a_response_keeps_the_policy_that_it_began_with() -> None:
    events: list[Any] = []

    def emit(outputs: Sequence[Output]) -> None:
        events.extend(output.event for output in outputs)

    judge = GatedJudge()
    async with Engine(judge, PolicyRouter.single(BLOCKING), emit=emit) as engine:
        engine.handle(ResponseStarted(response_id="before", contexts=tuple(CONTEXTS)))
        engine.handle(ResponseDelta(response_id="before", seq=0, text=WRONG))
        engine.use(PolicyRouter.single(policy(version="2", mode="observe")))
        engine.handle(Response(response_id="after", contexts=tuple(CONTEXTS), answer=WRONG))
        engine.handle(ResponseCompleted(response_id="before", seq=1))
        judge.gate.set()
        await until(lambda: sum(isinstance(event, ResponseVerdict) for event in events) == 2)
    found = {event.response_id: event for event in events if isinstance(event, ResponseVerdict)}
    assert (found["before"].policy, found["before"].mode) == (BLOCKING.ref, "stream")
    assert (found["after"].policy.version, found["after"].mode) == ("2", "observe")
    assert {event.response_id for event in events if isinstance(event, DeliveryBlocked)} == {"before"}


async def test_a_policy_has_its_claims_put_to_the_judge_that_it_names() -> None:
    usual, other = NamedJudge("usual"), NamedJudge("other")
    policies = {"default": Policy(), "strict": policy(name="strict", judge="llm", budget={"tokens": 5})}
    router = PolicyRouter(policies, [Route(route="strict", policy="strict")])
    async with Guard(usual, router=router, judges={"llm": other}) as guard:
        await guard.check("?", CONTEXTS, "Oslo is in Norway.", route="strict")
        await guard.check("?", CONTEXTS, "Oslo is in Norway.")
    assert [request.budget for request in other.requests] == [policies["strict"].budget]
    assert [request.budget for request in usual.requests] == [None]
    assert not other.closed


async def test_a_judge_that_is_not_there_is_an_error_and_changes_nothing() -> None:
    judge = WordJudge()
    named = PolicyRouter.single(policy(judge="llm", version="2"))
    with pytest.raises(ConfigError, match=r"policies\.default\.judge: there is no judge 'llm' here"):
        Engine(judge, named, emit=lambda _: None)
    async with Guard(judge) as guard:
        with pytest.raises(ConfigError, match=r"policies\.default\.judge"):
            guard.use(named)
        assert (await guard.check("?", CONTEXTS, "Oslo is in Norway.")).policy.version == "1"
        guard.use(named, {"llm": judge})
        assert (await guard.check("?", CONTEXTS, "Oslo is in Norway.")).policy.version == "2"
        guard.use(named)  # a judge once handed over stays


async def test_what_is_used_before_the_guard_opens_holds() -> None:
    guard = Guard(WordJudge())
    guard.use(PolicyRouter.single(policy(version="2")))
    async with guard:
        assert (await guard.check("?", CONTEXTS, "Oslo is in Norway.")).policy.version == "2"


async def test_the_generator_model_chooses_the_policy() -> None:
    router = PolicyRouter(
        {"default": Policy(), "watch": OBSERVING}, [Route(generator_model="beta-*", policy="watch")]
    )
    async with Guard(WordJudge(), router=router) as guard:
        found = await guard.check("?", CONTEXTS, WRONG, generator_model="beta-7")
        assert (found.policy.name, found.mode) == ("watch", "observe")
        assert (await guard.check("?", CONTEXTS, WRONG, generator_model="gpt")).policy.name == "default"


class TestChallengers:
    async def test_one_decides_beside_the_policy_without_a_call_and_without_effect(self) -> None:
        judge = WordJudge()
        router = PolicyRouter(
            {"watch": OBSERVING, "default": BLOCKING},
            default="watch",
            challengers=[Challenger(policy="default", against="watch")],
        )
        async with Guard(judge, router=router) as guard:
            events = [event async for event in guard.stream("?", CONTEXTS, [f"Oslo is. {WRONG} Rome is."])]
        [verdict] = [event for event in events if isinstance(event, ResponseVerdict)]
        assert verdict.challenger is not None
        assert verdict.challenger.policy == BLOCKING.ref
        assert verdict.challenger.decision is Decision.BLOCK
        assert verdict.challenger.complete
        assert not any(isinstance(event, DeliveryBlocked) for event in events)
        assert sum(len(request.claims) for request in judge.requests) == 3

    async def test_a_milder_one_is_told_to_know_no_more_than_was_judged(self) -> None:
        mild = policy(name="mild", rules=["always: release"])
        router = PolicyRouter(
            {"default": BLOCKING, "mild": mild}, challengers=[Challenger(policy="mild", against="default")]
        )
        async with Guard(WordJudge(), router=router) as guard:
            verdict = await guard.check("?", CONTEXTS, f"{WRONG} Rome is wrong in Italy.")
        assert verdict.decision is Decision.BLOCK
        assert verdict.challenger is not None
        assert verdict.challenger.decision is not Decision.BLOCK
        assert not verdict.challenger.complete

    async def test_both_decisions_are_counted(self) -> None:
        labels = {
            "policy": "watched-1",
            "challenger": "default",
            "champion_decision": "release",
            "challenger_decision": "block",
        }
        watched = policy(name="watched-1", rules=["always: release"], mode="observe", flag_below=0.0)
        router = PolicyRouter(
            {"watched-1": watched, "default": BLOCKING},
            default="watched-1",
            challengers=[Challenger(policy="default", against="watched-1")],
        )
        async with Guard(WordJudge(), router=router) as guard:
            count_output(await guard.check("?", CONTEXTS, WRONG))
        assert REGISTRY.get_sample_value("guardrail_challenger_total", labels) == 1


async def test_a_route_that_no_entry_names_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    router = PolicyRouter({"default": policy()}, [Route(route="leaflets", policy="default")])
    async with Guard(WordJudge(), router=router) as guard:
        for route in ("leaflet", "leaflet", "leaflets", None):
            await guard.check("What?", CONTEXTS, "A source.", route=route)
    told = [record.getMessage() for record in caplog.records if "policy.unrouted" in record.getMessage()]
    assert len(told) == 1
    assert "route='leaflet'" in told[0]
