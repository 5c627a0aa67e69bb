"""What docs/deploy.md shows for Kubernetes is what the chart and the operators take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from consumers.settings import GuardSettings, load_settings
from guardrail.client import GuardClient
from guardrail.doctor import PROOF_ROUTE, prove
from guardrail.testing import MemoryGuard, ScriptedJudge
from tests.support.deploy_tools import require_tools, run_tool
from tests.support.helm_chart import ROOT, objects_of, of_kind, render

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
BLOCKS: list[dict[str, Any]] = [
    yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
]


@pytest.fixture
def settings_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GuardSettings:
    [values] = [block for block in BLOCKS if "topics" in block]
    path = tmp_path / "guardrail.yaml"
    path.write_text(yaml.safe_dump(values["config"]["settings"]), encoding="utf-8")
    monkeypatch.setenv("GUARDRAIL_KAFKA__SASL_PASSWORD", "of the Secret")
    return load_settings(path)


async def test_the_first_helm_test_passes_where_the_guards_observe(
    settings_of_the_page: GuardSettings,
) -> None:
    router = settings_of_the_page.router()
    policy = router.choose(PROOF_ROUTE, None)
    assert router.choose("another", None).mode == "observe"
    async with (
        MemoryGuard(ScriptedJudge({"$95": "CONTRADICTED"}), router=router) as guard,
        GuardClient(transport=guard.transport()) as client,
    ):
        assert {check.state for check in await prove(client, policy, within_s=30)} == {"ok"}


def test_the_page_renders_the_chart_as_it_says() -> None:
    [command] = re.findall(r"^    (helm template .*)$", PAGE, re.MULTILINE)
    name, *arguments = command.replace("--values values.yaml ", "").split()
    answer = run_tool(require_tools(), name, *arguments, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr


def test_the_chart_takes_the_values_and_the_guard_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [values] = [block for block in BLOCKS if "topics" in block]
    objects = objects_of(render(require_tools(), changes=values))
    maps = [one["data"] for one in objects if one["kind"] == "ConfigMap" and "guardrail.yaml" in one["data"]]
    path = tmp_path / "guardrail.yaml"
    path.write_text(maps[0]["guardrail.yaml"], encoding="utf-8")
    monkeypatch.setenv("GUARDRAIL_KAFKA__SASL_PASSWORD", "of the Secret")
    assert load_settings(path).kafka.sasl_mechanism == "SCRAM-SHA-512"
    [guard] = of_kind(objects, "StatefulSet")["spec"]["template"]["spec"]["containers"]
    assert guard["envFrom"] == [{"secretRef": {"name": "guardrail"}}]
    assert {"Job", "ServiceMonitor", "PrometheusRule"} <= {one["kind"] for one in objects}


def test_the_chart_takes_the_values_of_the_gateway() -> None:
    [values] = [block for block in BLOCKS if "gateway" in block]
    kinds = [one["kind"] for one in objects_of(render(require_tools(), changes=values))]
    assert {"Deployment", "HorizontalPodAutoscaler"} <= set(kinds)


def test_kyverno_knows_every_field_of_the_policy(tmp_path: Path) -> None:
    tools = require_tools()
    [policy] = [block for block in BLOCKS if block.get("kind") == "ClusterPolicy"]
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(policy), encoding="utf-8")
    answer = run_tool(tools, "kubectl-validate", "--local-crds", str(tools / "crds"), str(path))
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_options_and_targets_of_the_page_exist() -> None:
    targets = set(re.findall(r"`make ([a-z-]+)`", PAGE))
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert targets
    assert targets <= made
    arguments = set(re.findall(r'--build-arg "?([A-Z_]+)=', PAGE))
    declared = set(re.findall(r"^ARG ([A-Z_]+)=", (ROOT / "docker" / "Dockerfile").read_text(), re.MULTILINE))
    assert arguments
    assert arguments <= declared
