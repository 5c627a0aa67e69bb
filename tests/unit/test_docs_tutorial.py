"""The tutorial's files work: its settings load, and its test of the chat service passes and can fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from consumers.settings import GuardSettings
from tests.support import tutorial


def test_its_settings_watch_at_first_and_enforce_then() -> None:
    first, then = (
        GuardSettings.model_validate(yaml.safe_load(text)).router()
        for text in (tutorial.OBSERVING, tutorial.ENFORCING)
    )
    assert first.choose("shop", None).mode == "observe"
    assert then.choose("shop", None).mode == "stream"
    assert then.choose("chat", None).mode == "observe"


@pytest.mark.parametrize(("spoil", "outcome"), [("", "2 passed"), ("shown = blocked.message", "1 failed")])
def test_its_test_passes_and_fails_where_a_block_is_not_heeded(
    tmp_path: Path, spoil: str, outcome: str
) -> None:
    (tmp_path / "chat.py").write_text(tutorial.CHAT.replace(spoil, "pass") if spoil else tutorial.CHAT)
    (tmp_path / "test_chat.py").write_text(tutorial.TEST_CHAT)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_chat.py"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
    )
    assert re.search(rf"\b{outcome}\b", done.stdout), done.stdout + done.stderr
