"""Alert rules and dashboard name metrics that there are, and the rules fire when they should."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from guardrail import telemetry
from scripts import metrics_table
from scripts.dashboard import TARGET, dashboard

ROOT = Path(__file__).parents[3]
ALERTS = ROOT / "helm" / "guardrail" / "files" / "alerts.yaml"
RUNBOOK = ROOT / "docs" / "runbook.md"
NAME = re.compile(r"\bguardrail_[a-z_]+")
_EMPTY = telemetry.GuardState(0, 0, 0, 0, 0, saturated=False, oldest_held_s=0.0, partitions=())


def known() -> set[str]:
    """All names under which samples of the metrics may stand, whether there are any yet or not."""
    telemetry.serve_state(lambda: _EMPTY)
    try:
        names: set[str] = set()
        for family in telemetry.REGISTRY.collect():
            names.add(family.name)
            if family.type == "counter":
                names.add(f"{family.name}_total")
            if family.type == "histogram":
                names |= {f"{family.name}_{part}" for part in ("bucket", "sum", "count")}
        return names
    finally:
        telemetry.serve_state(None)


def rules() -> list[dict[str, str]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    found: list[dict[str, str]] = group["rules"]
    return found


def queries() -> Iterator[str]:
    yield from (str(rule["expr"]) for rule in rules())
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


def test_every_query_names_metrics_that_there_are() -> None:
    names = known()
    wanted = {name for query in queries() for name in NAME.findall(query)}
    assert len(wanted) > 20
    assert wanted - names == set()


def test_a_query_for_a_metric_that_is_not_there_would_be_noticed() -> None:
    assert "guardrail_nothing_total" not in known()


def test_the_dashboard_is_what_the_script_writes() -> None:
    assert json.loads(TARGET.read_text()) == dashboard(), "run python scripts/dashboard.py"


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    panels = dashboard()["panels"]
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(x < 24 for x, _ in cells)
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_every_alert_has_its_paragraph_in_the_runbook() -> None:
    headings = {
        f"#{line[3:].strip().lower()}" for line in RUNBOOK.read_text().splitlines() if line.startswith("## ")
    }
    for rule in rules():
        annotations: dict[str, str] = rule["annotations"]  # type: ignore[assignment]
        page, anchor = annotations["runbook"].split("#")
        assert page == "docs/runbook.md"
        assert f"#{anchor}" in headings, rule["alert"]
        assert anchor == rule["alert"].lower()


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        if os.environ.get("CI"):
            pytest.fail("promtool is missing; scripts/test-requirements.sh installs it")
        pytest.skip("promtool is missing (Debian: apt-get install prometheus)")
    cases = tmp_path / "alerts_test.yaml"
    cases.write_text(
        (Path(__file__).parent / "alerts_test.yaml").read_text().replace("ALERTS]", f"{ALERTS}]")
    )
    run = subprocess.run([promtool, "test", "rules", cases], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr + run.stdout


def test_the_page_has_the_table_of_the_metrics_as_they_are() -> None:
    page = metrics_table.PAGE.read_text()
    assert metrics_table.written(page) == page, "run python scripts/metrics_table.py"
