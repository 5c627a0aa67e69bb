"""Files of parameters: what is refused, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail.errors import ConfigError
from guardrail.judges.local.combiner import load_parameters

GOOD: dict[str, Any] = {
    "version": 1,
    "provenance": {},
    "supported_at": 0.5,
    "partially_supported_at": 0.2,
    "combiner": {"kind": "logistic", "bias": 0.0, "weights": {"passage": 1.0}, "log_odds": ["passage"]},
}


def written(folder: Path, changes: dict[str, Any]) -> Path:
    path = folder / "parameters.json"
    path.write_text(json.dumps(GOOD | changes), encoding="utf-8")
    return path


def test_a_file_that_is_right_is_read(tmp_path: Path) -> None:
    assert load_parameters(written(tmp_path, {})).features == {"passage"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"version": 99}, "it has version 99, this release reads version 1; fit it again with training"),
        ({"version": "1"}, "it has version '1', this release reads version 1"),
        ({"supported_at": 5.0}, "supported_at = 5.0: Input should be less than or equal to 1"),
        ({"supported_at": -0.1}, "supported_at = -0.1: Input should be greater than or equal to 0"),
        ({"partially_supported_at": 1.5}, "partially_supported_at = 1.5: Input should be less than"),
        (
            {"combiner": GOOD["combiner"] | {"log_odds": ["passage", "pasage"]}},
            "combiner.logistic: Value error, log_odds names pasage, which weights does not have",
        ),
    ],
)
def test_what_can_not_be_is_refused_with_its_name(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    path = written(tmp_path, changes)
    with pytest.raises(ConfigError) as caught:
        load_parameters(path)
    message = str(caught.value)
    assert message.startswith(f"judge.local.parameters_path: {path} is no parameters file of this version: ")
    assert told in message
    assert "training.calibrate" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("{"),
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text("[]"),
    ],
)
def test_what_is_no_parameters_at_all_is_a_config_error(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    path = tmp_path / "parameters.json"
    spoil(path)
    with pytest.raises(ConfigError, match="is no parameters file"):
        load_parameters(path)
