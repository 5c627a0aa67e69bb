"""The package's own tables: YAML files that stand beside the modules that use them."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import yaml

# Several times as fast as the loader in Python, which took half of a guard's start; wheels of PyYAML have it.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def shipped_text(package: str, *path: str) -> str:
    """The text of a file of the package ``package``."""
    return files(package).joinpath(*path).read_text(encoding="utf-8")


def shipped_yaml(package: str, *path: str) -> Any:
    """What such a file holds, as YAML without tags of Python."""
    return yaml.load(shipped_text(package, *path), Loader=_Loader)  # noqa: S506 - both are safe loaders
