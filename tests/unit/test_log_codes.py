"""What is logged has a code that one can search for and alert on; values are fields."""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import guardrail
from guardrail.config import LoggingSettings
from guardrail.log_events import EventLog
from guardrail.logs import configure_logging

ROOT = Path(guardrail.__file__).parent.parent
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
CODE = re.compile(r"[a-z_]+(\.[a-z_]+)+")


def logged(path: Path) -> Iterator[tuple[int, ast.Call]]:
    """Calls of the loggers of a module, which are all named so."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LEVELS
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in {"log", "_log", "logger"}
        ):
            yield node.lineno, node


def modules() -> list[Path]:
    return [*sorted((ROOT / "guardrail").rglob("*.py")), *sorted((ROOT / "consumers").rglob("*.py"))]


def test_every_event_has_a_code_and_its_values_are_fields() -> None:
    found, wrong = 0, []
    for path in modules():
        for line, call in logged(path):
            found += 1
            first = call.args[0] if len(call.args) == 1 else None
            if not (isinstance(first, ast.Constant) and CODE.fullmatch(str(first.value))):
                wrong.append(f"{path.relative_to(ROOT)}:{line}")
    assert found > 40
    assert wrong == []


def test_every_code_of_the_operations_guide_is_logged_and_none_is_left_out() -> None:
    codes = {str(call.args[0].value) for path in modules() for _, call in logged(path)}  # type: ignore[attr-defined]
    guide = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    section = guide.split("## Logs", 1)[1].split("\n## ", 1)[0]
    parts = "guard|judge|config|ops|classifier"
    told = set(re.findall(rf"`((?:{parts})\.[a-z_]+)`", section))
    assert told == {code for code in codes if code.split(".")[0] in parts.split("|")}


def test_code_and_fields_of_a_library_part_are_those_of_the_json_line() -> None:
    out = io.StringIO()
    configure_logging(LoggingSettings(format="json"), out)
    EventLog("guardrail.somewhere").warning(
        "judge.failed", judge="llm:m", error="no\nanswer", claims=["secret"]
    )
    EventLog("guardrail.somewhere").info("judge.usage", calls=3)
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["event"], first["judge"], first["error"]) == ("judge.failed", "llm:m", "no\nanswer")
    assert (first["level"], first["logger"]) == ("warning", "guardrail.somewhere")
    assert "secret" not in out.getvalue()
    assert second["calls"] == 3
    assert not [key for key in first if key.startswith("guardrail")]


def test_in_a_program_with_logging_of_its_own_the_line_says_all(caplog: pytest.LogCaptureFixture) -> None:
    EventLog("guardrail.somewhere").warning("judge.failed", judge="llm:m", error="100 %s\n")
    assert caplog.messages == ["judge.failed judge='llm:m' error='100 %s\\n'"]
