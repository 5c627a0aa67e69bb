"""The programs that check the chart and the Docker files, as ``scripts/deploy-tools.sh`` builds them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_MISSING = (
    "the tools of the chart's tests are missing: scripts/deploy-tools.sh builds them (needs Go or PyPI)"
)


def tools_folder() -> Path:
    """``$GUARDRAIL_DEPLOY_TOOLS``, or its default."""
    named = os.environ.get("GUARDRAIL_DEPLOY_TOOLS")
    return Path(named) if named else Path.home() / ".cache" / "guardrail" / "deploy-tools"


def require_tools() -> Path:
    """The folder of the tools. Where they were not built the test is skipped; in CI it fails."""
    folder = tools_folder()
    if not (folder / ".built").is_file():
        if os.environ.get("CI"):
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    return folder


def run_tool(
    folder: Path, name: str, *arguments: str, cwd: Path | None = None, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end. ``given`` is its standard input."""
    command: Sequence[str] = [str(folder / "bin" / name), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=110, cwd=cwd, input=given
    )
