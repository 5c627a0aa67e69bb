from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.peers_environment import REQUIREMENTS, installed, peers_python


def test_every_requirement_is_pinned_to_one_version() -> None:
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    assert lines
    assert all(line.count("==") == 1 for line in lines)


def test_what_could_not_be_installed_is_not_taken_for_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: list[str], *, check: bool) -> None:
        (tmp_path / "made").mkdir(exist_ok=True)
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(subprocess.CalledProcessError):
        peers_python(tmp_path)
    assert installed(tmp_path) is None


def test_an_environment_that_was_made_is_used_until_its_requirements_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins = tmp_path / "requirements.txt"
    pins.write_text("a==1\n")
    made = []

    def make(command: list[object], *, check: bool) -> None:
        made.append(command)
        if "venv" in command:
            Path(str(command[-1])).mkdir(parents=True)

    monkeypatch.setattr(subprocess, "run", make)
    first = peers_python(tmp_path, pins)
    assert peers_python(tmp_path, pins) == first == installed(tmp_path, pins)
    assert len(made) == 2
    pins.write_text("a==2\n")
    assert installed(tmp_path, pins) is None
