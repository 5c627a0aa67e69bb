"""Tables of cases that stand beside the tests that go through them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def table(test: str, name: str) -> Any:
    """What the YAML file ``name`` holds; ``test`` is the ``__file__`` of a test beside it."""
    return yaml.safe_load(Path(test).with_name(name).read_text("utf-8"))
