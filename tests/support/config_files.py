"""Configuration files of tests, and what is told of wrong ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from consumers.settings import load_settings
from guardrail.config import SettingsError


def write(folder: Path, text: str) -> Path:
    path = folder / "guardrail.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problems_of(path: Path | None, overrides: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The message of every problem, by path."""
    with pytest.raises(SettingsError) as caught:
        load_settings(path, overrides)
    return {problem.path: str(problem) for problem in caught.value.problems}
