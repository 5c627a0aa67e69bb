"""What ``make demo`` and ``make test`` say, by the scripts that run their phases and make ``.venv``."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PHASE = ROOT / "scripts" / "phase.sh"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """As the Makefile begins it, for a run of half an hour."""
    log = tmp_path / "test.log"
    log.write_text(f"started at {time.time() - 1800:.0f}, some day\n")
    return log


def phase(log: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PHASE, log, *arguments], capture_output=True, text=True, timeout=60, check=False, cwd=log.parent
    )


def shell(text: str) -> tuple[str, str, str]:
    return ("sh", "-c", text)


def test_a_phase_that_ends_well_is_shown_and_kept(log: Path) -> None:
    done = phase(log, "1 of 2: types", *shell("echo one; echo two >&2"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "make test: 1 of 2: types\none\ntwo\n", "")
    assert log.read_text().endswith(done.stdout)


def test_a_phase_that_fails_keeps_its_status_and_names_the_log_last(log: Path) -> None:
    done = phase(log, "2 of 2: the tests", *shell("echo one; exit 3"))
    assert done.returncode == 3
    assert done.stderr == f"make test: FAILED, status 3, at: 2 of 2: the tests. Read {log}\n"
    assert log.read_text().endswith(f"one\n{done.stderr}")


def test_a_command_that_draws_has_its_errors_in_the_log(log: Path) -> None:
    done = phase(log, "the demo", "--draws", *shell("echo drawn; echo broken >&2; exit 1"))
    assert (done.returncode, done.stdout) == (1, "make test: the demo\ndrawn\n")
    assert "broken\nmake test: FAILED" in log.read_text()
    assert "drawn" not in log.read_text()
    assert done.stderr.count("broken") == 1


def test_the_closing_line_counts_and_says_what_was_missing(log: Path) -> None:
    with log.open("a") as written:
        written.write(
            "test-requirements: no Java: tests on a real Kafka are skipped. As root: apt-get: java\n"
        )
        written.write("test-requirements: no PyTorch: tests of training are skipped\n")
        written.write("SKIPPED [2] tests/x.py: 12 passed in 1s\n")
        written.write("= 8979 passed, 58 skipped, 1 xfailed in 1056.78s (0:17:36) =\n")
    done = phase(log, "")
    assert done.stdout == (
        "make test: all is well: 8979 passed, 58 skipped, 1 xfailed (no Java, no PyTorch) in 30 min; "
        f"log: {log}\n"
    )


def test_without_tests_the_closing_line_says_what_comes_next(log: Path) -> None:
    done = phase(log, "README.md")
    assert done.stdout == f"make test: all is well in 30 min; log: {log}; next: README.md\n"


def test_ctrl_c_ends_the_command_first_and_keeps_what_it_says_then(log: Path, tmp_path: Path) -> None:
    said = shell("trap 'echo cleaned up; exit 2' INT; echo ready; while :; do sleep 0.1; done")
    running = subprocess.Popen(
        [PHASE, log, "the tests", *said],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    seen = [running.stdout.readline(), running.stdout.readline()]
    assert seen == ["make test: the tests\n", "ready\n"]
    os.killpg(running.pid, signal.SIGINT)
    rest, _ = running.communicate(timeout=60)
    assert rest == f"cleaned up\nmake test: stopped; what it printed is in {log}\n"
    assert running.returncode == 130
    assert log.read_text().endswith(rest)


def test_a_machine_without_python_is_told_what_to_install(tmp_path: Path) -> None:
    """Also to root: no apt-get is on this PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("cat", "cksum", "dirname", "id", "rm"):
        (programs / name).symlink_to(shutil.which(name) or pytest.fail(f"no {name}"))
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "bootstrap.sh", tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    done = subprocess.run(
        ["/bin/sh", script],
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "bootstrap: no Python 3.11 or later was found (tried $PYTHON, python3.11 to python3.14, python3).",
        "bootstrap: Install one (Debian: apt-get install python3 python3-venv), or name it: "
        "PYTHON=/path/to/python make demo",
    ]
    assert not (tmp_path / ".venv").exists()
