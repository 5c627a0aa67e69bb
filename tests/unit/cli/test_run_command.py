"""``guardrail run`` on the in-process transport: what it is told, and how it leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from consumers.memory import MemoryBroker, MemoryTransport
from consumers.settings import GuardSettings, KafkaSettings, Topics
from guardrail.cli import app, run
from guardrail.config import SettingsFile
from guardrail.errors import ConfigError, TransportUnavailable
from guardrail.events import (
    Context,
    Response,
    ResponseCompleted,
    ResponseDelta,
    ResponseStarted,
    ResponseVerdict,
    parse_output,
)
from guardrail.judges.settings import JudgeSettings
from tests.support.guards import until
from tests.unit.cli.conftest import clean_environment
from tests.unit.consumers.test_ops import get

TOPICS = Topics()


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> MemoryBroker:
    """Stands in for Kafka, with all topics."""
    broker = MemoryBroker(dict.fromkeys(TOPICS.names(), 2), compacted=[TOPICS.sessions])

    def transport(settings: KafkaSettings) -> MemoryTransport:
        return MemoryTransport(broker, settings.group_id, TOPICS.responses, sessions_topic=TOPICS.sessions)

    monkeypatch.setattr("consumers.kafka.transport.KafkaTransport", transport)
    return broker


def on_any_port(**sections: Any) -> GuardSettings:
    """Settings of a guard that takes no port which somebody may have."""
    return GuardSettings.model_validate({"ops": {"port": 0}, **sections})


async def verdicts(broker: MemoryBroker) -> AsyncIterator[ResponseVerdict]:
    async for record in broker.subscribe(TOPICS.verdicts):
        event = parse_output(record.value or b"")
        if isinstance(event, ResponseVerdict):
            yield event


def send(broker: MemoryBroker, *events: Any) -> None:
    for event in events:
        broker.append(TOPICS.responses, event.response_id.encode(), event.to_json())


HEAD: dict[str, Any] = {
    "question": "What does the plan cost?",
    "contexts": (Context(id="pricing", text="The Pro plan costs $20 per month."),),
}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_guards_until_a_signal_and_finishes_what_is_in_flight(
    broker: MemoryBroker, number: signal.Signals
) -> None:
    """A response whose text ended before the signal gets its verdict, and its input is committed."""
    guard = asyncio.create_task(run.serve(on_any_port()))
    stream = verdicts(broker)
    send(broker, Response(response_id="before", answer="The Pro plan costs $20 per month.", **HEAD))
    assert (await anext(stream)).response_id == "before"
    send(broker, Response(response_id="last", answer="The Pro plan costs $20 per month.", **HEAD))
    assert (await anext(stream)).response_id == "last"
    os.kill(os.getpid(), number)
    await guard
    assert broker.lag("guardrail", TOPICS.responses) == 0


async def test_what_could_not_finish_is_left_to_the_next_guard(broker: MemoryBroker) -> None:
    guard = asyncio.create_task(run.serve(on_any_port(shutdown={"budget_ms": 500})))
    stream = verdicts(broker)
    send(
        broker,
        ResponseStarted(response_id="open", **HEAD),
        ResponseDelta(response_id="open", seq=0, text="The Pro plan "),
        Response(response_id="whole", answer="The Pro plan costs $20 per month.", **HEAD),
    )
    assert (await anext(stream)).response_id == "whole"
    os.kill(os.getpid(), signal.SIGTERM)
    await guard
    stored = [record.key or b"" for record in broker.records(TOPICS.sessions)]
    assert [key for key in stored if b"/head/" in key and key.endswith(b"/open")]


def configured(path: Path, version: str, more: str = "mode: observe") -> None:
    text = f"ops: {{port: 0}}\npolicies: {{default: {{version: '{version}', {more}}}}}\n"
    path.write_text(text, encoding="utf-8")


def followed(path: Path) -> run.Source:
    source = run.Source.of(SettingsFile.read(path), {})
    assert source is not None
    return source


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[GuardSettings, run.Source | None]]:
    """What ``serve`` was called with; it ends at once."""
    calls: list[tuple[GuardSettings, run.Source | None]] = []

    async def serve(settings: GuardSettings, on_stop: object, source: run.Source | None) -> None:
        calls.append((settings, source))

    monkeypatch.setattr(run, "serve", serve)
    monkeypatch.setattr("guardrail.logs.configure_logging", lambda *_: None)
    return calls


@pytest.mark.parametrize("named", [False, True])
def test_settings_from_a_pipe_are_in_force(
    runner: CliRunner, served: list[tuple[GuardSettings, run.Source | None]], tmp_path: Path, named: bool
) -> None:
    """``--config <(sops -d FILE)``: a pipe gives its content to the first reader only."""
    reading, writing = os.pipe()
    path = Path(f"/dev/fd/{reading}")
    if named:
        path = tmp_path / "pipe"
        os.mkfifo(path)

    def write() -> None:
        descriptor = os.open(path, os.O_WRONLY) if named else writing
        os.write(descriptor, b"policies: {default: {mode: hold}}\n")
        os.close(descriptor)

    writer = threading.Thread(target=write)
    writer.start()
    with capture_logs() as logs:
        result = runner.invoke(app, ["run", "--config", str(path)])
    writer.join()
    os.close(reading)
    assert result.exit_code == 0, result.output
    [(settings, source)] = served
    assert settings.policies["default"].mode == "hold"
    assert source is None
    assert [entry["event"] for entry in logs] == ["config.not_followed"]


async def test_sighup_without_a_file_ends_nothing(broker: MemoryBroker) -> None:
    guard = asyncio.create_task(run.serve(on_any_port()))
    stream = verdicts(broker)
    with capture_logs() as logs:
        await until(lambda: any(entry["event"] == "guard.starting" for entry in logs))
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: any(entry["event"] == "config.nothing_to_reload" for entry in logs))
    send(broker, Response(response_id="whole", answer="The Pro plan costs $20 per month.", **HEAD))
    assert (await anext(stream)).response_id == "whole"
    os.kill(os.getpid(), signal.SIGTERM)
    await guard


@pytest.mark.parametrize("command", ["run", "flagged"])
def test_sighup_before_the_loop_runs_ends_nothing(tmp_path: Path, command: str) -> None:
    """Reading settings can take seconds: here it waits for a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-c", "from guardrail.cli import main; main()", command, "--config", str(pipe)],
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )
    try:
        with pipe.open("w", encoding="utf-8") as stream:  # the command has opened it
            process.send_signal(signal.SIGHUP)
            stream.write("kafka: {nothing: 1}\n")
        _, told = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 2, told
    assert b"kafka.nothing" in told


async def test_sighup_reads_the_policies_anew_and_answers_under_way_keep_theirs(
    broker: MemoryBroker, tmp_path: Path
) -> None:
    path = tmp_path / "guardrail.yaml"
    configured(path, "1")
    source = followed(path)
    guard = asyncio.create_task(run.serve(source.read(source.file), source=source))
    stream = verdicts(broker)
    send(
        broker,
        ResponseStarted(response_id="begun", **HEAD),
        Response(response_id="first", answer="The Pro plan costs $20 per month.", **HEAD),
    )
    assert (await anext(stream)).policy.version == "1"
    configured(path, "2")
    with capture_logs() as logs:
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: any(entry["event"] == "config.reloaded" for entry in logs))
    send(broker, Response(response_id="second", answer="The Pro plan costs $20 per month.", **HEAD))
    assert (await anext(stream)).policy.version == "2"
    send(broker, ResponseCompleted(response_id="begun", seq=0))
    last = await anext(stream)
    assert (last.response_id, last.policy.version) == ("begun", "1")
    os.kill(os.getpid(), signal.SIGTERM)
    await guard


async def test_a_post_to_reload_answers_with_what_came_of_it(broker: MemoryBroker, tmp_path: Path) -> None:
    path = tmp_path / "guardrail.yaml"
    configured(path, "1")
    source = followed(path)
    with capture_logs() as logs:
        guard = asyncio.create_task(run.serve(source.read(source.file), source=source))
        await until(lambda: any(entry["event"] == "ops.listening" for entry in logs))
    [port] = [entry["port"] for entry in logs if entry["event"] == "ops.listening"]
    assert await get(port, "/reload", "POST") == (200, "unchanged\n")
    configured(path, "2")
    assert await get(port, "/reload", "POST") == (200, "reloaded: policies\n")
    configured(path, "3", "flag_below: 7")
    status, told = await get(port, "/reload", "POST")
    assert status == 422
    assert "guardrail.yaml:2: policies.default.flag_below = 7" in told
    assert "guardrail_config_reload_failed 1.0" in (await get(port, "/metrics"))[1]
    send(broker, Response(response_id="last", answer="The Pro plan costs $20 per month.", **HEAD))
    assert (await anext(verdicts(broker))).policy.version == "2"
    os.kill(os.getpid(), signal.SIGTERM)
    await guard


def test_a_file_is_read_again_as_a_check_reads_it(tmp_path: Path) -> None:
    """What a check refuses is refused, with the place where it stands."""
    path = tmp_path / "guardrail.yaml"
    configured(path, "1")
    source = followed(path)
    path.write_text("policies:\n  default:\n    judge: http\n", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"guardrail\.yaml:3: policies\.default\.judge: http: .*judge\.http\.url"
    ):
        source.read(SettingsFile.read(path))


async def test_a_second_signal_leaves_at_once(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[int] = []
    left = asyncio.Event()

    def leave(status: int) -> None:
        statuses.append(status)
        left.set()

    monkeypatch.setattr(os, "_exit", leave)
    guard = asyncio.create_task(run.serve(on_any_port(shutdown={"budget_ms": 60_000})))
    stream = verdicts(broker)
    send(
        broker,
        ResponseStarted(response_id="open", **HEAD),
        Response(response_id="whole", answer="The Pro plan costs $20 per month.", **HEAD),
    )
    await anext(stream)
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    await left.wait()
    assert statuses == [128 + signal.SIGINT]
    guard.cancel()
    await asyncio.gather(guard, return_exceptions=True)


async def test_a_missing_topic_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = MemoryBroker()
    monkeypatch.setattr(
        "consumers.kafka.transport.KafkaTransport",
        lambda settings: MemoryTransport(empty, settings.group_id, settings.topics.responses),
    )
    with pytest.raises(TransportUnavailable, match=r"rag\.responses does not exist"):
        await run.serve(on_any_port())


def test_the_log_tells_what_differs_from_the_defaults_and_no_secret() -> None:
    settings = GuardSettings.model_validate(
        {
            "kafka": {"group_id": "mine"},
            "judge": {"llm": {"api_key": "sk-hidden"}},
            "policies": {"a": {}, "b": {"rules": ["always: flag"]}},
        }
    )
    told = run.changed_settings(settings)
    assert told["kafka"] == {"group_id": "mine"}
    assert set(told) == {"kafka", "judge", "policies"}
    assert told["policies"] == {"a": {}, "b": {"rules": ["always: flag"]}}
    assert "sk-hidden" not in json.dumps(told)
    assert run.changed_settings(GuardSettings()) == {}


@pytest.mark.parametrize("kind", get_args(JudgeSettings.model_fields["kind"].annotation))
def test_every_kind_of_judge_can_be_chosen(
    runner: CliRunner, served: list[tuple[GuardSettings, run.Source | None]], kind: str
) -> None:
    result = runner.invoke(app, ["run", "--judge", kind])
    assert (result.exit_code, [settings.judge.kind for settings, _ in served]) == (0, [kind])


def test_it_ends_in_time_even_when_a_thread_never_does() -> None:
    """The interpreter joins threads on its way out; the budget holds all the same, and the log says so."""
    script = (
        "import threading; from guardrail.cli import run; from guardrail.config import LoggingSettings\n"
        "from guardrail.logs import configure_logging; configure_logging(LoggingSettings(format='json'))\n"
        "run.end_in_time(0.05); threading.Event().wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "guard.shutdown_budget_spent" in done.stderr
