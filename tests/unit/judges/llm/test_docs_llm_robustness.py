"""What docs/llm-robustness.md says of settings and of failures is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from guardrail.judges.llm.settings import LlmJudgeSettings
from guardrail.judges.settings import JudgeSettings
from tests.unit.judges.llm.test_failures import answered

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


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([a-z_]+\.[a-z_]+)[`:]", TEXT))))
def test_every_setting_of_a_part_exists(path: str) -> None:
    part, name = path.split(".")
    if path in {"judge.llm", "stream_options.include_usage"}:
        return
    model = getattr(LlmJudgeSettings(), part)
    assert isinstance(model, BaseModel)
    assert name in type(model).model_fields


def test_every_other_setting_exists_somewhere() -> None:
    outside = {"degraded_from", "on_unverified", "insufficient_quota"}
    parts = (type(part) for _, part in LlmJudgeSettings() if isinstance(part, BaseModel))
    known = {name for part in parts for name in part.model_fields} | set(LlmJudgeSettings.model_fields)
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", TEXT))
    assert named - outside <= known
    assert len(named) > 10


@pytest.mark.parametrize("row", [row for row in ROWS if row[0][0].isdigit()], ids=lambda row: row[0])
def test_the_table_of_statuses_is_what_is_done(row: list[str]) -> None:
    code = "insufficient_quota" if "quota" in row[0] else None
    for status in re.findall(r"\d{3}", row[0]):
        failure = answered(int(status), code)
        done = ["yes" if flag else "no" for flag in (failure.retry, failure.fault, failure.overload)]
        assert done == row[1:]
