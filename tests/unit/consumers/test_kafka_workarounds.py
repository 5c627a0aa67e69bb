"""Private parts of aiokafka: three modules touch them, and a release that lacks one is told."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import pytest
from aiokafka.producer.message_accumulator import MessageAccumulator
from aiokafka.producer.sender import Sender
from packaging.requirements import Requirement

from consumers.kafka import workarounds
from consumers.kafka.workarounds import CHECKED_WITH, WORKAROUNDS, Workaround, check_client_library
from guardrail.errors import ConfigError

ROOT = Path(__file__).parents[3]
WORKING_AROUND = ROOT / "consumers" / "kafka" / "workarounds.py"
ASKING = ROOT / "consumers" / "kafka" / "asking.py"
OF_THE_CLIENT = ROOT / "guardrail" / "client" / "presence.py"
PUBLIC = {
    "aiokafka",
    "aiokafka.abc",
    "aiokafka.admin",
    "aiokafka.admin.config_resource",  # what the public describe_configs takes
    "aiokafka.coordinator.assignors.range",
    "aiokafka.errors",
    "aiokafka.structs",
}


def _private_parts(path: Path) -> Iterator[str]:
    """Imports from aiokafka's inner modules, and underscored attributes that the file does not set itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)}
    own |= {"_asdict", "_fields", "_replace"}  # of named tuples, and public
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _of_self(node):
            own.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            own.add(node.target.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aiokafka"):
            inner = node.module not in PUBLIC or any(alias.name.startswith("_") for alias in node.names)
            if inner:
                yield f"{path.name}:{node.lineno} from {node.module}"
        elif isinstance(node, ast.Import):
            yield from (
                f"{path.name}:{node.lineno} import {alias.name}"
                for alias in node.names
                if alias.name.startswith("aiokafka") and alias.name not in PUBLIC
            )
        elif isinstance(node, ast.Attribute) and re.match(r"_[^_]", node.attr) and node.attr not in own:
            yield f"{path.name}:{node.lineno} .{node.attr}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = re.fullmatch(r"_[a-z][a-z_]+", node.value)
            if named and node.value not in own:
                yield f"{path.name}:{node.lineno} {node.value!r}"


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def test_private_parts_are_touched_where_they_are_listed_only() -> None:
    files = [*sorted((ROOT / "consumers").rglob("*.py")), *sorted((ROOT / "guardrail").rglob("*.py"))]
    using = [path for path in files if "aiokafka" in path.read_text(encoding="utf-8")]
    touching = {WORKING_AROUND, ASKING, OF_THE_CLIENT}
    assert touching <= {*using}
    assert [found for path in using if path not in touching for found in _private_parts(path)] == []
    listed = {
        name for each in WORKAROUNDS for part in each.parts for name in re.findall(r"\b_[a-z_]+", str(part))
    }
    assert {found.rpartition(".")[2] for found in _private_parts(OF_THE_CLIENT)} <= listed
    for path in (WORKING_AROUND, ASKING):
        assert list(_private_parts(path)), "the search finds nothing where there is much to find"


@pytest.mark.parametrize("workaround", WORKAROUNDS, ids=lambda each: each.name)
def test_every_workaround_names_its_reason_and_a_test_that_is_there(workaround: Workaround) -> None:
    assert workaround.defect.endswith(".")
    assert re.match(r"https://github\.com/aio-libs/aiokafka/|Not filed\. [A-Z]", workaround.upstream)
    assert workaround.parts
    assert workaround.tests
    for test in workaround.tests:
        file, *names = test.split("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert all(re.search(rf"(?:class|def) {name}\b", text) for name in names), test


def test_nothing_is_missing_in_the_release_that_is_installed() -> None:
    assert workarounds.missing_parts() == []


@pytest.fixture
def unchecked() -> Iterator[None]:
    check_client_library.cache_clear()
    yield
    check_client_library.cache_clear()


@pytest.mark.usefixtures("unchecked")
def test_a_release_that_lacks_a_part_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def renamed(self: Sender, node: object, batches: object, most: float) -> None:
        raise NotImplementedError

    monkeypatch.setattr(aiokafka, "__version__", "0.99.1")
    monkeypatch.delattr(MessageAccumulator, "fail_all")
    monkeypatch.setattr(Sender, "_send_produce_req", renamed)
    monkeypatch.setattr(Sender, "_sender_routine", renamed)
    with pytest.raises(ConfigError) as raised:
        check_client_library()
    message = str(raised.value)
    assert message.startswith("aiokafka 0.99.1 lacks what the guard relies on: ")
    for lost in (
        "producer.message_accumulator:MessageAccumulator.fail_all(exception)",
        "producer.sender:Sender._send_produce_req(node_id, batches)",
        "_maybe_do_transactional_request, _send_produce_req in producer.sender:Sender._sender_routine",
    ):
        assert lost in message
    assert f"'aiokafka=={CHECKED_WITH[-1]}'" in message


@pytest.mark.usefixtures("unchecked")
def test_a_release_that_nobody_has_checked_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aiokafka, "__version__", CHECKED_WITH[-1])
    check_client_library()
    assert not caplog.records
    check_client_library.cache_clear()
    monkeypatch.setattr(aiokafka, "__version__", "0.14.99")
    check_client_library()
    (record,) = caplog.records
    assert (
        f"guard.aiokafka_unchecked installed='0.14.99' checked_with='{CHECKED_WITH[0]}" in record.getMessage()
    )


@pytest.mark.parametrize(
    ("module", "needed"), [(WORKING_AROUND, "record.util"), (ASKING, "protocol.metadata")]
)
def test_an_inner_module_that_is_gone_is_told_too(
    monkeypatch: pytest.MonkeyPatch, module: Path, needed: str
) -> None:
    """In a module of its own: the real one stays as it is."""
    monkeypatch.setitem(__import__("sys").modules, f"aiokafka.{needed}", None)
    told = rf"aiokafka .* lacks what the guard relies on: .*{re.escape(needed)}"
    with pytest.raises(ConfigError, match=told):
        exec(compile(module.read_text(encoding="utf-8"), "gone", "exec"), {"__name__": "gone"})  # noqa: S102


def test_it_was_checked_with_releases_that_the_package_allows() -> None:
    (line,) = re.findall(r'"(aiokafka[^"]*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[:1]
    allowed = Requirement(line).specifier
    assert all(version in allowed for version in CHECKED_WITH)
    assert allowed.contains(aiokafka.__version__)
