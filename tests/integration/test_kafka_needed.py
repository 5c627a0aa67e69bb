"""A machine without Java: the tests on a real Kafka skip where nobody overlooks it, and fail in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = "tests/integration/test_topics.py::test_first_run_creates_and_second_finds_all"


def run_without_java(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"CI", "GUARDRAIL_TEST_KAFKA"}}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", PROBE],
        cwd=ROOT,
        env={**kept, "PATH": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_skips_loudly(tmp_path: Path) -> None:
    answer = run_without_java(tmp_path)
    assert answer.returncode == 0
    assert "KAFKA TESTS WERE SKIPPED" in answer.stdout
    assert "1 skipped" in answer.stdout
    assert "apt-get install openjdk-17" in answer.stdout


def test_fails_in_ci(tmp_path: Path) -> None:
    answer = run_without_java(tmp_path, CI="true")
    assert answer.returncode == 1
    assert "JavaMissing" in answer.stdout


@pytest.mark.kafka
def test_takes_a_broker_that_is_named(tmp_path: Path, kafka_bootstrap: str) -> None:
    answer = run_without_java(tmp_path, CI="true", GUARDRAIL_TEST_KAFKA=kafka_bootstrap)
    assert answer.returncode == 0, answer.stdout
    assert "1 passed" in answer.stdout
