"""The Docker files, as far as they can be checked without an engine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from guardrail.cli import app
from tests.support.kafka_broker import DEFAULT_KAFKA_VERSION

ROOT = Path(__file__).resolve().parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()


def parse(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """Name and parameters of the command that a command line means, without running it."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("guardrail", list(arguments))
    while hasattr(command, "resolve_command"):
        left = [*getattr(context, "_protected_args", []), *context.args]
        name, command, left = command.resolve_command(context, left)
        context = command.make_context(name, left, parent=context)
    return str(context.command_path), dict(context.params)


def test_services_start_one_after_the_other() -> None:
    assert set(SERVICES) == {"kafka", "topics", "guard"}
    assert SERVICES["topics"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}
    assert SERVICES["guard"]["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}
    assert SERVICES["kafka"]["healthcheck"]["test"][0] == "CMD"


@pytest.mark.parametrize("service", ["topics", "guard"])
def test_commands_are_ones_that_guardrail_has(service: str) -> None:
    path, parameters = parse(SERVICES[service]["command"])
    assert path in {"guardrail topics create", "guardrail run"}
    assert parameters["bootstrap_servers"] == "kafka:19092"


def test_a_command_that_is_none_would_be_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(["run", "--no-such-option"])


def test_kafka_is_the_version_under_test_and_advertises_what_clients_use() -> None:
    kafka = SERVICES["kafka"]
    assert kafka["image"] == f"apache/kafka:{DEFAULT_KAFKA_VERSION}"
    advertised = kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert "CONTAINERS://kafka:19092" in advertised
    assert "HOST://localhost:9092" in advertised
    assert kafka["ports"] == ["127.0.0.1:9092:9092"]
    assert all(isinstance(value, str) for value in kafka["environment"].values())


def test_build_contexts_and_volumes_exist() -> None:
    for service in ("topics", "guard"):
        build = SERVICES[service]["build"]
        context = (ROOT / "docker" / build["context"]).resolve()
        assert context == ROOT
        assert (context / build["dockerfile"]).is_file()
    named = {volume.split(":")[0] for volume in SERVICES["kafka"]["volumes"]}
    assert named == set(COMPOSE["volumes"])


def test_the_guard_may_drain_before_it_is_killed() -> None:
    """Its session timeout is the longest it takes."""
    from consumers.settings import KafkaSettings

    grace_s = int(SERVICES["guard"]["stop_grace_period"].removesuffix("s"))
    assert grace_s * 1000 > KafkaSettings().session_timeout_ms
    assert "STOPSIGNAL SIGTERM" in DOCKERFILE


def test_the_image_runs_our_command_as_nobody_in_particular() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    entry = re.search(r'^ENTRYPOINT \["(\S+)"\]$', DOCKERFILE, re.MULTILINE)
    assert entry is not None
    assert entry.group(1) in scripts
    user = re.search(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    assert user is not None
    assert int(user.group(1)) > 0
    default = re.search(r'^CMD \["(\S+)"\]$', DOCKERFILE, re.MULTILINE)
    assert default is not None
    assert parse([default.group(1)])[0] == "guardrail run"


def test_everything_that_is_copied_is_in_the_build_context() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied: set[str] = set()
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE):
        copied |= set(line.split()[:-1])
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)


def test_base_images_are_the_same_and_new_enough() -> None:
    bases = re.findall(r"^FROM python:(\d+)\.(\d+)-slim-bookworm", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert tuple(map(int, bases[0])) >= (3, 11)
