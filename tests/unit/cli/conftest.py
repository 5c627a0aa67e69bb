"""What the tests of the command line share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from guardrail.cli import app, main

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


class Checked(NamedTuple):
    """What ``guardrail config check`` says: its status, its notes, and its errors on one line."""

    status: int
    notes: list[str]
    errors: str


Check = Callable[..., Checked]


@pytest.fixture
def checked(runner: CliRunner, tmp_path: Path) -> Check:
    """Checks sections of settings, which stand on the one line of ``guardrail.yaml`` then."""

    def check(**sections: Any) -> Checked:
        file = tmp_path / "guardrail.yaml"
        file.write_text(json.dumps(sections), encoding="utf-8")
        result = runner.invoke(app, ["config", "check", str(file)])
        notes = [line for line in result.stdout.splitlines() if line.split()[0] == "note"]
        told = [line.split(maxsplit=1)[1] for line in notes]
        return Checked(result.exit_code, told, " ".join(result.stderr.split()))

    return check


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


@pytest.fixture
def called(tmp_path: Path) -> Program:
    """As ``program``, but in this process, which has imported and loaded by now what takes a new one seconds.

    Its standard streams are files, also for what opens them by number.
    """

    def call(
        *arguments: str, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            given = clean_environment(**(env or {}))
            for name in os.environ.keys() - given.keys():
                patch.delenv(name)
            for name, value in given.items():
                patch.setenv(name, value)
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", ["guardrail", *arguments])
            files[0].write(stdin.encode())
            files[0].seek(0)
            for number, (name, file) in enumerate(zip(("stdin", "stdout", "stderr"), files, strict=True)):
                kept = os.dup(number)
                stack.callback(os.close, kept)
                stack.callback(os.dup2, kept, number)
                os.dup2(file.fileno(), number)
                mode = "w" if number else "r"
                stream = stack.enter_context(open(number, mode, encoding="utf-8", closefd=False))
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as left:
                main()
            told = []
            for stream, file in zip((sys.stdout, sys.stderr), files[1:], strict=True):
                stream.flush()
                file.seek(0)
                told.append(file.read().decode())
        return subprocess.CompletedProcess(["guardrail", *arguments], int(left.value.code or 0), *told)

    return call
