"""The house holds: rooms have a face, suites speak to it, a name means one thing, nothing grows unasked."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from inspect import get_annotations
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from typer.core import TyperGroup
from typer.main import get_command

from consumers.settings import GuardSettings
from guardrail.cli import app
from guardrail.secrets import Secret
from scripts import extras

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


OF_FRAMEWORKS = {"FaithfulnessEvaluator", "EvaluationResult"}
"""Names that several frameworks have, and so each adapter's class that takes the place of theirs."""


def test_a_class_name_means_one_thing() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for module, file in SOURCES.items():
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not (
                node.name in OF_FRAMEWORKS and module.startswith("guardrail.integrations.")
            ):
                found[node.name].append(module)
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


# What users have to know of. The numbers fall with what goes, and rise only in the change that adds a feature
# that an issue asks for, with the reason beside the number.
LOWER = "lower the number to what there is, or give the reason for the rise beside it"
SETTINGS = 144  # fourteen of serve and two of what producers are held to, issue 45
MOST_COMMANDS = 22  # serve, the gateway
MOST_NAMES = 15
MOST_OPTIONS = 12
MOST_OPTIONS_OF = {"evaluate": 16, "tune": 14}
ARROWS = 128  # the gateway with its dialects, guardrail.chat, and what doctor proves of them
"""Pairs of rooms of which one imports the other, wherever in a file."""


def settings_of(section: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[str]:
    """The leaves of the tree of settings. What lists and mappings hold counts once, as does a section that
    stands in several places, and what sections inherit, by the class that declares it first. A rule is a
    line, and the name of a policy is its key.
    """
    seen.add(section)
    for name, field in section.model_fields.items():
        inner = [] if "rules" in name else list(models_in(field.annotation))
        if not inner and (section.__name__, name) != ("Policy", "name"):
            yield f"{declaring(section, name)}.{name}"
        for model in inner:
            if model not in seen:
                yield from settings_of(model, seen)


def declaring(section: type[BaseModel], name: str) -> str:
    return [each.__name__ for each in section.__mro__ if name in get_annotations(each)][-1]


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation is not Secret:
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def commands(group: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from commands(command, f"{words}{name} ")
        else:
            yield f"{words}{name}", command


COMMANDS = dict(commands(get_command(app)))


def test_there_are_no_more_settings_than_somebody_needs() -> None:
    assert len(set(settings_of(GuardSettings, set()))) == SETTINGS, LOWER


def test_there_are_no_more_commands_than_somebody_needs() -> None:
    assert len(COMMANDS) <= MOST_COMMANDS
    assert len({words.split()[0] for words in COMMANDS}) <= MOST_NAMES


@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_a_command_has_no_more_options_than_somebody_can_read(words: str) -> None:
    options = [each for each in COMMANDS[words].params if each.param_type_name == "option"]
    assert len(options) <= MOST_OPTIONS_OF.get(words, MOST_OPTIONS)


def room_of(module: str) -> str:
    while module not in ROOMS:
        module = module.rpartition(".")[0]
    return module


def test_rooms_import_no_more_rooms_than_they_do() -> None:
    arrows = {
        (room_of(module), room_of(target))
        for module, file in SOURCES.items()
        for target in imports(file)
        if target in SOURCES and room_of(module) != room_of(target)
    }
    assert len(arrows) == ARROWS, LOWER


def test_only_the_outermost_ring_of_the_library_knows_the_processes() -> None:
    knowing = {
        module if module == "guardrail.testing" else room_of(module)
        for module, file in SOURCES.items()
        if module.startswith("guardrail") and any(each.startswith("consumers") for each in imports(file))
    }
    assert knowing <= {"guardrail.cli", "guardrail.testing"}


def test_the_tests_of_extras_are_where_the_script_looks_for_them() -> None:
    named = [each for tests in extras.TESTS.values() for each in tests]
    assert [each for each in named if not (ROOT / each.partition("::")[0]).is_file()] == []
