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
TOUCHING = {"consumers/kafka/workarounds.py", "consumers/kafka/asking.py", "guardrail/client/presence.py"}
PUBLIC = re.compile(
    r"aiokafka(\.(abc|admin|admin\.config_resource|coordinator\.assignors\.range|errors|structs))?"
)


def _private_parts(path: Path) -> Iterator[str]:
    """Imports from aiokafka's inner modules, and underscored attributes that the file does not define."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    own = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    own |= {
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    own |= {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == "self"
    }
    own |= {"_asdict", "_replace"}  # of named tuples
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module.startswith("aiokafka") and not PUBLIC.fullmatch(
                module
            ):
                yield f"from {module}"
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name) if re.match(r"_[^_]", name) and name not in own:
                yield f".{name}"


def test_private_parts_are_touched_in_few_modules() -> None:
    files = [*(ROOT / "consumers").rglob("*.py"), *(ROOT / "guardrail").rglob("*.py")]
    using = [path for path in files if "aiokafka" in path.read_text(encoding="utf-8")]
    found = {str(path.relative_to(ROOT)): list(_private_parts(path)) for path in using}
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
