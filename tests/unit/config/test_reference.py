"""The reference of all settings, and what is told of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from consumers.settings import GuardSettings
from guardrail.cli import app
from guardrail.config.reference import describe, entries, markdown
from guardrail.errors import ConfigError

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"
ALL = {each.dotted: each for section in entries(GuardSettings) for each in section.all()}


def test_the_page_is_current() -> None:
    """If not: guardrail config schema reference > docs/settings.md"""
    assert PAGE.read_text(encoding="utf-8") == markdown(GuardSettings)
    printed = CliRunner().invoke(app, ["config", "schema", "reference"])
    assert printed.stdout == markdown(GuardSettings)


def test_every_setting_stands_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for path, each in ALL.items():
        ends = [".".join(each.path[level:]) for level in range(1, len(each.path))]
        if ends and each.listed and not each.is_section:
            assert any(f"| `{end}` |" in page for end in ends), path


def test_every_setting_has_a_meaning_a_type_and_a_default() -> None:
    for path, each in ALL.items():
        assert each.description, path
        assert each.kind != "anything" or not each.listed, path
    required = {path for path, each in ALL.items() if each.default is None and not each.is_section}
    assert required == {
        "challengers.N.against",
        "challengers.N.policy",
        "judge.classifier.server.url",
        "judge.llm.fallbacks.N.model",
        "judge.local.verifier.server.url",
        "judge.prices.NAME.input",
        "judge.prices.NAME.output",
        "policies.NAME.severity.patterns.N.reason",
        "policies.NAME.severity.patterns.N.severity",
        "routes.N.policy",
    }


def told_of(path: str) -> str:
    result = CliRunner().invoke(app, ["config", "show", path])
    assert result.exit_code == 0
    return result.stdout


def test_a_setting_is_described() -> None:
    assert told_of("policies.default.flag_below").splitlines() == [
        "policies.default.flag_below",
        "  Flag a response whose score is below this.",
        "  holds     number (0 to 1)",
        "  default   0.55",
        "  variable  GUARDRAIL_POLICIES__DEFAULT__FLAG_BELOW",
        "  in effect 0.55",
    ]


def test_one_of_many_is_described_as_a_section() -> None:
    told = told_of("policies.default").splitlines()
    assert told[0] == "policies.default"
    assert "    flag_below: Flag a response whose score is below this" in told
    assert "            flag_below: 0.55" in told
    assert "  in effect not set" in told_of("routes.0").splitlines()


@pytest.mark.parametrize(
    ("key", "form", "held"),
    [
        ("policies.strict.flag_below", "yaml", ["0.7"]),
        ("policies.other.flag_below", "yaml", ["not set"]),
        ("judge.kind", "yaml", ["llm"]),
        ("judge.kind", "json", ['"llm"']),
        ("judge.llm.api_key", "yaml", ["'**********'"]),
        ("routes.1.tenant", "yaml", ["b"]),
        ("routes.2.tenant", "yaml", ["not set"]),
        ("judge.kind.local", "yaml", None),
        ("policies.strict.redaction_text", "json", ["{", '  "default": "cut",', '  "de": "-"', "}"]),
        ("policies.strict.redaction_text", "yaml", ["default: cut", "de: '-'"]),
        ("judge.calibration", "yaml", ["null"]),
        ("logging.log_texts", "yaml", ["true"]),
    ],
)
def test_the_value_in_effect_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, form: str, held: list[str] | None
) -> None:
    file = tmp_path / "guardrail.yaml"
    file.write_text(
        "judge: {kind: llm, llm: {model: m, api_key: sk-hidden}}\npolicies: "
        "{strict: {flag_below: 0.7, redaction_text: {default: cut, de: '-'}}}\n"
        "routes: [{policy: strict, tenant: a}, {policy: strict, tenant: b}]\n"
    )
    monkeypatch.setenv("GUARDRAIL_LOGGING__LOG_TEXTS", "true")
    done = CliRunner().invoke(app, ["config", "show", key, "--config", str(file), "--format", form])
    if held is None:
        assert done.exit_code == 2
        return
    first, *more = held
    expected = [f"  in effect {first}", *(f"            {line}" for line in more)]
    assert done.stdout.splitlines()[-len(expected) :] == expected, done.output
    assert "sk-hidden" not in done.output


def test_settings_that_do_not_load_leave_the_description(tmp_path: Path) -> None:
    file = tmp_path / "guardrail.yaml"
    file.write_text("judge: {kind: lmm}\n")
    done = CliRunner().invoke(app, ["config", "show", "judge.kind", "--config", str(file)])
    assert done.exit_code == 2
    assert "holds" in done.stdout
    assert "judge.kind = 'lmm'" in done.stderr


def test_a_section_lists_its_settings() -> None:
    told = told_of("judge.cascade")
    assert "  settings in it:\n    first: Judges every claim" in told
    assert "variable" not in told


def test_what_stands_in_a_list_is_set_with_it() -> None:
    assert "GUARDRAIL_ROUTES (the whole list, as JSON)" in told_of("routes.3.tenant")
    assert "holds     a list of text" in told_of("policies.strict.rules")


def test_a_parameter_of_the_client_is_told_and_not_listed() -> None:
    told = told_of("kafka.client.session_timeout_ms")
    assert "holds     whole number (1000 or more), in milliseconds\n  default   7000" in told
    assert "session_timeout_ms`" not in PAGE.read_text(encoding="utf-8")
    assert "settings in it" not in told_of("kafka.client")


def test_the_forms_of_a_secret_are_told() -> None:
    assert "a secret is text, {file: PATH} or {env: VARIABLE}" in told_of("judge.llm.api_key")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("judge.llm.modle", "judge.llm.modle: no such setting; did you mean judge.llm.model"),
        ("flag_below", "did you mean policies.NAME.flag_below?"),
        ("zzz", "sections: kafka, ops, flagged, serve, limits, judge, policies"),
        ("..", "(nothing): no such setting"),
        ("a\x1b[31m", "a\\x1b[31m: no such setting"),
    ],
)
def test_what_is_no_setting_is_told_with_the_remedy(path: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        describe(GuardSettings, path)
    assert told in str(caught.value)
    result = CliRunner().invoke(app, ["config", "show", path])
    assert result.exit_code == 2
