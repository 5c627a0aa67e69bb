"""``guardrail config show --prompt``."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail.cli import app


def _config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "guardrail.yaml"
    path.write_text(text, "utf-8")
    return str(path)


def test_the_prompts_are_shown_filled_in(runner: CliRunner) -> None:
    result = runner.invoke(app, ["config", "show", "--prompt", "both"])
    assert result.exit_code == 0
    assert "You check whether the claims of an answer" in result.stdout
    assert "[1] The basic plan costs $49 a month." in result.stdout
    assert " claim c2]\nIt includes 5 users." in result.stdout
    assert "$reply_form" not in result.stdout
    assert result.stderr == ""


def test_of_two_prompts_each_begins_after_a_line_with_its_name(runner: CliRunner) -> None:
    both = runner.invoke(app, ["config", "show", "--template", "--prompt", "both"]).stdout
    system, user = (
        runner.invoke(app, ["config", "show", "--template", "--prompt", name]).stdout
        for name in ("system", "user")
    )
    assert both == f"--- system ---\n{system}--- user ---\n{user}"


def test_one_prompt_is_shown_alone(runner: CliRunner) -> None:
    result = runner.invoke(app, ["config", "show", "--prompt", "user"])
    assert "You check whether" not in result.stdout
    assert " document d1]" in result.stdout
    assert result.stderr == ""


def test_settings_show_in_the_prompt(runner: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("[]", "utf-8")
    llm = "{decompose: true, reasoning: none, prompts: {examples: none.yaml}}"
    path = _config(tmp_path, f"judge: {{llm: {llm}}}")
    shown = runner.invoke(app, ["config", "show", "--config", path, "--prompt", "system"]).stdout
    assert "c1a and c1b" in shown
    assert "Give no reasons." in shown
    assert "# Examples" not in shown


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["judge", "--prompt", "both"], "--prompt: give a KEY or a prompt, not both"),
        (["judge", "--template"], "--template: goes with --prompt only"),
        (["--template"], "--template: goes with --prompt only"),
    ],
)
def test_what_does_not_go_together_is_refused(runner: CliRunner, options: list[str], told: str) -> None:
    done = runner.invoke(app, ["config", "show", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr


@pytest.mark.parametrize("name", ["system", "user"])
def test_a_template_that_was_printed_can_be_configured_and_changes_nothing(
    runner: CliRunner, tmp_path: Path, name: str
) -> None:
    printed = runner.invoke(app, ["config", "show", "--prompt", name, "--template"]).stdout
    own = tmp_path / "own.md"
    own.write_text(printed, "utf-8")
    path = _config(tmp_path, f"judge: {{llm: {{prompts: {{{name}: '{own}'}}}}}}")
    with_own = runner.invoke(app, ["config", "show", "--config", path, "--prompt", "both"])
    assert with_own.exit_code == 0
    assert with_own.stdout == runner.invoke(app, ["config", "show", "--prompt", "both"]).stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("$reply_form", "missing variable $marker in the system prompt"),
        ("$reply_form $documents $x", "unknown variables $documents, $x and missing variable"),
        ("$reply_form $marker costs $5", "write $$ for the character itself"),
        (None, "can't be read"),
    ],
)
def test_a_prompt_of_ones_own_is_checked_when_settings_load(
    runner: CliRunner, tmp_path: Path, text: str | None, told: str
) -> None:
    own = tmp_path / "own.md"
    if text is not None:
        own.write_text(text, "utf-8")
    path = _config(tmp_path, f"judge: {{llm: {{prompts: {{system: '{own}'}}}}}}")
    result = runner.invoke(app, ["config", "check", path])
    assert result.exit_code == 2
    assert "judge.llm.prompts.system" in result.stderr
    assert told in result.stderr
