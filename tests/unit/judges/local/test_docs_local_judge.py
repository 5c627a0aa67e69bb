"""docs/local-judge.md says what there is."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from guardrail.events import ClaimVerdict
from guardrail.judges.local.combiner import Parameters
from guardrail.judges.local.fitted import DEFAULT_TOKENS, FittedVerifier, ReadingKind
from guardrail.judges.local.readings import PASSAGE_WORDS, SHORT_WORDS
from guardrail.judges.local.settings import LocalJudgeSettings, VerifierSettings
from guardrail.judges.local.verifier_files import Manifest
from guardrail.judges.settings import JudgeSettings

TEXT = (Path(__file__).parents[4] / "docs" / "local-judge.md").read_text("utf-8")


def test_the_configuration_loads_and_is_the_default() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    assert JudgeSettings.model_validate(yaml.safe_load(block)["judge"]) == JudgeSettings()


def test_every_name_in_backticks_is_one() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", TEXT))
    graph = {"input_ids", "attention_mask", "token_type_ids", "token_logits"}
    models = (LocalJudgeSettings, VerifierSettings, Parameters, FittedVerifier, Manifest, ClaimVerdict)
    assert named - graph <= {name for model in models for name in model.model_fields}


def test_readings_and_figures_are_those_of_the_code() -> None:
    for kind in ReadingKind:
        assert f"| `{kind}` |" in TEXT
    for number in (SHORT_WORDS, PASSAGE_WORDS):
        assert f"{number} words" in TEXT
    assert f"{DEFAULT_TOKENS} tokens, the default" in " ".join(TEXT.split())
