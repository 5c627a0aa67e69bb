"""The configurations in docs/llm-judge.md load."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from guardrail.judges import Verdict
from guardrail.judges.base import support_of
from guardrail.judges.llm import LlmJudgeSettings
from guardrail.judges.settings import JudgeSettings

ROOT = Path(__file__).parents[4]
TEXT = (ROOT / "docs" / "llm-judge.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


EXAMPLES = [block for block in BLOCKS if block.startswith("- ")]


@pytest.mark.parametrize("block", [block for block in BLOCKS if block not in EXAMPLES])
def test_a_configuration_loads(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the files that it names: the package's own prompt, and the page's examples."""
    monkeypatch.chdir(tmp_path)
    shipped = ROOT / "guardrail" / "judges" / "llm" / "prompts" / "system.md"
    Path("judge-system.md").write_text(shipped.read_text("utf-8"), "utf-8")
    [examples] = EXAMPLES
    Path("judge-examples.yaml").write_text(examples, "utf-8")
    settings = JudgeSettings.model_validate(yaml.safe_load(block)["judge"])
    assert settings.kind == "llm"


def test_every_name_in_backticks_that_looks_like_a_setting_is_one() -> None:
    outside = {
        "claim_timeout_ms",  # a policy's
        "max_wait_ms",  # of judge, beside judge.llm
        "on_unverified",
        "self_judging",  # of judge, beside judge.llm
        "response_format",
        "json_schema",
        "max_completion_tokens",  # of the body that is sent
        "max_tokens",
        "cached_input_tokens",
        "dropped_quotes",
    }
    named = set(re.findall(r"`(?:usage\.)?([a-z]+(?:_[a-z]+)+)", TEXT))
    assert named - outside <= set(LlmJudgeSettings.model_fields)
    assert named - outside


def test_the_mapping_to_support_is_the_one_described() -> None:
    described = {"SUPPORTED": 0.5, "PARTIALLY_SUPPORTED": -0.1, "UNSUPPORTED": -0.4, "CONTRADICTED": -0.5}
    words = " ".join(TEXT.split())
    for name, swing in described.items():
        assert f"{swing} for {name}" in words
        for confidence in (0.0, 0.3, 1.0):
            assert support_of(Verdict(name), confidence) == pytest.approx(0.5 + swing * confidence)
