"""Unit tests of alert rules, by Prometheus' own promtool."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def check_alerts(folder: Path, cases: str) -> None:
    """Fail where the cases of a test file, which name their rules, don't hold. Skips without promtool."""
    promtool = shutil.which("promtool")
    if promtool is None:
        if os.environ.get("CI"):
            pytest.fail("promtool is missing; scripts/test-requirements.sh installs it")
        pytest.skip("promtool is missing (Debian: apt-get install prometheus)")
    path = folder / "alerts_test.yaml"
    path.write_text(cases, encoding="utf-8")
    run = subprocess.run([promtool, "test", "rules", path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr + run.stdout
