"""The program as a process: statuses, pipes, ``NO_COLOR``, and what is not imported."""

from __future__ import annotations

import subprocess
import sys

from tests.support.kafka_broker import free_ports
from tests.unit.cli.conftest import Program, clean_environment


def test_help_into_a_pipe_has_no_escapes(program: Program) -> None:
    done = program("--help")
    assert done.returncode == 0
    assert "guardrail run --bootstrap-servers" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_no_color_wins_over_a_terminal_that_is_forced(program: Program) -> None:
    coloured = program("config", "check", "nothere.yaml", env={"FORCE_COLOR": "1"})
    plain = program("config", "check", "nothere.yaml", env={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert "\x1b[" in coloured.stderr
    assert "\x1b[3" not in plain.stderr
    assert (coloured.returncode, plain.returncode) == (2, 2)


def test_a_broker_that_is_not_there_is_one_message(program: Program) -> None:
    [port] = free_ports(1)
    brief = "from consumers.settings import KafkaSettings; KafkaSettings.connect_timeout_ms = 300"
    for command in (("run", "--group-id", "g", "--log-level", "error"), ("topics", "create")):
        done = program(
            *command,
            *("--bootstrap-servers", f"127.0.0.1:{port}"),
            before=brief,
            env={"GUARDRAIL_OPS__PORT": "0"},
        )
        assert done.returncode == 1, done.stderr
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert done.stderr.count("error:") == 1
        assert f"127.0.0.1:{port}" in done.stderr


def test_a_reader_that_leaves_early_makes_no_traceback() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "from guardrail.cli import main; main()", "config", "schema"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert b"Traceback" not in told


def test_help_costs_no_heavy_import() -> None:
    """Start-up stays quick because commands import what they need when they run."""
    script = (
        "import sys\n"
        "from guardrail.cli import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'aiokafka', 'openai', 'pydantic', 'structlog', 'uvloop', 'yaml', 'consumers'}\n"
        "print('HEAVY', sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=clean_environment()
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []"
