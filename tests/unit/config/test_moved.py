"""GuardSettings of earlier versions: each error says what became of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from consumers.settings import GuardSettings, KafkaSettings
from guardrail.config.moved import MOVED
from guardrail.config.reference import entries
from tests.support.config_files import problems_of, write

KNOWN = {each.dotted for section in entries(GuardSettings) for each in section.all()}


def nested(path: str, value: object) -> dict[str, Any]:
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}


@pytest.mark.parametrize("path", MOVED)
def test_a_setting_that_went_is_told_with_what_became_of_it(tmp_path: Path, path: str) -> None:
    file = write(tmp_path, "# a comment\n" + yaml.safe_dump(nested(path, "hidden-value")))
    problem = problems_of(file)[path]
    assert "no setting any more" in problem
    assert f"remedy: {MOVED[path]}" in problem
    assert f"{file}:{path.count('.') + 2}" in problem
    assert "hidden-value" not in problem


def test_no_setting_that_there_is_is_in_the_table() -> None:
    assert not MOVED.keys() & KNOWN


def test_what_the_remedies_name_is_there() -> None:
    named = {
        word.strip(".,:;()")
        for remedy in MOVED.values()
        for word in remedy.split()
        if word.startswith(("kafka.", "judge.", "limits."))
    }
    client = {f"kafka.client.{name}" for name in KafkaSettings().client}
    assert named <= KNOWN | client
    assert len(named) > 20


@pytest.mark.parametrize(
    "judge",
    [
        {"llm": {"fallbacks": [{"model": "m", "temperature": 1}]}},
        {"self_judging": {"alternative": {"model": "m", "temperature": 1}}},
    ],
)
def test_other_models_take_the_settings_of_the_judge(tmp_path: Path, judge: dict[str, Any]) -> None:
    [problem] = problems_of(write(tmp_path, yaml.safe_dump({"judge": judge}))).values()
    assert "no setting any more" in problem
    assert MOVED["judge.llm.temperature"] in problem


def test_what_policies_no_longer_have_is_told_under_each_name(tmp_path: Path) -> None:
    file = write(tmp_path, "policies: {house: {citation_pattern: 'x(.)'}}")
    assert MOVED["policies.*.citation_pattern"] in problems_of(file)["policies.house.citation_pattern"]


def test_a_variable_of_an_earlier_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARDRAIL_KAFKA__SASL_PASSWORD_FILE", "/run/secret")
    problem = problems_of(None)["kafka.sasl_password_file"]
    assert "environment variable GUARDRAIL_KAFKA__SASL_PASSWORD_FILE" in problem
    assert "write it as kafka.sasl_password: {file: PATH}" in problem
