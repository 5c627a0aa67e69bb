"""What docs/other-judges.md says holds: its settings load, its program judges, its schemas are current."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from guardrail.judges import Verdict
from guardrail.judges.command.judge import CommandJudge
from guardrail.judges.command.protocol import CommandReply, CommandRequest
from guardrail.judges.command.settings import CommandJudgeSettings
from guardrail.judges.model import PRESETS, ClassifierSettings, ServerSettings
from guardrail.judges.settings import JudgeSettings
from tests.support.judges import reply_of
from tests.unit.judges.model.asking import request

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "other-judges.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("block", blocks("yaml"))
def test_a_configuration_loads(block: str) -> None:
    settings = JudgeSettings.model_validate(yaml.safe_load(block)["judge"])
    assert settings.kind in {"hhem", "classifier", "command"}


def test_the_schemas_are_those_of_the_protocol() -> None:
    """To renew one: print(json.dumps(CommandRequest.model_json_schema(), indent=2))."""
    sent, answered = map(json.loads, blocks("json"))
    assert sent == CommandRequest.model_json_schema()
    assert answered == CommandReply.model_json_schema()


async def test_the_program_is_a_whole_judge() -> None:
    (program,) = blocks("python")
    judge = CommandJudge(CommandJudgeSettings(argv=(sys.executable, "-c", program)))
    try:
        reply = await reply_of(
            judge, request(["The sky is blue.", "It is red."], ["The sky is blue. So it is."])
        )
    finally:
        await judge.aclose()
    assert [j.verdict for j in reply.judgements] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    assert [e.quote for e in reply.judgements[0].evidence] == ["The sky is blue."]


def test_every_name_in_backticks_that_looks_like_a_setting_is_one() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", TEXT)) - {"dropped_quotes", "unsupported_spans"}
    named -= {"model_max_length", "max_position_embeddings"}  # of a model's files
    named -= {"input_ids", "attention_mask", "token_type_ids", "raw_scores"}  # of a server's protocol
    models = (ClassifierSettings, ServerSettings, CommandJudgeSettings)
    assert named <= {name for model in models for name in model.model_fields}
    assert len(named) > 5


def test_every_preset_is_named() -> None:
    assert all(f"{name}" in TEXT for name in PRESETS)
