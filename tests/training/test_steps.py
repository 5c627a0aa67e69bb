"""The commands of the pipeline where the extra ``training`` is not installed."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from training.examples import DataError
from training.steps import EXTRA, running

STEPS: Final = ("pairs", "train", "average", "export", "calibrate")
_SCRIPT: Final = """
import contextlib, importlib, io, json, sys
extra, calls = json.loads(sys.stdin.read())
sys.modules.update(dict.fromkeys(extra))  # importing one is a ModuleNotFoundError
for words in calls:
    sys.argv, out, err = words, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            importlib.import_module("training." + words[0]).main()
        except SystemExit as left:
            code = left.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def without_extra(*calls: tuple[str, ...]) -> list[list[Any]]:
    """Status, output and errors of each call, in one process that has nothing of the extra."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input=json.dumps([sorted(EXTRA), calls]), capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_help_needs_no_extra_and_what_runs_says_which(tmp_path: Path) -> None:
    here = str(tmp_path)
    found = without_extra(
        *((step, "--help") for step in STEPS),
        ("train", "--work", here, "--out", here),
        ("average", "--later", here, "--earlier", here, "--out", here),
        ("calibrate", "--data", here, "--work", here, "--verifier", here),
    )
    for step, (code, out, _) in zip(STEPS, found, strict=False):
        assert code == 0
        assert out.startswith(f"usage: {step} ")
    assert len(found) == len(STEPS) + 3
    for code, _, told in found[len(STEPS) :]:
        assert code == 1
        assert told.endswith(" is not installed; install the extra: pip install -e '.[training]'\n")
        assert told.count("\n") == 1


def test_a_module_of_the_project_that_is_missing_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError), running(argparse.ArgumentParser(), "step"):
        raise ModuleNotFoundError(name="training.gone")


def test_what_the_user_can_mend_ends_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left, running(argparse.ArgumentParser(), "step"):
        raise DataError("file: missing; make it")
    assert left.value.code == 1
    assert capsys.readouterr().err == "step: file: missing; make it\n"
