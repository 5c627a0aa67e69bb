"""The Helm chart, rendered by the real helm.

    .venv/bin/python -m tests.support.helm_chart

records anew what each ``helm/guardrail/ci/*-values.yaml`` renders to, in ``tests/unit/helm/expected/``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.deploy_tools import run_tool, tools_folder

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "helm" / "guardrail"
EXPECTED: Final = ROOT / "tests" / "unit" / "helm" / "expected"
CASES: Final = {
    path.name.removesuffix("-values.yaml"): path for path in sorted(CHART.glob("ci/*-values.yaml"))
}
VALUES: Final[dict[str, Any]] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
RELEASE: Final = "guard"
NAMESPACE: Final = "chat"

Objects = list[dict[str, Any]]


class RenderError(Exception):
    """What helm says of values that it refuses."""


def render(tools: Path, values: Path | None = None, changes: Mapping[str, Any] | None = None) -> str:
    """What ``helm template`` writes with a file of values, and with changes over it. Raises RenderError."""
    arguments = ["template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--kube-version", "1.30.0"]
    if values is not None:
        arguments += ["--values", str(values)]
    given = None
    if changes is not None:
        arguments += ["--values", "-"]
        given = yaml.safe_dump(dict(changes))
    answer = run_tool(tools, "helm", *arguments, given=given)
    if answer.returncode != 0:
        raise RenderError(answer.stderr)
    return answer.stdout


def objects_of(rendered: str) -> Objects:
    return [one for one in yaml.safe_load_all(rendered) if one]


def of_kind(objects: Objects, kind: str) -> dict[str, Any]:
    """The only object of a kind, but for those of the gateway and the subscriber to flagged cases."""
    [found] = [one for one in objects if one["kind"] == kind and not _beside(one)]
    return found


def workload_of(objects: Objects) -> dict[str, Any]:
    """The guard's."""
    [found] = [one for one in objects if one["kind"] in {"StatefulSet", "Deployment"} and not _beside(one)]
    return found


def _beside(one: dict[str, Any]) -> bool:
    labels = one["metadata"].get("labels") or {}
    return bool(labels.get("app.kubernetes.io/component") in {"flagged", "gateway"})


def pod_specs(objects: Objects) -> Iterator[dict[str, Any]]:
    for one in objects:
        if one["kind"] == "Pod":
            yield one["spec"]
        elif one["kind"] in {"StatefulSet", "Deployment", "Job"}:
            yield one["spec"]["template"]["spec"]


def record() -> None:
    for name, values in CASES.items():
        (EXPECTED / f"{name}.yaml").write_text(render(tools_folder(), values), encoding="utf-8")
        sys.stdout.write(f"recorded {name}\n")


if __name__ == "__main__":
    record()
