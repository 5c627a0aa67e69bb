"""Writes the Grafana dashboard, helm/guardrail/files/dashboard.json. Run it when the panels here change.

python scripts/dashboard.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

_RESPONSES: Final = "guardrail_responses_total"
TARGET: Final = Path(__file__).parent.parent / "helm" / "guardrail" / "files" / "dashboard.json"
_WIDTH: Final = 24
_CHOSEN: Final = 'namespace=~"$namespace", job=~"$job"'


class Panel(NamedTuple):
    """One chart: the queries by legend, and the unit in Grafana's words."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8


def rate(metric: str, by: str = "", where: str = "") -> str:
    """What a counter counts a second, added up over ``by``."""
    labels = f"{_CHOSEN}{', ' + where if where else ''}"
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{{{labels}}}[$__rate_interval]))"


def share(metric: str, whole: str, where: str = "", by: str = "") -> str:
    """The share that a counter has of another one."""
    return f"{rate(metric, by, where)} / {rate(whole, by)}"


def quantile(share_: float, histogram: str, by: str = "") -> str:
    """The seconds within which that share of a histogram lies."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share_}, {rate(f'{histogram}_bucket', labels)})"


def gauge(metric: str, how: str = "sum", by: str = "") -> str:
    """A gauge over all guards."""
    return f"{how}{f' by ({by})' if by else ''} ({metric}{{{_CHOSEN}}})"


ROWS: Final[dict[str, list[Panel]]] = {
    "What users get": [
        Panel(
            "Answers a second",
            {"{{decision}}": rate("guardrail_responses_total", "decision")},
            "reqps",
        ),
        Panel(
            "Share of answers withheld or flagged",
            {
                "blocked": share(
                    "guardrail_responses_total", "guardrail_responses_total", 'decision="block"'
                ),
                "redacted": share(
                    "guardrail_responses_total", "guardrail_responses_total", 'decision="redact"'
                ),
                "flagged": share(_RESPONSES, _RESPONSES, 'decision="flag"'),
            },
            "percentunit",
        ),
        Panel(
            "From a segment being cut to its release",
            {
                "p50": quantile(0.5, "guardrail_release_seconds"),
                "p99": quantile(0.99, "guardrail_release_seconds"),
            },
            "s",
        ),
        Panel(
            "From the end of the text to the decision",
            {
                "p50": quantile(0.5, "guardrail_after_completion_seconds"),
                "p99": quantile(0.99, "guardrail_after_completion_seconds"),
            },
            "s",
        ),
        Panel(
            "Oldest text that waits for its release",
            {"oldest": gauge("guardrail_oldest_unreleased_seconds", "max")},
            "s",
        ),
        Panel(
            "Share of answers that are judged before they are shown",
            {"enforced": share("guardrail_streams_total", "guardrail_streams_total", 'enforced="true"')},
            "percentunit",
        ),
        Panel(
            "Blocks, before and after text was shown",
            {
                "nothing was shown": rate("guardrail_blocks_total", "", 'shown="false"'),
                "text was shown": rate("guardrail_blocks_total", "", 'shown="true"'),
            },
            "ops",
        ),
        Panel(
            "From the end being written to the decision",
            {
                "p50": quantile(0.5, "guardrail_written_to_decided_seconds"),
                "p90": quantile(0.9, "guardrail_written_to_decided_seconds"),
            },
            "s",
        ),
    ],
    "Verdicts": [
        Panel("Claims a second", {"{{verdict}}": rate("guardrail_claims_total", "verdict")}, "ops"),
        Panel(
            "Claims that are not supported, by severity",
            {
                "{{severity}}": rate(
                    "guardrail_claims_total", "severity", 'verdict=~"CONTRADICTED|UNSUPPORTED"'
                )
            },
            "ops",
        ),
        Panel(
            "Score of the answers",
            {
                "median": quantile(0.5, "guardrail_score"),
                "lowest tenth": quantile(0.1, "guardrail_score"),
            },
            "percentunit",
        ),
        Panel("Rules that decided", {"{{rule}}": rate("guardrail_decisions_total", "rule")}, "ops"),
        Panel("Exact findings", {"{{finding}}": rate("guardrail_findings_total", "finding")}, "ops"),
        Panel(
            "Not checked, or judged by less than the whole judge",
            {
                "not checked: {{reason}}": rate("guardrail_unverified_total", "reason"),
                "degraded: {{reason}}": rate("guardrail_degraded_total", "reason"),
            },
            "ops",
        ),
        Panel(
            "Challengers that decide otherwise",
            {
                "{{challenger}}: {{champion_decision}}, it {{challenger_decision}}": rate(
                    "guardrail_challenger_total", "challenger, champion_decision, challenger_decision"
                )
            },
            "ops",
        ),
    ],
    "Judges": [
        Panel(
            "From a claim being cut to its verdict, p99",
            {"{{judge}}": quantile(0.99, "guardrail_verdict_seconds", "judge")},
            "s",
        ),
        Panel(
            "Calls to models, p99",
            {"{{model}} {{outcome}}": quantile(0.99, "guardrail_judge_call_seconds", "model, outcome")},
            "s",
        ),
        Panel(
            "Tokens a second",
            {"{{model}} {{kind}}": rate("guardrail_judge_tokens_total", "model, kind")},
        ),
        Panel(
            "Cost an hour",
            {"{{model}}": f"3600 * {rate('guardrail_judge_cost_usd_total', 'model')}"},
            "currencyUSD",
        ),
        Panel(
            "Circuit breakers: 0 closed, 1 half open, 2 open",
            {"{{model}}": gauge("guardrail_judge_circuit_state", "max", "model")},
        ),
        Panel(
            "Requests to the judge",
            {"judged": gauge("guardrail_judging"), "waiting": gauge("guardrail_judge_queue")},
        ),
        Panel(
            "How far the judge is behind",
            {
                "{{instance}}": gauge("guardrail_judge_wait_seconds", "max", "instance"),
                "guards that wait to read": gauge("guardrail_judge_behind"),
            },
            "s",
        ),
    ],
    "The gateway": [
        Panel(
            "Requests a second",
            {"{{endpoint}} {{status}}": rate("guardrail_http_requests_total", "endpoint, status")},
            "reqps",
        ),
        Panel(
            "Share that fails",
            {
                "{{endpoint}}": share(
                    "guardrail_http_requests_total",
                    "guardrail_http_requests_total",
                    'status=~"5.."',
                    "endpoint",
                )
            },
            "percentunit",
        ),
        Panel(
            "Verdicts and cases for Kafka",
            {"{{outcome}}": rate("guardrail_published_events_total", "outcome")},
            "ops",
        ),
    ],
    "The guards": [
        Panel(
            "Records not read yet",
            {"{{topic}} {{partition}}": gauge("guardrail_partition_lag_records", "sum", "topic, partition")},
        ),
        Panel(
            "In flight",
            {"answers": gauge("guardrail_sessions"), "claims": gauge("guardrail_pending_claims")},
        ),
        Panel(
            "Text in flight, characters",
            {"{{instance}}": gauge("guardrail_in_flight_chars", "sum", "instance")},
        ),
        Panel("Partitions", {"{{state}}": gauge("guardrail_partitions", "sum", "state")}),
        Panel(
            "Commit of a step",
            {
                "p50": quantile(0.5, "guardrail_commit_seconds"),
                "p99": quantile(0.99, "guardrail_commit_seconds"),
            },
            "s",
        ),
        Panel(
            "What goes wrong",
            {
                "dead letters: {{reason}}": rate("guardrail_dead_letters_total", "reason"),
                "failed steps": rate("guardrail_failed_steps_total"),
                "failed takeovers": rate("guardrail_failed_takeovers_total"),
                "partitions revoked": rate("guardrail_rebalances_total", "", 'event="revoked"'),
                "overloads": rate("guardrail_overloads_total"),
            },
            "ops",
        ),
        Panel(
            "At a bound, reading no more", {"{{instance}}": gauge("guardrail_saturated", "max", "instance")}
        ),
        Panel(
            "Changed settings that can't be read",
            {"{{instance}}": gauge("guardrail_config_reload_failed", "max", "instance")},
        ),
        Panel(
            "Kafka away, other groups",
            {
                "away: {{instance}}": gauge("guardrail_kafka_away", "max", "instance"),
                "other groups": gauge("guardrail_other_groups", "max"),
            },
        ),
    ],
}


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for row, charts in ROWS.items():
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": row,
                "collapsed": False,
                "gridPos": {"x": 0, "y": y, "w": _WIDTH, "h": 1},
                "panels": [],
            }
        )
        y += 1
        for place, chart in enumerate(charts):
            x = place * chart.width % _WIDTH
            panels.append(_chart(chart, len(panels) + 1, x, y + place * chart.width // _WIDTH * 8))
        y += 8 * -(-sum(chart.width for chart in charts) // _WIDTH)
    return {
        "uid": "streaming-guardrail",
        "title": "Streaming guardrail",
        "tags": ["guardrail"],
        "schemaVersion": 39,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Data source",
                    "type": "datasource",
                    "query": "prometheus",
                    "current": {},
                },
                _chosen("namespace", "Namespace", "guardrail_build_info"),
                _chosen("job", "Job", 'guardrail_build_info{namespace=~"$namespace"}'),
            ]
        },
        "panels": panels,
    }


def _chosen(name: str, label: str, of: str) -> dict[str, Any]:
    """A choice among the values of a label, all of them at first, and what lacks the label."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": f"label_values({of}, {name})",
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }


def _chart(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": 8},
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 8, "showPoints": "never"}},
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": query, "legendFormat": legend}
            for place, (legend, query) in enumerate(panel.queries.items())
        ],
    }


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(dashboard(), indent=1) + "\n")
