"""Usage by tenant, model and day: added up, bounded, logged once."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime

import pytest

from guardrail.judges import Usage
from guardrail.judges.spending import OTHERS, UsageLedger
from tests.unit.judges.doubles import Clock

CALL = Usage(judge_calls=1, input_tokens=80, cached_input_tokens=60, output_tokens=20, cost_usd=0.25)


def before_midnight() -> Clock:
    return Clock(datetime(2026, 3, 1, 23, 59, 0, tzinfo=UTC).timestamp())


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "judge.usage" in record.getMessage()]


def test_usage_is_added_up_by_day_tenant_and_model() -> None:
    clock = before_midnight()
    ledger = UsageLedger(clock=clock)
    ledger.add("acme", "m", CALL)
    ledger.add("acme", "m", CALL)
    ledger.add("acme", "n", CALL)
    ledger.add(None, "m", CALL)
    clock.now += 120  # past midnight, UTC
    ledger.add("acme", "m", CALL)
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
        ledger.add("acme", "m", CALL)
        assert messages(caplog) == []
        clock.now += 59
        ledger.add("acme", "m", CALL)
        clock.now += 1
        ledger.add("acme", "m", CALL)
        ledger.flush()
        ledger.flush()
        ledger.add("acme", "m", CALL)
        ledger.flush()
    lines = [dict(pair.split("=", 1) for pair in message.split()[1:]) for message in messages(caplog)]
    assert sum(int(line["calls"]) for line in lines) == 4
    assert sum(float(line["cost_usd"]) for line in lines) == 1.0
    assert {line["cached_input_tokens"] for line in lines} == {"120", "60"}


def test_a_tenants_name_can_forge_no_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        ledger = UsageLedger()
        ledger.add("a\njudge.usage day=2026-01-01 cost_usd=0\x1b[2J" + "x" * 1000, "m", CALL)
        ledger.flush()
    (message,) = messages(caplog)
    assert message.isprintable()
    assert len(message) < 400


def test_rows_are_bounded_and_nothing_is_lost_of_the_sums() -> None:
    ledger = UsageLedger(max_rows=10)
    for number in range(100):
        ledger.add(f"t{number}", "m", CALL)
    assert len(ledger.rows()) == 11
    assert ledger.total().judge_calls == 100
    assert ledger.total(tenant=OTHERS).judge_calls == 90


def test_days_older_than_a_month_are_forgotten() -> None:
    clock = before_midnight()
    ledger = UsageLedger(clock=clock)
    ledger.add("acme", "m", CALL)
    clock.now += 40 * 86_400
    ledger.flush()
    assert ledger.rows() == {}


def test_nothing_used_is_no_row() -> None:
    ledger = UsageLedger()
    ledger.add("acme", "m", Usage())
    assert ledger.rows() == {}
