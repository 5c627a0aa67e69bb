"""The house holds: rooms have a face, suites speak to it, and a name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("guardrail", "consumers")


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


SOURCES = {module_of(file): file for package in PACKAGES for file in (ROOT / package).rglob("*.py")}
ROOMS = {name for name, file in SOURCES.items() if file.name == "__init__.py"}
FACES = sorted(
    room for room in ROOMS if room != "guardrail.cli" and "__all__" in SOURCES[room].read_text("utf-8")
)


def imports(file: Path) -> Iterator[str]:
    """The modules that a file imports, and those that it takes out of a package."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in SOURCES else node.module


def inside_a_room(module: str) -> bool:
    return module in SOURCES and module not in ROOMS and module.count(".") > 1


INSIDE = {"unit", "training", "benchmarks"}
"""The suites that import modules from inside rooms: the last two, as the tools do that they test."""
SUITES = sorted(
    file
    for file in (ROOT / "tests").rglob("*.py")
    if file.relative_to(ROOT / "tests").parts[0] not in INSIDE and "node_modules" not in file.parts
)


@pytest.mark.parametrize("file", SUITES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_suite_that_outlives_a_redesign_speaks_to_the_faces_of_rooms(file: Path) -> None:
    assert sorted({module for module in imports(file) if inside_a_room(module)}) == []


@pytest.mark.parametrize("name", FACES)
def test_a_face_has_what_it_says(name: str) -> None:
    face = import_module(name)
    assert [each for each in face.__all__ if getattr(face, each, None) is None] == []


@pytest.mark.parametrize("name", FACES)
def test_a_face_has_nothing_else(name: str) -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        import_module(name).nothing_of_the_kind  # noqa: B018


def test_a_class_name_means_one_thing() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for module, file in SOURCES.items():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}
