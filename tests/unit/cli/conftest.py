"""What the tests of the command line share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

Program = Callable[..., subprocess.CompletedProcess[str]]


def clean_environment(**extra: str) -> dict[str, str]:
    """This process's environment without settings of the guardrail and without hints about terminals."""
    dropped = {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "CLICOLOR_FORCE", "TTY_COMPATIBLE"}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GUARDRAIL_") and k not in dropped}
    return kept | {"COLUMNS": "80"} | extra


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in this process."""
    for name in os.environ.keys() - clean_environment().keys():
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    return CliRunner()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Runs ``guardrail`` as a process of its own, in an empty folder, with pipes for a terminal.

    ``before`` is code that is run ahead of it.
    """

    def run(
        *arguments: str, env: Mapping[str, str] | None = None, stdin: str = "", before: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", f"{before}\nfrom guardrail.cli import main; main()", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            cwd=tmp_path,
            env=clean_environment(**(env or {})),
            check=False,
        )

    return run
