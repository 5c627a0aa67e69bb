"""The judges of one process: those that policies name, and what of their settings takes a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from guardrail.errors import ConfigError
from guardrail.judges.factory import JudgeSet, check_judge, uses_local
from guardrail.judges.settings import JudgeSettings
from guardrail.judges.spending import BudgetExhausted
from guardrail.policy import Policy
from tests.support.judges import reply_of
from tests.unit.judges.doubles import request

LLM: dict[str, Any] = {"api_key": "sk-none", "base_url": "http://127.0.0.1:9/v1"}


def settings(**given: Any) -> JudgeSettings:
    return JudgeSettings.model_validate({"llm": LLM, **given})


def policy(**given: Any) -> Policy:
    return Policy.model_validate(given)


@asynccontextmanager
async def judges(settings: JudgeSettings, *policies: Policy) -> AsyncIterator[JudgeSet]:
    found = await asyncio.to_thread(JudgeSet, settings, policies)
    try:
        yield found
    finally:
        await found.aclose()


async def test_what_policies_name_is_built_and_nothing_else() -> None:
    async with judges(settings(), policy(judge="llm"), policy()) as found:
        assert found.by_kind.keys() == {"local", "llm"}
        assert found.default is found.by_kind["local"]
        assert not found.missing([policy(judge="llm"), policy(judge="local")])


async def test_a_judge_that_is_missing_is_told_and_built_of_what_its_settings_are_by_then() -> None:
    before = settings()
    http = {"url": "http://mine/"}
    after = settings(http=http, cache={"ttl_seconds": 0}, local={"languages": None})
    async with judges(before) as found:
        with pytest.raises(ConfigError, match=r"policies\.default\.judge: http: judge\.http\.url is not set"):
            found.missing([policy(judge="http")])
        missing = found.missing([policy(judge="http")], after)
        assert [each.kind for each in missing] == ["http"]
        assert found.by_kind.keys() == {"local"}
        await asyncio.to_thread(found.add, missing)
        assert found.by_kind["http"].name == "http:mine"
        # The local judge was there before: its settings are as they were.
        assert found.settings.local == before.local
        assert found.fixed(after, []) == ["judge.local"]
        other = after.model_copy(update={"http": after.http.model_copy(update={"url": "http://yours/"})})
        assert found.fixed(other, []) == ["judge.http", "judge.local"]


async def test_settings_of_judges_that_nobody_uses_take_no_restart() -> None:
    async with judges(settings()) as found:
        assert found.fixed(settings(factory="x:y", prices={"m": {"input": 1, "output": 1}}), []) == []
        assert found.fixed(settings(kind="llm"), []) == ["judge.kind"]


async def test_a_policy_bounds_its_responses() -> None:
    given = settings(kind="llm", budgets={"on_budget": "unverified"})
    async with judges(given) as found:
        asked = replace(request("Oslo is in Norway."), budget=policy(budget={"tokens": 1}).budget)
        with pytest.raises(BudgetExhausted, match="budget per response used up: 0 of 1 tokens"):
            await reply_of(found.default, asked)


async def test_beyond_a_policys_budget_the_local_judge_answers_where_it_is_to() -> None:
    bounded = policy(budget={"tokens": 1})
    async with judges(settings(kind="llm"), bounded) as found:
        reply = await reply_of(found.default, replace(request("Oslo is in Norway."), budget=bounded.budget))
        assert reply.judgements[0].judge == "local"
        assert not found.fixed(settings(kind="llm"), [bounded])


async def test_a_budget_that_comes_later_takes_a_restart_to_have_the_local_judge_answer() -> None:
    async with judges(settings(kind="llm")) as found:
        assert found.fixed(settings(kind="llm"), [policy(budget={"tokens": 1})]) == [
            "policies.default.budget"
        ]


def test_a_budget_in_dollars_needs_a_price() -> None:
    with pytest.raises(ConfigError, match="needs the price of"):
        check_judge(settings(kind="llm"), [policy(budget={"usd": 0.1})])
    with pytest.raises(ConfigError, match=r"policies\.default\.judge: llm: .*needs the price of"):
        check_judge(settings(), [policy(judge="llm", budget={"usd": 0.1})])
    check_judge(settings(), [policy(budget={"usd": 0.1})])


@pytest.mark.parametrize("kind", ["decisions", "cascade"])
def test_a_budget_in_dollars_needs_the_price_of_the_decision_model(kind: str) -> None:
    given: dict[str, Any] = {"kind": kind, "decisions": {"model": "tiny-1"}}
    bounded = {**given, "budgets": {"per_minute": {"usd": 0.1}}}
    with pytest.raises(ConfigError, match=r"needs the price of 'tiny-1'"):
        check_judge(settings(**bounded))
    with pytest.raises(ConfigError, match=r"needs the price of 'tiny-1'"):
        check_judge(settings(**given), [policy(budget={"usd": 0.1})])
    check_judge(settings(**bounded, prices={"tiny-1": {"input": 1, "output": 0}}))


async def test_the_local_judge_that_answers_for_a_decision_model_takes_a_restart_too() -> None:
    given: dict[str, Any] = {"kind": "decisions", "budgets": {"on_budget": "unverified"}}
    decisions = {"api_key": "sk-none", "fallback": "local"}
    before = settings(**given, decisions=decisions)
    assert uses_local(before)
    assert not uses_local(settings(**given, decisions={**decisions, "fallback": "none"}))
    async with judges(before) as found:
        assert found.fixed(settings(**given, decisions=decisions, local={"languages": None}), []) == [
            "judge.local"
        ]


def test_a_decision_model_with_a_budget_has_the_local_judge_answer_beyond_it() -> None:
    assert uses_local(settings(kind="decisions", budgets={"per_minute": {"calls": 1}}))
