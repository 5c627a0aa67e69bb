"""The configurations in docs/cascade.md load, and what it says of defaults holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from guardrail.engine.judging import LAST_HELD_S
from guardrail.judges.cascade import DEFAULT_BANDS, CascadeSettings
from guardrail.judges.redis_cache import TIMEOUT_MS
from guardrail.judges.settings import JudgeSettings
from tests.support.docs import printed_with
from tests.support.llm_server import LlmServer, Reply, member, verdicts

TEXT = (Path(__file__).parents[4] / "docs" / "cascade.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_configuration_loads(block: str) -> None:
    assert JudgeSettings.model_validate(yaml.safe_load(block)["judge"]).kind == "cascade"


def test_the_table_has_the_default_bands() -> None:
    rows = dict(re.findall(r"^\| (minor|normal|major|critical) (\| [0-9.]+) \|", TEXT, re.MULTILINE))
    assert rows == {severity.value: f"| {band.accept_support}" for severity, band in DEFAULT_BANDS.items()}


def test_the_defaults_that_it_names_are_the_defaults() -> None:
    assert f"has waited for `judge.max_wait_ms` ({CascadeSettings.max_wait_ms:,})" in TEXT
    assert f"longer than {TIMEOUT_MS} ms" in TEXT
    assert f"last verdict waits {LAST_HELD_S * 1000:.0f} ms" in TEXT
    assert JudgeSettings().self_judging.policy == "warn"


async def test_the_example_in_python_asks_the_model_for_what_the_local_judge_can_not_settle(
    tmp_path: Path,
) -> None:
    (tmp_path / "guardrail.yaml").write_text(BLOCKS[0], encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    quoting = Reply(lambda call: verdicts(*(member(label, evidence=[2]) for label in call.asked)))
    async with LlmServer(quoting) as server:
        printed = (await printed_with(server, code, tmp_path)).splitlines()
    assert [line.split()[1:] for line in printed[1:-1]] == [["llm:gpt-4.1-mini", "()"]]
    assert printed[-1] == "1 1"
    assert len(server.calls) == 1
