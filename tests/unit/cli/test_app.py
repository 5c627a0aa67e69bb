"""The root of the commands: help to work from, and errors that are one message with a status."""

from __future__ import annotations

import pytest
import typer
from typer.core import TyperArgument, TyperGroup, TyperOption
from typer.main import get_command
from typer.testing import CliRunner

from guardrail import __version__
from guardrail.cli import app
from guardrail.cli.terminal import GuardrailGroup
from guardrail.errors import ConfigError, GuardrailError, JudgeError, TransportUnavailable


def all_commands() -> dict[str, object]:
    """Every command by its words."""
    found: dict[str, object] = {}
    todo: list[tuple[str, object]] = [("", get_command(app))]
    while todo:
        words, command = todo.pop()
        found[words] = command
        if isinstance(command, TyperGroup):
            todo.extend((f"{words} {name}".strip(), inner) for name, inner in command.commands.items())
    return found


@pytest.mark.parametrize("words", sorted(all_commands()))
def test_help_works_and_fits_80_columns(runner: CliRunner, words: str) -> None:
    result = runner.invoke(app, [*words.split(), "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.output
    assert max(len(line) for line in result.output.splitlines()) <= 80


@pytest.mark.parametrize("words", sorted(all_commands()))
def test_every_option_is_described_and_every_command_has_examples(words: str) -> None:
    command = all_commands()[words]
    for parameter in command.params:  # type: ignore[attr-defined]
        assert isinstance(parameter, TyperOption | TyperArgument)
        assert parameter.help, f"{words}: {parameter.name} has no help"
    assert command.help  # type: ignore[attr-defined]
    if not isinstance(command, TyperGroup) or not words:
        assert "guardrail" in (command.epilog or "")  # type: ignore[attr-defined]


def test_version(runner: CliRunner) -> None:
    result = runner.invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"guardrail {__version__}\n")


@pytest.mark.parametrize(
    "arguments", [["rnu"], ["run", "--gruop-id", "a"], ["run", "surplus"], ["config", "check", "a", "b"]]
)
def test_wrong_usage_is_status_2(runner: CliRunner, arguments: list[str]) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.output


def _app_that_raises(error: BaseException) -> typer.Typer:
    raising = typer.Typer(cls=GuardrailGroup, pretty_exceptions_enable=False)

    @raising.callback()
    def root(debug: bool = False) -> None: ...

    @raising.command()
    def fail() -> None:
        raise error

    return raising


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ConfigError("kafka.group_id: empty; give one"), 2, "kafka.group_id: empty; give one"),
        (TransportUnavailable("no broker at a:1; start it"), 1, "no broker at a:1; start it"),
        (JudgeError("[bold]not markup[/]"), 1, "[bold]not markup[/]"),
        (GuardrailError("line 1\nline 2"), 1, "line 1\nline 2"),
        (GuardrailError("\x1b[2Jhidden"), 1, "\\x1b[2Jhidden"),
        (GuardrailError("word " * 60), 1, "word " * 60),
        (
            FileNotFoundError(2, "No such file or directory", "in.jsonl"),
            1,
            "in.jsonl: No such file or directory",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_become_one_message_on_stderr(
    runner: CliRunner, error: BaseException, status: int, message: str
) -> None:
    result = runner.invoke(_app_that_raises(error), ["fail"])
    assert result.exit_code == status
    assert result.stdout == ""
    assert result.stderr.strip() == (f"error: {message}".strip() if message else "")


def test_debug_keeps_the_traceback(runner: CliRunner) -> None:
    error = ConfigError("wrong")
    assert runner.invoke(_app_that_raises(error), ["--debug", "fail"]).exception is error


def test_a_bug_is_not_dressed_up(runner: CliRunner) -> None:
    error = ZeroDivisionError("a bug")
    assert runner.invoke(_app_that_raises(error), ["fail"]).exception is error
