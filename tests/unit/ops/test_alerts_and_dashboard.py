"""Alert rules and dashboard name metrics that there are, and the rules fire when they should."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from guardrail import telemetry
from scripts import metrics_table
from scripts.dashboard import TARGET, dashboard
from tests.support.promtool import check_alerts

ROOT = Path(__file__).parents[3]
ALERTS = ROOT / "helm" / "guardrail" / "files" / "alerts.yaml"
CASES = Path(__file__).parent / "alerts_test.yaml"
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
        page, anchor = annotations["runbook_url"].split("#")
        assert page == "docs/runbook.md"
        assert f"#{anchor}" in headings, rule["alert"]
        assert anchor == rule["alert"].lower()


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    cases = CASES.read_text()
    check_alerts(tmp_path, cases.replace("ALERTS]", f"{ALERTS}]"))


def test_of_every_alert_a_case_says_when_it_fires() -> None:
    cases = yaml.safe_load(CASES.read_text())["tests"]
    fired = {
        name
        for case in cases
        for told in (*case.get("promql_expr_test", ()), *case.get("alert_rule_test", ()))
        if told.get("exp_samples") or told.get("exp_alerts")
        for name in re.findall(r"Guardrail\w+", str(told))
    }
    # The chart's cases have the last one: only the chart knows how many guards there should be.
    assert fired == {rule["alert"] for rule in rules()} - {"GuardrailTooFew"}


def test_the_chart_can_scope_every_selector() -> None:
    for rule in rules():
        named = NAME.findall(rule["expr"])
        assert named
        assert len(re.findall(r'guardrail_\w+\{job=~"\.\+"[,}]', rule["expr"])) == len(named), rule["alert"]


def test_the_page_has_the_table_of_the_metrics_as_they_are() -> None:
    page = metrics_table.PAGE.read_text()
    assert metrics_table.written(page) == page, "run python scripts/metrics_table.py"
