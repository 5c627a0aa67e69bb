"""``guardrail config schema events``: write the contracts, or check that they are current."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail.cli import app

EVENTS = ("config", "schema", "events")


def test_what_was_written_is_current_until_it_is_changed(runner: CliRunner, tmp_path: Path) -> None:
    written = runner.invoke(app, [*EVENTS, "--out", str(tmp_path)])
    assert written.exit_code == 0
    paths = [Path(line) for line in written.stdout.splitlines()]
    assert tmp_path / "asyncapi.yaml" in paths
    assert all(path.is_file() for path in paths)
    assert runner.invoke(app, [*EVENTS, "--out", str(tmp_path), "--check"]).exit_code == 0
    paths[0].write_text("{}", encoding="utf-8")
    stale = runner.invoke(app, [*EVENTS, "--out", str(tmp_path), "--check"])
    assert stale.exit_code == 1
    assert paths[0].name in stale.stderr
    assert "guardrail config schema events" in stale.stderr


def test_check_writes_nothing(runner: CliRunner, tmp_path: Path) -> None:
    assert runner.invoke(app, [*EVENTS, "--out", str(tmp_path), "--check"]).exit_code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", [[], ["settings"], ["reference"]])
@pytest.mark.parametrize("option", [["--check"], ["--out", "docs"]])
def test_what_goes_with_events_is_refused_elsewhere(
    runner: CliRunner, what: list[str], option: list[str]
) -> None:
    done = runner.invoke(app, ["config", "schema", *what, *option])
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"Invalid value for {option[0]}: goes with events only" in done.stderr
