"""Costs by the configured prices."""

from __future__ import annotations

import logging
import math

import pytest
from pydantic import ValidationError

from guardrail.judges.spending import ModelPrice, PriceTable

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
