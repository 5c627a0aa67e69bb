"""``guardrail config check`` on the local judge: what a start would refuse of its files, told ahead of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail.errors import ConfigError
from guardrail.judges.factory import build_judge
from guardrail.judges.settings import JudgeSettings
from tests.unit.cli.conftest import Check
from tests.unit.judges.model.tiny_verifier import parameters_for, write_parameters, write_verifier


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a verifier, beside the parameters that were fitted with it."""
    verifier = write_verifier(tmp_path / "verifier")
    write_parameters(verifier, parameters_for(verifier))
    return tmp_path


def local(folder: Path, **verifier: Any) -> dict[str, Any]:
    return {"kind": "local", "local": {"verifier": {"path": str(folder / "verifier"), **verifier}}}


def test_what_goes_together_is_right(checked: Check, folder: Path) -> None:
    assert checked(judge=local(folder)) == (0, [], "")


def _unknown_features(verifier: Path) -> None:
    raw = json.loads((verifier / "parameters.json").read_text(encoding="utf-8"))
    raw["read"]["combiner"]["weights"] = {"of_another_release": [0, 0, 0, 0]}
    (verifier / "parameters.json").write_text(json.dumps(raw), encoding="utf-8")


def _foreign(verifier: Path) -> None:
    write_parameters(verifier, parameters_for(verifier, sha256="0" * 64))


def _without_its_parameters(verifier: Path) -> None:
    (verifier / "parameters.json").unlink()


def _damaged(verifier: Path) -> None:
    (verifier / "tokenizer.json").write_text("{}")


def _without_its_manifest(verifier: Path) -> None:
    (verifier / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (_unknown_features, "has weights of of_another_release, which this release does not find out"),
        (_foreign, "judge.local.verifier: the parameters were fitted with tiny (sha256 000"),
        (_without_its_parameters, "judge.local.verifier: {folder}/verifier/parameters.json can't be read"),
        (_damaged, "judge.local.verifier.path: {folder}/verifier/tokenizer.json is damaged"),
        (_without_its_manifest, "judge.local.verifier.path: {folder}/verifier/manifest.json can't be read"),
    ],
)
def test_what_a_start_would_refuse_is_refused_in_its_words(
    checked: Check, folder: Path, spoil: Callable[[Path], None], told: str
) -> None:
    spoil(folder / "verifier")
    judge = local(folder)
    status, _, errors = checked(judge=judge)
    assert status == 2
    assert f"{folder / 'guardrail.yaml'}:1: " in errors
    assert told.format(folder=folder) in errors
    with pytest.raises(ConfigError) as refused:
        build_judge(JudgeSettings.model_validate(judge))
    assert " ".join(str(refused.value).split()) in errors


def test_the_local_judge_that_answers_past_a_budget_is_checked_too(checked: Check, folder: Path) -> None:
    _foreign(folder / "verifier")
    judge = local(folder) | {
        "kind": "llm",
        "llm": {"base_url": "http://near/v1"},
        "budgets": {"per_minute": {"tokens": 1000}, "on_budget": "local"},
    }
    status, _, errors = checked(judge=judge)
    assert status == 2
    assert "judge.local.verifier: the parameters were fitted with tiny (sha256 000" in errors


def test_a_folder_that_is_not_here_is_noted_only(checked: Check, folder: Path) -> None:
    """It may be where the guard runs."""
    (folder / "verifier").rename(folder / "elsewhere")
    status, notes, _ = checked(judge=local(folder))
    assert status == 0
    assert f"{folder / 'verifier'} can't be read here" in " ".join(notes)


@pytest.mark.parametrize("path", [None, "verifier"])
def test_a_judge_without_its_verifier_is_noted(checked: Check, folder: Path, path: str | None) -> None:
    given = path and str(folder / path)
    status, notes, _ = checked(judge=local(folder, path=given, enabled=False))
    assert status == 0
    assert "judge.local.verifier.enabled is false: claims are judged by words and figures alone" in " ".join(
        notes
    )


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
