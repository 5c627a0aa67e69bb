"""What judging may cost, that what is spent is counted also when nobody tells, and by which prices."""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from guardrail.errors import JudgeUnavailable
from guardrail.judges import Judgement, JudgeRequest, Usage, Verdict
from guardrail.judges.spending import (
    OTHERS,
    Budget,
    BudgetExhausted,
    BudgetSettings,
    MeteredJudge,
    ModelPrice,
    PriceTable,
    UsageLedger,
)
from guardrail.limits import ResponseBudget
from tests.support.judges import reply_of
from tests.unit.judges.doubles import Clock, ScriptedJudge, request

CALL = Usage(judge_calls=1, input_tokens=80, output_tokens=20, cost_usd=0.01)
S = Verdict.SUPPORTED


def budget(clock: Clock | None = None, **settings: Any) -> Budget:
    return Budget(BudgetSettings.model_validate(settings), clock=clock or Clock())


def asked(tokens: int | None = None, **of: Any) -> JudgeRequest:
    """A request whose response may take so many tokens."""
    return replace(request("a", **of), budget=ResponseBudget(tokens=tokens))


def call(budget: Budget, used: Usage = CALL, expected: Usage = CALL, **of: Any) -> None:
    budget.reserve(asked(**of), expected).settle(used)


@pytest.mark.parametrize("unit", [{"calls": 3}, {"tokens": 300}, {"usd": 0.0301}])
def test_a_minute_has_room_for_so_much_and_the_next_again(unit: dict[str, float]) -> None:
    clock = Clock()
    bounded = budget(clock, per_minute=unit)
    for _ in range(3):
        call(bounded)
        clock.now += 10
    with pytest.raises(BudgetExhausted, match="budget per minute used up"):
        call(bounded)
    clock.now = 1060.0  # the first call is a minute old: there is room for one
    call(bounded)
    with pytest.raises(BudgetExhausted):
        call(bounded)
    clock.now = 1200.0
    for _ in range(3):
        call(bounded)


def test_a_window_slides_and_does_not_begin_anew_with_each_minute() -> None:
    clock = Clock()
    bounded = budget(clock, per_minute={"calls": 2})
    clock.now = 1059.0
    call(bounded)
    call(bounded)
    clock.now = 1061.0
    with pytest.raises(BudgetExhausted):
        call(bounded)


def test_tenants_have_budgets_of_their_own() -> None:
    bounded = budget(per_tenant_minute={"calls": 1})
    call(bounded, tenant="acme")
    call(bounded, tenant="globex")
    call(bounded)
    with pytest.raises(BudgetExhausted, match="of the tenant per minute"):
        call(bounded, tenant="acme")


def test_a_response_has_a_budget_over_all_its_calls() -> None:
    bounded = budget()
    call(bounded, tokens=250)
    call(bounded, tokens=250, spent=CALL)
    with pytest.raises(BudgetExhausted, match=r"budget per response used up: 200 of 250 tokens, about 100"):
        call(bounded, tokens=250, spent=Usage(judge_calls=2, input_tokens=160, output_tokens=40))
    call(bounded, tokens=250, response_id="r2")


def test_calls_in_flight_count_by_what_they_are_expected_to_take() -> None:
    bounded = budget(per_minute={"tokens": 250})
    first = bounded.reserve(asked(150), CALL)
    with pytest.raises(BudgetExhausted, match="per response"):
        bounded.reserve(asked(150), CALL)
    bounded.reserve(asked(150, response_id="r2"), CALL)
    with pytest.raises(BudgetExhausted, match="per minute"):
        bounded.reserve(asked(150, response_id="r3"), CALL)
    first.settle(Usage(judge_calls=1, input_tokens=10))
    bounded.reserve(asked(150, response_id="r3"), CALL)


def test_what_a_failed_call_took_is_not_in_spent_and_counts_for_the_response_all_the_same() -> None:
    bounded = budget()
    for _ in range(2):
        call(bounded, tokens=250)
    with pytest.raises(BudgetExhausted, match="200 of 250"):
        call(bounded, tokens=250)


@pytest.mark.parametrize("later", [CALL, Usage(judge_calls=9, input_tokens=100)])
def test_what_a_response_had_spent_elsewhere_counts_along_with_its_calls_here(later: Usage) -> None:
    bounded = budget()
    bounded.reserve(asked(250, spent=CALL), CALL)
    with pytest.raises(BudgetExhausted, match="200 of 250"):
        bounded.reserve(asked(250, spent=later), CALL)
    with pytest.raises(BudgetExhausted, match="240 of 250"):
        bounded.reserve(asked(250, spent=replace_tokens(CALL, 220)), CALL)


def test_a_responses_tally_is_forgotten_in_time_and_what_the_response_tells_goes_on_counting() -> None:
    clock = Clock()
    bounded = budget(clock)
    call(bounded, tokens=150)
    clock.now += 600
    with pytest.raises(BudgetExhausted, match="100 of 150"):
        call(bounded, tokens=150, spent=CALL)
    clock.now += 600
    call(bounded, tokens=150)


def test_a_response_that_goes_on_for_hours_takes_no_more_memory() -> None:
    clock = Clock()
    bounded = budget(clock)
    sizes = []
    for _ in range(200):
        call(bounded)
        sizes.append(len(pickle.dumps(bounded)))
        clock.now += 60
    assert max(sizes) < 1.5 * sizes[2]


def test_a_refused_call_takes_no_room() -> None:
    bounded = budget(per_minute={"calls": 10, "tokens": 150})
    call(bounded)
    for _ in range(20):
        with pytest.raises(BudgetExhausted, match="tokens"):
            call(bounded)
    call(bounded, expected=Usage(judge_calls=1))


def test_a_settlement_after_its_minute_changes_nothing() -> None:
    clock = Clock()
    bounded = budget(clock, per_minute={"tokens": 150})
    late = bounded.reserve(asked(response_id="r2"), CALL)
    clock.now += 120
    call(bounded)
    late.settle(replace_tokens(CALL, 10_000))
    with pytest.raises(BudgetExhausted, match="100 of 150"):
        call(bounded)


def replace_tokens(usage: Usage, tokens: int) -> Usage:
    return usage.model_copy(update={"input_tokens": tokens})


def test_without_bounds_nothing_is_refused() -> None:
    settings = BudgetSettings()
    assert not settings.bounded
    assert not settings.needs_prices
    unbounded = Budget(settings)
    for _ in range(100):
        unbounded.reserve(request("a"), CALL)
    assert BudgetSettings.model_validate({"per_tenant_minute": {"usd": 1}}).needs_prices


def metered(judge: ScriptedJudge, **settings: Any) -> tuple[MeteredJudge, UsageLedger]:
    prices = PriceTable({"m": ModelPrice(input=1.0, cached_input=0.1, output=10.0)})
    kept, ledger = budget(**settings), UsageLedger()
    return MeteredJudge(
        judge, "m", budget=kept, ledger=ledger, prices=prices, max_context_chars=100_000
    ), ledger


async def test_a_refused_call_is_never_made() -> None:
    inner = ScriptedJudge({"a": S})
    judge, _ = metered(inner, per_minute={"calls": 1})
    await reply_of(judge, request("a"))
    with pytest.raises(BudgetExhausted):
        await reply_of(judge, request("a"))
    assert len(inner.asked) == 1


async def test_usage_is_booked_with_tenant_and_model() -> None:
    judge, ledger = metered(ScriptedJudge({"a": S}, usage=CALL))
    reply = await reply_of(judge, request("a", tenant="acme"))
    assert reply.usage == CALL
    assert ledger.total(tenant="acme", model="m") == CALL


async def test_an_answer_of_a_fallback_that_costs_nothing_costs_nothing() -> None:
    free = Usage(judge_calls=1, input_tokens=100_000, output_tokens=10_000)
    line = Judgement("", S, 0.9, 0.9, "llm:own")
    judge, ledger = metered(ScriptedJudge({"a": line}, usage=free, model="own"), per_minute={"usd": 0.01})
    for _ in range(3):
        assert (await reply_of(judge, request("a"))).usage == free
    assert ledger.total(model="own") == free.model_copy(
        update={"judge_calls": 3, "input_tokens": 300_000, "output_tokens": 30_000}
    )
    assert ledger.total().cost_usd == 0


async def test_a_failure_that_cost_nothing_costs_nothing() -> None:
    free = Usage(judge_calls=1, input_tokens=100_000)
    judge, ledger = metered(ScriptedJudge(error=JudgeUnavailable("no"), usage=free), per_minute={"usd": 0.01})
    for _ in range(3):
        with pytest.raises(JudgeUnavailable, match="no"):
            await reply_of(judge, request("a"))
    assert ledger.total().cost_usd == 0


async def test_what_a_failed_call_took_is_booked() -> None:
    taken = Usage(judge_calls=3, input_tokens=300)
    judge, ledger = metered(ScriptedJudge(error=JudgeUnavailable("no"), usage=taken))
    with pytest.raises(JudgeUnavailable):
        await reply_of(judge, request("a"))
    assert ledger.total().judge_calls == 3


async def test_a_request_that_was_never_sent_takes_no_room() -> None:
    inner = ScriptedJudge(error=JudgeUnavailable("left alone"), usage=Usage())
    judge, ledger = metered(inner, per_minute={"calls": 1, "tokens": 1_000})
    for _ in range(5):
        with pytest.raises(JudgeUnavailable, match="left alone"):
            await reply_of(judge, request("a"))
    assert ledger.rows() == {}


@pytest.mark.parametrize("bound", [{"tokens": 1_000}, {"usd": 0.0015}])
async def test_a_server_that_tells_no_tokens_uses_up_the_budget_as_expected(bound: dict[str, float]) -> None:
    judge, ledger = metered(ScriptedJudge({"a": S}, usage=Usage(judge_calls=1)), per_minute=bound)
    await reply_of(judge, request("a"))
    with pytest.raises(BudgetExhausted, match="per minute"):
        await reply_of(judge, request("a", response_id="r2"))
    assert ledger.total() == Usage(judge_calls=1)  # the ledger has what was told


async def test_failed_calls_that_were_sent_use_up_the_budget_as_expected() -> None:
    taken = Usage(judge_calls=2)
    judge, _ = metered(ScriptedJudge(error=JudgeUnavailable("cut"), usage=taken))
    with pytest.raises(JudgeUnavailable, match="cut"):
        await reply_of(judge, asked(1_000))
    with pytest.raises(BudgetExhausted, match="per response"):
        await reply_of(judge, asked(1_000, spent=taken))


async def test_a_reply_for_which_nobody_was_asked_takes_no_room() -> None:
    inner = ScriptedJudge({"a": S}, usage=Usage())
    judge, _ = metered(inner, per_minute={"calls": 1, "tokens": 1_000})
    for _ in range(3):
        await reply_of(judge, request("a"))


async def test_a_failure_that_tells_no_usage_stays_booked_as_expected() -> None:
    judge, _ = metered(ScriptedJudge(error=JudgeUnavailable("no"), usage=None), per_minute={"calls": 1})
    with pytest.raises(JudgeUnavailable, match="no"):
        await reply_of(judge, request("a"))
    with pytest.raises(BudgetExhausted):
        await reply_of(judge, request("a"))


async def test_a_cancelled_call_stays_booked_as_expected() -> None:
    inner = ScriptedJudge({"a": S}, gate=asyncio.Event())
    judge, ledger = metered(inner, per_minute={"tokens": 1_000})
    task = asyncio.create_task(reply_of(judge, request("a", tenant="acme")))
    await inner.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(BudgetExhausted):
        await reply_of(judge, request("a"))
    assert ledger.total() == ledger.total(tenant="acme", model="m") == Usage(judge_calls=1)


async def test_long_contexts_need_more_of_the_budget_than_short_ones() -> None:
    judge, _ = metered(ScriptedJudge({"a": S}))
    await reply_of(judge, asked(3_000))
    with pytest.raises(BudgetExhausted, match="per response"):
        await reply_of(judge, asked(3_000, contexts=("word " * 4_000,), response_id="r2"))


async def test_every_model_that_was_called_has_its_own_rows() -> None:
    class Failing(ScriptedJudge):
        async def judge(self, request: JudgeRequest) -> AsyncIterator[Judgement]:
            request.meter.add(Usage(judge_calls=1, input_tokens=60), "m")
            async for each in super().judge(request):
                yield each

    inner = Failing({"a": S}, usage=Usage(judge_calls=1, input_tokens=40), model="fallback")
    judge, ledger = metered(inner)
    await reply_of(judge, request("a"))
    assert ledger.total(model="fallback") == Usage(judge_calls=1, input_tokens=40)
    assert ledger.total(model="m") == Usage(judge_calls=1, input_tokens=60)


async def test_closing_logs_what_is_not_logged_yet_and_closes_the_judge(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inner = ScriptedJudge({"a": S}, usage=CALL)
    judge, _ = metered(inner)
    await reply_of(judge, request("a", tenant="acme"))
    with caplog.at_level(logging.INFO):
        await judge.aclose()
    assert inner.closed
    assert "tenant='acme' model='m' calls=1 input_tokens=80" in caplog.text


# ------------------------------------------------------------------------------------------------- the ledger

PRICED = Usage(judge_calls=1, input_tokens=80, cached_input_tokens=60, output_tokens=20, cost_usd=0.25)


def before_midnight() -> Clock:
    return Clock(datetime(2026, 3, 1, 23, 59, 0, tzinfo=UTC).timestamp())


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "judge.usage" in record.getMessage()]


def test_usage_is_added_up_by_day_tenant_and_model() -> None:
    clock = before_midnight()
    ledger = UsageLedger(clock=clock)
    ledger.add("acme", "m", PRICED)
    ledger.add("acme", "m", PRICED)
    ledger.add("acme", "n", PRICED)
    ledger.add(None, "m", PRICED)
    clock.now += 120  # past midnight, UTC
    ledger.add("acme", "m", PRICED)
    assert [(key.day.day, key.tenant, key.model, u.judge_calls) for key, u in ledger.rows().items()] == [
        (1, "", "m", 1),
        (1, "acme", "m", 2),
        (1, "acme", "n", 1),
        (2, "acme", "m", 1),
    ]
    assert ledger.total(tenant="acme", day=date(2026, 3, 1)).cost_usd == 0.75
    assert ledger.total(model="m").input_tokens == 320
    assert ledger.total(tenant="").judge_calls == 1
    assert ledger.total().cached_input_tokens == 300


def test_the_log_has_each_interval_once_and_its_lines_add_up(caplog: pytest.LogCaptureFixture) -> None:
    clock = before_midnight()
    with caplog.at_level(logging.INFO):
        ledger = UsageLedger(log_interval_s=60, clock=clock)
        ledger.add("acme", "m", PRICED)
        assert messages(caplog) == []
        clock.now += 59
        ledger.add("acme", "m", PRICED)
        clock.now += 1
        ledger.add("acme", "m", PRICED)
        ledger.flush()
        ledger.flush()
        ledger.add("acme", "m", PRICED)
        ledger.flush()
    lines = [dict(pair.split("=", 1) for pair in message.split()[1:]) for message in messages(caplog)]
    assert sum(int(line["calls"]) for line in lines) == 4
    assert sum(float(line["cost_usd"]) for line in lines) == 1.0
    assert {line["cached_input_tokens"] for line in lines} == {"120", "60"}


def test_a_tenants_name_can_forge_no_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        ledger = UsageLedger()
        ledger.add("a\njudge.usage day=2026-01-01 cost_usd=0\x1b[2J" + "x" * 1000, "m", PRICED)
        ledger.flush()
    (message,) = messages(caplog)
    assert message.isprintable()
    assert len(message) < 400


def test_rows_are_bounded_and_nothing_is_lost_of_the_sums() -> None:
    ledger = UsageLedger(max_rows=10)
    for number in range(100):
        ledger.add(f"t{number}", "m", PRICED)
    assert len(ledger.rows()) == 11
    assert ledger.total().judge_calls == 100
    assert ledger.total(tenant=OTHERS).judge_calls == 90


def test_days_older_than_a_month_are_forgotten() -> None:
    clock = before_midnight()
    ledger = UsageLedger(clock=clock)
    ledger.add("acme", "m", PRICED)
    clock.now += 40 * 86_400
    ledger.flush()
    assert ledger.rows() == {}


# ----------------------------------------------------------------------------------------------------- prices

OLD = ModelPrice(input=5.0, output=15.0)
NEW = ModelPrice(input=2.5, cached_input=1.25, output=10.0)
MINI = ModelPrice(input=0.15, cached_input=0.075, output=0.6)


def test_cached_tokens_are_part_of_the_input_and_have_their_own_price() -> None:
    table = PriceTable({"gpt-4o": NEW})
    assert table.cost_usd("gpt-4o", 1_000_000, 400_000, 100_000) == pytest.approx(1.5 + 0.5 + 1.0)


def test_without_a_price_for_cached_tokens_they_cost_as_much_as_others() -> None:
    assert PriceTable({"m": OLD}).cost_usd("m", 1_000_000, 900_000, 0) == pytest.approx(5.0)


def test_more_cached_tokens_than_input_never_make_the_cost_negative() -> None:
    assert PriceTable({"m": NEW}).cost_usd("m", 100, 1_000_000, 0) == pytest.approx(100 * 1.25 / 1e6)
    assert PriceTable({"m": NEW}).cost_usd("m", -5, -7, -1) == 0.0


@pytest.mark.parametrize(
    "name", ["gpt-4o", "openai/gpt-4o", "azure/GPT-4o", "openrouter/openai/gpt-4o:free", "gpt-4o-2024-11-20"]
)
def test_a_name_is_found_without_its_provider_and_its_date(name: str) -> None:
    assert PriceTable({"gpt-4o": NEW, "gpt-4o-mini": MINI}).price(name) == NEW


def test_the_exact_name_wins_then_the_one_without_provider_then_the_undated() -> None:
    table = PriceTable({"gpt-4o-2024-05-13": OLD, "gpt-4o": NEW})
    assert table.price("gpt-4o-2024-05-13") == OLD
    assert table.price("openai/gpt-4o-2024-05-13") == OLD
    assert table.price("openai/gpt-4o-2024-08-06") == NEW


@pytest.mark.parametrize("turned", [False, True])
def test_where_only_other_dates_are_priced_the_dearest_holds(turned: bool) -> None:
    prices = [("gpt-4o-2024-05-13", OLD), ("gpt-4o-2024-08-06", NEW)]
    assert PriceTable(dict(reversed(prices) if turned else prices)).price("gpt-4o") == OLD


def test_a_model_without_a_price_is_free_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    table = PriceTable({"gpt-4o": NEW})
    with caplog.at_level(logging.WARNING):
        assert table.cost_usd("gpt-4o-mini", 10, 0, 10) == 0.0
        assert table.cost_usd("gpt-4o-mini", 10, 0, 10) == 0.0
    assert [record.getMessage() for record in caplog.records] == [
        "judge.price_unknown model='gpt-4o-mini' effect='its calls count as free of cost' "
        "remedy='add judge.prices'"
    ]


@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan])
def test_a_price_is_a_number_of_dollars(wrong: float) -> None:
    with pytest.raises(ValidationError, match="input"):
        ModelPrice(input=wrong, output=1.0)
