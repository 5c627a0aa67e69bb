"""aiokafka is held to the release whose private parts are known, and few modules touch those.

What the workarounds do is shown by test_kafka_headers, test_kafka_connection, test_kafka_closing and
test_kafka_sender here, and over a broker by the suites of tests/integration.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import pytest
from packaging.requirements import Requirement

from consumers.kafka.workarounds import CHECKED_WITH, patch_client_library

ROOT = Path(__file__).parents[3]
TOUCHING = {"consumers/kafka/workarounds.py", "guardrail/client/kafka.py"}
PUBLIC = {
    "aiokafka",
    "aiokafka.abc",
    "aiokafka.admin",
    "aiokafka.admin.config_resource",  # what the public describe_configs takes
    "aiokafka.coordinator.assignors.range",
    "aiokafka.errors",
    "aiokafka.structs",
}


def _private_parts(source: str) -> Iterator[str]:
    """Imports from aiokafka's inner modules, and underscored names, as attributes or in strings, that the
    module does not set itself."""
    tree = ast.parse(source)
    own = {"_asdict", "_fields", "_replace"}  # of named tuples, and public
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                own.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                own.add(name)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                own.add(name)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("aiokafka"):
                if module not in PUBLIC or any(alias.name.startswith("_") for alias in names):
                    yield f"from {module}"
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.startswith("aiokafka") and alias.name not in PUBLIC:
                        yield f"import {alias.name}"
            case ast.Attribute(attr=name) if re.match(r"_[^_]", name) and name not in own:
                yield f".{name}"
            case ast.Constant(value=str(name)) if re.fullmatch(r"_[a-z][a-z_]+", name) and name not in own:
                yield repr(name)


def test_private_parts_are_touched_in_few_modules() -> None:
    files = [*(ROOT / "consumers").rglob("*.py"), *(ROOT / "guardrail").rglob("*.py")]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}
    found = {path: list(_private_parts(text)) for path, text in texts.items() if "aiokafka" in text}
    assert {path: parts for path, parts in found.items() if parts and path not in TOUCHING} == {}
    assert all(found[path] for path in TOUCHING)


def test_the_package_asks_for_releases_that_were_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = next(
        one for one in map(Requirement, project["dependencies"]) if one.name == "aiokafka"
    ).specifier
    assert all(version in allowed for version in CHECKED_WITH)
    assert aiokafka.__version__ in CHECKED_WITH, "run all suites with it, then add it"
    minor = CHECKED_WITH[-1].rpartition(".")[0]
    assert not allowed.contains(f"{minor.partition('.')[0]}.{int(minor.partition('.')[2]) + 1}.0")


def test_a_release_that_nobody_has_checked_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    patch_client_library.__wrapped__()
    assert not caplog.records
    monkeypatch.setattr(aiokafka, "__version__", "0.14.99")
    patch_client_library.__wrapped__()
    (record,) = caplog.records
    assert (
        f"guard.aiokafka_unchecked installed='0.14.99' checked_with='{CHECKED_WITH[0]}" in record.getMessage()
    )
