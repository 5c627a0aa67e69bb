"""The Docker files, as far as they can be checked without an engine.

``make image-root`` builds the image and starts it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from consumers.gateway.admission import read_keys
from consumers.settings import load_settings
from guardrail import __version__
from guardrail.config import ShutdownSettings
from tests.support.deploy_tools import require_tools, run_tool
from tests.support.docs import parse
from tests.support.helm_chart import VALUES
from tests.support.kafka_broker import DEFAULT_KAFKA_VERSION

ROOT = Path(__file__).resolve().parents[3]
DOCKER = ROOT / "docker"
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKED: dict[str, dict[str, Any]] = {
    package["name"]: package for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
}


# ------------------------------------------------------------------------------------------- Dockerfile


def instruction(name: str) -> str:
    """The only such instruction of the last stage, its lines joined."""
    last = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :].replace("\\\n", " ")
    [found] = re.findall(rf"^{name} (.*)$", last, re.MULTILINE)
    return " ".join(str(found).split())


def test_hadolint_finds_nothing_to_blame() -> None:
    command = [str(Path(sys.executable).with_name("hadolint")), "docker/Dockerfile"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_image_runs_our_command_as_nobody_in_particular() -> None:
    init, end, entry = json.loads(instruction("ENTRYPOINT"))
    assert (init, end) == ("tini", "--"), (
        "else nobody reaps what a command judge leaves, and signals are ignored"
    )
    assert entry in PROJECT["project"]["scripts"]
    uid, gid = map(int, instruction("USER").split(":"))
    assert uid > 0 < gid
    assert parse(json.loads(instruction("CMD")))[0] == "guardrail run"
    assert instruction("STOPSIGNAL") == "SIGTERM"


def test_the_chart_runs_the_image_as_it_is() -> None:
    uid, gid = map(int, instruction("USER").split(":"))
    security = VALUES["podSecurityContext"]
    assert (security["runAsUser"], security["runAsGroup"]) == (uid, gid)
    assert instruction("EXPOSE") == str(VALUES["ops"]["port"])
    assert f"GUARDRAIL_OPS__PORT={VALUES['ops']['port']}" in instruction("ENV")
    assert f"GUARDRAIL_OPS__HOST={VALUES['ops']['host']}" in instruction("ENV")


def test_everything_that_is_copied_is_in_the_build_context() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied: set[str] = set()
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE):
        copied |= set(line.split()[:-1])
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)


def test_both_stages_have_one_base_that_a_digest_can_replace() -> None:
    """Bytecode and links to the interpreter of one stage are used in the other."""
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${PYTHON_IMAGE}", "${PYTHON_IMAGE}"]
    [base] = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", DOCKERFILE, re.MULTILINE)
    version = re.match(r"python:(\d+)\.(\d+)-slim-", base)
    assert version is not None
    assert tuple(map(int, version.groups())) >= (3, 11)


def test_the_labels_name_this_version() -> None:
    assert f'ARG VERSION="{__version__}"' in DOCKERFILE
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', instruction("LABEL")))
    assert labels["licenses"] == PROJECT["project"]["license"]
    assert labels.keys() >= {"title", "description", "version", "revision", "created"}


@contextmanager
def answering(status: int) -> Iterator[tuple[int, list[str]]]:
    """A server that answers everything with this status; its port, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing to standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def health_check(port: int) -> int:
    """The image's own check, run here; its status."""
    program, *arguments = json.loads(instruction("HEALTHCHECK").partition(" CMD ")[2])
    assert program == "python"
    nowhere = "http://127.0.0.1:9"
    environment = {
        **os.environ,
        "GUARDRAIL_OPS__PORT": str(port),
        "http_proxy": nowhere,
        "HTTP_PROXY": nowhere,
    }
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, check=False
    ).returncode


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False), (404, False)])
def test_a_container_is_healthy_while_the_guard_says_that_it_lives(status: int, *, healthy: bool) -> None:
    """Whatever proxy the container was given."""
    with answering(status) as (port, asked):
        assert (health_check(port) == 0) is healthy
    assert asked == ["/livez"]


def test_a_container_where_nothing_answers_is_not_healthy() -> None:
    with answering(200) as (port, _):
        pass
    assert health_check(port) != 0


# --------------------------------------------------------------------------------------- what is locked


def wanted(requirements: list[str]) -> set[tuple[str, str]]:
    parsed = [Requirement(one) for one in requirements]
    return {
        (canonicalize_name(one.name), str(one.specifier))
        for one in parsed
        if one.name != "streaming-guardrail"
    }


def test_the_lock_is_of_this_project() -> None:
    """``make lock`` writes it anew."""
    project = PROJECT["project"]
    requirements = [
        *project["dependencies"],
        *(one for part in project["optional-dependencies"].values() for one in part),
    ]
    metadata = LOCKED["streaming-guardrail"]["metadata"]
    locked = [f"{one['name']}{one.get('specifier', '')}" for one in metadata["requires-dist"]]
    assert wanted(locked) == wanted(requirements), "run: make lock"
    assert set(metadata["provides-extras"]) == set(project["optional-dependencies"]), "run: make lock"
    assert LOCKED["streaming-guardrail"]["source"] == {"editable": "."}


def test_everything_locked_has_a_hash_and_comes_from_pypi() -> None:
    for name, package in LOCKED.items():
        if name == "streaming-guardrail":
            continue
        assert package["source"] == {"registry": "https://pypi.org/simple"}, name
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        assert files, name
        assert all(one["hash"].startswith("sha256:") for one in files), name


def test_what_builds_the_image_is_fixed() -> None:
    [uv, *_] = [line for line in (DOCKER / "uv.txt").read_text().splitlines() if not line.startswith("#")]
    assert re.fullmatch(r"uv==\d+\.\d+\.\d+ \\", uv)
    [constraint] = PROJECT["tool"]["uv"]["build-constraint-dependencies"]
    assert re.fullmatch(r"hatchling==\d+\.\d+\.\d+", constraint)
    assert "--require-hashes" in DOCKERFILE
    assert DOCKERFILE.count("uv sync --locked") == DOCKERFILE.count("uv sync")


def test_the_extras_of_the_image_exist() -> None:
    [extras] = re.findall(r'^ARG EXTRAS="(.*)"$', DOCKERFILE, re.MULTILINE)
    assert set(extras.split()) <= set(PROJECT["project"]["optional-dependencies"])


# ----------------------------------------------------------------------------------------- compose.yaml


def test_compose_itself_takes_the_file() -> None:
    """Loaded by Compose's own loader: schema, references between services, types."""
    answer = run_tool(require_tools(), "compose-spec", "-format", "json", "compose.yaml", cwd=DOCKER)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    loaded = json.loads(answer.stdout)
    assert set(loaded["services"]) == set(SERVICES)
    assert loaded["services"]["guard"]["build"]["context"] == str(ROOT)


def test_services_start_one_after_the_other() -> None:
    assert set(SERVICES) == {"kafka", "topics", "guard", "gateway", "chat", "prometheus", "grafana"}
    assert SERVICES["topics"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}
    assert SERVICES["guard"]["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}
    assert SERVICES["chat"]["depends_on"] == {"guard": {"condition": "service_healthy"}}
    assert SERVICES["kafka"]["healthcheck"]["test"][0] == "CMD"
    assert "healthcheck" not in SERVICES["guard"], "the image's own holds"


@pytest.mark.parametrize("service", ["topics", "guard"])
def test_commands_are_ones_that_guardrail_has(service: str) -> None:
    path, parameters = parse(SERVICES[service]["command"])
    assert path in {"guardrail topics create", "guardrail run"}
    assert parameters["bootstrap_servers"] == "kafka:19092"


def test_the_gateway_is_one_that_starts_with_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    path, parameters = parse(SERVICES["gateway"]["command"])
    for name, value in SERVICES["gateway"]["environment"].items():
        monkeypatch.setenv(name, re.sub(r"\$\{\w+:-(.*)\}", r"\1", value))
    settings = load_settings(None, {"serve": {"host": parameters["host"]}})
    assert (path, settings.serve.publish, read_keys(settings.serve.keys)) == ("guardrail serve", True, [])
    assert settings.kafka.bootstrap_servers == "kafka:19092"
    assert SERVICES["gateway"]["profiles"] == ["gateway"]
    assert SERVICES["gateway"]["ports"] == [f"127.0.0.1:{settings.serve.port}:{settings.serve.port}"]


def test_the_chat_is_the_example() -> None:
    chat = SERVICES["chat"]
    assert chat["entrypoint"][:2] == json.loads(instruction("ENTRYPOINT"))[:2]
    command = [sys.executable, *chat["entrypoint"][3:], "--help"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0
    if "examples" in PROJECT["project"]["optional-dependencies"]:
        assert "examples" in chat["build"].get("args", {}).get("EXTRAS", "").split(), (
            "the image lacks what it imports"
        )
        assert "--host" in chat["command"], "a container's loopback can't be reached from without"
    assert chat["volumes"] == [f"../examples:{chat['environment']['PYTHONPATH']}/examples:ro"]


def test_kafka_is_the_version_under_test_and_advertises_what_clients_use() -> None:
    kafka = SERVICES["kafka"]
    assert kafka["image"] == f"apache/kafka:{DEFAULT_KAFKA_VERSION}"
    assert DEFAULT_KAFKA_VERSION != "4.3.0", "a single broker of it loses transactions when it is stopped"
    advertised = kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert "CONTAINERS://kafka:19092" in advertised
    assert "HOST://localhost:9092" in advertised
    assert kafka["ports"] == ["127.0.0.1:9092:9092"]


@pytest.mark.parametrize("service", SERVICES)
def test_only_this_machine_reaches_a_port_and_variables_are_texts(service: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[service].get("ports", []))
    assert all(isinstance(value, str) for value in SERVICES[service].get("environment", {}).values())
    assert ":latest" not in SERVICES[service].get("image", "")


def test_everything_that_is_mounted_exists() -> None:
    named: set[str] = set()
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DOCKER / source).exists(), source
            else:
                named.add(source)
    assert named == set(COMPOSE["volumes"])


@pytest.mark.parametrize("service", ["guard", "gateway", "chat"])
def test_what_serves_may_write_nowhere_and_do_little(service: str) -> None:
    assert SERVICES[service]["read_only"] is True
    assert SERVICES[service]["cap_drop"] == ["ALL"]
    assert SERVICES[service]["tmpfs"] == [instruction("WORKDIR")]


def test_the_guard_may_drain_before_it_is_killed() -> None:
    for service in ("guard", "gateway"):
        grace_s = int(SERVICES[service]["stop_grace_period"].removesuffix("s"))
        assert grace_s * 1000 > ShutdownSettings().budget_ms


def test_prometheus_asks_every_guard_and_reads_the_alerts() -> None:
    settings = yaml.safe_load((DOCKER / "prometheus.yaml").read_text())
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in SERVICES["prometheus"]["volumes"]}
    assert mounted["/etc/prometheus/prometheus.yml"] == "./prometheus.yaml"
    assert all(path in mounted for path in settings["rule_files"])
    [job] = settings["scrape_configs"]
    [names] = job["dns_sd_configs"]
    assert names["names"] == ["guard"]
    assert names["port"] == int(instruction("EXPOSE"))


def test_grafana_shows_the_dashboard_from_that_prometheus() -> None:
    provisioning = DOCKER / "grafana" / "provisioning"
    [source] = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((provisioning / "dashboards" / "guardrail.yaml").read_text())["providers"]
    mounted = {volume.split(":")[1]: volume.split(":")[0] for volume in SERVICES["grafana"]["volumes"]}
    [dashboard] = [path for path in mounted if path.startswith(provider["options"]["path"] + "/")]
    assert mounted[dashboard] == "../helm/guardrail/files/dashboard.json"
    assert SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == dashboard
