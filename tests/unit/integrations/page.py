"""The examples of docs/frameworks.md, each with what the page says that it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def examples(framework: str) -> list[tuple[str, str]]:
    """Those under the heading of a framework."""
    text = (ROOT / "docs/frameworks.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {framework}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    found = re.findall(r"```python\n(.*?)```\n+(?:prints\n+)?```text\n(.*?)```", section, re.DOTALL)
    assert len(found) == section.count("```python")
    return found


def printed_by(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
