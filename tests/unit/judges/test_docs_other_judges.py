"""What docs/other-judges.md says holds: its settings load, its judges judge."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from guardrail.judges import Verdict
from guardrail.judges.factory import build_judge
from guardrail.judges.http import HttpJudgeSettings
from guardrail.judges.model import PRESETS, ClassifierSettings, ServerSettings
from guardrail.judges.own import HttpJudge
from guardrail.judges.settings import JudgeSettings
from tests.support.judges import reply_of
from tests.unit.judges.endpoint_server import http, serving
from tests.unit.judges.model.asking import claim, request

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "other-judges.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def settings_of(block: str) -> JudgeSettings:
    return JudgeSettings.model_validate(yaml.safe_load(block)["judge"])


@pytest.mark.parametrize("block", blocks("yaml"))
def test_a_configuration_loads(block: str) -> None:
    assert settings_of(block).kind in {"hhem", "classifier", "custom", "http"}


async def test_the_python_judge_runs_as_a_factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (module,) = blocks("python")
    (tmp_path / "checker").mkdir()
    (tmp_path / "checker" / "judge.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    (settings,) = (each for each in map(settings_of, blocks("yaml")) if each.kind == "custom")
    judge = build_judge(settings)
    reply = await reply_of(judge, request(["The sky is blue.", "It is red."], ["The sky is blue. So it is."]))
    await judge.aclose()
    assert [j.verdict for j in reply.judgements] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    assert [e.quote for e in reply.judgements[0].evidence] == ["The sky is blue."]


async def test_the_endpoint_is_asked_and_may_answer_as_the_page_shows() -> None:
    shown, answered = blocks("json")
    async with serving(lambda _: http(answered.encode())) as server:
        judge = HttpJudge(HttpJudgeSettings(url=server.url))
        asked = request([], ["The basic plan costs $49 a month."])
        asked = replace(asked, claims={"c1": claim("It costs $49.")})
        (judgement,) = (await reply_of(judge, asked)).judgements
        await judge.aclose()
    (sent,) = server.requests
    assert sent.keys() == json.loads(shown).keys()
    for name in ("contexts", "claims"):
        assert sent[name][0].keys() == json.loads(shown)[name][0].keys()
    assert (judgement.verdict, judgement.support) == (Verdict.SUPPORTED, 0.95)
    assert [e.quote for e in judgement.evidence] == ["costs $49 a month"]


def test_every_name_in_backticks_that_looks_like_a_setting_is_one() -> None:
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", TEXT)) - {"unsupported_spans", "lead_in", "deadline_ms"}
    named -= {"model_max_length", "max_position_embeddings"}  # of a model's files
    named -= {"input_ids", "attention_mask", "token_type_ids", "raw_scores"}  # of a server's protocol
    models = (ClassifierSettings, ServerSettings, HttpJudgeSettings)
    assert named <= {name for model in models for name in model.model_fields}
    assert named


def test_every_preset_is_named() -> None:
    assert all(f"{name}" in TEXT for name in PRESETS)
