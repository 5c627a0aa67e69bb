"""``guardrail config check`` on the local judge: what a start would refuse of its files, told ahead of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.errors import ConfigError
from guardrail.judges.factory import build_judge
from guardrail.judges.settings import JudgeSettings
from tests.unit.judges.model.tiny_verifier import parameters_for, write_parameters, write_verifier


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A verifier, and in ``own.json`` beside it the parameters that were fitted with it."""
    verifier = write_verifier(tmp_path / "verifier")
    write_parameters(tmp_path / "own.json", parameters_for(verifier))
    return tmp_path


def checked(runner: CliRunner, folder: Path, judge: dict[str, Any]) -> tuple[int, str, str]:
    """``(status, notes, errors)``, each on one line."""
    file = folder / "guardrail.yaml"
    file.write_text(json.dumps({"judge": judge}), encoding="utf-8")
    result = runner.invoke(app, ["config", "check", str(file)])
    notes = [line.split(maxsplit=1)[1] for line in result.stdout.splitlines() if line.split()[0] == "note"]
    return result.exit_code, " ".join(notes), " ".join(result.stderr.split())


def local(folder: Path, parameters: str | None = "own.json", **verifier: Any) -> dict[str, Any]:
    path = None if parameters is None else str(folder / parameters)
    return {"kind": "local", "local": {"parameters_path": path, "verifier": verifier}}


def test_what_goes_together_is_right(runner: CliRunner, folder: Path) -> None:
    judge = local(folder, path=str(folder / "verifier"))
    assert checked(runner, folder, judge) == (0, "", "")


def _unknown_features(folder: Path) -> dict[str, Any]:
    raw = json.loads((folder / "own.json").read_text(encoding="utf-8"))
    raw["read"]["combiner"]["weights"] = {"of_another_release": [0, 0, 0, 0]}
    (folder / "own.json").write_text(json.dumps(raw), encoding="utf-8")
    return local(folder)


def _foreign(folder: Path) -> dict[str, Any]:
    write_parameters(folder / "own.json", parameters_for(folder / "verifier", sha256="0" * 64))
    return local(folder, path=str(folder / "verifier"))


def _fitted_with_another_than_the_packaged_one(folder: Path) -> dict[str, Any]:
    return local(folder)


def _other_version(folder: Path) -> dict[str, Any]:
    raw = json.loads((folder / "own.json").read_text(encoding="utf-8"))
    (folder / "own.json").write_text(json.dumps(raw | {"version": 99}), encoding="utf-8")
    return local(folder, path=str(folder / "verifier"))


def _without_their_parameters(folder: Path) -> dict[str, Any]:
    return local(folder, None, path=str(folder / "verifier"))


def _damaged(folder: Path) -> dict[str, Any]:
    (folder / "verifier" / "tokenizer.json").write_text("{}")
    return local(folder, path=str(folder / "verifier"))


def _empty_folder(folder: Path) -> dict[str, Any]:
    (folder / "empty").mkdir()
    return local(folder, path=str(folder / "empty"))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_unknown_features, "has weights of of_another_release, which this release does not find out"),
        (_foreign, "judge.local.verifier: the parameters were fitted with tiny (sha256 000"),
        (_fitted_with_another_than_the_packaged_one, "judge.local.verifier: the parameters were fitted with"),
        (_other_version, "judge.local.parameters_path: {own} is no parameters file of this version: it has"),
        (_without_their_parameters, "judge.local.verifier: the parameters were fitted with"),
        (_damaged, "judge.local.verifier.path: {folder}/verifier/tokenizer.json is damaged"),
        (_empty_folder, "judge.local.verifier.path: {folder}/empty/manifest.json can't be read"),
    ],
)
def test_what_a_start_would_refuse_is_refused_in_its_words(
    runner: CliRunner, folder: Path, spoil: Any, told: str
) -> None:
    judge = spoil(folder)
    status, _, errors = checked(runner, folder, judge)
    assert status == 2
    assert f"{folder / 'guardrail.yaml'}:1: " in errors
    assert told.format(own=folder / "own.json", folder=folder) in errors
    with pytest.raises(ConfigError) as refused:
        build_judge(JudgeSettings.model_validate(judge))
    assert " ".join(str(refused.value).split()) in errors


def test_the_local_judge_that_answers_past_a_budget_is_checked_too(runner: CliRunner, folder: Path) -> None:
    judge = _foreign(folder) | {
        "kind": "llm",
        "llm": {"base_url": "http://near/v1"},
        "budgets": {"per_minute": {"tokens": 1000}, "on_budget": "local"},
    }
    status, _, errors = checked(runner, folder, judge)
    assert status == 2
    assert "judge.local.verifier: the parameters were fitted with tiny (sha256 000" in errors


@pytest.mark.parametrize("gone", ["own.json", "verifier"])
def test_files_that_are_not_here_are_noted_only(runner: CliRunner, folder: Path, gone: str) -> None:
    """They may be where the guard runs."""
    (folder / gone).rename(folder / "elsewhere")
    status, notes, _ = checked(runner, folder, local(folder, path=str(folder / "verifier")))
    assert status == 0
    assert f"{folder / gone} can't be read here" in notes


@pytest.mark.parametrize("parameters", [None, "own.json"])
def test_a_judge_without_its_verifier_is_noted(
    runner: CliRunner, folder: Path, parameters: str | None
) -> None:
    """Whatever verifier the parameters were fitted with."""
    status, notes, _ = checked(runner, folder, local(folder, parameters, enabled=False))
    assert status == 0
    assert "judge.local.verifier.enabled is false: claims are judged by words and figures alone" in notes


def test_the_check_loads_no_model() -> None:
    code = (
        "import sys\n"
        "from guardrail.judges.factory import check_files\n"
        "from guardrail.judges.settings import JudgeSettings\n"
        "check_files(JudgeSettings(kind='local'))\n"
        "print({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
