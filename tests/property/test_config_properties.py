"""Whatever a configuration file holds, the outcome is settings or problems that can be shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumers.settings import GuardSettings, KafkaSettings, load_settings
from guardrail.config import Problem, SettingsError
from guardrail.policy import Policy
from guardrail.printable import escape_controls

FUZZ = settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

NAMES = st.sampled_from(
    [
        *GuardSettings.model_fields,
        *KafkaSettings.model_fields,
        *Policy.model_fields,
        *(
            "default",
            "route",
            "tenant",
            "policy",
            "llm",
            "local",
            "kind",
            "verdict",
            "action",
            "patterns",
            "[key]",
            ".",
        ),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["block", "local", "default", "verdict CONTRADICTED: block", "severity >= x: y", "a: b: c"]
    )
)


def trees(depth: int) -> st.SearchStrategy[Any]:
    if depth == 0:
        return SCALARS
    inner = trees(depth - 1)
    return (
        SCALARS
        | st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.text(max_size=8) | SCALARS, inner, max_size=4)
    )


def problems_of(path: Path) -> tuple[Problem, ...]:
    try:
        loaded = load_settings(path)
    except SettingsError as error:
        return error.problems
    loaded.router().choose("any", "one")
    return ()


def check(path: Path) -> None:
    """Every problem names its place and a remedy, and can be printed as it is."""
    for problem in problems_of(path):
        assert problem.wrong
        assert problem.remedy
        assert str(path) in (problem.where or "")
        assert escape_controls(str(problem), keep_lines=True) == str(problem)


@pytest.fixture(autouse=True)
def _no_settings_in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GUARDRAIL_"):
            monkeypatch.delenv(name)


@FUZZ
@given(data=st.dictionaries(NAMES, trees(3), max_size=5))
def test_any_tree_of_values(tmp_path: Path, data: dict[str, Any]) -> None:
    path = tmp_path / "guardrail.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    check(path)


@FUZZ
@given(
    data=st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "guardrail.yaml"
    path.write_bytes(data)
    check(path)
