"""The public interface of a package whose modules are imported on first use of one of their names (PEP 562).

Such an interface costs nothing until it is used, and may name modules that import one another's packages.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import get_data
from typing import Any


def face(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` for ``package``, of what it imports for type checkers.

    So its names stand in one place: under ``if TYPE_CHECKING``, as ``from MODULE import NAME as NAME``, which
    says that a name is meant for others, too. Raises ImportError without the package's source file.
    """
    home_of = _imported_for_types(package)
    names = sorted(home_of)

    def get(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: names, names


def _imported_for_types(package: str) -> dict[str, str]:
    """The names that the package's source imports under ``if TYPE_CHECKING``, and their modules."""
    source = get_data(package, "__init__.py")
    if source is None:
        raise ImportError(f"{package} needs its source file, which names what it offers")
    home_of: dict[str, str] = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and each.module is not None:
                    home_of.update((alias.name, each.module) for alias in each.names)
    return home_of
