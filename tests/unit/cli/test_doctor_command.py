"""``guardrail doctor``: what it prints, and how it ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail.cli import app
from guardrail.doctor import Check
from tests.support.kafka_broker import free_ports
from tests.unit.cli.conftest import Program

OK = Check("topics", "rag.responses", "ok", "12 partitions")
WARN = Check("topics", "replicas", "warn", "all topics have 1 replica", "make them with 3")
FAIL = Check("enforcement", "wrong answer", "fail", "shown \x1b[2J as if [bold]right", "set mode: hold")


def telling(monkeypatch: pytest.MonkeyPatch, *checks: Check) -> list[float | None]:
    waits: list[float | None] = []

    async def examine(_settings: object, within_s: float | None) -> AsyncIterator[Check]:
        waits.append(within_s)
        for check in checks:
            yield check

    monkeypatch.setattr("consumers.doctor.examine", examine)
    return waits


@pytest.mark.parametrize(
    ("checks", "status", "summary"),
    [
        ([OK], 0, "0 failed, 0 warnings, 1 ok"),
        ([OK, WARN], 0, "0 failed, 1 warning, 1 ok"),
        ([OK, WARN, FAIL], 1, "1 failed, 1 warning, 1 ok"),
        ([Check("clock", "this machine", "skip", "unknown")], 0, "0 failed, 0 warnings, 0 ok, 1 not checked"),
    ],
)
def test_the_status_is_1_where_something_failed(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch, checks: list[Check], status: int, summary: str
) -> None:
    telling(monkeypatch, *checks)
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == status
    assert result.stdout.splitlines()[-1] == summary


def test_each_check_is_a_line_with_its_remedy_below(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling(monkeypatch, OK, WARN, FAIL)
    assert runner.invoke(app, ["doctor"]).stdout.splitlines()[1:-2] == [
        "",
        "topics",
        "  ok    rag.responses: 12 partitions",
        "  warn  replicas: all topics have 1 replica",
        "        fix: make them with 3",
        "",
        "enforcement",
        "  FAIL  wrong answer: shown \\x1b[2J as if [bold]right",
        "        fix: set mode: hold",
    ]


def test_json_is_one_object_with_all_checks(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    telling(monkeypatch, OK, WARN, FAIL)
    result = runner.invoke(app, ["doctor", "--json"])
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["ok"] is False
    assert told["counts"] == {"ok": 1, "warn": 1, "fail": 1, "skip": 0}
    assert told["checks"][1] == {
        "area": "topics",
        "about": "replicas",
        "state": "warn",
        "detail": "all topics have 1 replica",
        "remedy": "make them with 3",
    }


def test_the_wait_for_the_guard_is_an_option(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = telling(monkeypatch, OK)
    runner.invoke(app, ["doctor"])
    runner.invoke(app, ["doctor", "--timeout-ms", "500"])
    runner.invoke(app, ["doctor", "--no-prove"])
    assert waits == [30.0, 0.5, None]


@pytest.mark.parametrize("arguments", [["--timeout-ms", "0"], ["-b", "nowhere"], ["--config", "none.yaml"]])
def test_wrong_usage_and_settings_have_a_status_of_their_own(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    telling(monkeypatch, OK)
    assert runner.invoke(app, ["doctor", *arguments]).exit_code == 2


def test_without_kafka_all_else_is_told(program: Program) -> None:
    (port,) = free_ports(1)
    code = "import consumers.settings; consumers.settings.KafkaSettings.connect_timeout_ms = 300"
    result = program("doctor", "-b", f"127.0.0.1:{port}", "--json", before=code)
    assert result.returncode == 1
    told = {(check["area"], check["about"]): check for check in json.loads(result.stdout)["checks"]}
    reachable = told["broker", "reachable"]
    assert reachable["state"] == "fail"
    assert "start it, or check bootstrap_servers" in reachable["remedy"]
    assert told["enforcement", "the guard"]["state"] == "skip"
    assert "for guardrail serve alone" in told["enforcement", "the guard"]["detail"]
    assert told["judge", "local"]["state"] == "ok"
    assert ("machine", "open files") in told


def test_a_file_that_the_settings_name_and_that_is_not_here_fails(program: Program, tmp_path: Path) -> None:
    (tmp_path / "guardrail.yaml").write_text(
        "kafka: {security_protocol: SSL, ssl_cafile: ca.pem, bootstrap_servers: '127.0.0.1:9'}\n"
    )
    code = "import consumers.settings; consumers.settings.KafkaSettings.connect_timeout_ms = 300"
    result = program("doctor", "--config", "guardrail.yaml", "--no-prove", "--json", before=code)
    assert result.returncode == 1
    failures = [one for one in json.loads(result.stdout)["checks"] if one["state"] == "fail"]
    assert any("ca.pem" in one["about"] and "can't be read here" in one["detail"] for one in failures)


def test_what_flagged_would_refuse_is_a_warning(program: Program, tmp_path: Path) -> None:
    """The guard itself goes without it."""
    (tmp_path / "guardrail.yaml").write_text(
        "kafka: {bootstrap_servers: '127.0.0.1:9'}\nflagged: {store: 'sqlite:////no/such/dir/z.db'}\n"
    )
    code = "import consumers.settings; consumers.settings.KafkaSettings.connect_timeout_ms = 300"
    result = program("doctor", "--config", "guardrail.yaml", "--no-prove", "--json", before=code)
    [told] = [one for one in json.loads(result.stdout)["checks"] if one["about"] == "flagged.store"]
    assert (told["state"], told["remedy"]) == (
        "warn",
        "name a file in a folder that is there and that this user may write to",
    )
