"""docs/local-judge.md says what there is."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from guardrail.events import ClaimVerdict, Finding
from guardrail.judges.local import search
from guardrail.judges.local.combiner import Combiner, Fit, Lines, Parameters
from guardrail.judges.local.settings import LocalJudgeSettings, VerifierSettings
from guardrail.judges.model import Manifest
from guardrail.judges.settings import JudgeSettings

TEXT = (Path(__file__).parents[4] / "docs" / "local-judge.md").read_text("utf-8")


def test_the_configuration_is_the_default_and_names_every_setting() -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    given = yaml.safe_load(block)["judge"]
    assert JudgeSettings.model_validate(given) == JudgeSettings()
    assert given["local"].keys() == LocalJudgeSettings.model_fields.keys()
    assert given["local"]["verifier"].keys() == VerifierSettings.model_fields.keys()


def test_every_name_in_backticks_is_one() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", TEXT))
    graph = {"input_ids", "attention_mask", "token_type_ids", "token_logits"}
    models = (LocalJudgeSettings, VerifierSettings, Parameters, Manifest, ClaimVerdict)
    assert named - graph - set(Finding) <= {name for model in models for name in model.model_fields}


def test_every_part_of_the_parameters_is_told() -> None:
    named = set(re.findall(r"`([a-z]+)`", TEXT))
    assert {name for model in (Parameters, Fit, Combiner, Lines) for name in model.model_fields} <= named


def test_sizes_are_those_of_the_code() -> None:
    for number in (search.SHORT_WORDS, search.WINDOW_WORDS, *search.TOGETHER_WORDS):
        assert f"{number} words" in " ".join(TEXT.split())
