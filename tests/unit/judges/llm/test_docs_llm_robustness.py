"""What docs/llm-robustness.md says of settings and of failures is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from guardrail.calls import RETRIES, AdaptiveLimit, CircuitBreaker
from guardrail.calls.caller import MAX_QUEUE
from guardrail.errors import JudgeUnavailable
from guardrail.judges.llm import LlmJudgeSettings
from guardrail.judges.llm.chat import Chat
from guardrail.judges.settings import JudgeSettings
from tests.unit.judges.llm.test_failures import answered

UNPATCHED_WAITS = (RETRIES.first_s, RETRIES.longest_s)
ROOT = Path(__file__).parents[4]
TEXT = (ROOT / "docs" / "llm-robustness.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if "| yes" in line or "| no" in line
]


def test_the_configuration_loads() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    settings = JudgeSettings.model_validate(yaml.safe_load(block)["judge"]).llm
    own = settings.models()
    assert [model.model for model in own] == ["gpt-4.1-mini", "gpt-4.1-nano", "Qwen/Qwen3-8B"]
    assert [model.base_url for model in own[:2]] == [settings.base_url] * 2


def test_every_name_of_a_setting_is_one() -> None:
    outside = {"claim_timeout_ms", "degraded_from", "on_unverified", "insufficient_quota", "judge_refused"}
    known = set(LlmJudgeSettings.model_fields)
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", TEXT))
    assert named - outside <= known
    assert len(named & known) >= 5


def test_the_numbers_are_those_of_the_code() -> None:
    numbers = [
        CircuitBreaker.window_s,
        CircuitBreaker.min_calls,
        CircuitBreaker.failure_rate,
        CircuitBreaker.hangs,
        CircuitBreaker.open_s,
        CircuitBreaker.probes,
        AdaptiveLimit.decrease,
        AdaptiveLimit.latency_tolerance,
        MAX_QUEUE,
        LlmJudgeSettings.stall_s,
        LlmJudgeSettings.first_token_share,
        LlmJudgeSettings.max_retries,
        *UNPATCHED_WAITS,
        Chat.reserve,
    ]
    table = TEXT[TEXT.index("## The numbers") :]
    told = re.findall(r"\| ([\d.,]+)(?: s)? \|$", table, re.MULTILINE)
    assert [float(number.replace(",", "")) for number in told] == numbers


@pytest.mark.parametrize("row", [row for row in ROWS if row[0][0].isdigit()], ids=lambda row: row[0])
def test_the_table_of_statuses_is_what_is_done(row: list[str]) -> None:
    code = "insufficient_quota" if "quota" in row[0] else None
    for status in re.findall(r"\d{3}", row[0]):
        failure = answered(int(status), code)
        done = ["yes" if flag else "no" for flag in (failure.retry, failure.fault, failure.overload)]
        assert done == row[1:]
        assert isinstance(failure.error, JudgeUnavailable) is (failure.retry or code is not None)
